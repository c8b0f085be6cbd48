//! Every step of a trace is what the formula says of the steps before it, and the last one has the bits of `forward`.

use std::collections::BTreeSet;

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, BlockConfig, CrossAttentionConfig, CrossAttentionInput, LayerInput,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, NormPlacement, SelfAttentionConfig,
    SelfAttentionInput, Trace, TransformerLayerConfig, TransformerStackConfig,
    positions::PositionEncoding,
};
use burn_attn_models::{language_model::AbsolutePosition, seq2seq::Seq2SeqConfig};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
};

/// Whether a part of the mask hides a key: of batch item, query and key.
type Hides = fn(usize, usize, usize) -> bool;

/// How an attention deviates from the plain formula.
#[derive(Default)]
struct Case {
    scale: Option<f64>,
    softcap: Option<f64>,
    hidden: Vec<(&'static str, Hides)>,
}

struct Step {
    shape: Vec<usize>,
    numbers: Vec<f64>,
}

impl Step {
    fn of(trace: &Trace, name: &str) -> Self {
        let data = trace.get(name);
        let data = data.unwrap_or_else(|| panic!("there is no step {name}"));
        Self {
            shape: data.shape().to_vec(),
            numbers: data.iter().collect(),
        }
    }

    fn at<const D: usize>(&self, index: [usize; D]) -> f64 {
        assert_eq!(self.shape.len(), D);
        let place = |place, (&index, &size): (&usize, &usize)| {
            assert!(index < size);
            place * size + index
        };
        self.numbers[index.iter().zip(&self.shape).fold(0, place)]
    }
}

#[track_caller]
fn near(what: &str, actual: f64, expected: f64) {
    let tolerance = 1e-5 * expected.abs().max(1.0);
    assert!(
        (actual - expected).abs() <= tolerance,
        "{what}: {actual} instead of {expected}"
    );
}

/// Checks the steps from the heads to the merge.
#[track_caller]
fn check(trace: &Trace, case: &Case) {
    let step = |name: &str| Step::of(trace, name);
    let (query, key, value) = (step("query"), step("key"), step("value"));
    let (scores, scaled, weights) = (step("scores"), step("scaled"), step("weights"));
    let (mixed, merged) = (step("mixed"), step("merged"));
    let &[batch, heads, len_q, len_kv] = scores.shape.as_slice() else {
        panic!("scores of {:?}", scores.shape)
    };
    let (d_head, d_value) = (query.shape[3], value.shape[3]);
    let members = heads / key.shape[1];
    let scale = case.scale.unwrap_or(1.0 / (d_head as f64).sqrt());
    let hidden: Vec<Step> = case
        .hidden
        .iter()
        .map(|(name, _)| step(&format!("hidden.{name}")))
        .collect();
    let parts = trace
        .tensors()
        .filter(|(name, _)| name.starts_with("hidden."));
    assert_eq!(parts.count(), hidden.len());
    for b in 0..batch {
        for head in 0..heads {
            let of_key = head / members;
            for q in 0..len_q {
                let mut expected = Vec::new();
                for k in 0..len_kv {
                    let products =
                        (0..d_head).map(|d| query.at([b, head, q, d]) * key.at([b, of_key, k, d]));
                    near("scores", scores.at([b, head, q, k]), products.sum());
                    let score = scores.at([b, head, q, k]) * scale;
                    let score = match case.softcap {
                        Some(cap) => cap * (score / cap).tanh(),
                        None => score,
                    };
                    near("scaled", scaled.at([b, head, q, k]), score);
                    let mut is_hidden = false;
                    for ((name, hides), step) in case.hidden.iter().zip(&hidden) {
                        let hides = hides(b, q, k);
                        let found = step.at([b, head, q, k]) == 1.0;
                        assert_eq!(found, hides, "{name} of query {q} and key {k} of {b}");
                        is_hidden |= hides;
                    }
                    expected.push(if is_hidden { 0.0 } else { score.exp() });
                }
                let sum: f64 = expected.iter().sum();
                for (k, expected) in expected.iter().enumerate() {
                    near(
                        "weights",
                        weights.at([b, head, q, k]),
                        expected / sum.max(1e-300),
                    );
                }
                for d in 0..d_value {
                    let sum = (0..len_kv)
                        .map(|k| weights.at([b, head, q, k]) * value.at([b, of_key, k, d]));
                    near("mixed", mixed.at([b, head, q, d]), sum.sum());
                    assert_eq!(
                        merged.at([b, q, head * d_value + d]),
                        mixed.at([b, head, q, d])
                    );
                }
            }
        }
    }
}

#[track_caller]
fn assert_bits<const D: usize>(trace: &Trace, name: &str, expected: Tensor<D>) {
    let actual = trace.get(name).expect("a step");
    actual.assert_eq(&expected.into_data(), true);
}

fn is_padding(b: usize, _: usize, k: usize) -> bool {
    k >= [7, 4][b]
}

#[test]
fn a_causal_window_over_padded_sequences() {
    for (backend, device) in devices::named() {
        let attention = SelfAttentionConfig::new(15, 3)
            .with_causal(true)
            .with_window(Some(2));
        let attention = filled(attention.init(&device), 1);
        let input = || SelfAttentionInput::new(tensor([2, 7, 15], 3, &device)).lengths(&[7, 4]);
        let trace = attention.forward_traced(input());
        assert_bits(&trace, "output", attention.forward(input()));
        check(
            &trace,
            &Case {
                hidden: vec![
                    ("window", |_, q, k| q > k + 2),
                    ("causal", |_, q, k| k > q),
                    ("padding", is_padding),
                ],
                ..Case::default()
            },
        );
        let [projected, query, key, value] =
            ["projected", "query", "key", "value"].map(|name| Step::of(&trace, name));
        assert_eq!(projected.shape, [2, 7, 45]);
        for (number, part) in [&query, &key, &value].into_iter().enumerate() {
            for (head, d) in [(0, 0), (1, 3), (2, 4)] {
                let expected = projected.at([1, 6, number * 15 + head * 5 + d]);
                assert_eq!(part.at([1, head, 6, d]), expected, "on {backend}");
            }
        }
        let merged: Tensor<3> = data(&trace, "merged", &device);
        let output = &attention.output;
        let bias = output.bias.as_ref().expect("a bias").val();
        let expected = merged.matmul(output.weight.val().unsqueeze()) + bias.unsqueeze();
        let actual = trace.get("output").expect("a step");
        assert_close("output", actual, &expected.into_data(), 1e-5);
    }
}

fn data<const D: usize>(trace: &Trace, name: &str, device: &burn::tensor::Device) -> Tensor<D> {
    Tensor::from_data(trace.get(name).expect("a step").clone(), device)
}

#[test]
fn nothing_has_empty_steps() {
    for (_, device) in devices::cpu() {
        let attention = SelfAttentionConfig::new(12, 6).with_n_kv_heads(Some(2));
        let attention = filled(attention.with_causal(true).init(&device), 1);
        for [batch, len] in [[0, 5], [2, 0]] {
            let x = || Tensor::<3>::zeros([batch, len, 12], &device);
            let trace = attention.forward_traced(x());
            assert_eq!(Step::of(&trace, "scores").shape, [batch, 6, len, len]);
            assert_bits(&trace, "output", attention.forward(x()));
        }
    }
}

#[test]
fn grouped_heads_with_softcap_scale_and_other_widths() {
    for (_, device) in devices::unsampled() {
        let attention = SelfAttentionConfig::new(14, 6)
            .with_n_kv_heads(Some(2))
            .with_d_head(Some(4))
            .with_d_value_head(Some(3))
            .with_softcap(Some(0.7))
            .with_scale(Some(1.5))
            .with_position(PositionEncoding::rotary());
        let attention = filled(attention.init(&device), 2);
        let x = || tensor::<3>([2, 5, 14], 4, &device);
        let trace = attention.forward_traced(x());
        assert_bits(&trace, "output", attention.forward(x()));
        let case = Case {
            scale: Some(1.5),
            softcap: Some(0.7),
            ..Case::default()
        };
        check(&trace, &case);
    }
}

#[test]
fn cross_attention_and_attention_of_three_sequences() {
    for (_, device) in devices::unsampled() {
        let x = || tensor::<3>([2, 5, 15], 4, &device);
        let memory = || tensor::<3>([2, 7, 11], 5, &device);
        let cross = CrossAttentionConfig::new(15, 3).with_d_memory(Some(11));
        let cross = filled(cross.init(&device), 3);
        let input = || CrossAttentionInput::new(x(), memory()).lengths(&[7, 4]);
        let trace = cross.forward_traced(input());
        assert_bits(&trace, "output", cross.forward(input()));
        let case = Case {
            hidden: vec![("padding", is_padding)],
            ..Case::default()
        };
        check(&trace, &case);
        let shape = |name| Step::of(&trace, name).shape;
        assert_eq!(shape("projected_query"), [2, 5, 15]);
        assert_eq!(shape("projected_memory"), [2, 7, 30]);

        let general = MultiHeadAttentionConfig::new(15, 3).with_d_key_in(Some(11));
        let general = filled(general.with_d_value_in(Some(11)).init(&device), 3);
        let visible = AttentionMask::visible(Tensor::from_data(
            TensorData::new((0..35).map(|at| at % 3 > 0).collect(), [1, 1, 5, 7]),
            &device,
        ));
        let input = || MultiHeadAttentionInput::new(x(), memory(), memory()).mask(visible.clone());
        let trace = general.forward_traced(input());
        assert_bits(&trace, "output", general.forward(input()));
        let case = Case {
            hidden: vec![("mask", |_, q, k| (q * 7 + k) % 3 == 0)],
            ..Case::default()
        };
        check(&trace, &case);
        assert_eq!(Step::of(&trace, "projected_key").shape, [2, 7, 15]);
    }
}

/// The names, which must differ.
fn names(trace: &Trace) -> Vec<&str> {
    let names: Vec<&str> = trace.tensors().map(|(name, _)| name).collect();
    let different: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(different.len(), names.len());
    names
}

#[test]
fn layers_and_stacks_name_what_they_add_up() {
    for (_, device) in devices::named() {
        let x = || tensor::<3>([2, 5, 12], 4, &device);
        let memory = || tensor::<3>([2, 7, 12], 5, &device);
        let layer = TransformerLayerConfig::new(12, 17, 3)
            .with_causal(true)
            .with_d_memory(Some(12))
            .with_block(BlockConfig::new().with_norm_placement(NormPlacement::Pre));
        let layer = filled(layer.init(&device), 6);
        let input = || LayerInput::new(x()).memory(memory());
        let trace = layer.forward_traced(input());
        assert_bits(&trace, "output", layer.forward(input()).states);
        assert_bits(&trace, "input", x());
        let part = |name| data::<3>(&trace, name, &device);
        let sums = [
            ("after_self", part("input") + part("self.output")),
            ("after_cross", part("after_self") + part("cross.output")),
            ("output", part("after_cross") + part("feed_forward.output")),
        ];
        for (name, sum) in sums {
            assert_close(
                name,
                trace.get(name).expect("a step"),
                &sum.into_data(),
                1e-6,
            );
        }
        let normed = layer.feed_forward_residual.as_ref().expect("a sum");
        assert_bits(
            &trace,
            "feed_forward.normed",
            normed.input(part("after_cross")),
        );
        let names_of_layer = names(&trace);
        for name in [
            "self.normed",
            "self.hidden.causal",
            "cross.normed",
            "cross.weights",
        ] {
            assert!(names_of_layer.contains(&name), "{names_of_layer:?}");
        }

        let parallel = BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_parallel(true);
        let stack = TransformerStackConfig::causal(12, 17, 3, 2).with_block(parallel);
        let stack = filled(stack.init(&device), 7);
        let trace = stack.forward_traced(x());
        assert_bits(&trace, "output", stack.forward(x()));
        let states = stack.forward_with_hidden_states(x()).hidden_states;
        assert_bits(&trace, "0.output", states[0].clone());
        assert_bits(&trace, "1.input", states[0].clone());
        assert!(!names(&trace).contains(&"0.after_self"));
    }
}

#[test]
fn the_translator_from_tokens_to_logits() {
    for (_, device) in devices::unsampled() {
        for position in [AbsolutePosition::Sinusoidal, AbsolutePosition::None] {
            let config = Seq2SeqConfig::new(19)
                .with_d_model(12)
                .with_n_heads(3)
                .with_d_ff(13)
                .with_dropout(0.0)
                .with_absolute_position(position);
            let model = filled(config.init(&device), 8);
            let source = Tensor::<2, Int>::from_data([[3, 5, 7], [11, 13, 0]], &device);
            let target = Tensor::<2, Int>::from_data([[1, 4, 6, 8, 2]; 2], &device);
            let trace = model.forward_traced(source.clone(), &[3, 2], target.clone());
            let logits = model.forward(source.clone(), &[3, 2], target);
            assert_bits(&trace, "logits", logits);
            let tokens = trace.get("source.tokens").expect("a step");
            tokens.assert_eq(&source.into_data(), true);
            let sum = match position {
                AbsolutePosition::None => data::<3>(&trace, "decoder.embedded", &device),
                _ => {
                    let positions = data::<3>(&trace, "decoder.positions", &device);
                    data::<3>(&trace, "decoder.embedded", &device) + positions
                }
            };
            assert_bits(&trace, "decoder.0.input", sum);
            let names = names(&trace);
            assert_eq!(
                (names[0], names[names.len() - 1]),
                ("source.tokens", "logits")
            );
            for name in ["encoder.1.self.hidden.padding", "decoder.1.cross.weights"] {
                assert!(names.contains(&name), "{names:?}");
            }
        }
    }
}
