//! wav2vec 2.0 against `transformers`: what it hears, its tokens, what its feature extractor makes of recordings, and what is refused. On the CPU alone: the convolutions
//! are Burn's, and a software GPU takes minutes to compile them.

use std::{collections::BTreeMap, fs};

use burn::{
    module::Module,
    tensor::{Device, FloatDType, Tensor, TensorData},
};
use burn_attn::{BlockConfig, FeedForwardActivation, NormPlacement, TransformerStackOutput};
use burn_attn_models::{
    pretrained::LoadOptions,
    speech::AudioProcessor,
    wav2vec2::{self, FeatureLayerConfig, Wav2Vec2, Wav2Vec2Config},
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, assert_same, difference_to_largest},
    devices,
    golden::GoldenFile,
    sentence,
};
use serde_json::{Value, json};

use super::{
    TOLERANCE, assert_states, folder,
    language_models::{Logits, Model},
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

fn models() -> [Model<Wav2Vec2>; 3] {
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

/// The largest error so far, of each kind of value.
type Errors = BTreeMap<&'static str, f64>;

/// Compares where there is no padding: the reference has zeros there.
fn check(errors: &mut Errors, kind: &'static str, actual: Tensor<3>, expected: Tensor<3>) {
    assert_states(kind, actual.clone(), expected.clone());
    let is_padding = expected.clone().abs().sum_dim(2).equal_scalar(0.0);
    let actual = actual.mask_fill(is_padding.expand(expected.dims()), 0.0);
    let largest = expected.clone().abs().max().into_scalar::<f64>();
    let error = (actual - expected).abs().max().into_scalar::<f64>() / largest;
    let known = errors.entry(kind).or_insert(0.0);
    *known = known.max(error);
}

#[test]
fn states_weights_logits_and_tokens_are_the_references() {
    let (mut count, mut errors) = (0, Errors::new());
    for model in models() {
        let values = model.values();
        for (_, device) in devices::cpu() {
            let loaded = model.load(&device);
            let samples = samples(&values, &device);
            for (mask, lengths) in [("masked", Some(&LENGTHS[..])), ("whole", None)] {
                let expected = |name: &str| values.tensor(&format!("{mask}.{name}"), &device);
                let states = loaded.forward(samples.clone(), lengths);
                check(&mut errors, "states", states.clone(), expected("states"));
                let output = loaded.forward_with_hidden_states(samples.clone(), lengths);
                assert_same(&output.states, &states);
                for (layer, states) in output.hidden_states.into_iter().enumerate() {
                    let expected = expected(&format!("states.{layer}"));
                    check(&mut errors, "states of layers", states, expected);
                    count += 1;
                }
                let TransformerStackOutput { self_weights, .. } =
                    loaded.forward_with_weights(samples.clone(), lengths);
                for (layer, weights) in self_weights.into_iter().enumerate() {
                    let name = format!("{mask}.weights.{layer}");
                    if values.names().any(|other| other == name) {
                        let expected: Tensor<4> = values.tensor(&name, &device);
                        let (weights, expected) = (weights.flatten(0, 1), expected.flatten(0, 1));
                        check(&mut errors, "weights", weights, expected);
                        count += 1;
                    }
                }
                if loaded.head.is_none() {
                    continue;
                }
                let logits = loaded.logits(samples.clone(), lengths);
                check(&mut errors, "logits", logits.clone(), expected("logits"));
                for (row, tokens) in loaded.decode(logits, lengths).into_iter().enumerate() {
                    let expected = values.data(&format!("{mask}.tokens.{row}"));
                    assert_eq!(tokens, expected.iter::<u32>().collect::<Vec<_>>());
                    count += 1;
                }
            }
        }
    }
    println!("{errors:?}");
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
        let exact = model.load(&device).forward(samples.clone(), None);
        let exact: Vec<f64> = exact.into_data().iter().collect();
        for (dtype, tolerance) in [(FloatDType::F16, 0.03), (FloatDType::BF16, 0.2)] {
            let options = LoadOptions::new(&device).dtype(dtype);
            let loaded = wav2vec2::from_pretrained(folder(model.name), options).expect("loaded");
            let states = loaded.forward(samples.clone(), None);
            assert_eq!(states.dtype(), dtype.into());
            let states: Vec<f64> = states.into_data().iter().collect();
            let difference = difference_to_largest(&states, &exact);
            println!("{} in {dtype:?}: {difference:.1e}", model.name);
            assert!(difference < tolerance, "{dtype:?}: {difference}");
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

#[test]
fn fields_that_change_nothing_and_fields_that_are_refused() {
    let [base, large, _] = models();
    base.assert_same_model(|config| {
        config.insert("mask_time_prob".into(), json!(0.3));
        config.insert("layerdrop".into(), json!(0.5));
        config.insert("mask_channel_min_space".into(), json!(1));
        config.remove("num_feat_extract_layers");
        config.remove("do_stable_layer_norm");
        config.remove("feat_extract_activation");
        config.remove("layer_norm_eps");
    });
    for (field, value, expected) in [
        (
            "add_adapter",
            json!(true),
            "true, but wav2vec 2.0 supports false",
        ),
        (
            "adapter_attn_dim",
            json!(16),
            "16, but wav2vec 2.0 supports null",
        ),
        (
            "feat_extract_norm",
            json!("batch"),
            "\"batch\", but wav2vec 2.0 supports group, layer",
        ),
        (
            "conv_kernel",
            json!([5, 3]),
            "[5,3], but wav2vec 2.0 supports 3 numbers, as conv_dim has",
        ),
        (
            "conv_stride",
            json!([3, 2, -2]),
            "[3,2,-2], but wav2vec 2.0 supports a list of numbers up to 65535",
        ),
        (
            "num_feat_extract_layers",
            json!(2),
            "2, but wav2vec 2.0 supports 3",
        ),
    ] {
        let expected = format!("config.json: {field} is {expected}");
        base.assert_refused(field, value, &expected);
    }
    base.assert_refused(
        "pad_token_id",
        json!(11),
        "config.json: Wav2Vec2Config: blank 11 is not below vocab_size 11",
    );
    base.assert_refused(
        "num_conv_pos_embedding_groups",
        json!(5),
        "config.json: Wav2Vec2Config: d_model 12 is not divisible by position_groups 5",
    );
    base.assert_refused(
        "forget_layers",
        json!(true),
        "config.json: wav2vec 2.0 does not know forget_layers",
    );
    let many: Vec<u8> = vec![1; 101];
    let error = base.changed(|config| drop(config.insert("conv_dim".into(), json!(many))));
    let error = error.expect_err("it is refused");
    assert!(error.ends_with("supports at most 100 numbers"), "{error}");
    for (field, value) in [
        ("layer_norm_eps", json!(0.1)),
        ("hidden_act", json!("relu")),
        ("feat_extract_activation", json!("relu")),
    ] {
        for model in [&base, &large] {
            let other = model.changed(|config| drop(config.insert(field.into(), value.clone())));
            let other = other.unwrap_or_else(|error| panic!("{error}"));
            let own = model.logits_of(&model.load(&devices::any()));
            assert_ne!(model.logits_of(&other), own, "{field}");
        }
    }
}

#[test]
fn mistakes_have_a_sentence() {
    let device = devices::any();
    let config = || {
        Wav2Vec2Config::new()
            .with_features(vec![FeatureLayerConfig::new(5, 7, 3)])
            .with_d_model(6)
            .with_n_heads(3)
            .with_n_layers(1)
            .with_d_ff(7)
            .with_position_kernel(3)
            .with_position_groups(2)
    };
    let block = BlockConfig::new().with_norm_placement(NormPlacement::Sandwich);
    for (config, expected) in [
        (
            config().with_features(Vec::new()),
            "Wav2Vec2Config: number of features must be at least 1, got 0",
        ),
        (
            config().with_features(vec![FeatureLayerConfig::new(5, 7, 0)]),
            "Wav2Vec2Config: stride must be at least 1, got 0",
        ),
        (
            config().with_n_heads(4),
            "Wav2Vec2Config: d_model 6 is not divisible by n_heads 4",
        ),
        (
            config().with_position_groups(4),
            "Wav2Vec2Config: d_model 6 is not divisible by position_groups 4",
        ),
        (
            config().with_feature_activation(FeedForwardActivation::SwiGlu),
            "Wav2Vec2Config: feature_activation SwiGlu has a gate",
        ),
        (
            config().with_block(block),
            "Wav2Vec2Config: norm_placement Sandwich is not Pre or Post",
        ),
    ] {
        assert_eq!(sentence(|| config.init(&device)), expected);
    }
    let model = config().init(&device);
    let samples = |len: usize| Tensor::<2>::zeros([2, len], &device);
    assert_eq!(
        sentence(|| model.forward(samples(6), None)),
        "Wav2Vec2: 6 samples are too few for a frame"
    );
    for lengths in [&[11][..], &[12, 11], &[11, 6]] {
        assert_eq!(
            sentence(|| model.forward(samples(11), Some(lengths))),
            format!(
                "Wav2Vec2: lengths {lengths:?} do not fit 2 recordings of 11 samples, or are too few for a frame"
            )
        );
    }
    assert_eq!(
        sentence(|| model.logits(samples(11), None)),
        "Wav2Vec2: the model has no head"
    );
    let logits = Tensor::zeros([2, 2, 5], &device);
    assert_eq!(
        sentence(|| model.decode(logits, Some(&[11]))),
        "Wav2Vec2: 1 lengths for the logits of 2 recordings"
    );
}

#[test]
fn recordings_are_normalised_as_by_the_reference() {
    let values = GoldenFile::open("models/wav2vec2/extracted");
    let device = devices::any();
    let recordings = [0, 1].map(|row| {
        let bytes = values.data(&format!("samples.{row}"));
        bytes.iter().map(|byte: f32| byte / 64.0 - 1.0).collect()
    });
    let recordings: [&Vec<f32>; 2] = recordings.each_ref();
    let [long, short] = recordings.map(|samples| samples.as_slice());
    for (name, rate) in [
        ("wav2vec2", 16_000),
        ("wav2vec2_large", 16_000),
        ("wav2vec2_bare", 8_000),
    ] {
        let processor = AudioProcessor::from_pretrained(folder(name)).expect("a processor");
        assert_eq!(processor.sample_rate, rate);
        let batch = processor.forward(&[long, short], &device);
        let lengths = (name == "wav2vec2_large").then(|| LENGTHS.to_vec());
        assert_eq!(batch.lengths, lengths);
        let alone = processor.forward(&[short], &device).samples;
        for (key, actual) in [
            (name.to_owned(), batch.samples),
            (format!("{name}.alone"), alone),
        ] {
            let expected = values.data(&key);
            assert_close_to_largest(&key, &actual.into_data(), &expected, 1e-6, 0.0);
        }
    }
    let processor = AudioProcessor::default();
    assert_eq!(processor.forward(&[], &device).samples.dims(), [0, 0]);
    let silence = processor.forward(&[&[0.25; 7]], &device).samples;
    assert_same(&silence, &Tensor::zeros([1, 7], &device));
    assert_eq!(
        sentence(|| processor.forward(&[short, &[]], &device)),
        "AudioProcessor: recording 1 has no samples"
    );
    assert_eq!(
        sentence(|| processor.forward(&[short, &[0.0, f32::NAN]], &device)),
        "AudioProcessor: sample 1 of recording 1 is NaN"
    );
}

#[test]
fn settings_of_recordings_that_are_refused() {
    let changed = |field: &str, value: Value| {
        let copy = tempfile::tempdir().expect("a folder");
        let path = copy.path().join("preprocessor_config.json");
        let text = fs::read_to_string(folder("wav2vec2").join("preprocessor_config.json"));
        let mut settings: Value = serde_json::from_str(&text.expect("read")).expect("JSON");
        settings[field] = value;
        fs::write(&path, settings.to_string()).expect("written");
        AudioProcessor::from_pretrained(copy.path()).map_err(|error| error.to_string())
    };
    assert!(changed("processor_class", json!("Wav2Vec2Processor")).is_ok());
    for (field, value, expected) in [
        (
            "feature_size",
            json!(80),
            "feature_size is 80, but speech supports 1",
        ),
        (
            "padding_side",
            json!("left"),
            "padding_side is \"left\", but speech supports \"right\"",
        ),
        (
            "feature_extractor_type",
            json!("WhisperFeatureExtractor"),
            "feature_extractor_type is \"WhisperFeatureExtractor\", but speech supports \"Wav2Vec2FeatureExtractor\"",
        ),
        (
            "do_resample",
            json!(true),
            "speech does not know do_resample",
        ),
    ] {
        let error = changed(field, value).expect_err("it is refused");
        assert!(error.ends_with(expected), "{error}");
    }
}
