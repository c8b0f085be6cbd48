//! Cross-attention: a decoder attends to the output of an encoder.

use burn::{
    module::Module,
    nn::{Initializer, Linear},
    tensor::{DType, Device, Tensor, assert_shape},
};
use burn_attn_derive::Config;

use super::{
    context::{AttentionContext, context_builders, refuse},
    heads::{Heads, Sizes, split},
    heads_config::{HeadsConfig, heads_builders},
    memory::{CrossMemory, ProjectedMemory},
    projections::ProjectionBias,
};
use crate::{
    error::{ConfigError, expect_valid},
    linear::{apply, apply_without_bias, fitted, kaiming_uniform, output, side_by_side},
    positions::{Position, Positions, QueryOffset},
    trace::Recorder,
};

const NAME: &str = "CrossAttention";

/// Configuration of [`CrossAttention`].
#[derive(Config, Debug)]
pub struct CrossAttentionConfig {
    /// Width of the query and the output.
    pub d_model: usize,
    /// Number of query heads.
    pub n_heads: usize,
    /// The configuration of the heads.
    #[config(default = "HeadsConfig::new()")]
    pub heads: HeadsConfig,
    /// Width of the memory. Default: `d_model`.
    pub d_memory: Option<usize>,
    /// Probability of dropping an attention weight in training.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Which projections add a learned bias; key and value share one linear layer and must agree.
    #[config(default = "ProjectionBias::all()", into)]
    pub bias: ProjectionBias,
    /// How the projections are initialised. Default: as Burn's `Linear`.
    #[config(default = "kaiming_uniform()")]
    pub initializer: Initializer,
}

heads_builders!(CrossAttentionConfig);

impl CrossAttentionConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.parts().map(|_| ())
    }

    /// The sizes, and whether the projection of key and value has a bias.
    fn parts(&self) -> Result<(Sizes, bool), ConfigError> {
        const NAME: &str = "CrossAttentionConfig";
        let sizes = self.heads.sizes(NAME, self.d_model, self.n_heads)?;
        ConfigError::check_positive(NAME, &[("d_memory", self.d_memory())])?;
        ConfigError::check_dropout(NAME, self.dropout)?;
        Ok((sizes, self.bias.of_memory(NAME)?))
    }

    fn d_memory(&self) -> usize {
        self.d_memory.unwrap_or(self.d_model)
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> CrossAttention {
        let (sizes, bias) = expect_valid(self.parts());
        let linear = |d_input, widths: &[usize], bias| {
            side_by_side(d_input, widths, bias, &self.initializer, device)
        };
        let [query, key, value] = sizes.widths();
        CrossAttention {
            // ANCHOR: cross-projections
            query: linear(self.d_model, &[query], self.bias.query),
            key_value: linear(self.d_memory(), &[key, value], bias),
            // ANCHOR_END: cross-projections
            output: linear(sizes.merged(), &[self.d_model], self.bias.output),
            gate: (self.heads.gate)
                .then(|| linear(self.d_model, &[sizes.merged()], self.bias.query)),
            heads: self.heads.init(sizes, self.dropout, device),
        }
    }
}

/// Encoder–decoder attention: every position of the decoder attends to the memory, the output of the encoder.
///
/// ```text
/// query         = x · W_query
/// [key | value] = memory · W_key_value      one linear layer, split logically: d_head = d_model / n_heads
/// merged = concat over heads of softmax(query · keyᵀ / √d_head + mask) · value
/// output = merged · W_output
/// ```
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.2.3. PyTorch equivalent: `nn.MultiheadAttention` called
/// with the memory as key and value.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{AttentionMask, CrossAttentionConfig, CrossAttentionInput};
///
/// let device = Device::default();
/// let attention = CrossAttentionConfig::new(32, 4).init(&device);
/// let decoder = Tensor::random([2, 5, 32], Distribution::Default, &device);
/// let memory = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let source_lengths = Tensor::from_data([7, 4], &device);
/// let input = CrossAttentionInput::new(decoder, memory).mask(AttentionMask::key_lengths(source_lengths));
/// let output = attention.forward_with_weights(input);
/// assert_eq!(output.states.dims(), [2, 5, 32]);
/// assert_eq!(output.weights.dims(), [2, 4, 5, 7]);
/// ```
#[derive(Module, Debug)]
pub struct CrossAttention {
    /// Queries of all heads: `[d_model, n_heads · d_head]`.
    pub query: Linear,
    /// Keys and values of all heads, in this order: `[d_memory, n_kv_heads · (d_head + d_value_head)]`.
    pub key_value: Linear,
    /// Mixes the heads: `[n_heads · d_value_head, d_model]`.
    pub output: Linear,
    /// The gate on the merged heads, if there is one: `[d_model, n_heads · d_value_head]`.
    pub gate: Option<Linear>,
    /// The attention between the projections.
    pub heads: Heads,
}

