//! CLIP (Radford et al., "Learning transferable visual models from natural language supervision", arXiv:2103.00020) and SigLIP (Zhai et al., "Sigmoid loss
//! for language image pre-training", arXiv:2303.15343): an encoder of images and an encoder of texts, which give an image and a text that
//! describes it similar vectors.
//!
//! ```text
//! x      = [class token;] patches · weight (+ bias) + positions      of an image; normalised in CLIP
//! x      = tokens[token] + positions[i]                              of a text
//! x      = x + attention(norm(x));  x = x + feed_forward(norm(x))      layer by layer
//! pooled = CLIP: the state norm(x) of the class token, and of the token at the end of the text, which sees what is before it
//!          SigLIP: p + feed_forward(norm(p)) where p = attention(probe, norm(x)) for an image, the last state norm(x) for a text
//! logits = exp(scale) · image · textᵀ (+ bias)      image and text are the pooled states, projected and divided by their L2 norms
//! ```
//!
//! SigLIP has the biases, a linear layer after the last state of a text, and no projection of images.

mod config;
mod family;
mod files;
mod model;
mod text;
mod vision;

pub use config::{ClipConfig, ClipTextConfig, ClipVisionConfig};
pub use family::ClipFamily;
pub use files::from_pretrained;
pub use model::Clip;
pub use text::ClipText;
pub use vision::{AttentionPooling, ClipVision};
