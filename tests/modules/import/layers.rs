//! PyTorch's transformer layers and stacks.

use burn::tensor::Device;
use burn_attn::{
    BlockConfig, ExpertsConfig, FeedForwardActivation, LayerInput, NormConfig, NormPlacement,
    TransformerConfig, TransformerInput, TransformerStack, TransformerStackConfig,
};
use burn_attn_models::import;
use burn_attn_tests::{compare::assert_same, devices, numbers::filled};

use super::{assert_is, from_both_files, loaded, value};

/// `norm_first=False, activation="relu"`, PyTorch's defaults.
fn post() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm_placement(NormPlacement::Post)
        .with_activation(FeedForwardActivation::Relu)
}

/// `norm_first=True, activation="gelu"`.
fn pre() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(FeedForwardActivation::Gelu)
}

/// `bias=False`.
fn no_bias() -> BlockConfig {
    let norm = NormConfig::layer_norm().without_bias();
    post().with_bias(false).with_norm(norm)
}

/// One layer alone.
fn encoder(block: BlockConfig, device: &Device) -> TransformerStack {
    TransformerStackConfig::encoder(12, 7, 3, 1)
        .with_block(block)
        .with_final_norm(false)
        .init(device)
}

fn from_x(encoder: &TransformerStack, device: &Device) -> burn::tensor::Tensor<3> {
    encoder.forward(LayerInput::new(value("x", device)))
}

fn to_decode(device: &Device) -> LayerInput {
    LayerInput::new(value("x", device)).memory(value("memory", device))
}

#[test]
fn layers_load_from_both_files() {
    from_both_files("layers", |mut weights, device| {
        for (name, block) in [
            ("encoder_layer_post", post()),
            ("encoder_layer_pre", pre()),
            ("encoder_layer_no_bias", no_bias()),
        ] {
            let mut encoder = encoder(block, device);
            weights.load(name, &mut encoder.layers[0]).expect("loaded");
            assert_is(&format!("{name}.output"), from_x(&encoder, device));
        }
        for (name, block) in [("decoder_layer_post", post()), ("decoder_layer_pre", pre())] {
            let config = TransformerStackConfig::decoder(12, 7, 3, 1)
                .with_block(block)
                .with_causal(true);
            let mut decoder = config.with_final_norm(false).init(device);
            weights.load(name, &mut decoder.layers[0]).expect("loaded");
            let output = decoder.forward(to_decode(device));
            assert_is(&format!("{name}.output"), output);
        }
        weights.finish().expect("nothing is left");
    });
}

#[test]
fn stacks_load_from_both_files() {
    from_both_files("stacks", |mut weights, device| {
        let config = TransformerStackConfig::encoder(12, 7, 3, 2).with_block(post());
        let encoder = loaded(&mut weights, "encoder", config.init(device));
        assert_is("encoder.output", from_x(&encoder, device));

        let config = TransformerStackConfig::causal(12, 7, 3, 2).with_block(post());
        let causal = loaded(&mut weights, "encoder", config.init(device));
        let input = LayerInput::new(value("x", device));
        assert_is("encoder.causal", causal.forward(input));

        let block = pre().with_activation(FeedForwardActivation::Relu);
        let config = TransformerStackConfig::decoder(12, 7, 3, 1)
            .with_block(block)
            .with_causal(true);
        let decoder = loaded(&mut weights, "decoder", config.init(device));
        assert_is("decoder.output", decoder.forward(to_decode(device)));

        let config = TransformerConfig::new(12, 7, 3, 1, 1).with_block(post());
        let transformer = loaded(
            &mut weights,
            "transformer",
            config.with_final_norm(true).init(device),
        );
        let input = TransformerInput::new(value("memory", device), value("x", device));
        assert_is("transformer.output", transformer.forward(input));
        weights.finish().expect("nothing is left");
    });
}

/// What loading into an encoder's only layer says; the layer stays as it was.
#[track_caller]
fn refused(name: &str, block: BlockConfig, sentence: &str) {
    from_both_files("layers", |mut weights, device| {
        let mut encoder = filled(encoder(block.clone(), device), 1);
        let before = from_x(&encoder, device);
        let error = weights.load(name, &mut encoder.layers[0]).unwrap_err();
        assert_eq!(error.to_string(), sentence);
        assert_same(&from_x(&encoder, device), &before);
    });
}