/// Input of [`CrossAttention`]: decoder states, a memory, and their [`AttentionContext`], whose lengths are those of the memory.
#[derive(Clone, Debug)]
pub struct CrossAttentionInput {
    pub(crate) query: Tensor<3>,
    pub(crate) memory: CrossMemory,
    pub(crate) context: AttentionContext,
    pub(crate) query_position_embedding: Option<Tensor<3>>,
    pub(crate) key_position_embedding: Option<Tensor<3>>,
}

context_builders!(CrossAttentionInput);
context_builders!(CrossAttentionInput: offset: impl Into<QueryOffset>, key_positions: impl Into<Positions>);

impl CrossAttentionInput {
    /// The decoder's states `[batch, len_q, d_model]` and the memory: the encoder's states `[batch, len_kv, d_memory]`, or the
    /// result of [`CrossAttention::project_memory`].
    pub fn new(query: Tensor<3>, memory: impl Into<CrossMemory>) -> Self {
        Self {
            query,
            memory: memory.into(),
            context: AttentionContext::new(),
            query_position_embedding: None,
            key_position_embedding: None,
        }
    }

    /// Added to the input of the query projection: `[batch or 1, len_q, d_model]`.
    pub fn query_position_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.query_position_embedding = Some(embedding);
        self
    }

    /// Added to the input of the key projection, but not to that of the values: the position embeddings of a DETR's memory
    /// (arXiv:2005.12872). Its shape is `[batch or 1, len_kv, d_memory]`. Not possible with a projected memory.
    pub fn key_position_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.key_position_embedding = Some(embedding);
        self
    }
}

impl CrossAttention {
    /// The output at every position of the query. [`QueryOffset`](crate::positions::QueryOffset) says where queries stand among the keys:
    /// by default, from the first key on.
    ///
    /// # Shapes
    ///
    /// - query: `[batch, len_q, d_model]`
    /// - memory: `[batch, len_kv, d_memory]`
    /// - output: `[batch, len_q, d_model]`
    ///
    /// # Panics
    ///
    /// When a width is not the module's, the batch sizes differ, the mask, the bias, the lengths, the offsets or an embedding does not fit, a
    /// position is beyond a rotary table, or a projected memory comes with a position embedding or encoding, has other heads or widths than
    /// the module, or another dtype than the query. Nothing else is compared: a memory projected by another module of the same shape is
    /// not detected.
    ///
    /// # Cost
    ///
    /// `4 · batch · (len_q + len_kv) · d_model²` operations for the projections and
    /// `4 · batch · len_q · len_kv · d_model` for the attention.
    pub fn forward(&self, input: CrossAttentionInput) -> Tensor<3> {
        self.run(input, &mut Recorder::default())
    }

    /// Keys and values of a memory, `[batch, len_kv, d_memory]`, for any number of calls with [`CrossAttentionInput::new`]: while decoding,
    /// every token attends to the same memory. Panics when its width is not `d_memory`, or it is longer than a rotary table.
    ///
    /// It takes `2 · batch · len_kv · d_memory · n_kv_heads · (d_head + d_value_head)` operations, and memory for the keys and values.
    pub fn project_memory(&self, memory: Tensor<3>) -> ProjectedMemory {
        let place = (&self.heads.position, &Positions::default());
        self.project_keys_and_values(memory, None, place, &mut Recorder::default())
    }

