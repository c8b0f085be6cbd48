//! Reads safetensors: the length of the header, the header in JSON, then the numbers of all tensors without gaps.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::Path,
    sync::{Arc, Mutex},
};

use ::safetensors::tensor::TensorInfo;

use super::{
    packing::{FilePart, count},
    stored::{MAX_HEADER, Stored, Tensors},
    unique::Unique,
};
use crate::weights::{Reason, ensure};

pub(super) fn open(path: &Path) -> Result<Tensors, Reason> {
    let mut file = File::open(path)?;
    let file_len = file.metadata()?.len();
    let mut len = [0; 8];
    file.read_exact(&mut len)?;
    let header_len = u64::from_le_bytes(len);
    let most = MAX_HEADER.min(file_len.saturating_sub(8));
    ensure!(
        header_len <= most,
        "its header should have {header_len} bytes, but there are at most {most} in a file of {file_len}"
    );
    let mut header = vec![0; header_len as usize];
    file.read_exact(&mut header)?;
    // The crate's own reader needs the whole file in memory.
    let Unique::<TensorInfo>(tensors) = serde_json::from_slice(&header)
        .map_err(|error| format!("its header is damaged: {error}"))?;
    let numbers = 8 + header_len;
    check_places(&tensors, file_len - numbers)?;
    let file = Arc::new(Mutex::new(file));
    let stored = tensors.into_iter().map(|(name, info)| {
        let (first, last) = info.data_offsets;
        let part = FilePart {
            file: file.clone(),
            start: numbers + first as u64,
            len: (last - first) as u64,
        };
        let dtype_name = format!("{:?}", info.dtype);
        (name, Stored::in_file(info.shape, dtype_name, part))
    });
    Ok(stored.collect())
}

/// Checks that the tensors fill `len` bytes one after the other, each with as many bytes as its shape requires.
fn check_places(tensors: &BTreeMap<String, TensorInfo>, len: u64) -> Result<(), String> {
    let mut places: Vec<_> = tensors.iter().collect();
    places.sort_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    for (name, info) in places {
        let (first, last) = info.data_offsets;
        let (name, shape, dtype) = (name.escape_debug(), &info.shape, info.dtype);
        ensure!(
            last as u64 <= len,
            "tensor {name} ends at byte {last} of {len}"
        );
        ensure!(
            first == end && first <= last,
            "tensor {name} lies in the bytes {first} to {last}, but the one before ends at {end}"
        );
        let bits = count(shape).and_then(|count| count.checked_mul(dtype.bitsize()));
        let bytes = last - first;
        ensure!(
            bits == bytes.checked_mul(8),
            "tensor {name} of {dtype:?} and shape {shape:?} cannot lie in {bytes} bytes"
        );
        end = last;
    }
    ensure!(end as u64 == len, "its tensors end at byte {end} of {len}");
    Ok(())
}
