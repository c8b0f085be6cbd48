//! Rotary positions.

use burn::{
    module::Module,
    tensor::{DType, FloatDType, Int, Tensor, TensorData, assert_shape},
};
use burn_attn_ops::{RotaryLayout, rotate};

use crate::positions::{Positions, ResolvedOffset, TableRows, indices};

const NAME: &str = "Rotary";

/// Rotates every pair of numbers of a query or key by an angle that grows with its position.
///
/// ```text
/// angle = position · θ[i],   θ[i] = base^(−2i / rotary_dim)
/// first'[i]  = first[i] · cos(angle) − second[i] · sin(angle)
/// second'[i] = second[i] · cos(angle) + first[i] · sin(angle)
/// ```
///
/// The dot product of a rotated query and a rotated key depends only on their distance, not on their positions. Values are
/// not rotated. The [`RotaryLayout`] decides which numbers form a pair.
///
/// # Source
///
/// Su et al., "RoFormer: enhanced transformer with rotary position embedding" (arXiv:2104.09864), equation 34. PyTorch
/// equivalent: `apply_rotary_pos_emb` of Hugging Face's `transformers`.
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
    #[module(skip)]
    pub(super) angles: Angles,
    pub(super) d_head: usize,
    #[module(skip)]
    pub(super) layout: RotaryLayout,
    /// How many pairs turn with each axis.
    #[module(skip)]
    pub(super) sections: Vec<usize>,
}

impl Rotary {
    /// Number of positions (tokens).
    pub(crate) fn max_len(&self) -> usize {
        let [max_len, _] = self.cos.dims();
        max_len
    }

    /// Panics unless the heads of `x` have the width of this encoding.
    pub(crate) fn check_width(&self, x: &Tensor<4>) {
        let d_head = self.d_head;
        assert_shape!(x, [_, _, _, d_head]);
    }

    /// `x`, `[batch, heads, len, d_head]`, with every row rotated to its position.
    ///
    /// # Panics
    ///
    /// When the position of a token is not below `max_len`, the positions do not fit `batch` sequences, have another number of axes than
    /// [`RotaryConfig::axes`](super::RotaryConfig::axes), or the width differs.
    ///
    /// # Cost
    ///
    /// `3 · batch · heads · len · rotary_dim` operations; see [`rotate`]. `x` may be a view. Padding beyond the table costs a
    /// copy of `batch · len` of its rows. The table is in f32, or in f64 if that is the default type of the
    /// device it was built for; if it is in f32, rows for an `x` in f64 are computed here, a cosine and a sine per pair.
    pub fn forward(&self, x: Tensor<4>, positions: &Positions) -> Tensor<4> {
        self.check_width(&x);
        let ([batch, n_heads, len, _], max_len) = (x.dims(), self.max_len());
        if let Positions::PerAxis(axes) = positions {
            return self.forward_on_axes(x, axes);
        }
        let rows = positions.table_rows(NAME, [batch, len], max_len);
        if batch == 0 || n_heads == 0 || len == 0 {
            return x;
        }
        let (cos, sin) = (self.cos.clone(), self.sin.clone());
        let is_rounded = self.is_rounded(x.dtype());
        let (cos, sin, offsets) = match rows {
            TableRows::Together(offset) if !is_rounded => (cos, sin, vec![offset]),
            TableRows::Apart(offsets) if !is_rounded => (cos, sin, offsets.to_vec()),
            rows => {
                let rows = rows.listed(len);
                let offsets = (0..rows.len()).step_by(len).collect();
                let [cos, sin] = self.rows(rows, x.dtype());
                (cos, sin, offsets)
            }
        };
        rotate(x, cos, sin, offsets, self.layout)
    }

    /// These rows of the tables, for numbers of this type.
    fn rows(&self, rows: Vec<usize>, dtype: DType) -> [Tensor<2>; 2] {
        let device = self.cos.device();
        if self.is_rounded(dtype) {
            let tables = self.angles.tables(&rows);
            return tables.map(|table| Tensor::from_data(table, (&device, DType::F64)));
        }
        let rows = indices(rows, &device);
        [&self.cos, &self.sin].map(|table| table.clone().select(0, rows.clone()))
    }

    /// Whether the tables are less precise than numbers of this type.
    fn is_rounded(&self, dtype: DType) -> bool {
        dtype == DType::F64 && self.cos.dtype() != DType::F64
    }

