//! SegFormer (Xie et al., "SegFormer: simple and efficient design for semantic segmentation with transformers", arXiv:2105.15203): an encoder whose
//! stages have ever fewer rows and columns, without positions, and a decode head of linear layers that gives every pixel a class.
//!
//! ```text
//! x    = norm(convolution(map))                                          overlapping patches: the stride is less than the size
//! x    = x + attention(y, norm(reduction(y)));  y = norm(x)              keys and values: one for reduction × reduction queries
//! x    = x + activation(depthwise(norm(x) · inner)) · outer              block by block; depthwise: a 3 × 3 convolution of each channel
//! map  = norm(x)                                                         stage by stage
//! logits = classifier(relu(batch_norm(fuse([upsampled(map · projection) of the last stage, …, of the first]))))
//! ```

mod config;
mod encoder;
mod files;
mod head;
mod model;

pub use config::{DecodeHeadConfig, SegformerConfig, SegformerStageConfig};
pub use encoder::{MixFeedForward, PatchEmbedding, SegformerBlock, SegformerStage};
pub use files::{from_pretrained, table};
pub use head::DecodeHead;
pub use model::{Segformer, SegformerOutput};
