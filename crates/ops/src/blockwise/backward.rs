//! The gradients, block by block.

use core::{ops::Range, slice};

use burn::{
    backend::{Backend, TensorMetadata, get_or_init_device_settings, tensor::FloatTensor},
    tensor::{FloatDType, Shape},
};

use super::{
    Plan, Sizes,
    captured::CapturedSums,
    forward_in,
    sums::{BlockSums, DistanceSums, sum_to},
};
use crate::{
    backend::{OptionalFloat, RequiredGrads, SavedAndGrads, ScoreInputs},
    composed::{
        DropoutRows, cast, float_dtype, is_minus_infinity,
        part::{Part, aligned, narrow},
        reshape,
        scalars::{dtanh, times_scalar},
        scores::{Terms, scores, times, times_transposed, zero_where},
        statistics_dtype,
    },
};

/// See [`AttentionOps::fused_attention_backward`](crate::backend::AttentionOps::fused_attention_backward).
pub(crate) fn backward<B: Backend>(
    mut inputs: ScoreInputs<B>,
    value: FloatTensor<B>,
    mut saved: SavedAndGrads<B>,
    required: RequiredGrads,
) -> Vec<FloatTensor<B>> {
    let zeros = |inputs: &ScoreInputs<B>| -> Vec<_> {
        let tensors = inputs.differentiable(&value, required);
        let zeros = |like: &FloatTensor<B>| {
            B::float_zeros(like.shape(), &like.device(), float_dtype(like.dtype()))
        };
        tensors.into_iter().flatten().map(zeros).collect()
    };
    if inputs.query.shape().num_elements() == 0 {
        return zeros(&inputs);
    }
    let [.., of_distances, of_sinks, of_captured] = required;
    let dtype = float_dtype(inputs.query.dtype());
    let statistics = statistics_dtype(dtype);
    if dtype != statistics && (of_distances || of_captured) {
        // Such a gradient adds up many rows, each with what the rounding of its output leaves in `delta`.
        (saved.output, _) = forward_in::<B>(inputs.clone(), value.clone(), statistics);
    }
    let rows = Rows::<B>::new(saved, statistics);
    // The logsumexp includes the sinks: no block needs them.
    let sinks = core::mem::replace(&mut inputs.sinks, OptionalFloat::Absent).into_option();
    let sinks = sinks.filter(|_| of_sinks);
    let of_sinks = sinks.map(|sinks| rows.gradient_of_sinks(&sinks));
    let Some(sizes) = Sizes::of::<B>(&inputs, &value) else {
        let mut gradients = zeros(&inputs);
        gradients.extend(of_sinks);
        return gradients;
    };
    let plan = Plan::backward(sizes, &inputs.mask.tables);
    let queries: Vec<_> = plan.queries().collect();
    let keys: Vec<_> = plan.keys().collect();
    let dropout = DropoutRows::<B>::of(&inputs);
    let aligned = aligned::<B>(inputs.clone());
    let mut sums = Sums::<B>::new(&aligned, &value, required, [&queries, &keys]);
    for (column, keys) in keys.iter().enumerate() {
        // Cast once for all queries.
        let value = cast::<B>(narrow::<B>(value.clone(), 2, keys), statistics);
        for (row, queries) in queries.iter().enumerate() {
            if !plan.may_see(queries, keys) {
                continue;
            }
            let part = plan.part(queries, keys);
            let block = Block::new(&aligned, &value, &rows, dropout.as_ref(), part);
            block.add_to(&mut sums, [row, column]);
        }
    }
    let of_distances = sums.distance_bias.zip(inputs.distance_bias.into_option());
    let offsets = inputs.mask.query_offsets.as_ref();
    let of_distances =
        of_distances.map(|(sums, like)| sums.into_gradient(&like, offsets, sizes.len_q));
    let in_blocks = [sums.query, sums.key, sums.value, sums.bias];
    let in_blocks = in_blocks.into_iter().flatten().map(BlockSums::join);
    let of_captured = sums
        .captured
        .map(|sums| sums.into_gradient::<B>(sizes.len_q));
    in_blocks
        .chain(of_distances)
        .chain(of_sinks)
        .chain(of_captured)
        .collect()
}

/// The values that exist once per row of scores, `[batch, heads_q, len_q, _]`.
struct Rows<B: Backend> {
    /// 0 for rows without a term.
    logsumexp: FloatTensor<B>,
    output_gradient: FloatTensor<B>,
    /// What the softmax subtracts from the gradient of every weight in the row.
    delta: FloatTensor<B>,
}

