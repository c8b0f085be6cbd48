//! wav2vec 2.0 (Baevski et al., "wav2vec 2.0: a framework for self-supervised learning of speech representations", arXiv:2006.11477): an encoder that
//! reads the samples of a recording themselves, with a head for CTC if it was trained to recognise speech.
//!
//! ```text
//! x      = activation(norm(convolution(x)))                 layer by layer, from one channel, the samples, to frames of 20 ms
//! x      = projection(norm(x))
//! x      = x + activation(positions(x))                     a convolution over the frames around each one
//! states = encoder(norm(x))  or  norm(encoder(x))           post-norm layers, or pre-norm layers in models of LV-60k and XLSR
//! logits = head(states)                                     of each frame; one of the tokens is the CTC blank
//! ```
//!
//! The first convolution alone has a norm, of each channel over all frames; in models of LV-60k and XLSR, every convolution has a norm of each frame.

mod config;
mod files;
mod layers;
mod model;

pub use config::{FeatureLayerConfig, Wav2Vec2Config};
pub use files::{from_pretrained, table};
pub use layers::{FeatureLayer, PositionalConvolution};
pub use model::Wav2Vec2;
