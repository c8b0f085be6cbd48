//! Models of Hugging Face's transformers, beside transformers with the attention of its choice and with its eager one.

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::case::{
    Case,
    Library::{Pytorch, PytorchEager},
};
use crate::work::{Family, Pretrained, Work};

/// What writes them.
pub const SCRIPT: &str = include_str!("../checkpoints.py");

/// Where they are: a folder for each version of the script, so that no model of other sizes is taken for one of these.
pub fn folder() -> String {
    let mut hasher = DefaultHasher::new();
    SCRIPT.hash(&mut hasher);
    let in_root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target"));
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    // Cargo takes it from the current folder.
    let target = target.map_or(in_root.into(), |target| {
        env::current_dir().unwrap_or_default().join(target)
    });
    let bench = target.join("bench");
    format!("{}/{:016x}", bench.display(), hasher.finish())
}

pub fn cases() -> Vec<Case> {
    let in_folder = folder();
    let work = |family, name: &str, vocabulary, [batch, len, tokens]: [usize; 3]| Pretrained {
        family,
        folder: format!("{in_folder}/{name}"),
        vocabulary,
        batch,
        len,
        tokens,
    };
    let minilm = |batch| work(Family::Bert, "minilm", 30522, [batch, 128, 0]);
    let llama = work(Family::Llama, "llama", 32000, [1, 8, 128]);
    let t5 = work(Family::T5, "t5", 32128, [1, 32, 128]);
    let cases = [
        ("MiniLM, batch 1, len 128", minilm(1)),
        ("MiniLM, batch 32, len 128", minilm(32)),
        ("Llama, 125 M, 128 tokens after 8", llama),
        ("T5, 77 M, 128 tokens after 32", t5),
    ];
    let peers = [Pytorch, PytorchEager];
    let cases = cases.map(|(name, work)| Case::new(name, Work::Pretrained(work)).against(&peers));
    cases.into()
}
