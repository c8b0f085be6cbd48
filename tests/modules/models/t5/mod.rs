//! T5 against `transformers`: the first one, and one as T5 1.1 and Flan-T5, with a gate and a head of its own.

mod files;

use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};
use burn_attn::LayerInput;
use burn_attn_models::{
    generate::{BeamOptions, GenerateOptions, Generation, beam_search, generate},
    seq2seq::Seq2Seq,
    t5,
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, numbers},
    devices,
    golden::GoldenFile,
};

use super::{
    assert_states,
    language_models::{Logits, Model},
};

/// How many tokens the two sources have, and the two targets; the rest is padding.
const SOURCE_LENGTHS: [usize; 2] = [11, 6];
const TARGET_LENGTHS: [usize; 2] = [7, 4];
const NEW_TOKENS: usize = 9;

impl Logits for Seq2Seq {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        let device = devices::any();
        let ints = |name| Tensor::<2, Int>::from_data(values.data(name), &device);
        let first = |name| ints(name).narrow(0, 0, 1);
        let lengths = &values.lengths("source_lengths")[..1];
        self.forward(first("source"), lengths, first("target"))
            .into_data()
    }
}

fn model(name: &'static str, gated: bool) -> Model<Seq2Seq> {
    Model {
        name,
        from_pretrained: |folder, device| t5::from_pretrained(folder, device),
        table: t5::table(gated),
    }
}

fn first() -> Model<Seq2Seq> {
    model("t5", false)
}

fn gated() -> Model<Seq2Seq> {
    model("t5_gated", true)
}

/// The tokens and lengths of the golden values.
struct Texts {
    source: Tensor<2, Int>,
    source_lengths: Vec<usize>,
    target: Tensor<2, Int>,
}

impl Texts {
    fn new(values: &GoldenFile, device: &Device) -> Self {
        Self {
            source: Tensor::from_data(values.data("source"), device),
            source_lengths: values.lengths("source_lengths"),
            target: Tensor::from_data(values.data("target"), device),
        }
    }

    /// The second source and the second target without their padding.
    fn second_alone(&self) -> Self {
        let row = |tokens: &Tensor<2, Int>, len| tokens.clone().narrow(0, 1, 1).narrow(1, 0, len);
        Self {
            source: row(&self.source, SOURCE_LENGTHS[1]),
            source_lengths: vec![self.source_lengths[1]],
            target: row(&self.target, TARGET_LENGTHS[1]),
        }
    }

    fn logits(&self, model: &Seq2Seq) -> Tensor<3> {
        model.forward(
            self.source.clone(),
            &self.source_lengths,
            self.target.clone(),
        )
    }
}

/// The states after every layer of the encoder and the decoder, which have this many, and the logits are the reference's, in the dimensions that
/// it has of them.
pub(super) fn assert_layers(
    model: &Seq2Seq,
    what: &str,
    (values, device): (&GoldenFile, &Device),
    layers: [usize; 2],
) {
    let close = |name: &str, states: Tensor<3>| {
        let expected: Tensor<3> = values.tensor(name, device);
        let [_, _, dimensions] = expected.dims();
        let states = states.narrow(2, 0, dimensions);
        assert_states(&format!("{what}, {name}"), states, expected);
    };
    let texts = Texts::new(values, device);
    let x = model.embed(texts.source.clone(), 0);
    let input = LayerInput::new(x).lengths(&texts.source_lengths);
    let encoded = model.transformer.encoder.forward_with_hidden_states(input);
    if values.names().any(|name| name == "memory") {
        close("memory", encoded.states.clone());
    }
    let x = model.embed(texts.target.clone(), 0);
    let input = LayerInput::new(x)
        .memory(encoded.states)
        .memory_lengths(&texts.source_lengths);
    let decoded = model.transformer.decoder.forward_with_hidden_states(input);
    let stacks = [
        ("encoder", encoded.hidden_states),
        ("decoder", decoded.hidden_states),
    ];
    for ((stack, states), layers) in stacks.into_iter().zip(layers) {
        assert_eq!(states.len(), layers);
        for (layer, states) in states.into_iter().enumerate() {
            close(&format!("{stack}.{layer}"), states);
        }
    }
    close("logits", model.logits(decoded.states));
    close("logits", texts.logits(model));
}

#[test]
fn every_layer_and_the_logits_are_the_references() {
    for (model, layers) in [(first(), [3, 2]), (gated(), [2, 3])] {
        let values = model.values();
        assert!(values.names().any(|name| name == "memory"));
        for (backend, device) in devices::named() {
            let what = format!("{} on {backend}", model.name);
            assert_layers(&model.load(&device), &what, (&values, &device), layers);
        }
    }
}

