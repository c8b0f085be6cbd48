//! The encoder–decoder model of "Attention is all you need" (arXiv:1706.03762) and of T5 (arXiv:1910.10683).
//!
//! | item | what it is |
//! | --- | --- |
//! | [`Seq2SeqConfig`] | sizes, blocks, positions, head |
//! | [`Seq2Seq`] | from source and target tokens to logits of the tokens that follow |
//! | [`Memory`] | what the encoder made of the sources |
//! | [`Seq2SeqState`] | what it keeps while it [generates](crate::generate) |
//! | [`Seq2SeqAttention`] | the attention weights of every layer and head; [`Seq2Seq::forward_traced`] has every step |

mod config;
mod decoding;
mod model;
mod trace;

pub use config::Seq2SeqConfig;
pub use decoding::Seq2SeqState;
pub use model::{Memory, Seq2Seq, Seq2SeqAttention};
