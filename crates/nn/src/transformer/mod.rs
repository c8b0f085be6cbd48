//! The transformer of the paper: stacks of attention and feed-forward layers.

mod decoder;
mod encoder;
mod encoder_decoder;
mod residual;

pub use decoder::{
    TransformerDecoder, TransformerDecoderConfig, TransformerDecoderInput, TransformerDecoderLayer,
    TransformerDecoderOutput,
};
pub use encoder::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput, TransformerEncoderLayer,
    TransformerEncoderOutput,
};
pub use encoder_decoder::{Transformer, TransformerConfig, TransformerInput, TransformerOutput};
pub use residual::Residual;
