//! The steps of attention, one after the other: for inspection.

use burn::{
    backend::Dispatch,
    tensor::{Bool, DType, Tensor},
};

use crate::{
    AttentionMask, AttentionOptions,
    attention::score_inputs,
    attention_weights,
    composed::{
        counting,
        part::{Part, aligned},
        scalars::{cap, times_scalar},
        scores::scores,
        statistics_dtype,
    },
};

/// What [`attention`](crate::attention) computes on the way to its output and never forms; all tensors are `[batch, heads_q, len_q, len_kv]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttentionSteps {
    /// `query · keyᵀ`, in f32 or wider.
    pub scores: Tensor<4>,
    /// The scores times the scale, changed by a score function (of 1 where a pair is hidden), and capped, in f32 or wider.
    pub scaled: Tensor<4>,
    /// True where a part of the mask hides a key: `causal`, `window` (of what causality shows), `padding` (key lengths), `segments`, `blocks`, `mask` (dense), `function` and
    /// `union`, as far as the mask has them. A bias of −∞ hides as well.
    pub hidden: Vec<(&'static str, Tensor<4, Bool>)>,
    /// `softmax(scaled + bias)` of what is not hidden, before dropout: [`attention_weights`], in the query's type.
    pub weights: Tensor<4>,
}

/// The steps of attention one after the other, for inspection. Panics as [`attention_weights`] does.
///
/// # Cost
///
/// Twice the cost of [`attention_weights`], and once more for a score function and for each part of the mask.
pub fn attention_steps(
    query: Tensor<4>,
    key: Tensor<4>,
    options: AttentionOptions,
) -> AttentionSteps {
    let weights = attention_weights(query.clone(), key.clone(), options.clone());
    let [batch, heads_q, len_q, dim_qk] = query.dims();
    let [_, heads_kv, len_kv, _] = key.dims();
    let members = heads_q / heads_kv;
    let dtype: DType = statistics_dtype(query.dtype().into()).into();
    let shape = [batch, heads_q, len_q, len_kv];
    // In Burn 0.22.1 a product with an empty batch reads out of bounds on flex.
    let scores: Tensor<4> = match shape.contains(&0) {
        true => weights.zeros_like().cast(dtype),
        false => {
            let grouped = query
                .clone()
                .cast(dtype)
                .reshape([batch, heads_kv, members, len_q, dim_qk]);
            let shared = key
                .clone()
                .cast(dtype)
                .unsqueeze_dim::<5>(2)
                .swap_dims(3, 4);
            let shared = shared.expand([batch, heads_kv, members, dim_qk, len_kv]);
            grouped.matmul(shared).reshape(shape)
        }
    };
    let scale = options.scale.unwrap_or(1.0 / (dim_qk as f64).sqrt());
    let scaled = match options.score_function.is_some() && !shape.contains(&0) {
        true => by_function(query.clone(), key.clone(), options.clone()),
        false => {
            let scores = scores.clone().into_dispatch();
            Tensor::from_dispatch(times_scalar::<Dispatch>(scores, scale))
        }
    };
    let scaled = match options.softcap {
        Some(softcap) => {
            let (capped, _) = cap::<Dispatch>(scaled.into_dispatch(), softcap);
            Tensor::from_dispatch(capped)
        }
        None => scaled,
    };
    let hidden = hidden([query, key], &options);
    AttentionSteps {
        scores,
        scaled,
        hidden,
        weights,
    }
}

/// The scores that the function of the options makes.
fn by_function(query: Tensor<4>, key: Tensor<4>, options: AttentionOptions) -> Tensor<4> {
    let dtype = statistics_dtype(query.dtype().into());
    let part = Part::whole(query.dims()[2], key.dims()[2]);
    let inputs = aligned::<Dispatch>(score_inputs(query, key, options));
    let (_, terms) = scores::<Dispatch>(inputs, &part, dtype);
    let function = terms.function.expect("the options have a function");
    Tensor::from_dispatch(function.result::<Dispatch>())
}

/// What each part of the mask hides: weights of equal scores are 0 exactly where a key is hidden.
fn hidden(
    [query, key]: [Tensor<4>; 2],
    options: &AttentionOptions,
) -> Vec<(&'static str, Tensor<4, Bool>)> {
    let [query, key] = [query, key].map(|x| x.zeros_like());
    let query_offsets = options.query_offsets.clone().or_else(|| {
        let offset = options
            .mask
            .named_offset([query.dims()[2], key.dims()[2]])?;
        let batch = query.dims()[0];
        Some(Tensor::full([batch], offset, counting(&query.device())))
    });
    let by = |mask: AttentionMask| {
        let mut alone = AttentionOptions::default().mask(mask);
        alone.query_offsets = query_offsets.clone();
        attention_weights(query.clone(), key.clone(), alone).equal_elem(0.0)
    };
    let mask = &options.mask;
    let mut parts = Vec::new();
    let causal = mask.by_position.causal.is_some().then(|| {
        let mut causal = AttentionMask::none();
        causal.by_position.causal = mask.by_position.causal;
        by(causal)
    });
    if mask.by_position.window.is_some() {
        let both = by(AttentionMask {
            by_position: mask.by_position,
            ..AttentionMask::none()
        });
        let window = match &causal {
            Some(causal) => both.bool_and(causal.clone().bool_not()),
            None => both,
        };
        parts.push(("window", window));
    }
    parts.extend(causal.map(|causal| ("causal", causal)));
    type Copy = fn(&mut AttentionMask, AttentionMask);
    let others: [(_, Copy); 6] = [
        ("padding", |part, of| part.key_lengths = of.key_lengths),
        ("segments", |part, of| part.segments = of.segments),
        ("blocks", |part, of| part.visible_blocks = of.visible_blocks),
        ("mask", |part, of| part.masked = of.masked),
        ("function", |part, of| part.functions = of.functions),
        ("union", |part, of| part.unions = of.unions),
    ];
    for (name, copy) in others {
        let mut part = AttentionMask::none();
        copy(&mut part, mask.clone());
        if !part.is_none() {
            parts.push((name, by(part)));
        }
    }
    parts
}
