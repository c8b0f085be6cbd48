//! Reads GGUF, the format of ggml and llama.cpp: metadata, the names, types and places of all tensors, then their numbers.
//!
//! Source: `docs/gguf.md` of ggml, versions 2 and 3, little-endian. Names longer than 64 KiB are refused (ggml's have at most 63 bytes), and alignments of
//! more than 1 MiB.
//!
//! The names and numbers are those of the file. What llama.cpp's converter has made of a model of `transformers` is not taken back: it renames the
//! tensors, permutes the rows of query and key of Llama, Mistral and Mixtral, and adds 1 to the norms of Gemma.

mod header;

use std::{
    fs::File,
    path::Path,
    sync::{Arc, Mutex},
};

use burn::tensor::DType;
use serde_json::{Map, Value};

use super::{Numbers, Stored, Tensors, blocks::Quantised};
use header::{Contents, Header};

/// What a tensor's numbers are.
#[derive(Clone, Copy)]
enum Kind {
    Float(DType),
    Quantised(Quantised),
    /// Of a type that is not read, and whose size is not known.
    Other,
}

/// The names of ggml's types, by number from 0 on; `-` for a number without a type.
const NAMES: &str = "F32 F16 Q4_0 Q4_1 - - Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S \
     IQ4_XS I8 I16 I32 I64 F64 IQ1_M BF16 - - - TQ1_0 TQ2_0 - - - MXFP4";

/// The name of a type, and what it is.
fn kind(number: u32) -> (String, Kind) {
    let name = NAMES.split(' ').nth(number as usize);
    let name = name.filter(|&name| name != "-").map(str::to_owned);
    let name = name.unwrap_or_else(|| format!("GGML type {number}"));
    let kind = match name.as_str() {
        "F64" => Kind::Float(DType::F64),
        "F32" => Kind::Float(DType::F32),
        "F16" => Kind::Float(DType::F16),
        "BF16" => Kind::Float(DType::BF16),
        "Q4_0" => Kind::Quantised(Quantised::Q4),
        "Q8_0" => Kind::Quantised(Quantised::Q8),
        "Q6_K" => Kind::Quantised(Quantised::Q6K),
        _ => Kind::Other,
    };
    (name, kind)
}

pub(super) fn open(path: &Path) -> Result<Tensors, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let file_len = file.metadata().map_err(|error| error.to_string())?.len();
    let Contents {
        tensors: infos,
        start,
        alignment,
        ..
    } = Header::new(&file, file_len).contents()?;
    let len = file_len.saturating_sub(start);
    let file = Arc::new(Mutex::new(file));
    let mut places = Vec::new();
    let mut tensors = Tensors::new();
    for (name, info) in infos {
        let (dtype_name, kind) = kind(info.kind);
        let (dtype, bytes) = match kind {
            Kind::Float(dtype) => (Some(dtype), size(&info.shape, 1, dtype.size())),
            Kind::Quantised(kind) => (
                Some(DType::F32),
                size(&info.shape, kind.numbers(), kind.bytes()),
            ),
            Kind::Other => (None, Some(0)),
        };
        let Some(bytes) = bytes else {
            return Err(format!(
                "tensor {} cannot be of {dtype_name} and shape {:?}",
                name.escape_debug(),
                info.shape
            ));
        };
        if !info.offset.is_multiple_of(alignment) {
            return Err(format!(
                "tensor {} lies at byte {}, which is no multiple of the alignment of {alignment}",
                name.escape_debug(),
                info.offset
            ));
        }
        let end = info.offset.checked_add(bytes).filter(|&end| end <= len);
        if end.is_none() {
            return Err(format!(
                "tensor {} of {bytes} bytes cannot lie at byte {} of {len}",
                name.escape_debug(),
                info.offset
            ));
        }
        places.push((info.offset, bytes, name.clone()));
        let blocks = match kind {
            Kind::Quantised(kind) => Some(kind),
            Kind::Float(_) | Kind::Other => None,
        };
        let stored = Stored {
            shape: info.shape,
            dtype,
            dtype_name,
            numbers: Numbers::File {
                file: file.clone(),
                start: start + info.offset,
                len: bytes,
                blocks,
            },
        };
        tensors.insert(name, stored);
    }
    places.sort_unstable();
    for pair in places.windows(2) {
        let [(first, bytes, name), (second, _, other)] = pair else {
            continue;
        };
        if first + bytes > *second {
            return Err(format!(
                "tensors {} and {} overlap",
                name.escape_debug(),
                other.escape_debug()
            ));
        }
    }
    Ok(tensors)
}

/// The values of a file's metadata by key; arrays are empty, and long texts left out.
pub(crate) fn metadata(path: &Path) -> Result<Map<String, Value>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let file_len = file.metadata().map_err(|error| error.to_string())?.len();
    Ok(Header::new(&file, file_len).contents()?.metadata)
}

/// Bytes of a tensor in blocks of `numbers` numbers and `bytes` bytes, which lie in its rows; `None` if there can be no such tensor.
fn size(shape: &[usize], numbers: usize, bytes: usize) -> Option<u64> {
    let row = shape.last().copied().unwrap_or(1);
    if !row.is_multiple_of(numbers) {
        return None;
    }
    let count = shape
        .iter()
        .try_fold(1usize, |count, &size| count.checked_mul(size))?;
    (count / numbers)
        .checked_mul(bytes)
        .map(|bytes| bytes as u64)
}
