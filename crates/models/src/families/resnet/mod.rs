//! ResNet (He et al., "Deep residual learning for image recognition", arXiv:1512.03385) as a backbone: from images to a feature map, with the
//! statistics of its batch norms fixed, as [DETR](crate::detr) has it.
//!
//! ```text
//! norm(x) = (x − mean) / √(variance + 1e-5) · gamma + beta            mean and variance are stored, not those of the batch
//! x       = max_pool(relu(norm(conv(image))))                         7 × 7; a quarter of the height and width is left
//! x       = relu(norm(conv(relu(norm(conv(x))))) + shortcut(x))       layer by layer; three convolutions if they are bottlenecks
//! ```
//!
//! The first layer of every stage but the first halves height and width.

mod config;
mod files;
mod model;

pub use config::ResNetConfig;
pub use files::ResNetNames;
pub(super) use files::backbone;
pub use model::{NormedConv, ResNet, ResNetLayer};