    /// Keys and values of a memory, for the keys with the `embedding` added to it.
    fn project_keys_and_values(
        &self,
        memory: Tensor<3>,
        embedding: Option<Tensor<3>>,
        (position, positions): (&Position, &Positions),
        recorder: &mut Recorder,
    ) -> ProjectedMemory {
        let [d_memory, _] = self.key_value.weight.dims();
        assert_shape!(memory, [_, _, d_memory]);
        let shape = memory.dims();
        let [_, of_key, of_value] = self.heads.sizes.parts();
        let projected = apply(&self.key_value, memory);
        recorder.step("projected_memory", &projected);
        let [mut key, value] = split(projected, [of_key, of_value]);
        if let Some(embedding) = embedding {
            let (heads, width) = of_key;
            let embedding = fitted(embedding, shape);
            let added = apply_without_bias(&self.key_value, embedding, heads * width);
            let [added] = split(added, [of_key]);
            key = key + added;
        }
        ProjectedMemory {
            key: self.heads.prepare_key(key, position, positions),
            value,
        }
    }

    fn check(&self, memory: &ProjectedMemory, batch: usize, dtype: DType) {
        let [_, of_keys, of_values] = self.heads.sizes.parts();
        for (name, tensor, (own_heads, own_width)) in [
            ("keys", &memory.key, of_keys),
            ("values", &memory.value, of_values),
        ] {
            let [of_batch, heads, _, width] = tensor.dims();
            assert!(
                of_batch == batch,
                "CrossAttention: a memory of {of_batch} sequences does not fit queries of {batch}"
            );
            assert!(
                (heads, width) == (own_heads, own_width),
                "CrossAttention: a memory with {name} of {heads} heads of width {width} does not fit a module with \
                 {own_heads} heads of width {own_width}: another module projected it"
            );
            assert!(
                tensor.dtype() == dtype,
                "CrossAttention: a memory with {name} in {:?} does not fit queries in {dtype:?}",
                tensor.dtype()
            );
        }
    }

    pub(crate) fn run(&self, input: CrossAttentionInput, recorder: &mut Recorder) -> Tensor<3> {
        let CrossAttentionInput { query, context, .. } = input;
        let [d_model, _] = self.query.weight.dims();
        let [d_memory, _] = self.key_value.weight.dims();
        let [batch, len, _] = query.dims();
        assert_shape!(query, [_, _, d_model]);
        let heads = &self.heads;
        let position = context.position.as_ref().unwrap_or(&heads.position);
        let ProjectedMemory { key, value } = match input.memory {
            CrossMemory::States(memory) => {
                assert_shape!(memory, [batch, _, d_memory]);
                let positions = context.positions_of_keys(NAME, false);
                let place = (position, &positions);
                let embedding = input.key_position_embedding;
                self.project_keys_and_values(memory, embedding, place, recorder)
            }
            CrossMemory::Projected(memory) => {
                let embedding = input.key_position_embedding.is_some();
                let late = [
                    ("a key position embedding", embedding),
                    ("key positions", context.key_positions.is_some()),
                    ("a position encoding", context.position.is_some()),
                ];
                refuse(late, |what| {
                    format!("{NAME}: {what} cannot join a memory that is projected already")
                });
                self.check(&memory, batch, query.dtype());
                memory
            }
        };
        let gate = self.gate.as_ref().map(|gate| (gate, query.clone()));
        let query = match input.query_position_embedding {
            Some(embedding) => query + fitted(embedding, [batch, len, d_model]),
            None => query,
        };
        let [of_query, _, _] = heads.sizes.parts();
        let query = apply(&self.query, query);
        recorder.step("projected_query", &query);
        let [query] = split(query, [of_query]);
        let (query, options) = heads.prepare_pair(query, &key, context, (NAME, false));
        let merged = heads.attend([query, key, value], options, None, recorder);
        output(&self.output, merged, gate, recorder)
    }
}
