//! Reads GGUF, the format of ggml and llama.cpp: metadata, the names, types and places of all tensors, then their numbers.
//!
//! Source: `docs/gguf.md` of ggml, versions 2 and 3, little-endian. Names longer than 64 KiB are refused (ggml's have at most 63 bytes), and alignments of
//! more than 1 MiB.
//!
//! Names and numbers are those of the file: [`Weights::open`](crate::weights::Weights::open) says what llama.cpp's converter changes.

mod header;

use std::{
    fs::File,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::{Map, Value};

use super::{
    packing::{FilePart, Packing},
    stored::{Stored, Tensors},
};
use crate::weights::{Reason, ensure};
use header::Header;

/// The names of ggml's types, by number from 0 on; `-` for a number without a type.
const NAMES: &str = "F32 F16 Q4_0 Q4_1 - - Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S \
     IQ4_XS I8 I16 I32 I64 F64 IQ1_M BF16 - - - TQ1_0 TQ2_0 - - - MXFP4";

/// The values of a file's metadata by key, and its tensors. Arrays are empty, and so are long texts and texts that are not UTF-8, as arrays.
pub(in crate::weights) fn open(path: &Path) -> Result<(Map<String, Value>, Tensors), Reason> {
    let file = File::open(path)?;
    let file_len = file.metadata()?.len();
    let contents = Header::new(&file, file_len).contents()?;
    let (start, alignment) = (contents.start, contents.alignment);
    let parts = contents.metadata.get("split.count").and_then(Value::as_u64);
    ensure!(
        parts.is_none_or(|parts| parts <= 1),
        "it is one of {} parts, which gguf-split --merge joins into one file",
        parts.unwrap_or_default()
    );
    let len = file_len.saturating_sub(start);
    let file = Arc::new(Mutex::new(file));
    let mut places = Vec::new();
    let mut tensors = Tensors::new();
    for (name, info) in contents.tensors {
        let dtype_name = NAMES.split(' ').nth(info.kind as usize);
        let dtype_name = dtype_name.filter(|&name| name != "-").map(str::to_owned);
        let dtype_name = dtype_name.unwrap_or_else(|| format!("GGML type {}", info.kind));
        let (shown, shape, offset) = (name.escape_debug().to_string(), info.shape, info.offset);
        // The size of a type that is not read is not known.
        let size = Packing::of(&dtype_name).map_or(Some(0), |packing| packing.size(&shape));
        let impossible = || format!("tensor {shown} cannot be of {dtype_name} and shape {shape:?}");
        let size = size.ok_or_else(impossible)?;
        ensure!(
            offset.is_multiple_of(alignment),
            "tensor {shown} lies at byte {offset}, which is no multiple of the alignment of {alignment}"
        );
        ensure!(
            offset.checked_add(size).is_some_and(|end| end <= len),
            "tensor {shown} of {size} bytes cannot lie at byte {offset} of {len}"
        );
        places.push((offset, size, shown));
        let part = FilePart {
            file: file.clone(),
            start: start + offset,
            len: size,
        };
        tensors.insert(name, Stored::in_file(shape, dtype_name, part));
    }
    places.sort_unstable();
    let mut pairs = places.windows(2);
    match pairs.find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
        Some(pair) => Err(format!("tensors {} and {} overlap", pair[0].2, pair[1].2).into()),
        None => Ok((contents.metadata, tensors)),
    }
}
