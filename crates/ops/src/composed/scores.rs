//! The scores: scale, softcap, bias and mask, in the order of the contract.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor},
    },
    tensor::{FloatDType, Shape, Slice},
};

use super::{
    cast,
    hidden::{Hidden, Parts},
    reshape,
};
use crate::ScoreInputs;

/// The masked scores, which keys of a batch item nobody sees, and which queries see none.
pub(super) struct Scores<B: Backend> {
    /// `[batch, heads_q, len_q, len_kv]`, −∞ where hidden.
    pub(super) tensor: FloatTensor<B>,
    /// `[1, heads_q, 1, 1]`
    pub(super) sinks: Option<FloatTensor<B>>,
    unseen: Option<BoolTensor<B>>,
    blind: Option<BoolTensor<B>>,
}

impl<B: Backend> Scores<B> {
    pub(super) fn new(inputs: ScoreInputs<B>, dtype: FloatDType) -> Self {
        let [batch, heads_q, len_q, dim_qk] = inputs.query.shape().dims::<4>();
        let [_, heads_kv, len_kv, _] = inputs.key.shape().dims::<4>();
        let scalars = inputs.scalars;
        let shape = Shape::new([batch, heads_q, len_q, len_kv]);

        let bias = inputs.bias.into_option();
        let bias = bias.map(|bias| cast::<B>(bias, dtype));
        let distance = inputs.distance_bias.into_option();
        let distance = distance.map(|distance| spread::<B>(distance, len_q, len_kv));
        let hidden = Hidden::<B>::new(
            &inputs.query.device(),
            [batch, heads_q, len_q, len_kv],
            &scalars,
            Parts {
                visible_blocks: inputs.visible_blocks.into_option(),
                masked: inputs.masked.into_option(),
                key_lengths: inputs.key_lengths.into_option(),
                segments: inputs
                    .query_segments
                    .into_option()
                    .zip(inputs.key_segments.into_option()),
                biases: [bias.clone(), distance.clone()],
            },
        );
        let (unseen, blind) = (hidden.unseen(heads_kv), hidden.blind());
        let key = erase::<B>(cast::<B>(inputs.key, dtype), unseen.clone());
        let query = erase::<B>(cast::<B>(inputs.query, dtype), blind.clone());

        // Scaling the query touches `dim_qk` numbers a row, scaling the scores `len_kv`; and it overflows later.
        let query = B::float_mul_scalar(query, scalars.scale.into());
        let grouped = Shape::new([batch, heads_kv, heads_q / heads_kv * len_q, dim_qk]);
        let query = reshape::<B>(query, grouped);
        // As for the values, one key is no matrix.
        let scores = match len_kv {
            1 => B::float_sum_dim(B::float_mul(query, key), 3),
            _ => B::float_matmul(query, B::float_transpose(key)),
        };
        let scores = reshape::<B>(scores, shape.clone());
        let hidden = hidden.over(&shape);

        let scores = match scalars.softcap {
            Some(softcap) => {
                // The product of a hidden pair may overflow to NaN, and the gradient of tanh there multiplies by it.
                let scores = erase::<B>(scores, hidden.clone());
                // Not a division by a scalar: Burn's gradient of that one rounds the scalar to f32.
                let scaled = B::float_mul_scalar(scores, (1.0 / softcap).into());
                let squashed = B::float_tanh(scaled);
                B::float_mul_scalar(squashed, softcap.into())
            }
            None => scores,
        };
        let biases = [bias, distance].into_iter().flatten();
        let scores = biases.fold(scores, |scores, bias| {
            B::float_add(scores, stretch::<B>(bias, &shape))
        });
        // The mask comes last, so that no bias (not even +∞ or NaN) can make a hidden key win.
        let tensor = match hidden {
            Some(hidden) => B::float_mask_fill(scores, hidden, f64::NEG_INFINITY.into()),
            None => scores,
        };
        let sinks = inputs.sinks.into_option();
        let sinks = sinks.map(|sinks| B::float_reshape(sinks, Shape::new([1, heads_q, 1, 1])));
        Self {
            tensor,
            sinks,
            unseen,
            blind,
        }
    }

    /// `[batch, heads_kv, len_kv, _]` with zeros for the keys that nobody sees.
    pub(super) fn without_unseen(&self, value: FloatTensor<B>) -> FloatTensor<B> {
        erase::<B>(value, self.unseen.clone())
    }

    /// `[batch, heads_q, len_q, _]` with zeros for the queries that see nothing; their gradients are zeros, whatever arrives.
    pub(super) fn without_blind(&self, rows: FloatTensor<B>) -> FloatTensor<B> {
        erase::<B>(rows, self.blind.clone())
    }
}

/// The distance bias `[heads_q, len_q + len_kv − 1]` of every pair, `[1, heads_q, len_q, len_kv]`.
///
/// Entry `(i, j)` is number `len_q − 1 − i + j` of the reversed bias: every row is the one above, moved by one. So is a row
/// of `len_q` copies of it that lie one behind the other, read in rows that are one number shorter. No indices, and a
/// gradient of plain sums: that of a selection is one loop over all pairs in each head, which no GPU shares out, and which
/// Mesa's software driver leaves after 65,535 rounds.
///
/// Source: the relative shift of Transformer-XL (arXiv:1901.02860), appendix B.
fn spread<B: Backend>(distance: FloatTensor<B>, len_q: usize, len_kv: usize) -> FloatTensor<B> {
    let [heads_q, len] = distance.shape().dims::<2>();
    let reversed = B::float_flip(distance, &[1]);
    if len_q == 1 {
        return B::float_reshape(reversed, Shape::new([1, heads_q, 1, len_kv]));
    }
    let copies = B::float_reshape(reversed, Shape::new([1, heads_q, 1, len]));
    let copies = B::float_expand(copies, Shape::new([1, heads_q, len_q, len]));
    let copies = B::float_reshape(copies, Shape::new([1, heads_q, len_q * len]));
    let first = len_q - 1;
    let rows = [
        Slice::full(),
        Slice::full(),
        Slice::from(first..first + len_q * (len - 1)),
    ];
    let rows = B::float_slice(copies, &rows);
    let rows = B::float_reshape(rows, Shape::new([1, heads_q, len_q, len - 1]));
    let mut keys = [Slice::full(); 4];
    keys[3] = Slice::from(0..len_kv);
    B::float_slice(rows, &keys)
}

/// Stretched dimension by dimension, so that a gradient is summed dimension by dimension: in Burn 0.22.1's CubeCL backends one
/// sum over all of them is a single loop, which is slow and inexact, and which Mesa's software driver leaves after 65,535
/// rounds.
pub(super) fn stretch<B: Backend>(tensor: FloatTensor<B>, shape: &Shape) -> FloatTensor<B> {
    let full = shape.dims::<4>();
    let mut dims = tensor.shape().dims::<4>();
    let mut stretched = tensor;
    for dim in 0..4 {
        if dims[dim] != full[dim] {
            dims[dim] = full[dim];
            stretched = B::float_expand(stretched, Shape::new(dims));
        }
    }
    stretched
}

/// Selects zeros, in the gradient too: multiplying a NaN by a weight of zero would keep the NaN.
fn erase<B: Backend>(tensor: FloatTensor<B>, hidden: Option<BoolTensor<B>>) -> FloatTensor<B> {
    let Some(hidden) = hidden else {
        return tensor;
    };
    let shape = tensor.shape();
    B::float_mask_fill(tensor, B::bool_expand(hidden, shape), 0.0.into())
}
