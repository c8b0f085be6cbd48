//! The encoder–decoder model of "Attention is all you need" (arXiv:1706.03762) and of T5 (arXiv:1910.10683).
//!
//! | file | what it is |
//! | --- | --- |
//! | `config` | [`Seq2SeqConfig`]: sizes, blocks, positions, head |
//! | `model` | [`Seq2Seq`]: tokens in, logits of tokens out |
//! | `decoding` | [`Seq2SeqState`]: what it keeps while it [generates](crate::generate) |

mod config;
mod decoding;
mod model;

pub use config::Seq2SeqConfig;
pub use decoding::Seq2SeqState;
pub use model::{Memory, Seq2Seq, Seq2SeqAttention};
