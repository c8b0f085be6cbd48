//! Named tensors in files. Their numbers stay there until they are read.

mod gguf;
mod packing;
mod safetensors;
mod shards;
mod unique;

pub(crate) use gguf::metadata as gguf_metadata;
pub(super) use packing::count;
#[cfg(feature = "hub")]
pub(crate) use shards::shards;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    ops::Range,
    path::Path,
};

use burn::tensor::{Bytes, DType, TensorData};
use burn_store::{
    bridge,
    burn_pack::{self, Tensor as PackTensor},
    pytorch_reader::PytorchReader,
};

use super::{Reason, WeightsError, ensure};
use packing::{FilePart, Packing};

/// The most tensors that a checkpoint may have; published ones have fewer than 100 000.
const MAX_TENSORS: usize = 250_000;
/// The longest header or index accepted, in bytes: the limit of safetensors.
const MAX_HEADER: u64 = 100_000_000;
/// The longest name of a tensor accepted, in bytes; published ones have fewer than 200.
const MAX_NAME: usize = 1 << 16;
/// More than any head is wide.
const MAX_SMALL: usize = 1 << 16;

pub(super) type Tensors = BTreeMap<String, Stored>;

/// A tensor in a file.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) shape: Vec<usize>,
    /// `None` if it does not hold floating-point numbers that a parameter can have.
    pub(super) dtype: Option<DType>,
    /// Its dtype as the file calls it.
    pub(super) dtype_name: String,
    numbers: Numbers,
}

#[derive(Clone, Debug)]
enum Numbers {
    File(FilePart),
    /// Wherever the reader of the format finds them.
    Pack(PackTensor),
}

/// Reads the numbers in a range of a tensor, which are whole rows, in little-endian bytes.
pub(super) type Reader<'a> = Box<dyn Fn(Range<usize>) -> Result<Vec<u8>, Reason> + 'a>;

/// Whether these are floating-point numbers that a parameter and a file can have.
pub(crate) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
}

impl Stored {
    fn in_file(shape: Vec<usize>, dtype_name: String, part: FilePart) -> Self {
        Self {
            shape,
            dtype: Packing::of(&dtype_name).map(Packing::dtype),
            dtype_name,
            numbers: Numbers::File(part),
        }
    }

    fn in_pack(tensor: PackTensor) -> (String, Self) {
        let (name, dtype) = (tensor.name.clone(), tensor.dtype);
        let stored = Self {
            shape: tensor.shape.to_vec(),
            dtype: is_float(dtype).then_some(dtype),
            dtype_name: format!("{dtype:?}"),
            numbers: Numbers::Pack(tensor),
        };
        (name, stored)
    }

    pub(super) fn open(&self) -> Result<(DType, Reader<'_>), Reason> {
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
    pub(super) fn small(&self) -> Result<Vec<f64>, Reason> {
        let (dtype, read) = self.open()?;
        let count = count(&self.shape).filter(|&count| count <= MAX_SMALL);
        let count = count.ok_or_else(|| format!("its shape is {:?}", self.shape))?;
        let data = TensorData::from_bytes_vec(read(0..count)?, [count], dtype);
        Ok(data.iter().collect())
    }
}

/// The names that `transformers` gives the weights of a folder, in its order of preference.
pub(crate) const WEIGHT_FILES: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// The tensors of a file, of the shards that an index names, or of a folder with either.
pub(super) fn open(path: &Path) -> Result<Tensors, WeightsError> {
    let mut of_folder = WEIGHT_FILES.iter().map(|name| path.join(name));
    let file = match path.is_dir() {
        true => of_folder.find(|path| path.exists()),
        false => Some(path.into()),
    };
    let Some(file) = file else {
        let reason = format!("the folder has none of {}", WEIGHT_FILES.join(", "));
        return Err(WeightsError::file(path, reason));
    };
    match format(&file).map_err(|reason| WeightsError::file(&file, reason))? {
        Format::Index => shards::open(&file),
        _ => open_shard(&file),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Safetensors,
    Burnpack,
    /// Of ggml and llama.cpp.
    Gguf,
    /// In JSON: it names the shards of a model.
    Index,
    /// What `torch.save` wrote, or an unknown format.
    Other,
}

/// The format of a file, by its first bytes.
pub(crate) fn format(path: &Path) -> Result<Format, Reason> {
    // Checked first, because opening a pipe blocks until another process writes to it.
    ensure!(fs::metadata(path)?.is_file(), "it is not a regular file");
    let start = start(path, 9)?;
    // First the formats that begin with a name, behind which any byte may follow. Safetensors begin with the length of their header, and none is so
    // long that its length reads like a name.
    Ok(match (start.first(), start.get(8)) {
        (None, _) => return Err("the file is empty".into()),
        _ if start.starts_with(b"NRUB") => Format::Burnpack,
        _ if start.starts_with(b"GGUF") => Format::Gguf,
        (_, Some(b'{')) => Format::Safetensors,
        (Some(b'{'), _) => Format::Index,
        _ => Format::Other,
    })
}

/// What to say of a file that Git LFS has not fetched; `None` if this is none.
pub(crate) fn lfs_pointer(path: &Path) -> Option<String> {
    const BEGINS: &[u8] = b"version https://git-lfs.github.com/spec/";
    let is_pointer = start(path, BEGINS.len()).is_ok_and(|start| start == BEGINS);
    is_pointer.then(|| "it is a pointer of Git LFS, not the file: git lfs pull gets it".into())
}

/// The first `len` bytes of a file, or all if there are fewer.
fn start(path: &Path, len: usize) -> Result<Vec<u8>, Reason> {
    let mut start = Vec::new();
    File::open(path)?.take(len as u64).read_to_end(&mut start)?;
    Ok(start)
}

pub(super) fn from_burnpack(bytes: Bytes) -> Result<Tensors, Reason> {
    let tensors = burn_pack::Reader::from_bytes(bytes)?.into_tensors()?;
    Ok(tensors.into_iter().map(Stored::in_pack).collect())
}

fn open_shard(path: &Path) -> Result<Tensors, WeightsError> {
    let tensors = || {
        let packs = match format(path)? {
            Format::Safetensors => return safetensors::open(path),
            Format::Gguf => return gguf::open(path),
            Format::Burnpack => burn_pack::Reader::from_file_exact(path)?.into_tensors()?,
            Format::Index | Format::Other => {
                if let Some(reason) = lfs_pointer(path) {
                    return Err(reason.into());
                }
                let tensors = PytorchReader::new(path)?.into_tensors();
                tensors.into_values().map(bridge::from_pytorch).collect()
            }
        };
        check_count(packs.len())?;
        Ok(packs.into_iter().map(Stored::in_pack).collect())
    };
    tensors().map_err(|reason: Reason| WeightsError::file(path, reason))
}

fn check_count(count: usize) -> Result<(), String> {
    ensure!(
        count <= MAX_TENSORS,
        "it has more than {MAX_TENSORS} tensors"
    );
    Ok(())
}
