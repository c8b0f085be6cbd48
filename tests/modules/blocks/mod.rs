//! The choices of a block, every one with every other, against the same written out in plain tensor operations.

mod attentions;
mod by_hand;
mod decoder_cache;
mod decoder_positions;
mod experts;
mod feed_forward;
mod layers;
mod mixture_of_experts;
mod norm;
mod patterns;
mod residual;
mod shared_keys;
mod stacks;
mod tied_embedding;
mod unions;

use burn_attn::{BlockConfig, FeedForwardActivation, NormConfig, NormPlacement};

const D_MODEL: usize = 15;
const D_FF: usize = 29;
const N_HEADS: usize = 3;
const N_LAYERS: usize = 2;

const PLACEMENTS: [NormPlacement; 4] = [
    NormPlacement::Pre,
    NormPlacement::Post,
    NormPlacement::Sandwich,
    NormPlacement::PostSublayer,
];

const ACTIVATIONS: [FeedForwardActivation; 11] = [
    FeedForwardActivation::Relu,
    FeedForwardActivation::Gelu,
    FeedForwardActivation::GeluTanh,
    FeedForwardActivation::SwiGlu,
    FeedForwardActivation::GeGlu,
    FeedForwardActivation::GeGluTanh,
    FeedForwardActivation::QuickGelu,
    FeedForwardActivation::Silu,
    FeedForwardActivation::ReluSquared,
    FeedForwardActivation::ReGlu,
    FeedForwardActivation::ClampedSwiGlu,
];

/// The epsilons are so large that another one would be seen.
fn norms() -> [NormConfig; 3] {
    [
        NormConfig::layer_norm().with_epsilon(0.07),
        NormConfig::layer_norm().with_epsilon(0.07).without_bias(),
        NormConfig::rms_norm().with_epsilon(0.03),
    ]
}

/// Every norm, placement and activation, one after the other or in parallel, there with one norm or two; each with and without biases
/// in turn.
fn every_block() -> Vec<BlockConfig> {
    let mut blocks = Vec::new();
    for norm in norms() {
        for placement in PLACEMENTS {
            for activation in ACTIVATIONS {
                for (parallel, separate_norms) in [(false, false), (true, false), (true, true)] {
                    if separate_norms && placement != NormPlacement::Pre {
                        continue;
                    }
                    blocks.push(
                        BlockConfig::new()
                            .with_dropout(0.0)
                            .with_norm(norm.clone())
                            .with_norm_placement(placement)
                            .with_activation(activation)
                            .with_parallel(parallel)
                            .with_separate_norms(separate_norms)
                            .with_bias(blocks.len() % 2 == 0),
                    );
                }
            }
        }
    }
    blocks
}
