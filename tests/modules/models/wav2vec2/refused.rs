//! Fields of a wav2vec 2.0 that change nothing, that change the model and that are refused, and mistakes.

use burn::tensor::Tensor;
use burn_attn::{BlockConfig, FeedForwardActivation, NormPlacement};
use burn_attn_models::wav2vec2::{FeatureLayerConfig, Wav2Vec2Config};
use burn_attn_tests::{devices, sentence};
use serde_json::json;

use super::models;

#[test]
fn fields_that_change_nothing_and_fields_that_are_refused() {
    let [base, large, bare] = models();
    base.assert_same_model(|config| {
        config.insert("mask_time_prob".into(), json!(0.3));
        config.insert("layerdrop".into(), json!(0.5));
        config.insert("mask_channel_min_space".into(), json!(1));
        config.remove("num_feat_extract_layers");
        config.remove("do_stable_layer_norm");
        config.remove("feat_extract_activation");
        config.remove("layer_norm_eps");
    });
    base.assert_unsupported(
        "wav2vec 2.0",
        [
            ("add_adapter", json!(true), "false"),
            ("adapter_attn_dim", json!(16), "null"),
            ("feat_extract_norm", json!("batch"), "group, layer"),
            ("conv_kernel", json!([5, 3]), "3 numbers, as conv_dim says"),
            (
                "conv_stride",
                json!([3, 2, -2]),
                "a list of numbers up to 65535",
            ),
            ("num_feat_extract_layers", json!(2), "3"),
            ("vocab_size", json!(null), "a whole number"),
            ("pad_token_id", json!(null), "a whole number"),
        ],
    );
    base.assert_refused(
        "pad_token_id",
        json!(11),
        "config.json: Wav2Vec2Config: blank 11 is not below vocab_size 11",
    );
    // Which are of a head.
    for (field, value) in [
        ("vocab_size", json!(null)),
        ("pad_token_id", json!(null)),
        ("pad_token_id", json!(999)),
    ] {
        bare.assert_same_model(|config| drop(config.insert(field.into(), value)));
    }
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
    let error = base.set("conv_dim", many).expect_err("it is refused");
    assert!(error.ends_with("supports at most 100 numbers"), "{error}");
    let field = "feat_extract_activation";
    large.assert_differs(field, large.set(field, "relu"));
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
