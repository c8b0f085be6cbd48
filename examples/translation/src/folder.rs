//! What may lie in the folder of a new run.

use std::path::Path;

use example_common::error::Error;
use example_common::run_folder::RunFolder;

use crate::checkpoint;
use crate::curve;
use crate::explain;

/// Makes sure that a new run destroys neither another run nor files that belong to no run.
pub fn refuse_occupied(out: &Path) -> Result<(), Error> {
    if checkpoint::exists(out) {
        return Err(occupied(out, &checkpoint::newest(out)?.state.name()));
    }
    of_run(out).check_no_run()
}

/// The folder of a run, which draws both files only beside a checkpoint.
pub fn of_run(out: &Path) -> RunFolder {
    RunFolder::new(out, &[curve::FILE, explain::FILE])
}

/// The error about a folder with another run, whose newest checkpoint has this name.
pub fn occupied(out: &Path, name: &str) -> Error {
    let out = out.display();
    let ways = format!(
        "train --resume --out {out} goes on with it, --out with another folder starts anew"
    );
    format!("{out} already holds the run {name}: {ways}").into()
}
