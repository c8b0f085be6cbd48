//! Ten steps of Adam on a tiny `nn.Transformer`: the loss curve.

use burn::{
    optim::{AdamConfig, GradientsParams},
    tensor::{Tensor, TensorData},
};
use burn_attn::{
    BlockConfig, FeedForwardActivation, NormPlacement, TransformerConfig, TransformerInput,
};
use burn_attn_tests::{compare::assert_close, golden::GoldenFile};

use super::{layout::Layout, on_every_device};

/// About three times the worst error that was seen on flex and ndarray; PyTorch in float32 is off by 3e-7.
const TOLERANCE: f64 = 2e-6;

fn check(name: &str, placement: NormPlacement) {
    on_every_device(|device| {
        let file = GoldenFile::open(name);
        let block = BlockConfig::new()
            .with_dropout(0.0)
            .with_norm_placement(placement)
            .with_activation(FeedForwardActivation::Relu);
        let config = TransformerConfig::new(16, 32, 2, 2, 2)
            .with_block(block)
            // `nn.Transformer` has its last norms with the norm last as well.
            .with_final_norm(true);
        let mut model = Layout::Transformer.load(config.init(device), &file);
        let source: Tensor<3> = file.tensor("source", device);
        let target: Tensor<3> = file.tensor("target", device);
        let goal: Tensor<3> = file.tensor("goal", device);
        let lengths = file.lengths("source_lengths");
        let mut optimizer = AdamConfig::new()
            .with_beta_1(0.9)
            .with_beta_2(0.999)
            .with_epsilon(1e-8)
            .init();

        let mut losses: Vec<f32> = Vec::new();
        for _ in 0..file.count("losses") {
            let input =
                TransformerInput::new(source.clone(), target.clone()).source_lengths(&lengths);
            let loss = (model.forward(input) - goal.clone()).square().mean();
            losses.push(loss.clone().into_scalar());
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(1e-3, model, gradients);
        }
        let count = losses.len();
        let losses = TensorData::new(losses, [count]);
        assert_close("losses", &losses, &file.data("losses"), TOLERANCE);
    });
}

#[test]
fn losses_with_norm_last_are_pytorchs() {
    check("transformer_training", NormPlacement::Post);
}

#[test]
fn losses_with_norm_first_are_pytorchs() {
    check("transformer_training_pre", NormPlacement::Pre);
}
