//! Which weights and numbers dropout keeps.

use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Distribution, FloatDType, IntDType, Shape},
};
use burn_attn_kernels_cpu::AttentionDropout;

use super::{
    dtype::{counting_dtype, float_dtype},
    part::{Part, narrow_int},
};
use crate::backend::ScoreInputs;

/// The states of all rows of a call: hashed once, then used for each part of the scores.
///
/// The same numbers as [`AttentionDropout::row`]: the counter-based generator of the contract, by integer operations on the device.
pub(crate) struct DropoutRows<B: Backend> {
    /// `[batch, heads_q, len_q, 1]`
    state: [IntTensor<B>; 2],
    threshold: u32,
    arithmetic: Arithmetic,
}

impl<B: Backend> DropoutRows<B> {
    /// `None` without dropout.
    pub(crate) fn of(inputs: &ScoreInputs<B>) -> Option<Self> {
        let dropout = inputs.scalars.dropout?;
        let [batch, heads_q, len_q, _] = inputs.query.shape().dims::<4>();
        let device = &inputs.query.device();
        let arithmetic = match counting_dtype::<B>(device) {
            IntDType::I64 => Arithmetic::Masked,
            _ => Arithmetic::Wrapping,
        };
        let mut shape = [1; 4];
        let mut state = dropout.seeded().map(|word| {
            let word = arithmetic.scalar(word).into();
            B::int_full(Shape::new(shape), word, device, arithmetic.dtype())
        });
        for (axis, count) in [batch, heads_q, len_q].into_iter().enumerate() {
            shape[axis] = count;
            let mut alone = [1; 4];
            alone[axis] = count;
            let words = B::int_arange(0..count as i64, device, arithmetic.dtype());
            let words = B::int_reshape(words, Shape::new(alone));
            let expand = |x| B::int_expand(x, Shape::new(shape));
            let ([a, b], words) = (state.map(expand), expand(words));
            let a = arithmetic.bits::<B>(B::bitwise_xor(a, words), None);
            let b = arithmetic.bits::<B>(arithmetic.add::<B>(b, a.clone()), None);
            state = [a, b];
        }
        Some(Self {
            state,
            threshold: dropout.threshold(),
            arithmetic,
        })
    }

    /// 1 for the attention weights that dropout keeps, 0 for the others, `[batch, heads_q, queries, keys]`.
    pub(crate) fn kept(&self, part: &Part, dtype: FloatDType) -> FloatTensor<B> {
        let (state, arithmetic) = (&self.state, self.arithmetic);
        let [batch, heads_q, _, _] = state[0].shape().dims::<4>();
        let device = state[0].device();
        let bool_dtype = get_or_init_device_settings::<B>(&device).bool_dtype;
        let (queries, keys) = (part.queries.len(), part.keys.len());
        let shape = Shape::new([batch, heads_q, queries, keys]);
        let [a, b] = state.clone().map(|x| {
            let x = narrow_int::<B>(x, 2, &part.queries);
            B::int_expand(x, shape.clone())
        });
        let range = part.keys.start as i64..part.keys.end as i64;
        let indices = B::int_arange(range, &device, arithmetic.dtype());
        let indices = B::int_reshape(indices, Shape::new([1, 1, 1, keys]));
        let x = B::bitwise_xor(B::int_expand(indices, shape), a);
        let bits = arithmetic.bits::<B>(x, Some(b));
        let bits = arithmetic.shift::<B>(bits, 1);
        let kept = B::int_greater_equal_elem(bits, i64::from(self.threshold).into(), bool_dtype);
        B::bool_into_float(kept, dtype)
    }
}

/// How a tensor of signed integers computes on `u32`.
#[derive(Clone, Copy, PartialEq)]
enum Arithmetic {
    /// In 64 bits, masked after each operation, where overflow may be an error (ndarray in debug builds).
    Masked,
    /// In 32 bits that wrap, where the device may have no wider integers (WGSL).
    Wrapping,
}

impl Arithmetic {
    fn dtype(self) -> IntDType {
        match self {
            Self::Masked => IntDType::I64,
            Self::Wrapping => IntDType::I32,
        }
    }

    /// The number as an element of such a tensor.
    fn scalar(self, word: u32) -> i64 {
        match self {
            Self::Masked => i64::from(word),
            Self::Wrapping => i64::from(word as i32),
        }
    }

