//! Every step of a computation, by name.

use burn::tensor::{Tensor, TensorData, kind::Basic};
use burn_attn_ops::{
    AttentionOptions, StatisticsOptions, attention_statistics, attention_steps, attention_weights,
};

/// Every step of a computation, by name, in the order in which they were made: what `forward_traced` returns. The numbers are those of the call, on the host.
///
/// An attention module has these:
///
/// | name | what it is | shape |
/// | --- | --- | --- |
/// | `projected` | query, key and value side by side, of [`SelfAttention`](crate::SelfAttention) | `[batch, len, Σ widths]` |
/// | `projected_query`, `projected_memory` | of [`CrossAttention`](crate::CrossAttention): query; key and value side by side | `[batch, len, Σ widths]` |
/// | `projected_query`, `projected_key`, `projected_value` | of [`MultiHeadAttention`](crate::MultiHeadAttention) | `[batch, len, width]` |
/// | `query`, `key`, `value` | the heads, normalised and rotated as far as the module does that | `[batch, heads, len, d_head]` |
/// | `scores` | `query · keyᵀ` | `[batch, heads, len_q, len_kv]` |
/// | `scaled` | times the scale, changed by a score function, and capped | as `scores` |
/// | `hidden.causal`, `hidden.window`, `hidden.padding`, `hidden.segments`, `hidden.blocks`, `hidden.mask`, `hidden.function`, `hidden.union` | true where this part of the mask hides a key; a window only what causality shows; with given positions or offsets, and a union in a stack, it may be part of `hidden.mask` | as `scores` |
/// | `weights` | `softmax(scaled + bias)` of what is not hidden, before dropout | as `scores` |
/// | `mixed` | the output of the fused kernel: `weights · value`, in training after dropout | `[batch, heads, len_q, d_value_head]` |
/// | `merged` | the heads side by side, gated if the module has a gate | `[batch, len_q, heads · d_value_head]` |
/// | `output` | bit for bit that of `forward` | `[batch, len_q, d_model]` |
///
/// A [`TransformerLayer`](crate::TransformerLayer) has `input`, `self.normed` (what its self-attention reads), the steps of the attention as `self.…`, `after_self` (the
/// residual sum), with cross-attention `cross.normed`, `cross.…` and `after_cross`, then `feed_forward.normed`, `feed_forward.output` and `output`; a parallel layer has no
/// `after_self`. A [`TransformerStack`](crate::TransformerStack) has those of its layers as `0.…`, `1.…` and so on, then `output`.
///
/// Other [mixers of tokens](crate::TokenMixer), which are traced in a layer, have fewer steps: [`LatentAttention`](crate::LatentAttention) those from `query` on for whole sequences, and
/// [`GatedDeltaRule`](crate::GatedDeltaRule) `query`, `key`, `value`, `mixed` (what each head reads from its memory) and `output`.
///
/// `forward_with_statistics`, which covers [`LatentAttention`](crate::LatentAttention) only as part of a stack, returns instead what the weights look like, in memory that is linear in the lengths: `entropy`, `first_key`, `distances`, `top_keys` and
/// `top_weights` of every attention, as [`AttentionStatistics`](burn_attn_ops::AttentionStatistics) describes them.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::SelfAttentionConfig;
///
/// let device = Device::default();
/// let attention = SelfAttentionConfig::new(12, 3).with_causal(true).init(&device);
/// let x = Tensor::<3>::random([1, 5, 12], Distribution::Default, &device);
/// let trace = attention.forward_traced(x);
/// assert_eq!(trace.get("query").unwrap().shape().to_vec(), [1, 3, 5, 4]);
/// let names: Vec<&str> = trace.tensors().map(|(name, _)| name).collect();
/// assert_eq!(names[4..], ["scores", "scaled", "hidden.causal", "weights", "mixed", "merged", "output"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trace {
    tensors: Vec<(String, TensorData)>,
}

