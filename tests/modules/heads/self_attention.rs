//! Self-attention, in both directions, causal, and in a window.

use burn::tensor::Tensor;
use burn_attn::{SelfAttentionConfig, SelfAttentionInput};

use super::{
    D_MODEL, N_HEADS, Subject,
    by_hand::{Heads, linear},
    choices::choices,
    precisions,
};

const LEN: usize = 11;
/// The length of the second sequence; what follows is padding.
const LENGTHS: [usize; 2] = [11, 8];

#[test]
fn self_attention_is_what_its_heads_are_told() {
    for precision in precisions() {
        for (choice, heads) in choices() {
            for (causal, window) in [
                (false, None),
                (false, Some(3)),
                (true, None),
                (true, Some(3)),
            ] {
                let config = SelfAttentionConfig::new(D_MODEL, N_HEADS)
                    .with_heads(heads.clone())
                    .with_causal(causal)
                    .with_window(window)
                    .with_dropout(0.0);
                let module = config.init(&precision.device);
                let choice = format!("{choice}, causal {causal}, window {window:?}");
                let subject = Subject::new(&choice, &precision, module, &[[LEN, D_MODEL]]);
                // With a window of 3, a position sees itself and 3 on each side.
                let visible = |item: usize, i: usize, j: usize| {
                    let reached = window.is_none_or(|window| j.abs_diff(i) <= window);
                    j < LENGTHS[item] && (!causal || j <= i) && reached
                };
                let input =
                    |x: &[Tensor<3>]| SelfAttentionInput::new(x[0].clone()).lengths(&LENGTHS);
                subject.check(
                    |module, x| module.forward(input(x)),
                    |module, x| module.forward_with_weights(input(x)),
                    |weights, x| {
                        let by_hand = Heads {
                            config: &heads,
                            weights,
                            d_model: D_MODEL,
                            offsets: [0; 2],
                            bias: None,
                            visible: &visible,
                        };
                        let [query, key, value] = by_hand
                            .columns()
                            .map(|range| linear(weights, "query_key_value", range, x[0].clone()));
                        by_hand.attend(query, key, value)
                    },
                );
            }
        }
    }
}
