//! The smallest training loop: a causal self-attention learns to fetch what the first token of its sequence says.
//!
//! `cargo run --release -p quickstart`

use burn::{
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Distribution, Tensor},
};
use burn_attn::{SelfAttentionConfig, SelfAttentionInput, positions::SinusoidalConfig};

fn main() {
    // The backend is the device; `--features wgpu` makes it a GPU, and nothing below changes.
    let device = Device::default().autodiff();
    burn_attn::seed(&device, 42);
    let config = SelfAttentionConfig::new(32, 4)
        .with_causal(true)
        .with_dropout(0.0);
    let mut attention = config.init(&device);
    let positions = SinusoidalConfig::new(32).init(&device);
    let mut optimizer = AdamConfig::new().init();

    for step in 0..=300 {
        let tokens = Tensor::<3>::random([16, 10, 32], Distribution::Default, &device);
        let first = tokens.clone().narrow(1, 0, 1).expand([16, 10, 32]);
        let input = SelfAttentionInput::new(positions.forward(tokens));
        let loss = (attention.forward(input) - first).square().mean();
        if step % 100 == 0 {
            println!(
                "step {step:3}  loss {:.4}",
                loss.clone().into_scalar::<f32>()
            );
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &attention);
        attention = optimizer.step(0.003, attention, gradients);
    }

    // Weights are made only when asked for: what does the last token look at?
    let tokens = Tensor::<3>::random([1, 10, 32], Distribution::Default, &device);
    let input = SelfAttentionInput::new(positions.forward(tokens));
    let weights = attention.forward_with_weights(input).weights;
    println!(
        "last token, head by head: {:.2}",
        weights.narrow(2, 9, 1).squeeze_dims::<2>(&[0, 2])
    );
}
