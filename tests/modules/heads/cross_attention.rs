//! Cross-attention, from a memory's states and from what was projected of them, with queries that begin anywhere.

use std::ops::Range;

use burn::tensor::Tensor;
use burn_attn::{
    AttentionMask, CrossAttention, CrossAttentionConfig, CrossAttentionInput,
    positions::PositionEncoding,
};

use super::{
    D_MODEL, N_HEADS, Subject,
    by_hand::{Heads, linear, whole},
    choices::choices,
    precisions,
};

const D_MEMORY: usize = 13;
const LEN_Q: usize = 7;
const LEN_KV: usize = 11;
/// The length of the second memory; what follows is padding.
const LENGTHS: [usize; 2] = [11, 8];

#[test]
fn cross_attention_is_what_its_heads_are_told() {
    for precision in precisions() {
        for (choice, heads) in choices() {
            // The last queries stand beyond all keys.
            let offsets: &[[i64; 2]] = match heads.position {
                PositionEncoding::None => &[[0, 0]],
                _ => &[[0, 0], [5, 5], [-3, 13]],
            };
            for &offsets in offsets {
                let config = CrossAttentionConfig::new(D_MODEL, N_HEADS)
                    .with_heads(heads.clone())
                    .with_d_memory(D_MEMORY)
                    .with_dropout(0.0);
                let module = config.init(&precision.device);
                let choice = format!("{choice}, queries from {offsets:?} on");
                let widths = [[LEN_Q, D_MODEL], [LEN_KV, D_MEMORY]];
                let subject = Subject::new(&choice, &precision, module, &widths);
                let lengths = || {
                    let lengths = LENGTHS.map(|length| length as i32);
                    AttentionMask::key_lengths(Tensor::from_data(lengths, &precision.device))
                };
                let states = |x: &[Tensor<3>]| {
                    let input = CrossAttentionInput::new(x[0].clone(), x[1].clone());
                    match offsets {
                        [0, 0] => input.mask(lengths()),
                        _ => input.mask(lengths()).offset(offsets),
                    }
                };
                let projected = |module: &CrossAttention, x: &[Tensor<3>]| {
                    let memory = module.project_memory(x[1].clone());
                    CrossAttentionInput::new(x[0].clone(), memory)
                        .mask(lengths())
                        .offset(offsets)
                };
                subject.check(
                    |module, x| module.forward(states(x)),
                    |module, x| module.forward_with_weights(projected(module, x)),
                    |weights, x| {
                        let by_hand = Heads {
                            config: &heads,
                            weights,
                            d_model: D_MODEL,
                            offsets,
                            bias: None,
                            visible: &|item, _, j| j < LENGTHS[item],
                        };
                        let [query, key, value] = by_hand.columns();
                        let of_memory = |range: Range<usize>| {
                            // The projection of the memory begins with the keys.
                            let range = range.start - query.end..range.end - query.end;
                            linear(weights, "key_value", range, x[1].clone())
                        };
                        by_hand.attend(
                            whole(weights, "query", x[0].clone()),
                            of_memory(key),
                            of_memory(value),
                        )
                    },
                );
            }
        }
    }
}
