//! The translation model of "Attention is all you need" (arXiv:1706.03762).
//!
//! | file | what it is |
//! | --- | --- |
//! | `model` | [`Seq2Seq`]: tokens in, logits of tokens out |
//! | `decoding` | [`Seq2SeqState`]: what it keeps while it [generates](crate::generate) |

mod decoding;
mod model;

pub use decoding::Seq2SeqState;
pub use model::{Memory, Seq2Seq, Seq2SeqAttention, Seq2SeqConfig};