#[test]
fn padding_changes_nothing() {
    for model in [first(), gated()] {
        for (backend, device) in devices::cpu() {
            let loaded = model.load(&device);
            let texts = Texts::new(&model.values(), &device);
            let alone = texts.second_alone().logits(&loaded);
            let padded = texts.logits(&loaded).narrow(0, 1, 1);
            let padded = padded.narrow(1, 0, TARGET_LENGTHS[1]).into_data();
            assert_close_to_largest(backend, &padded, &alone.into_data(), 1e-6, 0.0);
        }
    }
}

/// The tokens that the golden values have under this name.
fn tokens(values: &GoldenFile, name: &str) -> Vec<u32> {
    values.data(name).iter().collect()
}

/// Log-probabilities of `generation` after `prompt`, read as a whole without a cache.
fn uncached(
    model: &Seq2Seq,
    texts: &Texts,
    row: usize,
    prompt: &[u32],
    generation: &Generation,
    end: u32,
) -> Vec<f64> {
    let chosen: Vec<u32> = generation.tokens.iter().copied().chain([end]).collect();
    let chosen = &chosen[..generation.log_probabilities.len()];
    let target = [prompt, &chosen[..chosen.len() - 1]].concat();
    let target = TensorData::new(target.clone(), [1, target.len()]);
    let target = Tensor::<2, Int>::from_data(target, &texts.source.device());
    let source = texts.source.clone().narrow(0, row, 1);
    let lengths = &texts.source_lengths[row..=row];
    let logits = log_softmax(model.forward(source, lengths, target), 2);
    let [_, _, vocab_size] = logits.dims();
    let all = numbers(&logits);
    let rows = all.chunks(vocab_size).skip(prompt.len() - 1);
    rows.zip(chosen)
        .map(|(row, &token)| f64::from(row[token as usize]))
        .collect()
}

#[test]
fn greedy_tokens_are_the_references_and_those_without_a_cache() {
    for model in [first(), gated()] {
        let values = model.values();
        let end = tokens(&values, "end")[0];
        let options = GenerateOptions::new(NEW_TOKENS).stop_tokens([end]);
        for (_, device) in devices::cpu() {
            let loaded = model.load(&device);
            let texts = Texts::new(&values, &device);
            let start = || loaded.start(texts.source.clone(), &texts.source_lengths);
            let begun = [vec![0], vec![0]];
            let outputs = generate(&loaded, start(), &begun, &options).unwrap();
            for (row, output) in outputs.iter().enumerate() {
                assert_eq!(output.tokens, tokens(&values, &format!("greedy.{row}")));
            }
            // And after beginnings of unequal lengths.
            for prompts in [begun, [vec![0, 16, 18], vec![0]]] {
                let outputs = generate(&loaded, start(), &prompts, &options).unwrap();
                for (row, (prompt, output)) in prompts.iter().zip(&outputs).enumerate() {
                    let expected = uncached(&loaded, &texts, row, prompt, output, end);
                    assert_eq!(expected.len(), output.log_probabilities.len());
                    for (cached, expected) in output.log_probabilities.iter().zip(expected) {
                        assert!((cached - expected).abs() < 1e-4, "{cached} {expected}");
                    }
                }
            }
        }
    }
}

#[test]
fn beams_are_the_references() {
    for model in [first(), gated()] {
        let values = model.values();
        let end = tokens(&values, "end")[0];
        let scores = values.data("beam_scores");
        let [_, beam] = scores.shape()[..] else {
            panic!("a row of scores for each source")
        };
        let options = BeamOptions::new(beam, NEW_TOKENS)
            .stop_tokens([end])
            .n_best(beam);
        let mut scores = scores.iter::<f64>();
        let device = devices::any();
        let loaded = model.load(&device);
        let texts = Texts::new(&values, &device);
        let start = loaded.start(texts.source, &texts.source_lengths);
        let found = beam_search(&loaded, start, &[vec![0], vec![0]], &options).unwrap();
        for (row, found) in found.iter().enumerate() {
            assert_eq!(found.len(), beam);
            for (rank, found) in found.iter().enumerate() {
                let expected = tokens(&values, &format!("beam.{row}.{rank}"));
                assert_eq!(found.generation.tokens, expected);
                let expected = scores.next().expect("a score");
                let score = found.score;
                assert!((score - expected).abs() < 1e-4, "{score} {expected}");
            }
        }
    }
}

#[test]
fn it_is_written_back_bit_for_bit() {
    first().check_export();
    gated().check_export();
}

#[test]
fn every_activation_is_the_references() {
    let mut count = 0;
    for (model, gate) in [(first(), ""), (gated(), "gated-")] {
        let values = model.values();
        let names = values
            .names()
            .filter_map(|name| name.strip_prefix("logits."));
        for name in names {
            let changed = model.changed(|config| {
                config.insert("feed_forward_proj".into(), format!("{gate}{name}").into());
                config.insert("dense_act_fn".into(), name.into());
            });
            let changed = changed.unwrap_or_else(|error| panic!("{error}"));
            model.assert_logits(name, &changed, &values.data(&format!("logits.{name}")));
            count += 1;
        }
    }
    assert_eq!(count, 5);
}
