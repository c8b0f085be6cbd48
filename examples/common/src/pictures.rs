//! Attention weights as maps that can be drawn.

use burn::tensor::Tensor;
use burn_attn_viz::{AttentionMap, MapError};

/// Why the weights of a layer cannot be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("cannot draw the attention of layer {layer}: {error}")]
pub struct PictureError {
    /// The layer, from 1.
    pub layer: usize,
    /// What is wrong with it.
    pub error: MapError,
}

/// A map of each layer, the first one called `layer 1`.
///
/// # Shapes
/// Each of `layers`: `[1, heads, queries, keys]`.
///
/// # Errors
/// If a weight is not finite, or a size is not the number of tokens.
pub fn maps(
    layers: Vec<Tensor<4>>,
    queries: &[String],
    keys: &[String],
) -> Result<Vec<AttentionMap>, PictureError> {
    let layers = (1..).zip(layers);
    layers
        .map(|(layer, weights)| {
            let weights: Vec<f32> = weights.into_data().iter::<f32>().collect();
            let title = format!("layer {layer}");
            AttentionMap::new(title, queries.to_vec(), keys.to_vec(), weights)
                .map_err(|error| PictureError { layer, error })
        })
        .collect()
}
