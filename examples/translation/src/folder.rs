//! What may lie in the folder of a new run.

use std::path::Path;

use crate::checkpoint;
use crate::curve;
use crate::error::Error;
use crate::explain;

/// Makes sure that a new run destroys no other, and nothing that is of no run.
pub fn refuse_occupied(out: &Path) -> Result<(), Error> {
    let path = out.to_path_buf();
    if checkpoint::exists(out) {
        let name = checkpoint::newest(out)?.state.name();
        return Err(Error::Occupied { path, name });
    }
    // Both are drawn only beside a checkpoint.
    let mut drawn = [curve::FILE, explain::FILE].into_iter();
    match drawn.find(|name| out.join(name).exists()) {
        Some(name) => Err(Error::Foreign { path, name }),
        None => Ok(()),
    }
}
