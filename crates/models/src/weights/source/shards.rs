//! Reads an index, which says which file beside it each tensor is in.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ffi::OsStr,
    fs::File,
    io::Read,
    path::Path,
};

use serde::Deserialize;

use super::{MAX_HEADER, Tensors, check_count, open_shard, refused, unique::Unique};
use crate::weights::WeightsError;

#[derive(Deserialize)]
struct Index {
    /// The file of every tensor.
    weight_map: Unique<String>,
}

/// The names of the files in an index.
#[cfg(feature = "hub")]
pub(crate) fn shards(path: &Path) -> Result<Vec<String>, WeightsError> {
    let files = read(path).map_err(|reason| refused(path, reason))?;
    let shards = files.into_values().collect::<BTreeSet<String>>();
    Ok(shards.into_iter().collect())
}

pub(super) fn open(path: &Path) -> Result<Tensors, WeightsError> {
    let files = read(path).map_err(|reason| refused(path, reason))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let shards: BTreeSet<&str> = files.values().map(String::as_str).collect();
    let mut tensors = Tensors::new();
    let mut shard_of = BTreeMap::new();
    for shard in shards {
        for (name, stored) in open_shard(&folder.join(shard))? {
            match tensors.entry(name) {
                Entry::Occupied(entry) => {
                    let name = entry.key();
                    let other = shard_of.get(name).copied().unwrap_or_default();
                    return Err(refused(
                        path,
                        format!(
                            "tensor {} is in {other} and in {shard}",
                            name.escape_debug()
                        ),
                    ));
                }
                Entry::Vacant(entry) => {
                    shard_of.insert(entry.key().clone(), shard);
                    entry.insert(stored);
                }
            }
        }
        check_count(tensors.len()).map_err(|reason| refused(path, reason))?;
    }
    for (name, file) in &files {
        if shard_of.get(name) != Some(&file.as_str()) {
            return Err(refused(
                path,
                format!("tensor {} is not in {file}", name.escape_debug()),
            ));
        }
    }
    Ok(tensors)
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let read = file.take(MAX_HEADER + 1).read_to_end(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_HEADER {
        return Err(format!("an index has at most {MAX_HEADER} bytes"));
    }
    let index: Index = serde_json::from_slice(&text)
        .map_err(|error| format!("it is not an index of shards: {error}"))?;
    // Checked before any of them is opened or downloaded.
    let Unique(files) = index.weight_map;
    let mut shards = files.values();
    let is_beside = |shard: &str| {
        Path::new(shard).file_name() == Some(OsStr::new(shard)) && !shard.contains(['/', '\\'])
    };
    match shards.find(|shard| !is_beside(shard)) {
        Some(shard) => Err(format!("{shard:?} is not the name of a file beside it")),
        None => Ok(files),
    }
}
