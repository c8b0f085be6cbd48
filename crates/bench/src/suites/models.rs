//! Models of Hugging Face's transformers, beside transformers with eager attention.

use crate::case::{Case, Library::Pytorch};
use crate::work::{Family, Pretrained, Work};

/// Where `checkpoints.py` has put them.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench");

/// The cases.
pub fn cases() -> Vec<Case> {
    let work = |family, name: &str, vocabulary, [batch, len, tokens]: [usize; 3]| Pretrained {
        family,
        folder: format!("{FOLDER}/{name}"),
        vocabulary,
        batch,
        len,
        tokens,
    };
    let minilm = |batch| work(Family::Bert, "minilm", 30522, [batch, 128, 0]);
    let cases = [
        ("MiniLM, batch 1, len 128", minilm(1)),
        ("MiniLM, batch 32, len 128", minilm(32)),
        (
            "Llama, 125 M, 128 tokens",
            work(Family::Llama, "llama", 32000, [1, 8, 128]),
        ),
        (
            "T5, 77 M, 128 tokens after 32",
            work(Family::T5, "t5", 32128, [1, 32, 128]),
        ),
    ];
    cases
        .into_iter()
        .map(|(name, work)| Case::new(name, Work::Pretrained(work)).against(&[Pytorch]))
        .collect()
}
