//! Models of Hugging Face's transformers, beside transformers with eager attention.

use crate::case::{Case, Library::Pytorch};
use crate::work::{Family, Pretrained, Work};

/// Where `checkpoints.py` has put them.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench");

/// The cases.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for batch in [1, 32] {
        let work = Pretrained {
            family: Family::Bert,
            folder: format!("{FOLDER}/minilm"),
            vocabulary: 30522,
            batch,
            len: 128,
            tokens: 0,
        };
        cases.push((format!("MiniLM, batch {batch}, len 128"), work));
    }
    let work = Pretrained {
        family: Family::Llama,
        folder: format!("{FOLDER}/llama"),
        vocabulary: 32000,
        batch: 1,
        len: 8,
        tokens: 128,
    };
    cases.push(("Llama, 125 M, 128 tokens".into(), work));
    let work = Pretrained {
        family: Family::T5,
        folder: format!("{FOLDER}/t5"),
        vocabulary: 32128,
        batch: 1,
        len: 32,
        tokens: 128,
    };
    cases.push(("T5, 77 M, 128 tokens after 32".into(), work));
    cases
        .into_iter()
        .map(|(name, work)| Case::new(name, Work::Pretrained(work)).against(&[Pytorch]))
        .collect()
}
