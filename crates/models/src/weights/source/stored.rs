//! Tensors in files, and their limits.

use std::{collections::BTreeMap, ops::Range};

use burn::tensor::{DType, TensorData};
use burn_store::burn_pack::Tensor as PackTensor;

use super::packing::{FilePart, Packing, count};
use crate::weights::{Reason, ensure};

/// The most tensors that a checkpoint may have; published ones have fewer than 100 000.
pub(super) const MAX_TENSORS: usize = 250_000;
/// The longest header or index accepted, in bytes: the limit of safetensors.
pub(super) const MAX_HEADER: u64 = 100_000_000;
/// The longest name of a tensor accepted, in bytes; published ones have fewer than 200.
pub(super) const MAX_NAME: usize = 1 << 16;
/// More than any head is wide.
const MAX_SMALL: usize = 1 << 16;

pub(in crate::weights) type Tensors = BTreeMap<String, Stored>;

/// A tensor in a file.
#[derive(Clone, Debug)]
pub(in crate::weights) struct Stored {
    pub(in crate::weights) shape: Vec<usize>,
    /// `None` if it does not hold floating-point numbers that a parameter can have.
    pub(in crate::weights) dtype: Option<DType>,
    /// The dtype as the file calls it.
    pub(in crate::weights) dtype_name: String,
    numbers: Numbers,
}

#[derive(Clone, Debug)]
enum Numbers {
    File(FilePart),
    /// In the reader of the format.
    Pack(PackTensor),
}

/// Reads the numbers in a range of a tensor, which are whole blocks, in little-endian bytes.
pub(in crate::weights) type Reader<'a> = Box<dyn Fn(Range<usize>) -> Result<Vec<u8>, Reason> + 'a>;

/// Whether these are floating-point numbers that a parameter and a file can have.
pub(crate) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
}

impl Stored {
    pub(super) fn in_file(shape: Vec<usize>, dtype_name: String, part: FilePart) -> Self {
        Self {
            shape,
            dtype: Packing::of(&dtype_name).map(Packing::dtype),
            dtype_name,
            numbers: Numbers::File(part),
        }
    }

    pub(super) fn in_pack(tensor: PackTensor) -> (String, Self) {
        let (name, dtype) = (tensor.name.clone(), tensor.dtype);
        let stored = Self {
            shape: tensor.shape.to_vec(),
            dtype: is_float(dtype).then_some(dtype),
            dtype_name: format!("{dtype:?}"),
            numbers: Numbers::Pack(tensor),
        };
        (name, stored)
    }

    pub(in crate::weights) fn open(&self) -> Result<(DType, Reader<'_>), Reason> {
        let dtype = self
            .dtype
            .ok_or_else(|| format!("it holds {}", self.dtype_name))?;
        let reader: Reader = match &self.numbers {
            Numbers::File(part) => {
                let packing = Packing::of(&self.dtype_name).ok_or("its packing is not known")?;
                Box::new(move |numbers| part.numbers(packing, numbers))
            }
            Numbers::Pack(tensor) => {
                let bytes = tensor.to_bytes()?;
                // Reads the file here, where a failure does not panic.
                bytes.read(Default::default())?;
                let size = dtype.size();
                Box::new(move |numbers| {
                    let found = bytes.get(numbers.start * size..numbers.end * size);
                    Ok(found.ok_or("its numbers end early")?.to_vec())
                })
            }
        };
        Ok((dtype, reader))
    }

    /// The numbers of a tensor that has at most [`MAX_SMALL`].
    pub(in crate::weights) fn small(&self) -> Result<Vec<f64>, Reason> {
        let (dtype, read) = self.open()?;
        let count = count(&self.shape).filter(|&count| count <= MAX_SMALL);
        let count = count.ok_or_else(|| format!("its shape is {:?}", self.shape))?;
        let data = TensorData::from_bytes_vec(read(0..count)?, [count], dtype);
        Ok(data.iter().collect())
    }
}

pub(super) fn check_count(count: u64) -> Result<(), String> {
    ensure!(
        count <= MAX_TENSORS as u64,
        "it has {count} tensors, and at most {MAX_TENSORS} are read"
    );
    Ok(())
}
