//! The scores: scale, softcap, bias and mask, in the order of the contract.

use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, FloatTensor},
    },
    tensor::{FloatDType, Shape},
};

use super::{
    cast,
    hidden::{Hidden, expand_int, range},
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
            inputs.visible_blocks.into_option(),
            inputs.masked.into_option(),
            inputs.key_lengths.into_option(),
            inputs
                .query_segments
                .into_option()
                .zip(inputs.key_segments.into_option()),
            [bias.clone(), distance.clone()],
        );
        let (unseen, blind) = (hidden.unseen(heads_kv), hidden.blind());
        let key = erase::<B>(cast::<B>(inputs.key, dtype), unseen.clone());
        let query = erase::<B>(cast::<B>(inputs.query, dtype), blind.clone());

        // Scaling the query touches `dim_qk` numbers a row, scaling the scores `len_kv`; and it overflows later.
        let query = B::float_mul_scalar(query, scalars.scale.into());
        let grouped = Shape::new([batch, heads_kv, heads_q / heads_kv * len_q, dim_qk]);
        let scores = B::float_matmul(reshape::<B>(query, grouped), B::float_transpose(key));
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
        let scores = [bias, distance]
            .into_iter()
            .flatten()
            .fold(scores, B::float_add);
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
fn spread<B: Backend>(distance: FloatTensor<B>, len_q: usize, len_kv: usize) -> FloatTensor<B> {
    let [heads_q, _] = distance.shape().dims::<2>();
    let device = distance.device();
    let int_dtype = get_or_init_device_settings::<B>(&device).int_dtype;
    let shape = [1, 1, len_q, len_kv];
    let axis = |len: usize, shape| range::<B>(0..len as i64, shape, &device, int_dtype);
    let queries = expand_int::<B>(axis(len_q, [1, 1, len_q, 1]), shape);
    let keys = expand_int::<B>(axis(len_kv, [1, 1, 1, len_kv]), shape);
    let entries = B::int_add_scalar(B::int_sub(queries, keys), (len_kv as i64 - 1).into());
    let entries = B::int_reshape(entries, Shape::new([len_q * len_kv]));
    let pairs = B::float_select(distance, 1, entries);
    B::float_reshape(pairs, Shape::new([1, heads_q, len_q, len_kv]))
}

/// Selects zeros, in the gradient too: multiplying a NaN by a weight of zero would keep the NaN.
fn erase<B: Backend>(tensor: FloatTensor<B>, hidden: Option<BoolTensor<B>>) -> FloatTensor<B> {
    let Some(hidden) = hidden else {
        return tensor;
    };
    let shape = tensor.shape();
    B::float_mask_fill(tensor, B::bool_expand(hidden, shape), 0.0.into())
}
