//! wav2vec 2.0 (Baevski et al., "wav2vec 2.0: a framework for self-supervised learning of speech representations", arXiv:2006.11477): an encoder that
//! reads the samples of a recording themselves, with a head for CTC if it was trained to recognise speech.
//!
//! ```text
//! x      = activation(norm(convolution(x)))                 layer by layer, from one channel, the samples, to frames of 20 ms
//! x      = projection(norm(x))
//! x      = x + activation(positions(x))                     a convolution over the frames around each one
//! states = encoder(norm(x))  or  norm(encoder(x))           post-norm layers in the base model, pre-norm layers in the large one
//! logits = head(states)                                     of each frame; one of the tokens, the blank, stands for none
//! ```
//!
//! In the base model, the first convolution alone has a norm, of each channel over all frames; in the large one, every convolution has a norm of
//! each frame.

mod config;
mod files;
mod layers;
mod model;

pub use config::{FeatureLayerConfig, Wav2Vec2Config};
pub use files::{from_pretrained, table};
pub use layers::{FeatureLayer, PositionalConvolution};
pub use model::Wav2Vec2;
