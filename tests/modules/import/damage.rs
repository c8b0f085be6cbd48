//! Files that are cut off or something else: a sentence with the path, and no panic.

use std::{
    fs,
    path::{Path, PathBuf},
};

use burn::module::Module;
use burn_attn::{MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput};
use burn_attn_models::{
    import::{self, Checkpoint},
    weights::WeightsError,
};
use burn_attn_tests::{compare::assert_same, devices, numbers::filled};

use super::{golden, loaded, value};

/// A way to open a file.
type Open = fn(&Path) -> Result<Checkpoint, WeightsError>;

const OPEN: [Open; 2] = [|path| import::pytorch(path), |path| import::burn_nn(path)];

/// What opening the file says.
#[track_caller]
fn refused(open: Open, path: &Path) -> String {
    let error = open(path).unwrap_err();
    assert!(matches!(error, WeightsError::File { .. }), "{error:?}");
    let sentence = error.to_string();
    println!("{sentence}");
    assert!(sentence.starts_with(&format!("{} cannot be read as weights: ", path.display())));
    sentence
}

fn written(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("written");
    path
}

fn module() -> MultiHeadAttention {
    let config = MultiHeadAttentionConfig::new(12, 3).with_dropout(0.0);
    filled(config.init(&devices::any()), 1)
}

/// A burnpack of the same module in burn-nn.
fn burnpack(folder: &tempfile::TempDir) -> Vec<u8> {
    let path = folder.path().join("whole.bpk");
    let theirs = burn::nn::attention::MultiHeadAttentionConfig::new(12, 3).init(&devices::any());
    theirs.save_file(&path).expect("saved");
    fs::read(path).expect("read")
}

/// Every 97th length and the last ones: opening or loading must fail, and the module stay as it was.
fn cut_off(open: Open, whole: &[u8], prefix: &str) {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let mut whole_module = module();
    let path = written(&folder, "whole", whole);
    open(&path)
        .and_then(|mut weights| weights.load(prefix, &mut whole_module))
        .expect("the whole file is fine");

    let x = || value("x", &devices::any());
    let output =
        |module: &MultiHeadAttention| module.forward(MultiHeadAttentionInput::self_attention(x()));
    let before = output(&module());
    let lengths = (0..whole.len()).step_by(97);
    for len in lengths.chain(whole.len() - 9..whole.len()) {
        let path = written(&folder, "cut", &whole[..len]);
        let mut module = module();
        let result = open(&path).and_then(|mut weights| weights.load(prefix, &mut module));
        assert!(result.is_err(), "{len} of {} bytes", whole.len());
        assert_same(&output(&module), &before);
    }
}

#[test]
fn a_pytorch_file_cut_off_anywhere() {
    let whole = fs::read(golden("attention.pt")).expect("read");
    cut_off(OPEN[0], &whole, "packed");
}

#[test]
fn a_burnpack_cut_off_anywhere() {
    let folder = tempfile::tempdir().expect("a folder to write to");
    cut_off(OPEN[1], &burnpack(&folder), "");
}

#[test]
fn a_byte_of_a_pytorch_file_turned_over() {
    let whole = fs::read(golden("attention.pt")).expect("read");
    let folder = tempfile::tempdir().expect("a folder to write to");
    // What is still readable is for the format's checksums; here nothing may panic.
    for at in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let path = written(&folder, "turned", &bytes);
        if let Ok(mut weights) = import::pytorch(&path) {
            let _ = weights.load("packed", &mut module());
        }
    }
}

#[test]
fn a_changed_number_of_a_pytorch_file() {
    let mut bytes = fs::read(golden("attention.pt")).expect("read");
    let mut weights = import::pytorch(golden("attention.pt")).expect("readable");
    let loaded = loaded(&mut weights, "packed", module());
    // The output's bias lies in the file as it is in memory.
    let bias = loaded.output.bias.as_ref().expect("a bias").val();
    let bias: Vec<u8> = bias.into_data().as_bytes().to_vec();
    let at = bytes.windows(bias.len()).position(|window| window == bias);
    bytes[at.expect("the numbers are in the file")] ^= 1;

    let folder = tempfile::tempdir().expect("a folder to write to");
    let path = written(&folder, "changed.pt", &bytes);
    let mut weights = import::pytorch(&path).expect("its names are readable");
    let error = weights.load("packed", &mut module()).unwrap_err();
    println!("{error}");
    assert!(matches!(error, WeightsError::Numbers { .. }), "{error:?}");
    let sentence = error.to_string();
    assert!(
        sentence.starts_with("the numbers of tensor packed.out_proj.bias cannot be read: "),
        "{sentence}"
    );
}

#[test]
fn what_is_no_file_of_weights() {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let text = "Attention is all you need. ".repeat(100);
    // It looks like safetensors until its header is read.
    let header = format!("        {{{text}");
    for open in OPEN {
        for name in ["empty.pt", "empty.safetensors"] {
            let path = written(&folder, name, &[]);
            assert!(refused(open, &path).ends_with(": the file is empty"));
        }
        for (name, text) in [("text.pt", &text), ("text.json", &header)] {
            refused(open, &written(&folder, name, text.as_bytes()));
        }
        refused(open, folder.path());
        refused(open, &folder.path().join("none.pt"));
    }
}

#[test]
fn a_file_of_the_other_framework() {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let path = written(&folder, "model.pt", &burnpack(&folder));
    refused(OPEN[0], &path);
    refused(OPEN[1], &golden("attention.pt"));
}
