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

use super::{Numbers, Stored, Tensors, blocks::Quantised, file_part::FilePart};
use header::{Contents, Header};

/// How a type stores numbers, in blocks that lie in the rows of a tensor.
#[derive(Clone, Copy)]
struct Packing {
    /// As which the numbers are read.
    dtype: DType,
    /// Numbers and bytes of a block.
    numbers: usize,
    bytes: usize,
    quantised: Option<Quantised>,
}

/// The names of ggml's types, by number from 0 on; `-` for a number without a type.
const NAMES: &str = "F32 F16 Q4_0 Q4_1 - - Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S \
     IQ4_XS I8 I16 I32 I64 F64 IQ1_M BF16 - - - TQ1_0 TQ2_0 - - - MXFP4";

/// The name of a type, and how it stores numbers, if it is read.
fn kind(number: u32) -> (String, Option<Packing>) {
    let name = NAMES.split(' ').nth(number as usize);
    let name = name.filter(|&name| name != "-").map(str::to_owned);
    let name = name.unwrap_or_else(|| format!("GGML type {number}"));
    let float = |dtype: DType| Packing {
        dtype,
        numbers: 1,
        bytes: dtype.size(),
        quantised: None,
    };
    let blocks = |kind: Quantised| Packing {
        dtype: DType::F32,
        numbers: kind.numbers(),
        bytes: kind.bytes(),
        quantised: Some(kind),
    };
    let packing = match name.as_str() {
        "F64" => float(DType::F64),
        "F32" => float(DType::F32),
        "F16" => float(DType::F16),
        "BF16" => float(DType::BF16),
        "Q4_0" => blocks(Quantised::Q4),
        "Q8_0" => blocks(Quantised::Q8),
        "Q6_K" => blocks(Quantised::Q6K),
        _ => return (name, None),
    };
    (name, Some(packing))
}

fn header(path: &Path) -> Result<(File, u64, Contents), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let len = file.metadata().map_err(|error| error.to_string())?.len();
    let contents = Header::new(&file, len).contents()?;
    Ok((file, len, contents))
}

pub(super) fn open(path: &Path) -> Result<Tensors, String> {
    let (file, file_len, contents) = header(path)?;
    let (start, alignment) = (contents.start, contents.alignment);
    let len = file_len.saturating_sub(start);
    let file = Arc::new(Mutex::new(file));
    let mut places = Vec::new();
    let mut tensors = Tensors::new();
    for (name, info) in contents.tensors {
        let (dtype_name, packing) = kind(info.kind);
        let (shown, shape, offset) = (name.escape_debug(), info.shape, info.offset);
        // The size of a type that is not read is not known.
        let Some(bytes) = packing.map_or(Some(0), |packing| size(&shape, packing)) else {
            return Err(format!(
                "tensor {shown} cannot be of {dtype_name} and shape {shape:?}"
            ));
        };
        if !offset.is_multiple_of(alignment) {
            return Err(format!(
                "tensor {shown} lies at byte {offset}, which is no multiple of the alignment of {alignment}"
            ));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > len) {
            return Err(format!(
                "tensor {shown} of {bytes} bytes cannot lie at byte {offset} of {len}"
            ));
        }
        places.push((offset, bytes, shown.to_string()));
        let part = FilePart {
            file: file.clone(),
            at: start + offset,
            left: bytes,
        };
        let stored = Stored {
            shape,
            dtype: packing.map(|packing| packing.dtype),
            dtype_name,
            numbers: Numbers::File(part, packing.and_then(|packing| packing.quantised)),
        };
        tensors.insert(name, stored);
    }
    places.sort_unstable();
    let overlap = places
        .windows(2)
        .find(|pair| pair[0].0 + pair[0].1 > pair[1].0);
    match overlap {
        Some(pair) => Err(format!("tensors {} and {} overlap", pair[0].2, pair[1].2)),
        None => Ok(tensors),
    }
}

/// The values of a file's metadata by key; arrays are empty, and long texts left out.
pub(crate) fn metadata(path: &Path) -> Result<Map<String, Value>, String> {
    Ok(header(path)?.2.metadata)
}

/// Bytes of a tensor; `None` if there can be no such tensor.
fn size(shape: &[usize], Packing { numbers, bytes, .. }: Packing) -> Option<u64> {
    if !shape.last().unwrap_or(&1).is_multiple_of(numbers) {
        return None;
    }
    let mut sizes = shape.iter();
    let count = sizes.try_fold(1usize, |count, &size| count.checked_mul(size))?;
    let bytes = (count / numbers).checked_mul(bytes)?;
    Some(bytes as u64)
}
