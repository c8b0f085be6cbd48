//! Burn's dropout layer, computed by a faster operation.

use burn::{
    nn::Dropout,
    tensor::{Device, Tensor},
};
use burn_attn_ops::next_dropout_seed;

/// The result of `layer.forward(x)`, cheaper on the CPU and repeatable by [`seed`](crate::seed).
///
/// Input and output have the same shape, whatever it is. Panics when the layer's probability is not in `[0, 1)`, in training. Cost and
/// source are those of [`ops::dropout`](crate::ops::dropout); inference costs nothing.
///
/// ```
/// use burn::{nn::DropoutConfig, tensor::{Device, Tensor}};
///
/// let layer = DropoutConfig::new(0.5).init();
/// let x = Tensor::<2>::ones([3, 5], &Device::default());
/// // Inference, that is, a device without autodiff, drops nothing.
/// burn_attn::dropout(&layer, x.clone()).into_data().assert_eq(&x.into_data(), true);
/// ```
pub fn dropout<const D: usize>(layer: &Dropout, x: Tensor<D>) -> Tensor<D> {
    if is_active(layer, &x.device()) {
        burn_attn_ops::dropout(x, layer.prob, next_dropout_seed())
    } else {
        x
    }
}

/// Dropout acts in training only: on an autodiff device, and unless its layer is frozen.
pub(crate) fn is_active(layer: &Dropout, device: &Device) -> bool {
    layer.prob != 0.0 && layer.training.is_enabled() && device.is_autodiff()
}