#[test]
fn layers_that_pytorch_cannot_have() {
    refused(
        "encoder_layer_post",
        post().with_norm(NormConfig::rms_norm()),
        "encoder_layer_post.norm1: the module has RMS norms, but PyTorch's transformers have layer norms",
    );
    // They multiply by one plus their numbers.
    refused(
        "encoder_layer_post",
        post().with_norm(NormConfig::layer_norm().with_unit_offset()),
        "encoder_layer_post.norm1: the module has layer norms with a unit offset, but PyTorch's transformers have layer norms",
    );
    refused(
        "encoder_layer_pre",
        pre().with_norm_placement(NormPlacement::Sandwich),
        "encoder_layer_pre.norm1: the module has a norm after each sublayer (NormPlacement::Sandwich), \
         but PyTorch's does not",
    );
    refused(
        "encoder_layer_pre",
        pre().with_parallel(true),
        "encoder_layer_pre.norm2: the module's attention and feed-forward are parallel, but PyTorch's are one after the other",
    );
    refused(
        "encoder_layer_post",
        post().with_activation(FeedForwardActivation::SwiGlu),
        "the weights do not fit the model: of another shape: encoder_layer_post.linear1.weight is [7, 12] instead of [14, 12], \
         encoder_layer_post.linear1.bias is [7] instead of [14]",
    );
    refused(
        "encoder_layer_pre",
        pre().with_experts(ExpertsConfig::new(3, 2)),
        "encoder_layer_pre.linear1: the module's layers have experts, but PyTorch's have one feed-forward network",
    );
    refused(
        "encoder_layer_post",
        no_bias(),
        "the weights do not fit the model: unexpected: encoder_layer_post.linear1.bias, encoder_layer_post.linear2.bias, \
         encoder_layer_post.norm1.bias, encoder_layer_post.norm2.bias, encoder_layer_post.self_attn.in_proj_bias, \
         … (6 in all, all in encoder_layer_post)",
    );
    refused(
        "decoder_layer_post",
        post(),
        "the weights do not fit the model: unexpected: decoder_layer_post.multihead_attn.in_proj_bias, \
         decoder_layer_post.multihead_attn.in_proj_weight, decoder_layer_post.multihead_attn.out_proj.bias, \
         decoder_layer_post.multihead_attn.out_proj.weight, decoder_layer_post.norm3.bias, \
         … (6 in all, all in decoder_layer_post)",
    );
}

#[test]
fn stacks_of_another_height() {
    from_both_files("stacks", |mut weights, device| {
        let config =
            |n_layers| TransformerStackConfig::encoder(12, 7, 3, n_layers).with_block(post());
        let error = weights.load("encoder", &mut config(3).init(device));
        let sentence = error.unwrap_err().to_string();
        assert!(
            sentence.starts_with(
                "the weights do not fit the model: missing: encoder.layers.2.self_attn.in_proj_weight [36, 12], "
            ),
            "{sentence}"
        );
        let error = weights.load("encoder", &mut config(1).init(device));
        let sentence = error.unwrap_err().to_string();
        assert!(
            sentence.starts_with(
                "the weights do not fit the model: unexpected: encoder.layers.1.linear1.bias, "
            ),
            "{sentence}"
        );
        let with_norm = config(2).with_final_norm(true);
        let error = weights.load("encoder", &mut with_norm.init(device));
        assert_eq!(
            error.unwrap_err().to_string(),
            "the weights do not fit the model: missing: encoder.norm.weight [12], encoder.norm.bias [12]"
        );
    });
}

#[test]
fn layers_that_burn_nn_cannot_have() {
    use burn::{module::Module, nn::transformer::TransformerEncoderConfig as BurnNnConfig};

    let device = devices::any();
    let theirs = filled(BurnNnConfig::new(12, 7, 3, 1).init(&device), 1);
    let refused = |block, sentence: &str| {
        let record = theirs.clone().into_record();
        let mut weights = import::burn_nn_record(record).expect("a record");
        let mut encoder = encoder(block, &device);
        let error = weights
            .load("layers.0", &mut encoder.layers[0])
            .unwrap_err();
        assert_eq!(error.to_string(), sentence);
        // Its attention alone can be had.
        let attention = &mut encoder.layers[0].self_attention;
        weights.load("layers.0.mha", attention).expect("loaded");
    };
    refused(
        pre().with_parallel(true),
        "layers.0.norm_1: the module's attention and feed-forward are parallel, but burn-nn's are one after the other",
    );
    refused(
        pre().with_norm_placement(NormPlacement::Sandwich),
        "layers.0.norm_1: the module has a norm after each sublayer (NormPlacement::Sandwich), but burn-nn's does not",
    );
    refused(
        post().with_norm(NormConfig::rms_norm()),
        "layers.0.norm_1: the module has RMS norms, but burn-nn's transformers have layer norms",
    );
    let mut weights = import::burn_nn_record(theirs.into_record()).expect("a record");
    let config = TransformerStackConfig::encoder(12, 7, 3, 1);
    let mut with_norm = config.with_final_norm(true).init(&device);
    assert_eq!(
        weights.load("", &mut with_norm).unwrap_err().to_string(),
        "the weights do not fit the model: missing: norm.gamma [12], norm.beta [12]"
    );
}
