//! Reads the files of PyTorch and Burn into named tensors, whose numbers stay in the file until they are asked for.

use std::{
    collections::BTreeMap,
    error::Error,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use burn::{store::ModuleRecord, tensor::Bytes};
use burn_store::{
    BurnpackStore, ModuleStore, SafetensorsStore, bridge, burn_pack::Tensor as StoredTensor,
    pytorch_reader::PytorchReader,
};

use super::ImportError;

/// Tensors by their names.
pub(super) type Tensors = BTreeMap<String, StoredTensor>;

/// A file of PyTorch's: what `torch.save` wrote, or safetensors.
pub(super) fn pytorch(path: &Path) -> Result<Tensors, ImportError> {
    read(path, "PyTorch", || {
        let tensors = PytorchReader::new(path)?.into_tensors();
        let tensors = tensors
            .into_iter()
            .map(|(name, tensor)| (name, bridge::from_pytorch(tensor)));
        Ok(tensors.collect())
    })
}

/// A file of Burn's: a burnpack, or safetensors.
pub(super) fn burn(path: &Path) -> Result<Tensors, ImportError> {
    read(path, "Burn", || {
        // Burn would read each number when it is first used, and the file may be gone by then.
        burnpack(Bytes::from_bytes_vec(fs::read(path)?))
    })
}

/// A record of Burn's in memory.
pub(super) fn record(record: ModuleRecord) -> Result<Tensors, ImportError> {
    let bytes = record.into_bytes().map_err(|error| error.to_string());
    let tensors = bytes.and_then(|bytes| burnpack(bytes).map_err(|error| error.to_string()));
    tensors.map_err(|reason| ImportError::Record { reason })
}

fn burnpack(bytes: Bytes) -> Result<Tensors, Box<dyn Error>> {
    let mut store = BurnpackStore::from_bytes(Some(bytes));
    Ok(store.get_all_tensors()?.clone())
}

/// Reads a file as safetensors if it looks like that, else with `other`.
fn read(
    path: &Path,
    of: &'static str,
    other: impl FnOnce() -> Result<Tensors, Box<dyn Error>>,
) -> Result<Tensors, ImportError> {
    let tensors = match is_safetensors(path) {
        Ok(true) => safetensors(path),
        Ok(false) => other(),
        Err(error) => Err(error.into()),
    };
    tensors.map_err(|error| ImportError::File {
        path: path.into(),
        of,
        reason: error.to_string(),
    })
}

fn safetensors(path: &Path) -> Result<Tensors, Box<dyn Error>> {
    // By default the store closes gaps between numbered layers, so that a layer that is missing would pass unseen.
    let mut store = SafetensorsStore::from_file(path).map_indices_contiguous(false);
    Ok(store.get_all_tensors()?.clone())
}

/// Whether a JSON object follows 8 bytes of its length, as in no other format.
fn is_safetensors(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(9).read_to_end(&mut start)?;
    if start.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file is empty",
        ));
    }
    Ok(start.get(8) == Some(&b'{'))
}
