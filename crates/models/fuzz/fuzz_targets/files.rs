//! A folder of a small model with one file replaced by the bytes: loading it returns a model or an error of one line. It never panics, and
//! libFuzzer's limits on memory and time end a run that takes more than such a model can need.
//!
//! The first bytes choose the file: `{` after eight others is a `model.safetensors`; `{` at the start is a `config.json`, or an index of shards
//! if it has a `weight_map`; a zip archive or a pickle is a `pytorch_model.bin`; anything else is a `model.safetensors` as well.

#![no_main]

use std::{error::Error, fs, path::Path, sync::OnceLock};

use burn::tensor::Device;
use burn_attn_models::{bert::Bert, gpt_neox, gpt2, llama, t5, weights::Weights, whisper};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// The folders of `tests/golden/models` whose configuration is replaced, and what their `model_type` is.
const FAMILIES: [(&str, &str); 16] = [
    ("albert", "albert"),
    ("bert", "bert"),
    ("gemma2", "gemma2"),
    ("gemma3", "gemma3_text"),
    ("gpt2", "gpt2"),
    ("gpt_neox", "gpt_neox"),
    ("gpt_oss", "gpt_oss"),
    ("llama", "llama"),
    ("mistral", "mistral"),
    ("mixtral", "mixtral"),
    ("olmo2", "olmo2"),
    ("qwen2", "qwen2"),
    ("qwen3", "qwen3"),
    ("qwen3_moe", "qwen3_moe"),
    ("t5", "t5"),
    ("whisper", "whisper"),
];

/// What a call of ours that loads something returned, without what it loaded.
type Loaded = Result<(), Box<dyn Error>>;

/// The model in a folder, of the family that its configuration names.
fn load(folder: &Path, model_type: &str) -> Loaded {
    let device = Device::flex();
    match model_type {
        "albert" | "bert" => drop(Bert::from_pretrained(folder, &device)?),
        "gpt2" => drop(gpt2::from_pretrained(folder, &device)?),
        "gpt_neox" => drop(gpt_neox::from_pretrained(folder, &device)?),
        "t5" => drop(t5::from_pretrained(folder, &device)?),
        "whisper" => drop(whisper::from_pretrained(folder, &device)?),
        _ => drop(llama::from_pretrained(folder, &device)?),
    }
    Ok(())
}

/// A copy of a folder of `tests/golden`, made once: one file in it is replaced again and again.
fn copied(folder: &str) -> TempDir {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden");
    let copy = tempfile::tempdir().expect("a temporary folder");
    for entry in fs::read_dir(golden.join(folder)).expect("a golden folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        fs::copy(&path, copy.path().join(name)).expect("copied");
    }
    copy
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// Loads a configuration with the weights of the family that it names first in [`FAMILIES`].
fn configuration(bytes: &[u8]) -> Loaded {
    static FOLDERS: OnceLock<Vec<TempDir>> = OnceLock::new();
    let named = |&(_, model_type): &(_, &str)| has(bytes, &format!("\"{model_type}\""));
    let Some(index) = FAMILIES.iter().position(named) else {
        return Ok(());
    };
    let copies = || {
        let folders = FAMILIES
            .iter()
            .map(|(family, _)| format!("models/{family}"));
        folders.map(|folder| copied(&folder)).collect()
    };
    let folder = FOLDERS.get_or_init(copies)[index].path();
    fs::write(folder.join("config.json"), bytes)?;
    load(folder, FAMILIES[index].1)
}

fn index(bytes: &[u8]) -> Loaded {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| copied("weights/llama"));
    fs::write(folder.path().join("model.safetensors.index.json"), bytes)?;
    Ok(drop(Weights::open(folder.path())?))
}

fn pickle(bytes: &[u8]) -> Loaded {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let copy = copied("models/gpt2");
        fs::remove_file(copy.path().join("model.safetensors")).expect("removed");
        copy
    });
    fs::write(folder.path().join("pytorch_model.bin"), bytes)?;
    load(folder.path(), "gpt2")
}

fn safetensors(bytes: &[u8]) -> Loaded {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| copied("models/bert"));
    fs::write(folder.path().join("model.safetensors"), bytes)?;
    load(folder.path(), "bert")
}

fuzz_target!(|bytes: &[u8]| {
    let loaded = match bytes {
        _ if bytes.get(8) == Some(&b'{') => safetensors(bytes),
        [b'{', ..] if has(bytes, "\"weight_map\"") => index(bytes),
        [b'{', ..] => configuration(bytes),
        [b'P', b'K', ..] | [0x80, ..] => pickle(bytes),
        _ => safetensors(bytes),
    };
    if let Err(error) = loaded {
        let sentence = error.to_string();
        assert!(
            !sentence.trim().is_empty() && !sentence.contains('\n'),
            "{sentence:?}"
        );
    }
});