    /// As [`forward`](Self::forward), at the positions `axes[a][b][i]`.
    fn forward_on_axes(&self, x: Tensor<4>, axes: &[Vec<Vec<usize>>]) -> Tensor<4> {
        let [batch, n_heads, len, _] = x.dims();
        let (given, own) = (axes.len(), self.sections.len());
        assert!(
            given == own,
            "{NAME}: positions on {given} axes were given to an encoding with {own}"
        );
        let (mut cos, mut sin, mut first) = (Vec::new(), Vec::new(), 0);
        for (axis, &pairs) in axes.iter().zip(&self.sections) {
            let positions = Positions::PerToken(axis.clone());
            let rows = positions.table_rows(NAME, [batch, len], self.max_len());
            if pairs > 0 && batch > 0 && len > 0 {
                let tables = self.rows(rows.listed(len), x.dtype());
                let [of_cos, of_sin] = tables.map(|table| table.narrow(1, first, pairs));
                cos.push(of_cos);
                sin.push(of_sin);
            }
            first += pairs;
        }
        if batch == 0 || n_heads == 0 || len == 0 {
            return x;
        }
        let first_rows = (0..batch).map(|item| item * len).collect();
        let [cos, sin] = [cos, sin].map(|tables| Tensor::cat(tables, 1));
        rotate(x, cos, sin, first_rows, self.layout)
    }

    /// As [`forward`](Self::forward), from `offset` on, which may be negative: the angle of position −p is that of p, negated.
    pub(crate) fn forward_from(&self, x: Tensor<4>, offset: &ResolvedOffset) -> Tensor<4> {
        let [batch, n_heads, len, _] = x.dims();
        let max_len = self.max_len();
        if let ResolvedOffset::Host(offsets) = offset {
            if offsets.iter().all(|&offset| offset >= 0) {
                let offsets: Vec<_> = offsets.iter().map(|&offset| offset as usize).collect();
                let positions = match offsets[..] {
                    [offset] => Positions::Offset(offset),
                    _ => Positions::Offsets(offsets),
                };
                return self.forward(x, &positions);
            }
            for &offset in offsets {
                let last = offset.saturating_add(len as i64 - 1);
                let farthest = offset.unsigned_abs().max(last.unsigned_abs());
                assert!(
                    len == 0 || farthest < max_len as u64,
                    "Rotary: {len} tokens from position {offset} on reach a distance of {farthest} from position 0, but there are {max_len} \
                     positions"
                );
            }
        } else {
            // Queries of a sequence with a key are at 1 − `len` or later; those of others, which see nothing, are clamped where a table is read.
            assert!(
                batch == 0 || len <= max_len,
                "Rotary: {len} tokens from positions that only the device knows may reach a distance of {} from position 0, but there are \
                 {max_len} positions",
                len - 1
            );
        }
        if batch == 0 || n_heads == 0 || len == 0 {
            return x;
        }
        let positions = offset.positions(len, &x.device());
        let [count] = positions.dims();
        let first_rows = (0..count / len).map(|item| item * len).collect();
        if self.is_rounded(x.dtype()) {
            let [cos, sin] = self.angles.on_device(positions);
            return rotate(x, cos, sin, first_rows, self.layout);
        }
        let sign = positions.clone().sign().float().cast(self.sin.dtype());
        let rows = positions.abs().clamp_max(max_len as i64 - 1);
        let cos = self.cos.clone().select(0, rows.clone());
        let sin = self.sin.clone().select(0, rows) * sign.reshape([count, 1]);
        rotate(x, cos, sin, first_rows, self.layout)
    }
}

/// What tables are made of.
#[derive(Clone, Debug)]
pub(super) struct Angles {
    /// The angle per token of each pair (radians).
    pub(super) frequencies: Vec<f64>,
    /// Factor on cosine and sine.
    pub(super) factor: f64,
}

impl Angles {
    /// The cosines and the sines at these positions, `[positions, pairs]` in f64.
    ///
    /// In f32 the angle of position 5,000 would be off by up to 0.0004, that of position one million by 0.06.
    pub(super) fn tables(&self, positions: &[usize]) -> [TensorData; 2] {
        let frequencies = &self.frequencies;
        [f64::cos, f64::sin].map(|wave: fn(f64) -> f64| {
            let angles = positions.iter().flat_map(|&position| {
                let angle = move |frequency| position as f64 * frequency;
                frequencies.iter().map(angle)
            });
            let values: Vec<f64> = angles.map(|angle| self.factor * wave(angle)).collect();
            TensorData::new(values, [positions.len(), frequencies.len()])
        })
    }

    /// As [`tables`](Self::tables), at positions of any sign that may be known to the device alone.
    pub(super) fn on_device(&self, positions: Tensor<1, Int>) -> [Tensor<2>; 2] {
        let [count] = positions.dims();
        let frequencies = TensorData::new(self.frequencies.clone(), [1, self.frequencies.len()]);
        let frequencies = Tensor::<2>::from_data(frequencies, (&positions.device(), DType::F64));
        let angles = positions.cast(FloatDType::F64).reshape([count, 1]) * frequencies;
        [angles.clone().cos(), angles.sin()].map(|wave| wave * self.factor)
    }
}
