//! Layers of published models in stacks: `tests/golden/transformers` says how the values were made.

use burn::tensor::{Bool, DType, Device, Tensor};
use burn_attn::{
    AttentionMask, BlockConfig, FeedForwardActivation, KvCacheConfig, LayerInput, LayerPattern,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, NormConfig, NormPlacement, ProjectionBias,
    TransformerStack, TransformerStackConfig,
    positions::{PositionEncoding, Positions, RotaryAxes, RotaryConfig},
};
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden::GoldenFile};

use super::transformers::{
    TOLERANCE, TOLERANCE_OF_SIGMOIDS, compare, loaded, of_file, open, tracked,
};

fn rotary(base: f64) -> PositionEncoding {
    PositionEncoding::Rotary(RotaryConfig::new().with_base(base).with_max_len(16))
}

/// A block with a norm before every sublayer.
fn block(norm: NormConfig) -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm(norm.with_epsilon(0.03))
        .with_norm_placement(NormPlacement::Pre)
}

fn numbers(file: &GoldenFile, name: &str) -> Vec<usize> {
    file.data(name)
        .iter()
        .map(|number: f64| number as usize)
        .collect()
}

/// Which of `[2, len]` tokens are padding.
fn padding(file: &GoldenFile, len: usize, device: &Device) -> Tensor<2, Bool> {
    let real: Tensor<2> = Tensor::from_data(file.data("mask"), device);
    real.lower_elem(0.5).narrow(1, 0, len)
}

/// Output and gradients of a stack; what the file says of padding is 0.
fn check(
    name: &str,
    config: &TransformerStackConfig,
    tolerance_on: fn(&str) -> f64,
    input: impl Fn(LayerInput, &GoldenFile, &Device) -> LayerInput,
) {
    let file = open(name);
    for (backend, device) in devices::cpu() {
        let device = &device.autodiff();
        let tolerance = tolerance_on(backend);
        let stack: TransformerStack = loaded(config.init(device), |path| file.data(path), device);
        let x: Tensor<3> = tracked(&file, "x", device);
        let output = stack.forward(input(LayerInput::new(x.clone()), &file, device));
        let output = match file.names().any(|name| name == "mask") {
            true => output.mask_fill(
                padding(&file, x.dims()[1], device)
                    .unsqueeze_dim::<3>(2)
                    .expand(x.dims()),
                0.0,
            ),
            false => output,
        };
        compare(&file, &stack, [x, output], tolerance, of_file(&file));
    }
}

#[test]
fn windows_bases_and_a_missing_norm_are_modern_berts() {
    let block = block(NormConfig::layer_norm().without_bias())
        .with_activation(FeedForwardActivation::GeGlu)
        .with_bias(false);
    let everywhere = block.clone().with_position(rotary(1000.0));
    let near = block.with_position(rotary(50.0)).with_window(2);
    let first = everywhere.clone().with_attention_norm(false);
    let pattern = LayerPattern::Cycle(vec![first, near.clone(), near, everywhere]);
    let config = TransformerStackConfig::encoder(12, 10, 2, 4).with_pattern(pattern);
    check(
        "modern_bert",
        &config,
        |_| TOLERANCE,
        |input, file, device| input.mask(AttentionMask::mask_pad(padding(file, 9, device))),
    );
}

#[test]
fn the_scale_of_sublayers_is_dinov2s() {
    let block = block(NormConfig::layer_norm()).with_layer_scale(Some(1.0));
    let config = TransformerStackConfig::encoder(12, 24, 2, 2)
        .with_block(block)
        .with_final_norm(Some(false));
    check("dinov2", &config, |_| TOLERANCE, |input, _, _| input);
}

fn llama() -> TransformerStackConfig {
    let block = block(NormConfig::rms_norm())
        .with_activation(FeedForwardActivation::SwiGlu)
        .with_bias(false)
        .with_n_kv_heads(1)
        .with_position(rotary(100.0));
    TransformerStackConfig::causal(12, 10, 2, 2).with_block(block)
}

fn positions(file: &GoldenFile) -> Vec<Vec<usize>> {
    numbers(file, "positions")
        .chunks(7)
        .map(<[usize]>::to_vec)
        .collect()
}

fn tolerance_with_sigmoids(backend: &str) -> f64 {
    match backend {
        "ndarray" => TOLERANCE_OF_SIGMOIDS,
        _ => TOLERANCE,
    }
}

#[test]
fn padding_on_the_left_is_llamas() {
    check(
        "padded_llama",
        &llama(),
        tolerance_with_sigmoids,
        |input, file, device| {
            input
                .mask(AttentionMask::mask_pad(padding(file, 7, device)))
                .positions(positions(file))
        },
    );
}

/// The prompt at once, then token by token.
#[test]
fn a_cache_holds_the_padding_of_llama() {
    let file = open("padded_llama");
    let at = positions(&file);
    for (backend, device) in devices::cpu() {
        let stack: TransformerStack =
            loaded(llama().init(&device), |path| file.data(path), &device);
        let mut cache = stack.cache(2, &KvCacheConfig::new(7));
        let [x, expected] = ["x", "output"]
            .map(|name| Tensor::<3>::from_data(file.data(name), (&device, DType::F64)));
        for (first, len) in [(0, 4), (4, 1), (5, 1), (6, 1)] {
            let end = first + len;
            let at: Vec<_> = at.iter().map(|row| row[first..end].to_vec()).collect();
            let input = LayerInput::new(x.clone().narrow(1, first, len)).positions(at);
            let input = input.mask(AttentionMask::mask_pad(padding(&file, end, &device)));
            let output = stack.forward_cached(input, &mut cache);
            // The last token of either row is a token.
            let actual = output.narrow(1, len - 1, 1).into_data();
            let expected = expected.clone().narrow(1, end - 1, 1).into_data();
            let tolerance = tolerance_with_sigmoids(backend);
            assert_close_to_largest("token", &actual, &expected, tolerance, 0.0);
        }
    }
}

#[test]
fn positions_on_three_axes_are_qwen2_vls() {
    let file = open("qwen2_vl_attention");
    let axes = RotaryAxes::Sections(vec![1, 2, 3]);
    let rotary = RotaryConfig::new()
        .with_base(100.0)
        .with_max_len(16)
        .with_axes(axes);
    let config = MultiHeadAttentionConfig::new(24, 2)
        .with_n_kv_heads(1)
        .with_causal(true)
        .with_dropout(0.0)
        .with_bias(ProjectionBias::all().with_output(false))
        .with_position(PositionEncoding::Rotary(rotary));
    let at = numbers(&file, "positions");
    let at = at
        .chunks(14)
        .map(|axis| axis.chunks(7).map(<[usize]>::to_vec).collect());
    let at = Positions::PerAxis(at.collect());
    for (_, device) in devices::cpu() {
        let device = &device.autodiff();
        let module = loaded(config.init(device), |path| file.data(path), device);
        let x: Tensor<3> = tracked(&file, "x", device);
        let input = MultiHeadAttentionInput::self_attention(x.clone()).positions(at.clone());
        let output = module.forward(input);
        compare(&file, &module, [x, output], TOLERANCE, of_file(&file));
    }
}
