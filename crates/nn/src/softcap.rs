//! Logits that are bounded.

use burn::tensor::Tensor;

/// Squashes logits to `cap · tanh(logits / cap)`, which lies between `−cap` and `cap`: small ones stay as they are, and their
/// order is kept. For the last logits of a model; those of attention have
/// [`HeadsConfig::softcap`](crate::HeadsConfig::softcap).
///
/// # Shapes
///
/// - logits, output: any
///
/// # Panics
///
/// When `cap` is not positive and finite.
///
/// # Cost
///
/// Three operations for every logit; training keeps one number for each.
///
/// # Source
///
/// "Gemma 2: improving open language models at a practical size" (arXiv:2408.00118), section 2, where `cap` is 30.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn::softcap;
///
/// let logits = Tensor::<1>::from_data([0.0, 1000.0], &Device::default());
/// let capped: Vec<f32> = softcap(logits, 30.0).into_data().iter().collect();
/// assert_eq!(capped, [0.0, 30.0]);
/// ```
pub fn softcap<const D: usize>(logits: Tensor<D>, cap: f64) -> Tensor<D> {
    assert!(
        cap > 0.0 && cap.is_finite(),
        "softcap: cap must be positive and finite, got {cap}"
    );
    // Burn 0.22.1's gradient of a division by a number rounds it to f32.
    (logits * cap.recip()).tanh() * cap
}
