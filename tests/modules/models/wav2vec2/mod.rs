//! wav2vec 2.0 against `transformers`: what it hears, its tokens, and its files. On the CPU alone: the convolutions
//! are Burn's, and a software GPU takes minutes to compile them.

mod recordings;
mod refused;

use burn::{
    module::Module,
    tensor::{Device, FloatDType, Tensor, TensorData},
};
use burn_attn::TransformerStackOutput;
use burn_attn_models::{
    pretrained::LoadOptions,
    wav2vec2::{self, Wav2Vec2, Wav2Vec2Config},
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, assert_same},
    devices,
    golden::GoldenFile,
};

use super::{
    assert_states, folder,
    language_models::{Logits, Model},
    load_options::{assert_like, numbers},
};

/// Samples of the recordings; the rest of the second row is padding.
const LENGTHS: [usize; 2] = [173, 101];

impl Logits for Wav2Vec2 {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        let samples = samples(values, &devices::any());
        match &self.head {
            Some(_) => self.logits(samples, Some(&LENGTHS)).into_data(),
            None => self.forward(samples, Some(&LENGTHS)).into_data(),
        }
    }
}

pub(super) fn models() -> [Model<Wav2Vec2>; 3] {
    let table = wav2vec2::table();
    [
        ("wav2vec2", table.clone()),
        ("wav2vec2_large", table.clone()),
        ("wav2vec2_bare", table.bare("wav2vec2")),
    ]
    .map(|(name, table)| Model {
        name,
        from_pretrained: |folder, device| wav2vec2::from_pretrained(folder, device),
        table,
    })
}

fn samples(values: &GoldenFile, device: &Device) -> Tensor<2> {
    let bytes = values.data("samples").convert::<f32>();
    Tensor::from_data(bytes, device) / 64.0 - 2.0
}

#[test]
fn states_weights_logits_and_tokens_are_the_references() {
    let mut count = 0;
    for model in models() {
        let values = model.values();
        for (_, device) in devices::cpu() {
            let loaded = model.load(&device);
            let samples = samples(&values, &device);
            for (mask, lengths) in [("masked", Some(&LENGTHS[..])), ("whole", None)] {
                let expected = |name: &str| values.tensor(&format!("{mask}.{name}"), &device);
                let states = loaded.forward(samples.clone(), lengths);
                assert_states("states", states.clone(), expected("states"));
                let output = loaded.forward_with_hidden_states(samples.clone(), lengths);
                assert_same(&output.states, &states);
                for (layer, states) in output.hidden_states.into_iter().enumerate() {
                    let expected = expected(&format!("states.{layer}"));
                    assert_states("states of layers", states, expected);
                    count += 1;
                }
                let TransformerStackOutput { self_weights, .. } =
                    loaded.forward_with_weights(samples.clone(), lengths);
                for (layer, weights) in self_weights.into_iter().enumerate() {
                    let name = format!("{mask}.weights.{layer}");
                    if values.names().any(|other| other == name) {
                        let expected: Tensor<4> = values.tensor(&name, &device);
                        let (weights, expected) = (weights.flatten(0, 1), expected.flatten(0, 1));
                        assert_states("weights", weights, expected);
                        count += 1;
                    }
                }
                if loaded.head.is_none() {
                    continue;
                }
                let logits = loaded.logits(samples.clone(), lengths);
                assert_states("logits", logits.clone(), expected("logits"));
                for (row, tokens) in loaded.decode(logits, lengths).into_iter().enumerate() {
                    let expected = values.data(&format!("{mask}.tokens.{row}"));
                    assert_eq!(tokens, expected.iter::<u32>().collect::<Vec<_>>());
                    count += 1;
                }
            }
        }
    }
    assert_eq!(count, (12 + 6 + 8) * devices::cpu().len());
}

#[test]
fn padding_changes_nothing_where_frames_are_normalised() {
    let [_, large, _] = models();
    let device = devices::any();
    let (loaded, samples) = (large.load(&device), samples(&large.values(), &device));
    let padded = loaded.forward(samples.clone(), Some(&LENGTHS));
    let alone = samples.narrow(0, 1, 1).narrow(1, 0, LENGTHS[1]);
    let alone = loaded.forward(alone, None);
    let [_, n_frames, _] = alone.dims();
    assert_eq!(n_frames, loaded.frames(LENGTHS[1]));
    let padded = padded.narrow(0, 1, 1).narrow(1, 0, n_frames).into_data();
    assert_close_to_largest("padded", &padded, &alone.into_data(), 1e-5, 0.0);
    let nothing = loaded.forward(Tensor::zeros([0, 173], &device), Some(&[]));
    assert_eq!(nothing.dims(), [0, 11, 10]);
    let nothing = loaded.logits(Tensor::zeros([0, 173], &device), Some(&[]));
    let [batch, n_frames, _] = nothing.dims();
    assert_eq!([batch, n_frames], [0, 11]);
}

