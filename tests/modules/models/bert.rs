//! BERT against `transformers`, with padding and two segments.

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn_models::bert::{Bert, BertInput};
use burn_attn_tests::{compare::assert_close_to_largest, devices, sentence};

use super::{
    TOLERANCE, assert_dropout, assert_feed_forward_without_dropout, assert_states, folder,
    refused::copied, values,
};

fn input(device: &Device) -> BertInput {
    let values = values();
    let ints = |name: &str| Tensor::<2, Int>::from_data(values.data(name), device);
    BertInput::new(ints("bert.tokens"))
        .segments(ints("bert.segments"))
        .lengths(&[7, 4])
}

/// ALBERT has three layers here, of which the first two are one.
#[test]
fn every_layer_is_the_references() {
    for (name, device) in devices::named() {
        for (model, layers, own) in [("bert", 2, 2), ("albert", 3, 2)] {
            let bert = Bert::from_pretrained(folder(model), &device);
            let bert = bert.unwrap_or_else(|error| panic!("{model}: {error}"));
            assert_eq!(bert.encoder.layers.len(), own);
            let values = values();
            let output = bert.forward_with_hidden_states(input(&device));
            assert_eq!(output.hidden_states.len(), layers);
            for (layer, states) in output.hidden_states.into_iter().enumerate() {
                let expected = values.tensor(&format!("{model}.states.{layer}"), &device);
                assert_states(
                    &format!("{model}, layer {layer} on {name}"),
                    states,
                    expected,
                );
            }
            let pooled = bert.pool(bert.forward(input(&device)));
            let expected: Tensor<2> = values.tensor(&format!("{model}.pooled"), &device);
            let (pooled, expected) = (pooled.into_data(), expected.into_data());
            assert_close_to_largest(name, &pooled, &expected, TOLERANCE, 0.0);
        }
    }
}

#[test]
fn a_head_is_left_out() {
    let device = devices::any();
    let bert = Bert::from_pretrained(folder("bert_masked_lm"), &device).expect("a model");
    let states = bert.forward(input(&device));
    let expected = values().tensor("bert_masked_lm.states.1", &device);
    assert_states("below a head", states.clone(), expected);
    assert_eq!(
        sentence(|| bert.pool(states)),
        "Bert: the model has no pooler"
    );
}

#[test]
fn sentences_are_vectors_of_length_one() {
    let device = devices::any();
    let bert = Bert::from_pretrained(folder("bert"), &device).expect("a model");
    let states = bert.forward(input(&device));
    let vectors = bert.sentence_vectors(states.clone(), &[7, 4]);
    let rows: Vec<f32> = states.into_data().iter().collect();
    let mut expected = Vec::new();
    for (text, length) in [(0, 7), (1, 4)] {
        let mean = |dim: usize| {
            let of_token = |token: usize| f64::from(rows[(text * 7 + token) * 12 + dim]);
            (0..length).map(of_token).sum::<f64>() / length as f64
        };
        let mean: Vec<f64> = (0..12).map(mean).collect();
        let norm = mean
            .iter()
            .map(|number| number * number)
            .sum::<f64>()
            .sqrt();
        expected.extend(mean.into_iter().map(|number| (number / norm) as f32));
    }
    let expected = TensorData::new(expected, [2, 12]);
    assert_close_to_largest("vectors", &vectors.into_data(), &expected, 1e-6, 0.0);
    let states = bert.forward(input(&device));
    assert_eq!(
        sentence(|| bert.sentence_vectors(states, &[7, 0])),
        "Bert: lengths [7, 0] do not fit states of 2 texts of 7 tokens"
    );
}

#[test]
fn segments_that_there_are_not_are_refused() {
    let device = devices::any();
    let bert = Bert::from_pretrained(folder("bert"), &device).expect("a model");
    let ints = |numbers: [[i32; 2]; 1]| Tensor::<2, Int>::from_data(numbers, &device);
    for (segments, segment) in [([[0, 2]], 2), ([[-1, 0]], -1)] {
        let input = BertInput::new(ints([[1, 2]])).segments(ints(segments));
        assert_eq!(
            sentence(|| bert.forward(input)),
            format!("Bert: segment {segment} is not below the number of segments 2")
        );
    }
}

#[test]
fn no_text_is_no_mistake() {
    let device = devices::any();
    let bert = Bert::from_pretrained(folder("bert"), &device).expect("a model");
    let none = || Tensor::<3>::zeros([0, 7, 12], &device);
    assert_eq!(bert.sentence_vectors(none(), &[]).dims(), [0, 12]);
    assert_eq!(bert.pool(none()).dims(), [0, 12]);
}

#[test]
fn feed_forward_networks_drop_nothing() {
    let bert = Bert::from_pretrained(folder("bert"), &devices::any()).expect("a model");
    assert_feed_forward_without_dropout(&bert.encoder.layers[0]);
    // The second sum of an ALBERT has none either.
    let albert = copied("albert", |config| {
        config.insert("hidden_dropout_prob".into(), 0.5.into());
    });
    let albert = Bert::from_pretrained(albert.path(), &devices::any()).expect("a model");
    assert_dropout(&albert.encoder.layers[0], [true, false]);
}