impl Trace {
    /// A trace without steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// The step of this name.
    pub fn get(&self, name: &str) -> Option<&TensorData> {
        let found = self.tensors.iter().find(|(known, _)| known == name);
        found.map(|(_, data)| data)
    }

    /// All steps with their names, in the order in which they were made.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &TensorData)> {
        self.tensors
            .iter()
            .map(|(name, data)| (name.as_str(), data))
    }

    /// Adds a step. Waits for the device.
    pub fn add<const D: usize, K: Basic>(&mut self, name: &str, tensor: Tensor<D, K>) {
        let data = tensor.into_data();
        // A copy: what Burn 0.22.1 reads from wgpu may be the memory of the tensor, which the next operation overwrites.
        let bytes = data.as_bytes().to_vec();
        let copy = TensorData::from_bytes_vec(bytes, data.shape().to_vec(), data.dtype());
        self.tensors.push((name.to_owned(), copy));
    }

    /// Adds the steps of a part, each as `part.name`.
    pub fn extend(&mut self, part: &str, steps: Trace) {
        let steps = steps.tensors.into_iter();
        self.tensors
            .extend(steps.map(|(name, data)| (format!("{part}.{name}"), data)));
    }
}

/// What a call keeps besides its output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    #[default]
    Nothing,
    /// The attention weights.
    Weights,
    /// Every step.
    Steps,
    /// Statistics of the attention weights.
    Statistics(StatisticsOptions),
}

/// Keeps what a call was asked for. Nothing is computed or cloned for what it was not asked for.
#[derive(Default)]
pub(crate) struct Recorder {
    kept: Kept,
    weights: Option<Tensor<4>>,
    trace: Trace,
}

impl Recorder {
    pub(crate) fn new(kept: Kept) -> Self {
        Self {
            kept,
            ..Self::default()
        }
    }

    /// Keeps a step.
    pub(crate) fn step<const D: usize, K: Basic>(&mut self, name: &str, tensor: &Tensor<D, K>) {
        if self.kept == Kept::Steps {
            self.trace.add(name, tensor.clone());
        }
    }

    /// Keeps what leads to the weights of this call of attention.
    pub(crate) fn attends(
        &mut self,
        [query, key, value]: [&Tensor<4>; 3],
        options: &AttentionOptions,
    ) {
        let operands = || (query.clone(), key.clone(), options.clone());
        match self.kept {
            Kept::Nothing => {}
            Kept::Statistics(statistics) => {
                let (query, key, options) = operands();
                let statistics = attention_statistics(query, key, options, statistics);
                self.trace.add("entropy", statistics.entropy);
                self.trace.add("first_key", statistics.first_key);
                self.trace.add("distances", statistics.distances);
                self.trace.add("top_keys", statistics.top_keys);
                self.trace.add("top_weights", statistics.top_weights);
            }
            Kept::Weights => {
                let (query, key, options) = operands();
                self.weights = Some(attention_weights(query, key, options));
            }
            Kept::Steps => {
                for (name, tensor) in [("query", query), ("key", key), ("value", value)] {
                    self.step(name, tensor);
                }
                let (query, key, options) = operands();
                let steps = attention_steps(query, key, options);
                self.step("scores", &steps.scores);
                self.step("scaled", &steps.scaled);
                for (part, hidden) in &steps.hidden {
                    self.step(&format!("hidden.{part}"), hidden);
                }
                self.step("weights", &steps.weights);
            }
        }
    }

    /// Adds what a part of this call keeps, as steps `name.…`.
    pub(crate) fn part(&mut self, name: &str, part: Recorder) {
        self.trace.extend(name, part.trace);
    }

    /// A recorder for a part, which keeps the same.
    pub(crate) fn for_part(&self) -> Self {
        Self::new(self.kept)
    }

    /// The attention weights, if they were asked for.
    pub(crate) fn take_weights(&mut self) -> Option<Tensor<4>> {
        self.weights.take()
    }

    /// All steps.
    pub(crate) fn into_trace(self) -> Trace {
        self.trace
    }
}
