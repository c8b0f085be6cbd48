//! The masks that attention modules make themselves.

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn_ops::AttentionMask;

/// A position sees itself and what came before, as far back as the window reaches.
pub(super) fn causal(window: Option<usize>) -> AttentionMask {
    match window {
        Some(window) => AttentionMask::causal().and(AttentionMask::window(window, 0)),
        None => AttentionMask::causal(),
    }
}

/// Each sequence sees as many keys as `lengths` says, the first ones.
pub(super) fn first_keys(
    lengths: impl IntoIterator<Item = usize>,
    device: &Device,
) -> AttentionMask {
    let lengths: Vec<i64> = lengths.into_iter().map(|length| length as i64).collect();
    let batch = lengths.len();
    let lengths = TensorData::new(lengths, [batch]);
    AttentionMask::key_lengths(Tensor::<1, Int>::from_data(lengths, device))
}

/// `mask`, and nobody sees what stands behind the `lengths` of `sequences`.
///
/// # Panics
///
/// In the name of `module`, when the lengths do not fit the sequences.
pub(super) fn hide_padding(
    module: &str,
    mask: AttentionMask,
    lengths: Option<&[usize]>,
    sequences: &Tensor<3>,
) -> AttentionMask {
    let Some(lengths) = lengths else { return mask };
    let [batch, len, _] = sequences.dims();
    assert!(
        lengths.len() == batch && lengths.iter().all(|&length| length <= len),
        "{module}: lengths {lengths:?} do not fit {batch} sequences of {len} tokens"
    );
    mask.and(first_keys(lengths.iter().copied(), &sequences.device()))
}
