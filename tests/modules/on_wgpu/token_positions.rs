//! The gradient of a bias by distance between tokens at any positions: on CubeCL, that of a selection is one loop, which Mesa's driver leaves
//! after 65,535 rounds.

use burn::tensor::{Device, Tensor, TensorData};
use burn_attn::{
    SelfAttention, SelfAttentionConfig, SelfAttentionInput,
    positions::{AlibiConfig, PositionEncoding},
};
use burn_attn_tests::{
    compare::assert_close_to_largest,
    devices,
    numbers::{filled, tensor},
    parameters,
};

/// `LEN · LEN` is more than 65,535.
const LEN: usize = 300;
const WIDTH: usize = 8;

/// The gradient of slopes or table, by its path.
fn gradient(module: &SelfAttention, device: &Device) -> TensorData {
    let x: Tensor<3> = tensor([1, LEN, WIDTH], 1, device);
    // Every third place is left out.
    let at: Vec<usize> = (0..LEN).map(|token| token + token / 2).collect();
    let output = module.forward(SelfAttentionInput::new(x).positions(vec![at]));
    let weights: Tensor<3> = tensor([1, LEN, WIDTH], 2, device);
    let gradients = parameters::gradients(module, &(output * weights).sum().backward());
    let paths = [
        "heads.position.relative.table",
        "heads.position.alibi.slopes",
    ];
    let found = paths.iter().find_map(|path| gradients.get(*path));
    found
        .unwrap_or_else(|| panic!("{:?}", gradients.keys()))
        .clone()
}

#[test]
fn learned_biases_between_many_tokens() {
    let Some(wgpu) = devices::wgpu() else { return };
    for encoding in [
        PositionEncoding::relative(),
        PositionEncoding::Alibi(AlibiConfig::new().with_learnable(true)),
    ] {
        let config = SelfAttentionConfig::new(WIDTH, 2).with_dropout(0.0);
        let config = config.with_position(encoding);
        let [found, expected] = [wgpu.clone(), devices::any()].map(|device| {
            let device = device.autodiff();
            gradient(&filled(config.init(&device), 1), &device)
        });
        let name = format!("{:?}", config.heads.position);
        assert_close_to_largest(&name, &found, &expected, 1e-4, 0.0);
    }
}
