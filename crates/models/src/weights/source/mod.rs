//! Named tensors in files. Their numbers stay there until they are read.

mod blocks;
mod file_part;
mod gguf;
mod safetensors;
mod shards;
mod unique;

pub(crate) use gguf::metadata as gguf_metadata;
#[cfg(feature = "hub")]
pub(crate) use shards::shards;

use std::{
    collections::BTreeMap,
    error::Error,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use burn::tensor::{Bytes, DType};
use burn_store::{
    BurnpackStore, ModuleStore, bridge,
    burn_pack::{self, Tensor as PackTensor},
    pytorch_reader::PytorchReader,
};

use super::WeightsError;
use blocks::{Blocks, Quantised};
use file_part::FilePart;

/// The most tensors that a checkpoint may have; published ones have fewer than 100 000.
const MAX_TENSORS: usize = 250_000;

/// The longest header or index accepted, in bytes: the limit of safetensors.
const MAX_HEADER: u64 = 100_000_000;

/// The longest name of a tensor accepted, in bytes; published ones have fewer than 200.
const MAX_NAME: usize = 1 << 16;

/// Tensors by their names.
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

#[derive(Clone)]
enum Numbers {
    /// In a file, as they are or as blocks that are read as f32.
    File(FilePart, Option<Quantised>),
    /// Wherever the reader of the format finds them.
    Pack(PackTensor),
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(part, _) => write!(f, "{} bytes from {}", part.left, part.at),
            Self::Pack(_) => f.write_str("in a pack"),
        }
    }
}

/// Whether these are floating-point numbers that a parameter and a file can have.
pub(crate) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
}

impl Stored {
    fn from_pack(tensor: PackTensor) -> Self {
        let dtype = tensor.dtype;
        Self {
            shape: tensor.shape.to_vec(),
            dtype: is_float(dtype).then_some(dtype),
            dtype_name: format!("{dtype:?}"),
            numbers: Numbers::Pack(tensor),
        }
    }

    /// Its numbers, little-endian, without the first `first` bytes: whole rows.
    pub(super) fn read_from(&self, first: usize) -> Result<Box<dyn Read>, String> {
        match &self.numbers {
            Numbers::File(part, blocks) => {
                let skipped = blocks.map_or(first, |kind| kind.place(first)) as u64;
                let part = FilePart {
                    file: part.file.clone(),
                    at: part.at + skipped,
                    left: part.left.saturating_sub(skipped),
                };
                Ok(match *blocks {
                    None => Box::new(part),
                    Some(kind) => Box::new(Blocks::new(kind, part)),
                })
            }
            Numbers::Pack(tensor) => {
                let bytes = tensor.to_bytes().map_err(|error| error.to_string())?;
                // Reads the file here, where a failure does not panic.
                let read = bytes.read(Default::default());
                read.map_err(|error| error.to_string())?;
                let at = first.min(bytes.len());
                Ok(Box::new(InMemory { bytes, at }))
            }
        }
    }
}

struct InMemory {
    bytes: Bytes,
    at: usize,
}

impl Read for InMemory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&self.bytes[self.at..]).read(buffer)?;
        self.at += count;
        Ok(count)
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
    if !path.is_dir() {
        return open_file(path);
    }
    let mut paths = WEIGHT_FILES.iter().map(|name| path.join(name));
    match paths.find(|path| path.exists()) {
        Some(path) => open_file(&path),
        None => Err(refused(
            path,
            format!("the folder has none of {}", WEIGHT_FILES.join(", ")),
        )),
    }
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Safetensors,
    Burnpack,
    /// Of ggml and llama.cpp.
    Gguf,
    /// An index, what `torch.save` wrote, or an unknown format.
    Other,
}

/// The format of a file, by its first bytes.
pub(crate) fn format(path: &Path) -> Result<Format, String> {
    let start = start(path).map_err(|error| error.to_string())?;
    // First the formats that begin with a name, behind which any byte may follow. Safetensors begin with the length of their header, and none is so
    // long that its length reads like a name.
    Ok(match start.get(8) {
        _ if start.starts_with(b"NRUB") => Format::Burnpack,
        _ if start.starts_with(b"GGUF") => Format::Gguf,
        Some(b'{') => Format::Safetensors,
        _ => Format::Other,
    })
}

/// What to say of a file that Git LFS has not fetched; `None` if this is none.
pub(crate) fn lfs_pointer(path: &Path) -> Option<String> {
    const BEGINS: &[u8] = b"version https://git-lfs.github.com/spec/";
    let mut start = Vec::new();
    let mut file = File::open(path).ok()?.take(BEGINS.len() as u64);
    file.read_to_end(&mut start).ok()?;
    (start == BEGINS)
        .then(|| "it is a pointer of Git LFS, not the file: git lfs pull gets it".into())
}

fn open_file(path: &Path) -> Result<Tensors, WeightsError> {
    let start = start(path).map_err(|error| refused(path, error.to_string()))?;
    match start.first() {
        Some(b'{') if start.get(8) != Some(&b'{') => shards::open(path),
        _ => open_shard(path),
    }
}

/// The tensors of a burnpack in memory.
pub(super) fn from_burnpack(bytes: Bytes) -> Result<Tensors, String> {
    let mut store = BurnpackStore::from_bytes(Some(bytes));
    let tensors = store.get_all_tensors().map_err(|error| error.to_string())?;
    let tensors = tensors.iter();
    let stored = tensors.map(|(name, tensor)| (name.clone(), Stored::from_pack(tensor.clone())));
    Ok(stored.collect())
}

/// One file.
fn open_shard(path: &Path) -> Result<Tensors, WeightsError> {
    let tensors = || -> Result<Tensors, Box<dyn Error>> {
        let format = format(path)?;
        if format == Format::Safetensors {
            return Ok(safetensors::open(path)?);
        }
        if format == Format::Gguf {
            return Ok(gguf::open(path)?);
        }
        if let Some(reason) = lfs_pointer(path) {
            return Err(reason.into());
        }
        let packs: Vec<(String, PackTensor)> = if format == Format::Burnpack {
            let tensors = burn_pack::Reader::from_file_exact(path)?.into_tensors()?;
            let named = tensors
                .into_iter()
                .map(|tensor| (tensor.name.clone(), tensor));
            named.collect()
        } else {
            let tensors = PytorchReader::new(path)?.into_tensors().into_iter();
            tensors
                .map(|(name, tensor)| (name, bridge::from_pytorch(tensor)))
                .collect()
        };
        check_count(packs.len())?;
        let stored = packs
            .into_iter()
            .map(|(name, tensor)| (name, Stored::from_pack(tensor)));
        Ok(stored.collect())
    };
    tensors().map_err(|error| refused(path, error.to_string()))
}

/// The first bytes of a file: those that tell its format.
fn start(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    // Checked first, because opening a pipe blocks until another process writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err("it is not a regular file".into());
    }
    let file = File::open(path)?;
    let mut start = Vec::new();
    file.take(9).read_to_end(&mut start)?;
    match start.is_empty() {
        true => Err("the file is empty".into()),
        false => Ok(start),
    }
}

fn check_count(count: usize) -> Result<(), String> {
    match count {
        ..=MAX_TENSORS => Ok(()),
        _ => Err(format!("it has more than {MAX_TENSORS} tensors")),
    }
}

fn refused(path: &Path, reason: String) -> WeightsError {
    WeightsError::File {
        path: path.into(),
        reason,
    }
}