impl<B: Backend> Rows<B> {
    fn new(saved: SavedAndGrads<B>, statistics: FloatDType) -> Self {
        let [batch, heads_q, len_q, _] = saved.output.shape().dims::<4>();
        let rows = Shape::new([batch, heads_q, len_q, 1]);
        let bool_dtype = get_or_init_device_settings::<B>(&saved.output.device()).bool_dtype;
        let column =
            |tensor: FloatTensor<B>| B::float_reshape(cast::<B>(tensor, statistics), rows.clone());

        let output = cast::<B>(saved.output, statistics);
        let output_gradient = cast::<B>(saved.output_gradient, statistics);
        // A row that sees nothing has an output of exact zeros, and its gradients are zeros, whatever arrives.
        let nothing = B::float_equal_elem(output.clone(), 0.0.into(), bool_dtype);
        let products = B::float_mul(output, output_gradient.clone());
        let products = B::float_mask_fill(products, nothing, 0.0.into());
        let delta = B::float_sum_dim(products, 3);
        let delta = B::float_sub(delta, column(saved.logsumexp_gradient));

        let logsumexp = column(saved.logsumexp);
        let without_term = is_minus_infinity::<B>(logsumexp.clone());
        Self {
            logsumexp: B::float_mask_fill(logsumexp, without_term, 0.0.into()),
            output_gradient,
            delta,
        }
    }

    fn of(&self, queries: &Range<usize>) -> Self {
        let narrow = |rows: &FloatTensor<B>| narrow::<B>(rows.clone(), 2, queries);
        Self {
            logsumexp: narrow(&self.logsumexp),
            output_gradient: narrow(&self.output_gradient),
            delta: narrow(&self.delta),
        }
    }

    /// A sink is a score whose value is zero.
    fn gradient_of_sinks(&self, sinks: &FloatTensor<B>) -> FloatTensor<B> {
        let shape = self.delta.shape();
        let heads_q = shape.dims::<4>()[1];
        let dtype = float_dtype(sinks.dtype());
        let scores = cast::<B>(sinks.clone(), float_dtype(self.delta.dtype()));
        let scores = B::float_reshape(scores, Shape::new([1, heads_q, 1, 1]));
        let scores = B::float_expand(scores, shape);
        let weights = B::float_exp(B::float_sub(scores, self.logsumexp.clone()));
        let gradients = B::float_neg(B::float_mul(weights, self.delta.clone()));
        let sum = sum_to::<B>(gradients, [1, heads_q, 1, 1]);
        let sum = cast::<B>(B::float_reshape(sum, sinks.shape()), dtype);
        // Selected: a sink of −∞ has no gradient, whatever arrives.
        zero_where::<B>(sum, Some(is_minus_infinity::<B>(sinks.clone())))
    }
}

/// The recomputed weights of a block, and everything that its gradients need.
struct Block<B: Backend> {
    part: Part,
    terms: Terms<B>,
    /// `[batch, heads_q, queries, keys]`, before dropout.
    weights: FloatTensor<B>,
    /// What dropout multiplies the weights by, before its scale.
    kept: Option<FloatTensor<B>>,
    /// The gradient of the output with the scale of dropout, the heads of one key/value head as rows of one matrix.
    output_gradient: FloatTensor<B>,
    /// `[batch, heads_kv, keys, dim_v]`
    value: FloatTensor<B>,
    /// `[batch, heads_q, queries, 1]`
    delta: FloatTensor<B>,
    scale: f64,
}

impl<B: Backend> Block<B> {
    fn new(
        inputs: &ScoreInputs<B>,
        value: &FloatTensor<B>,
        rows: &Rows<B>,
        dropout: Option<&DropoutRows<B>>,
        part: Part,
    ) -> Self {
        let statistics = float_dtype(value.dtype());
        let scalars = inputs.scalars;
        let (scores, terms) = scores::<B>(part.of(inputs), &part, statistics);
        let rows = rows.of(&part.queries);
        let output_gradient =
            zero_where::<B>(rows.output_gradient, terms.rows_without_keys.clone());
        let output_gradient = match scalars.dropout {
            Some(dropout) => B::float_mul_scalar(output_gradient, dropout.kept_scale().into()),
            None => output_gradient,
        };
        let [batch, heads_q, len_q, dim_v] = output_gradient.shape().dims::<4>();
        let heads_kv = value.shape().dims::<4>()[1];
        let grouped = Shape::new([batch, heads_kv, heads_q / heads_kv * len_q, dim_v]);
        let weights = B::float_exp(B::float_sub(scores, rows.logsumexp));
        Self {
            // A logsumexp of NaN would make weights of NaN where a pair is hidden.
            weights: zero_where::<B>(weights, terms.hidden.clone()),
            kept: dropout.map(|rows| rows.kept(&part, statistics)),
            output_gradient: reshape::<B>(output_gradient, grouped),
            value: zero_where::<B>(value.clone(), terms.unseen.clone()),
            delta: rows.delta,
            scale: scalars.scale,
            terms,
            part,
        }
    }

    /// `[batch, heads_q, queries, keys]` as the matrices of the key/value heads.
    fn grouped(&self, weights: FloatTensor<B>) -> FloatTensor<B> {
        let [batch, heads_kv, rows, _] = self.terms.query.shape().dims::<4>();
        reshape::<B>(
            weights,
            Shape::new([batch, heads_kv, rows, self.part.keys.len()]),
        )
    }

