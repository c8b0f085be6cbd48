//! Vision transformers: ViT (Dosovitskiy et al., "An image is worth 16x16 words", arXiv:2010.11929), DeiT (arXiv:2012.12877), which has a second
//! special token for the predictions of a teacher, and DINOv2 (arXiv:2304.07193), whose sublayers are scaled.
//!
//! ```text
//! x      = [class token; (distillation token;) patches · weight + bias] + positions
//! x      = x + scale · attention(norm(x));  x = x + scale · feed_forward(norm(x))      layer by layer; scale is 1 except in DINOv2
//! states = norm(x)
//! logits = head(states[class token])                                         DeiT: the mean of two heads, one for each special token; DINOv2: head([class token; mean of patches])
//! ```

mod config;
mod files;
mod model;

pub use config::VitConfig;
pub use files::{VitFamily, from_pretrained};
pub use model::Vit;
