//! DETR (Carion et al., "End-to-end object detection with transformers", arXiv:2005.12872): what is in an image and where, a box for each of a
//! fixed number of learned queries, with nothing to sort out afterwards.
//!
//! ```text
//! x      = projection(backbone(image)), a token for each place of the feature map
//! x      = norm(x + attention(x + positions, x + positions, x));  x = norm(x + feed_forward(x))             the encoder, layer by layer
//! y      = 0, a token for each query
//! y      = norm(y + attention(y + queries, y + queries, y))                                                 the decoder, layer by layer
//! y      = norm(y + attention(y + queries, x + positions, x));    y = norm(y + feed_forward(y))
//! logits = class_head(norm(y));  boxes = sigmoid(mlp(norm(y)))
//! ```
//!
//! The arguments of `attention` are queries, keys and values. Positions are sines and cosines of the row and the column.

mod config;
mod detections;
mod files;
mod model;
mod positions;

pub use config::DetrConfig;
pub use detections::{Detection, post_process};
pub use files::{from_pretrained, table};
pub use model::{BoxHead, Detr, DetrMemory, DetrOutput, PixelMask};
pub use positions::sine_positions;