#[test]
fn they_are_written_back_bit_for_bit() {
    for model in models() {
        model.check_export();
    }
}

#[test]
fn tensors_have_other_names_and_some_are_left_out() {
    let [base, _, bare] = models();
    let convolution = "wav2vec2.encoder.pos_conv_embed.conv";
    base.assert_same_weights(|tensors| {
        for (new, old) in [("original0", "weight_g"), ("original1", "weight_v")] {
            let tensor = tensors.remove(&format!("{convolution}.parametrizations.weight.{new}"));
            let tensor = tensor.expect("a tensor");
            tensors.insert(format!("{convolution}.{old}"), tensor);
        }
        let bias = tensors["lm_head.bias"].clone();
        for name in [
            "wav2vec2.masked_spec_embed",
            "quantizer.codevectors",
            "project_q.bias",
        ] {
            tensors.insert(name.into(), bias.clone());
        }
    });
    bare.assert_same_weights(|tensors| {
        for (new, old) in [("original0", "weight_g"), ("original1", "weight_v")] {
            let name = format!("encoder.pos_conv_embed.conv.parametrizations.weight.{new}");
            let tensor = tensors.remove(&name).expect("a tensor");
            tensors.insert(format!("encoder.pos_conv_embed.conv.{old}"), tensor);
        }
        let bias = tensors["encoder.layer_norm.bias"].clone();
        tensors.insert("masked_spec_embed".into(), bias);
    });
    let error = base.with(
        |_| {},
        |tensors| {
            let bias = tensors["lm_head.bias"].clone();
            tensors.insert("classifier.bias".into(), bias);
        },
    );
    let error = error.expect_err("it is refused");
    assert!(error.contains("classifier.bias"), "{error}");
}

#[test]
fn half_precision_is_close() {
    let device = devices::any();
    for model in models() {
        let samples = samples(&model.values(), &device);
        let exact = numbers(model.load(&device).forward(samples.clone(), None));
        for (dtype, tolerance) in [(FloatDType::F16, 0.01), (FloatDType::BF16, 0.05)] {
            let options = LoadOptions::new(&device).dtype(dtype);
            let loaded = wav2vec2::from_pretrained(folder(model.name), options).expect("loaded");
            let states = loaded.forward(samples.clone(), None);
            assert_like(model.name, states, &exact, (dtype.into(), tolerance));
        }
    }
}

#[test]
fn the_default_is_the_base_model() {
    let model = Wav2Vec2Config::new()
        .with_vocab_size(32)
        .init(&devices::any());
    // As counted in `transformers`, without the vector for masked frames.
    assert_eq!(model.num_params(), 94_396_320 - 768);
    assert_eq!(
        [399, 400, 719, 720, 16_000].map(|samples| model.frames(samples)),
        [0, 1, 1, 2, 49]
    );
}

#[test]
fn the_weight_of_a_new_model_is_that_of_the_reference() {
    let device = devices::any();
    let model = Wav2Vec2Config::new()
        .with_d_model(96)
        .with_position_kernel(11)
        .with_position_groups(3)
        .init(&device);
    let weight = model.positions.weight();
    assert_eq!(weight.dims(), [96, 32, 11]);
    let std = weight.square().mean().into_scalar::<f64>().sqrt();
    let expected = 2.0 / (11.0_f64 * 96.0).sqrt();
    assert!((std / expected - 1.0).abs() < 1e-4, "{std} {expected}");
}

#[test]
fn gradients_reach_every_parameter() {
    let [base, large, _] = models();
    for model in [base, large] {
        let device = devices::any().autodiff();
        let loaded = model.load(&device);
        let samples = samples(&model.values(), &device);
        let gradients = loaded
            .logits(samples, Some(&LENGTHS))
            .square()
            .sum()
            .backward();
        let first = loaded.features[0].convolution.weight.val();
        let positions = &loaded.positions;
        let of_positions = [&positions.magnitude, &positions.direction];
        for parameter in of_positions
            .map(|parameter| parameter.val())
            .iter()
            .chain([&first])
        {
            let gradient = parameter.grad(&gradients).expect("a gradient");
            let largest = gradient.abs().max().into_scalar::<f32>();
            assert!(largest.is_finite() && largest > 0.0);
        }
    }
}
