//! Reads safetensors: the length of the header, the header in JSON, then the numbers of all tensors without gaps.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::Path,
    sync::{Arc, Mutex},
};

use ::safetensors::{Dtype, tensor::TensorInfo};
use burn::tensor::DType;

use super::{MAX_HEADER, Numbers, Stored, Tensors, file_part::FilePart, unique::Unique};

pub(super) fn open(path: &Path) -> Result<Tensors, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let file_len = file.metadata().map_err(|error| error.to_string())?.len();
    let mut len = [0; 8];
    file.read_exact(&mut len)
        .map_err(|error| error.to_string())?;
    let header_len = u64::from_le_bytes(len);
    let most = MAX_HEADER.min(file_len.saturating_sub(8));
    if header_len > most {
        return Err(format!(
            "its header should have {header_len} bytes, but there are at most {most} in a file of {file_len}"
        ));
    }
    let mut header = vec![0; header_len as usize];
    file.read_exact(&mut header)
        .map_err(|error| error.to_string())?;
    // The crate's own reader needs the whole file in memory.
    let Unique::<TensorInfo>(tensors) = serde_json::from_slice(&header)
        .map_err(|error| format!("its header is damaged: {error}"))?;
    let start = 8 + header_len;
    check_places(&tensors, file_len - start)?;
    let file = Arc::new(Mutex::new(file));
    let stored = tensors.into_iter().map(|(name, info)| {
        let (first, last) = info.data_offsets;
        let part = FilePart {
            file: file.clone(),
            at: start + first as u64,
            left: (last - first) as u64,
        };
        let stored = Stored {
            shape: info.shape,
            dtype: number(info.dtype),
            dtype_name: format!("{:?}", info.dtype),
            numbers: Numbers::File(part, None),
        };
        (name, stored)
    });
    Ok(stored.collect())
}

fn number(dtype: Dtype) -> Option<DType> {
    match dtype {
        Dtype::F64 => Some(DType::F64),
        Dtype::F32 => Some(DType::F32),
        Dtype::F16 => Some(DType::F16),
        Dtype::BF16 => Some(DType::BF16),
        _ => None,
    }
}

/// Checks that the tensors fill `len` bytes one after the other, each with as many bytes as its shape requires.
fn check_places(tensors: &BTreeMap<String, TensorInfo>, len: u64) -> Result<(), String> {
    let mut places: Vec<_> = tensors.iter().collect();
    places.sort_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    for (name, info) in places {
        let (first, last) = info.data_offsets;
        let (name, shape, dtype) = (name.escape_debug(), &info.shape, info.dtype);
        if last as u64 > len {
            return Err(format!("tensor {name} ends at byte {last} of {len}"));
        }
        if first != end || last < first {
            return Err(format!(
                "tensor {name} lies in the bytes {first} to {last}, but the one before ends at {end}"
            ));
        }
        let count = shape
            .iter()
            .try_fold(1usize, |count, &size| count.checked_mul(size));
        let bits = count.and_then(|count| count.checked_mul(dtype.bitsize()));
        if bits != (last - first).checked_mul(8) {
            return Err(format!(
                "tensor {name} of {dtype:?} and shape {shape:?} cannot lie in {} bytes",
                last - first
            ));
        }
        end = last;
    }
    match end as u64 == len {
        true => Ok(()),
        false => Err(format!("its tensors end at byte {end} of {len}")),
    }
}