    fn add<B: Backend>(self, x: IntTensor<B>, y: IntTensor<B>) -> IntTensor<B> {
        let sum = B::int_add(x, y);
        match self {
            Self::Masked => B::bitwise_and_scalar(sum, i64::from(u32::MAX).into()),
            Self::Wrapping => sum,
        }
    }

    fn multiply<B: Backend>(self, x: IntTensor<B>, word: u32) -> IntTensor<B> {
        if self == Self::Wrapping {
            return B::int_mul_scalar(x, self.scalar(word).into());
        }
        // The whole product would need unsigned 64-bit integers.
        let high = B::int_mul_scalar(x.clone(), i64::from(word >> 16).into());
        let high = B::bitwise_and_scalar(high, 0xffff_i64.into());
        let high = B::int_mul_scalar(high, (1_i64 << 16).into());
        let low = B::int_mul_scalar(x, i64::from(word & 0xffff).into());
        self.add::<B>(high, low)
    }

    /// The bits from `by` upwards. A right shift of a signed number copies its sign bit, which the mask removes.
    fn shift<B: Backend>(self, x: IntTensor<B>, by: u32) -> IntTensor<B> {
        let shifted = B::bitwise_right_shift_scalar(x, i64::from(by).into());
        B::bitwise_and_scalar(shifted, i64::from(u32::MAX >> by).into())
    }

    fn shift_xor<B: Backend>(self, x: IntTensor<B>, by: u32) -> IntTensor<B> {
        B::bitwise_xor(x.clone(), self.shift::<B>(x, by))
    }

    /// [`AttentionDropoutRow::bits`](burn_attn_kernels_cpu::AttentionDropoutRow::bits) of `x = key ^ a`.
    fn bits<B: Backend>(self, x: IntTensor<B>, b: Option<IntTensor<B>>) -> IntTensor<B> {
        let x = self.shift_xor::<B>(x, 17);
        let x = self.multiply::<B>(x, 0xed5a_d4bb);
        let x = match b {
            Some(b) => self.add::<B>(x, b),
            None => x,
        };
        let x = self.shift_xor::<B>(x, 11);
        let x = self.multiply::<B>(x, 0xac4c_1b51);
        let x = self.shift_xor::<B>(x, 15);
        let x = self.multiply::<B>(x, 0x3184_8bab);
        self.shift_xor::<B>(x, 14)
    }
}

/// The factors of [`AttentionOps::dropout_factors`](crate::backend::AttentionOps::dropout_factors), from the generator of
/// attention dropout. Each run of `RUN` numbers is one of its rows.
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) fn factors_of_host<B: Backend>(
    like: FloatTensor<B>,
    dropout: AttentionDropout,
) -> FloatTensor<B> {
    /// Long enough that hashing the row costs nothing.
    const RUN: usize = 4096;
    let shape = like.shape();
    let mut factors = vec![0.0; shape.num_elements()];
    let dtype = float_dtype(like.dtype());
    // f32 would round the scale of f64. The public function scales half precision in f32.
    let filled = match dtype {
        FloatDType::F64 | FloatDType::F16 | FloatDType::BF16 => 1.0,
        _ => dropout.kept_scale() as f32,
    };
    for (row, run) in factors.chunks_mut(RUN).enumerate() {
        dropout.row(0, 0, row).fill(run, filled);
    }
    let data = burn::tensor::TensorData::new(factors, shape);
    let factors = super::dtype::cast::<B>(B::float_from_data(data, &like.device()), dtype);
    match dtype {
        FloatDType::F64 => B::float_mul_scalar(factors, dropout.kept_scale().into()),
        _ => factors,
    }
}

/// The factors from the generator of the device.
pub(crate) fn factors_of_device<B: Backend>(
    like: FloatTensor<B>,
    dropout: AttentionDropout,
) -> FloatTensor<B> {
    let keeps = Distribution::Bernoulli(1.0 - dropout.probability);
    let dtype = float_dtype(like.dtype());
    let kept = B::float_random(like.shape(), keeps, &like.device(), dtype);
    match dtype {
        FloatDType::F16 | FloatDType::BF16 => kept,
        _ => B::float_mul_scalar(kept, dropout.kept_scale().into()),
    }
}
