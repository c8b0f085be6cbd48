//! A decoder's tokens stand at their positions among the keys of the memory, with a cache and without.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionMask, BlockConfig, CausalAlignment, CrossAttentionConfig, KvCacheConfig, LayerCache,
    LayerInput, TransformerLayer, TransformerLayerConfig, positions::PositionEncoding,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::{D_FF, D_MODEL, N_HEADS};

const TOLERANCE: f64 = 5e-6;
/// The target is longer than the memories.
const LEN: usize = 11;
const MEMORIES: [usize; 2] = [7, 5];

/// A layer whose cross-attention has positions too.
fn layer(position: PositionEncoding, device: &Device) -> TransformerLayer {
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_causal(true);
    let config = config.with_d_memory(D_MODEL);
    let block = BlockConfig::new().with_dropout(0.0).with_d_head(6);
    let mut layer = config.with_block(block).init(device);
    let cross = CrossAttentionConfig::new(D_MODEL, N_HEADS).with_d_head(6);
    layer.cross_attention = Some(cross.with_position(position).init(device));
    filled(layer, 1)
}

#[test]
fn cached_tokens_stand_where_they_stand_in_the_whole() {
    let masks: [fn() -> AttentionMask; 3] = [AttentionMask::none, AttentionMask::causal, || {
        AttentionMask::window(2, 3)
    }];
    for (backend, device) in devices::cpu() {
        for position in [
            PositionEncoding::None,
            PositionEncoding::rotary(),
            PositionEncoding::alibi(),
            PositionEncoding::relative(),
        ] {
            let layer = layer(position.clone(), &device);
            for mask in masks {
                let target: Tensor<3> = tensor([2, LEN, D_MODEL], 2, &device);
                let memory: Tensor<3> = tensor([2, MEMORIES[0], D_MODEL], 3, &device);
                let of = |x: &Tensor<3>, b, len| x.clone().narrow(0, b, 1).narrow(1, 0, len);
                let memories: [Tensor<3>; 2] = [0, 1].map(|b| of(&memory, b, MEMORIES[b]));
                let alone = [0, 1].map(|b| {
                    let input = LayerInput::new(of(&target, b, LEN));
                    let input = input.memory(memories[b].clone()).memory_mask(mask());
                    layer.forward(input).states
                });
                let input = |x| {
                    LayerInput::new(x)
                        .memory_mask(mask())
                        .memory_lengths(&MEMORIES)
                };
                let cache = |memory: &Tensor<3>| cache_of(&layer, memory);
                let mut cache = {
                    let [mut first, second] = memories.each_ref().map(cache);
                    first.join(second);
                    first
                };

                // Prompts of unequal lengths, then the tokens after them.
                let starts = [6, 3];
                let prompt = input(target.clone().narrow(1, 0, 6)).lengths(&starts);
                let prompt = layer.forward_cached(prompt, &mut cache).states;
                for at in 0..5 {
                    let token = |x: &Tensor<3>, b: usize| x.clone().narrow(1, starts[b] + at, 1);
                    let rows = [0, 1].map(|b| token(&target, b).narrow(0, b, 1));
                    let tokens = Tensor::cat(rows.into(), 0);
                    let states = layer.forward_cached(input(tokens), &mut cache).states;
                    for b in 0..2 {
                        let what = format!("{position:?}, {backend}, token {at} of sequence {b}");
                        let (actual, expected) = (of(&states, b, 1), token(&alone[b], b));
                        close(&what, actual, expected);
                        let (actual, expected) = (&prompt, of(&alone[b], 0, starts[b]));
                        close(&what, of(actual, b, starts[b]), expected);
                    }
                }
            }
        }
    }
}

fn cache_of(layer: &TransformerLayer, memory: &Tensor<3>) -> LayerCache {
    let [batch, _, _] = memory.dims();
    let mut cache = layer.cache(batch, &KvCacheConfig::new(LEN));
    let attention = layer.cross_attention.as_ref().expect("one");
    cache.memory = Some(attention.project_memory(memory.clone()));
    cache
}

fn close(what: &str, actual: Tensor<3>, expected: Tensor<3>) {
    assert_close(what, &actual.into_data(), &expected.into_data(), TOLERANCE);
}

#[test]
fn a_mask_that_needs_the_whole_target_is_refused_with_a_cache() {
    let device = devices::any();
    let layer = layer(PositionEncoding::None, &device);
    let memory = tensor::<3>([2, 7, D_MODEL], 1, &device);
    let mut cache = cache_of(&layer, &memory);
    let bottom_right = AttentionMask::causal_aligned(CausalAlignment::BottomRight);
    let token = tensor::<3>([2, 1, D_MODEL], 2, &device);
    let input = LayerInput::new(token).memory_mask(bottom_right);
    assert_eq!(
        sentence(|| layer.forward_cached(input, &mut cache)),
        "TransformerLayer: a mask of the memory that is aligned bottom-right needs the whole target, and cannot be combined with a cache"
    );
}
