//! Bounded logits.

use burn::tensor::Tensor;

/// Bounds logits between `−cap` and `cap`: `cap · tanh(logits / cap)` hardly changes small logits and keeps the order, up to ties of
/// logits far beyond `cap`; in half precision from about three times `cap` on. For the output logits of a model; attention has
/// [`HeadsConfig::softcap`](crate::HeadsConfig::softcap).
///
/// Takes three operations per logit; training keeps one number per logit. Panics when `cap` is not positive and finite.
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
