//! Reads an index, which says which file beside it each tensor is in.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::File,
    io::Read,
    path::Path,
};

use serde::Deserialize;

use super::{
    stored::{MAX_HEADER, Tensors, check_count},
    unique::Unique,
};
use crate::weights::{Reason, WeightsError, ensure};

#[derive(Deserialize)]
struct Index {
    /// The file of every tensor.
    weight_map: Unique<String>,
}

/// The names of the files in an index.
#[cfg(feature = "hub")]
pub(crate) fn shards(path: &Path) -> Result<BTreeSet<String>, WeightsError> {
    let files = read(path).map_err(|reason| WeightsError::file(path, reason))?;
    Ok(files.into_values().collect())
}

/// The tensors of all shards, which `open_shard` reads.
pub(super) fn open(
    path: &Path,
    open_shard: fn(&Path) -> Result<Tensors, WeightsError>,
) -> Result<Tensors, WeightsError> {
    let refused = |reason: String| WeightsError::file(path, reason);
    let files = read(path).map_err(|reason| WeightsError::file(path, reason))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let shards: BTreeSet<&str> = files.values().map(String::as_str).collect();
    let mut tensors = Tensors::new();
    let mut shard_of = BTreeMap::new();
    for shard in shards {
        for (name, stored) in open_shard(&folder.join(shard))? {
            if let Some(other) = shard_of.insert(name.clone(), shard) {
                let name = name.escape_debug();
                let reason = format!("tensor {name} is in {other} and in {shard}");
                return Err(refused(reason));
            }
            tensors.insert(name, stored);
        }
        check_count(tensors.len() as u64).map_err(refused)?;
    }
    let mut files = files.iter();
    match files.find(|(name, file)| shard_of.get(*name) != Some(&file.as_str())) {
        Some((name, file)) => Err(refused(format!(
            "tensor {} is not in {file}",
            name.escape_debug()
        ))),
        None => Ok(tensors),
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, Reason> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    ensure!(
        len <= MAX_HEADER,
        "it has {len} bytes, and an index has at most {MAX_HEADER}"
    );
    let mut text = Vec::new();
    file.take(MAX_HEADER).read_to_end(&mut text)?;
    let index: Index = serde_json::from_slice(&text)
        .map_err(|error| format!("it is not an index of shards: {error}"))?;
    let Unique(files) = index.weight_map;
    // Checked before any of them is opened or downloaded.
    let is_outside = |shard: &&String| {
        Path::new(shard).file_name() != Some(OsStr::new(shard)) || shard.contains(['/', '\\'])
    };
    match files.values().find(is_outside) {
        Some(shard) => Err(format!("{shard:?} is not the name of a file beside it").into()),
        None => Ok(files),
    }
}
