//! The masks that attention modules build themselves.

use burn::tensor::{Bool, Device, Tensor, TensorData};
use burn_attn_ops::AttentionMask;

use crate::positions::{check_lengths, indices};

/// A position sees itself, earlier positions, and, unless the module is causal, later ones, on each side as far as the window reaches.
// ANCHOR: mask-by-position
pub(super) fn by_position(causal: bool, window: Option<usize>) -> AttentionMask {
    let mask = match causal {
        true => AttentionMask::causal(),
        false => AttentionMask::none(),
    };
    match window {
        Some(window) => mask.and(AttentionMask::window(window, window)),
        None => mask,
    }
}
// ANCHOR_END: mask-by-position

/// Sequence `b` sees its first `lengths[b]` keys.
pub(super) fn first_keys(
    lengths: impl IntoIterator<Item = usize>,
    device: &Device,
) -> AttentionMask {
    AttentionMask::key_lengths(indices(lengths, device))
}

/// Only the first `counts[b]` of the `len` queries of each sequence see any key.
pub(super) fn first_queries(counts: &[usize], len: usize, device: &Device) -> AttentionMask {
    let padding = padding(counts, len, device);
    AttentionMask::masked(padding.reshape([counts.len(), 1, len, 1]))
}

/// `[lengths.len(), len]`: `false` at the first `lengths[b]` places of sequence `b`, and `true` at its padding, as
/// [`AttentionMask::mask_pad`] takes it.
pub fn padding(lengths: &[usize], len: usize, device: &Device) -> Tensor<2, Bool> {
    let places = lengths
        .iter()
        .flat_map(|&length| (0..len).map(move |place| place >= length));
    let padding = TensorData::new(places.collect::<Vec<bool>>(), [lengths.len(), len]);
    Tensor::from_data(padding, device)
}

/// `mask`, with everything after the `lengths` of `batch` sequences of `len` tokens hidden as well.
pub(super) fn hide_padding(
    module: &str,
    mask: AttentionMask,
    lengths: Option<&[usize]>,
    [batch, len]: [usize; 2],
    device: &Device,
) -> AttentionMask {
    let Some(lengths) = lengths else { return mask };
    check_lengths(module, lengths, "", [batch, len]);
    mask.and(first_keys(lengths.iter().copied(), device))
}