    /// Zeros where dropout has dropped the weight.
    fn dropped(&self, tensor: FloatTensor<B>) -> FloatTensor<B> {
        match self.kept.clone() {
            Some(kept) => B::float_mul(tensor, kept),
            None => tensor,
        }
    }

    fn add_to(mut self, sums: &mut Sums<B>, [row, column]: [usize; 2]) {
        if let Some(value) = &mut sums.value {
            let weights = self.grouped(self.dropped(self.weights.clone()));
            let term = transposed_times::<B>(weights, self.output_gradient.clone());
            value.add(column, 0, term);
        }
        let of_products = sums.query.is_some() || sums.key.is_some() || sums.captured.is_some();
        if !of_products && sums.bias.is_none() && sums.distance_bias.is_none() {
            return;
        }
        let gradient = self.gradient_of_scores();
        if let Some(bias) = &mut sums.bias {
            let term = sum_to::<B>(gradient.clone(), bias.dims());
            bias.add(row, column, term);
        }
        if let Some(sum) = &mut sums.distance_bias {
            sum.add(gradient.clone(), &self.part.queries, &self.part.keys);
        }
        if !of_products {
            return;
        }
        let gradient = match &self.terms.ratios {
            Some(ratios) => B::float_mul(gradient, dtanh::<B>(ratios.clone())),
            None => gradient,
        };
        let gradient = match self.terms.function.take() {
            Some(function) => {
                let (of_scores, of_captured) = function.gradients::<B>(gradient);
                if let Some(captured) = &mut sums.captured {
                    captured.add([row, column], &self.part, of_captured);
                }
                // Selected: the derivative of a hidden pair may be NaN.
                zero_where::<B>(of_scores, self.terms.hidden.clone())
            }
            None => gradient,
        };
        let gradient = self.grouped(gradient);
        if let Some(query) = &mut sums.query {
            let term = times::<B>(gradient.clone(), self.terms.key.clone());
            query.add(row, 0, times_scalar::<B>(term, self.scale));
        }
        if let Some(key) = &mut sums.key {
            // The query is scaled.
            let term = transposed_times::<B>(gradient, self.terms.query.clone());
            key.add(column, 0, term);
        }
    }

    /// The gradient of the scores after softcap and biases, exactly zero where a pair is hidden.
    fn gradient_of_scores(&self) -> FloatTensor<B> {
        let of_weights = times_transposed::<B>(self.output_gradient.clone(), self.value.clone());
        let of_weights = reshape::<B>(of_weights, self.weights.shape());
        let centered = B::float_sub(self.dropped(of_weights), self.delta.clone());
        let gradient = B::float_mul(self.weights.clone(), centered);
        zero_where::<B>(gradient, self.terms.hidden.clone())
    }
}

/// `leftᵀ · right` of matrices `[.., rows, columns]` and `[.., rows, dim]`.
///
/// A matrix of one row or column is not transposed: Burn 0.22.1's fusion reads such a view in vectors, as if it were a row.
fn transposed_times<B: Backend>(left: FloatTensor<B>, right: FloatTensor<B>) -> FloatTensor<B> {
    let [batch, heads, rows, columns] = left.shape().dims::<4>();
    if rows > 1 && columns > 1 {
        return B::float_matmul(B::float_transpose(left), right);
    }
    let transposed = reshape::<B>(left, Shape::new([batch, heads, columns, rows]));
    times::<B>(transposed, right)
}

/// The gradients accumulated so far, of the tensors that require one.
struct Sums<B: Backend> {
    query: Option<BlockSums<B>>,
    key: Option<BlockSums<B>>,
    value: Option<BlockSums<B>>,
    bias: Option<BlockSums<B>>,
    distance_bias: Option<DistanceSums<B>>,
    captured: Option<CapturedSums>,
}

impl<B: Backend> Sums<B> {
    fn new(
        inputs: &ScoreInputs<B>,
        value: &FloatTensor<B>,
        required: RequiredGrads,
        [queries, keys]: [&[Range<usize>]; 2],
    ) -> Self {
        let lengths @ [_, len_kv] = [&inputs.query, &inputs.key].map(|x| x.shape().dims::<4>()[2]);
        let [query, key, value, bias, distance_bias, _, captured] =
            inputs.differentiable(value, required);
        let offsets = inputs.mask.query_offsets.as_ref();
        let captured = captured.zip(inputs.score_function.as_ref());
        let rows = |like: Option<&FloatTensor<B>>, rows| {
            let width = 0..like?.shape().dims::<4>()[3];
            Some(BlockSums::new(like?, rows, slice::from_ref(&width)))
        };
        Self {
            query: rows(query, queries),
            key: rows(key, keys),
            value: rows(value, keys),
            bias: bias.map(|bias| BlockSums::new(bias, queries, keys)),
            distance_bias: distance_bias.map(|bias| DistanceSums::new(bias, len_kv)),
            captured: captured.map(|(captured, call)| {
                CapturedSums::new::<B>(call, captured, offsets, lengths, [queries, keys])
            }),
        }
    }
}
