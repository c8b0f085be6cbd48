//! Named tensors in files. Their numbers stay there until they are read.

mod gguf;
mod packing;
mod safetensors;
mod shards;
mod stored;
mod unique;

pub(super) use gguf::open as open_gguf;
pub(super) use packing::count;
#[cfg(feature = "hub")]
pub(crate) use shards::shards;
pub(crate) use stored::is_float;
pub(super) use stored::{Stored, Tensors};

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use burn::tensor::Bytes;
use burn_store::{bridge, burn_pack, pytorch_reader::PytorchReader};

use super::{Reason, WeightsError, ensure};
use stored::check_count;

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
        Format::Index => shards::open(&file, open_shard),
        _ => open_shard(&file),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Safetensors,
    Burnpack,
    /// The format of ggml and llama.cpp.
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

/// The reason to refuse a pointer of Git LFS in the place of a file; `None` for any other file.
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
            Format::Gguf => return Ok(open_gguf(path)?.1),
            Format::Burnpack => burn_pack::Reader::from_file_exact(path)?.into_tensors()?,
            Format::Index | Format::Other => {
                if let Some(reason) = lfs_pointer(path) {
                    return Err(reason.into());
                }
                let tensors = PytorchReader::new(path)?.into_tensors();
                tensors.into_values().map(bridge::from_pytorch).collect()
            }
        };
        check_count(packs.len() as u64)?;
        Ok(packs.into_iter().map(Stored::in_pack).collect())
    };
    tensors().map_err(|reason: Reason| WeightsError::file(path, reason))
}
