//! The rotation itself.

use burn::{
    module::Module,
    tensor::{DType, Int, Tensor, TensorData, assert_shape},
};

use super::RotaryLayout;
use crate::positions::{Positions, check_len};

/// Rotates every pair of numbers of a query or key by an angle that grows with its position.
///
/// ```text
/// angle = position · θ[i],   θ[i] = base^(−2i / rotary_dim)
/// first'[i]  = first[i] · cos(angle) − second[i] · sin(angle)
/// second'[i] = second[i] · cos(angle) + first[i] · sin(angle)
/// ```
///
/// The dot product of a rotated query and a rotated key depends on their distance only, not on where they stand. Values
/// are not rotated. Which numbers are the first and second of a pair is the [`RotaryLayout`].
///
/// # Source
///
/// Su et al., "RoFormer: enhanced transformer with rotary position embedding" (arXiv:2104.09864), equation 34. PyTorch
/// equivalent: `apply_rotary_pos_emb` of Hugging Face's `transformers`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::positions::{Positions, RotaryConfig};
///
/// let device = Device::default();
/// let rotary = RotaryConfig::new().init(8, &device);
/// let query = Tensor::<4>::random([2, 3, 1, 8], Distribution::Default, &device);
/// // The first sequence has 7 tokens already, the second 5.
/// let rotated = rotary.forward(query, &Positions::from(vec![7, 5]));
/// assert_eq!(rotated.dims(), [2, 3, 1, 8]);
/// ```
#[derive(Module, Debug)]
pub struct Rotary {
    /// `[max_len, rotary_dim / 2]`, as are the sines.
    pub(super) cos: Tensor<2>,
    pub(super) sin: Tensor<2>,
    pub(super) d_head: usize,
    #[module(skip)]
    pub(super) layout: RotaryLayout,
}

impl Rotary {
    /// `x`, every row rotated to its position.
    ///
    /// # Shapes
    ///
    /// - input, output: `[batch, heads, len, d_head]`
    ///
    /// # Panics
    ///
    /// When a position is not below `max_len`, the number of offsets is not `batch` or the width differs.
    ///
    /// # Cost
    ///
    /// `3 · batch · heads · len · rotary_dim` operations, and the memory of the result twice over while it runs. `x` may be a
    /// view. [`Interleaved`](RotaryLayout::Interleaved) takes two more copies.
    pub fn forward(&self, x: Tensor<4>, positions: &Positions) -> Tensor<4> {
        let [batch, n_heads, len, _] = x.dims();
        let (d_head, [max_len, half]) = (self.d_head, self.cos.dims());
        assert_shape!(x, [_, _, _, d_head]);
        check_positions(positions, [batch, len], max_len);
        if batch == 0 || n_heads == 0 || len == 0 {
            return x;
        }
        // The order in which a projection lies in memory, so that merging the heads needs no copy.
        let x = x.swap_dims(1, 2);
        let width = 2 * half;
        let (pairs, kept) = if width == d_head {
            (x, None)
        } else {
            let kept = x.clone().narrow(3, width, d_head - width);
            (x.narrow(3, 0, width), Some(kept))
        };
        let rows = self.rows(positions, [batch, len], pairs.dtype());
        let mut parts: Vec<Tensor<4>> = match self.layout {
            RotaryLayout::HalfSplit => rotate(pairs, rows).into(),
            RotaryLayout::Interleaved => {
                let halves = Tensor::cat(rotate(transpose(pairs, [half, 2]), rows).into(), 3);
                vec![transpose(halves, [2, half])]
            }
        };
        parts.extend(kept);
        Tensor::cat(parts, 3).swap_dims(1, 2)
    }

    /// Cosine and sine of every row: `[batch or 1, len, 1, rotary_dim / 2]`.
    fn rows(
        &self,
        positions: &Positions,
        [batch, len]: [usize; 2],
        dtype: DType,
    ) -> [Tensor<4>; 2] {
        let [_, half] = self.cos.dims();
        let tables = [&self.cos, &self.sin].map(Tensor::clone);
        let rows = match positions {
            Positions::Offset(offset) => tables.map(|table| table.narrow(0, *offset, len)),
            // Without a gather, as in every step of sequences of one length.
            Positions::Offsets(offsets) if offsets.iter().all(|offset| *offset == offsets[0]) => {
                tables.map(|table| table.narrow(0, offsets[0], len))
            }
            Positions::Offsets(offsets) => {
                let rows = offsets.iter().flat_map(|&offset| offset..offset + len);
                let rows: Vec<i64> = rows.map(|row| row as i64).collect();
                let data = TensorData::new(rows, [batch * len]);
                let rows = Tensor::<1, Int>::from_data(data, &self.cos.device());
                tables.map(|table| table.select(0, rows.clone()))
            }
        };
        rows.map(|rows| {
            let [count, _] = rows.dims();
            rows.cast(dtype).reshape([count / len, len, 1, half])
        })
    }
}

/// Panics unless every row of `batch` sequences of `len` tokens stands within the table.
fn check_positions(positions: &Positions, [batch, len]: [usize; 2], max_len: usize) {
    match positions {
        Positions::Offset(offset) => check_len("Rotary", *offset, len, max_len),
        Positions::Offsets(offsets) => {
            assert!(
                offsets.len() == batch,
                "Rotary: {} offsets for {batch} sequences",
                offsets.len()
            );
            for &offset in offsets {
                check_len("Rotary", offset, len, max_len);
            }
        }
    }
}

/// Both halves of `[batch, len, heads, rotary_dim]` rotated, each `[batch, len, heads, rotary_dim / 2]`.
fn rotate(x: Tensor<4>, [cos, sin]: [Tensor<4>; 2]) -> [Tensor<4>; 2] {
    let [_, _, _, width] = x.dims();
    let first = x.clone().narrow(3, 0, width / 2);
    let second = x.narrow(3, width / 2, width / 2);
    [
        first.clone() * cos.clone() - second.clone() * sin.clone(),
        second * cos + first * sin,
    ]
}

/// The last dimension, read as a matrix of these sizes, transposed: `[half, 2]` turns pairs into halves, `[2, half]` back.
///
/// One copy of whole rows; slices of every second number are several times slower on CPUs, and so are their gradients.
fn transpose(x: Tensor<4>, [rows, columns]: [usize; 2]) -> Tensor<4> {
    let [batch, len, n_heads, width] = x.dims();
    x.reshape([batch, len, n_heads, rows, columns])
        .swap_dims(3, 4)
        .reshape([batch, len, n_heads, width])
}
