//! Whisper (Radford et al., "Robust speech recognition via large-scale weak supervision", arXiv:2212.04356): a
//! [`Seq2Seq`](crate::seq2seq::Seq2Seq) whose encoder reads 30 seconds of sound, and whose decoder writes what was said.
//!
//! ```text
//! frames = gelu(conv2(gelu(conv1(spectrogram)))) + positions      of two frames of 10 ms, one of 20 ms
//! memory = encoder(frames)
//! x      = tokens[token] + positions[i]
//! x      = x + attention(norm(x));  x = x + cross_attention(norm(x), memory);  x = x + feed_forward(norm(x))      layer by layer
//! logits = norm(x) · tokensᵀ
//! ```
//!
//! Layers are pre-norm with exact GELU; the projections of keys have no bias.

mod config;
mod files;
mod model;

pub use config::WhisperConfig;
pub use files::{from_pretrained, table};
pub use model::Whisper;
