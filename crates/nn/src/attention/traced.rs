//! Weights, traces and statistics of the attention modules.

use burn_attn_ops::StatisticsOptions;

use super::{
    cached::SharedKeyValue,
    cross_attention::{CrossAttention, CrossAttentionInput},
    heads::AttentionOutput,
    multi_head::{MultiHeadAttention, MultiHeadAttentionInput},
    self_attention::{SelfAttention, SelfAttentionInput},
};
use crate::trace::{Kept, Recorder, Trace};

macro_rules! traced {
    ($module:ident, $input:ty $(, $shared:expr)?) => {
        impl $module {
            /// The result of [`forward`](Self::forward), and the attention weights of every head, `[batch, heads, len_q, len_kv]`. This takes
            /// the scores once more, with memory for all of them.
            pub fn forward_with_weights(&self, input: impl Into<$input>) -> AttentionOutput {
                let mut recorder = Recorder::new(Kept::Weights);
                let states = self.run(input.into(), &mut recorder $(, $shared)?);
                let weights = recorder.take_weights().expect("weights were requested");
                AttentionOutput { states, weights }
            }

            /// Every step of [`forward`](Self::forward), by name. Panics as [`forward`](Self::forward).
            ///
            /// # Cost
            ///
            /// The cost of [`forward`](Self::forward), and the scores several times more, with memory for all of them. Waits for the device.
            pub fn forward_traced(&self, input: impl Into<$input>) -> Trace {
                self.traced(input.into(), Kept::Steps)
            }

            /// What the attention weights of [`forward`](Self::forward) look like, by name: the statistics that [`Trace`] lists. Panics as [`forward`](Self::forward).
            ///
            /// # Cost
            ///
            /// The cost of [`forward`](Self::forward) and of [`attention_statistics`](burn_attn_ops::attention_statistics): memory is linear in the lengths. Waits
            /// for the device.
            pub fn forward_with_statistics(
                &self,
                input: impl Into<$input>,
                options: StatisticsOptions,
            ) -> Trace {
                self.traced(input.into(), Kept::Statistics(options))
            }

            fn traced(&self, input: $input, kept: Kept) -> Trace {
                let mut recorder = Recorder::new(kept);
                self.run(input, &mut recorder $(, $shared)?);
                recorder.into_trace()
            }
        }
    };
}

traced!(
    SelfAttention,
    SelfAttentionInput,
    &mut SharedKeyValue::default()
);
traced!(CrossAttention, CrossAttentionInput);
traced!(MultiHeadAttention, MultiHeadAttentionInput);
