//! Multi-head attention in its general form: query, key and value from three inputs.

use burn::{
    module::Module,
    nn::{Initializer, Linear},
    tensor::{Device, Tensor, assert_shape},
};
use burn_attn_derive::Config;

use super::{
    cached::SharedKeyValue,
    context::{AttentionContext, context_builders},
    heads::{Heads, Projected, Sizes, split},
    heads_config::{HeadsConfig, heads_builders},
    masks::by_position,
    projections::ProjectionBias,
};
use crate::{
    cache::{KvCache, KvCacheConfig},
    error::{ConfigError, expect_valid},
    linear::{apply, kaiming_uniform, output, place, side_by_side},
    positions::{Positions, QueryOffset},
    trace::Recorder,
};

const NAME: &str = "MultiHeadAttention";

/// Configuration of [`MultiHeadAttention`].
#[derive(Config, Debug)]
pub struct MultiHeadAttentionConfig {
    /// Width of the query input and the output.
    pub d_model: usize,
    /// Number of query heads.
    pub n_heads: usize,
    /// The configuration of the heads.
    #[config(default = "HeadsConfig::new()")]
    pub heads: HeadsConfig,
    /// Whether a query sees only its own key and earlier keys. Decoding with a cache needs a causal module.
    #[config(default = false, missing = false)]
    pub causal: bool,
    /// How many keys before its own a query sees, and, without `causal`, after its own, as in
    /// [`SelfAttentionConfig::window`](crate::SelfAttentionConfig::window). Default: all.
    pub window: Option<usize>,
    /// Width of the key input. Default: `d_model`.
    pub d_key_in: Option<usize>,
    /// Width of the value input. Default: `d_model`.
    pub d_value_in: Option<usize>,
    /// Probability of dropping an attention weight in training.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Which projections add a learned bias.
    #[config(default = "ProjectionBias::all()", into)]
    pub bias: ProjectionBias,
    /// How the projections are initialised. Default: as Burn's `Linear`.
    #[config(default = "kaiming_uniform()")]
    pub initializer: Initializer,
}

heads_builders!(MultiHeadAttentionConfig);

impl MultiHeadAttentionConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.sizes().map(|_| ())
    }

    fn sizes(&self) -> Result<Sizes, ConfigError> {
        const NAME: &str = "MultiHeadAttentionConfig";
        let heads = self.heads.directed(self.causal);
        let sizes = heads.sizes(NAME, self.d_model, self.n_heads)?;
        let [d_key_in, d_value_in] = self.widths_in();
        let widths = [("d_key_in", d_key_in), ("d_value_in", d_value_in)];
        ConfigError::check_positive(NAME, &widths)?;
        ConfigError::check_dropout(NAME, self.dropout)?;
        Ok(sizes)
    }

    fn widths_in(&self) -> [usize; 2] {
        [self.d_key_in, self.d_value_in].map(|width| width.unwrap_or(self.d_model))
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> MultiHeadAttention {
        let sizes = expect_valid(self.sizes());
        let linear = |d_input, widths: &[usize], bias| {
            side_by_side(d_input, widths, bias, &self.initializer, device)
        };
        let [query, key, value] = sizes.widths();
        let [d_key_in, d_value_in] = self.widths_in();
        MultiHeadAttention {
            query: linear(self.d_model, &[query], self.bias.query),
            key: linear(d_key_in, &[key], self.bias.key),
            value: linear(d_value_in, &[value], self.bias.value),
            output: linear(sizes.merged(), &[self.d_model], self.bias.output),
            gate: (self.heads.gate)
                .then(|| linear(self.d_model, &[sizes.merged()], self.bias.query)),
            heads: (self.heads.directed(self.causal)).init(sizes, self.dropout, device),
            causal: self.causal,
            window: self.window,
        }
    }
}

/// Multi-head attention: `n_heads` small attentions side by side, each with separate projections.
///
/// ```text
/// head_i  = softmax(query · W_query_i · (key · W_key_i)ᵀ / √d_head + mask) · value · W_value_i
/// output  = concat(head_1 … head_n) · W_output
/// ```
///
/// Its projections are separate layers. [`SelfAttention`](crate::SelfAttention) and [`CrossAttention`](crate::CrossAttention)
/// fuse the projections of one input into one layer. The numbers are the same, and the modules can be converted into each
/// other ([`into_self_attention`](Self::into_self_attention), [`into_cross_attention`](Self::into_cross_attention)).
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.2.2. PyTorch equivalent: `nn.MultiheadAttention` with
/// `batch_first=True`.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{MultiHeadAttentionConfig, MultiHeadAttentionInput};
///
/// let device = Device::default();
/// let attention = MultiHeadAttentionConfig::new(32, 4).init(&device);
/// let random = |len| Tensor::random([2, len, 32], Distribution::Default, &device);
/// let input = MultiHeadAttentionInput::new(random(5), random(7), random(7));
/// assert_eq!(attention.forward(input).dims(), [2, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct MultiHeadAttention {
    /// Queries of all heads: `[d_model, n_heads · d_head]`.
    pub query: Linear,
    /// Keys of all heads: `[d_key_in, n_kv_heads · d_head]`.
    pub key: Linear,
    /// Values of all heads: `[d_value_in, n_kv_heads · d_value_head]`.
    pub value: Linear,
    /// Mixes the heads: `[n_heads · d_value_head, d_model]`.
    pub output: Linear,
    /// The gate on the merged heads, if there is one: `[d_model, n_heads · d_value_head]`.
    pub gate: Option<Linear>,
    /// The attention between the projections.
    pub heads: Heads,
    /// Whether a query sees only its own key and earlier keys.
    pub causal: bool,
    /// How many tokens a position sees before itself, and, if not `causal`, after itself. Default: all.
    pub window: Option<usize>,
}

/// Input of [`MultiHeadAttention`]: the three sequences and their [`AttentionContext`].
#[derive(Clone, Debug)]
pub struct MultiHeadAttentionInput {
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    context: AttentionContext,
}

context_builders!(MultiHeadAttentionInput);
context_builders!(MultiHeadAttentionInput: offset: impl Into<QueryOffset>, key_positions: impl Into<Positions>);

impl MultiHeadAttentionInput {
    /// Queries `[batch, len_q, d_model]`, keys `[batch, len_kv, d_key_in]` and values `[batch, len_kv, d_value_in]`.
    pub fn new(query: Tensor<3>, key: Tensor<3>, value: Tensor<3>) -> Self {
        Self {
            query,
            key,
            value,
            context: AttentionContext::new(),
        }
    }

    /// A sequence `[batch, len, d_model]` that attends to itself.
    pub fn self_attention(x: Tensor<3>) -> Self {
        Self::new(x.clone(), x.clone(), x)
    }

    /// A sequence `[batch, len_q, d_model]` that attends to another one, `[batch, len_kv, d_key_in]`.
    pub fn cross_attention(query: Tensor<3>, memory: Tensor<3>) -> Self {
        Self::new(query, memory.clone(), memory)
    }
}

impl MultiHeadAttention {
    /// The output for every query. [`QueryOffset`](crate::positions::QueryOffset) says where queries stand if queries and keys differ in number.
    ///
    /// # Shapes
    ///
    /// - query: `[batch, len_q, d_model]`
    /// - key: `[batch, len_kv, d_key_in]`
    /// - value: `[batch, len_kv, d_value_in]`
    /// - output: `[batch, len_q, d_model]`
    ///
    /// # Panics
    ///
    /// When a width is not the module's, batch sizes or lengths differ, the mask, the bias, the lengths or the offsets do not fit, or a
    /// position is beyond a rotary table.
    ///
    /// # Cost
    ///
    /// `4 · batch · (len_q + len_kv) · d_model²` operations for the projections and
    /// `4 · batch · len_q · len_kv · d_model` for the attention.
    pub fn forward(&self, input: MultiHeadAttentionInput) -> Tensor<3> {
        self.run(input, &mut Recorder::default())
    }

    /// An empty cache for [`forward_cached`](Self::forward_cached), as [`KvCache`] describes. Panics when the module is not causal, or no
    /// cache can be made: see [`KvCacheConfig`].
    pub fn cache(&self, batch: usize, config: &KvCacheConfig) -> KvCache {
        let place = place(&self.key);
        self.heads
            .cache(NAME, batch, config, (self.causal, self.window), place)
    }

    /// The output for the next tokens of each sequence, whose keys and values are added to the [cache](KvCache#decoding). Queries, keys
    /// and values are those of the new tokens.
    ///
    /// # Shapes
    ///
    /// - query, output: `[batch, len, d_model]`
    /// - key: `[batch, len, d_key_in]`
    /// - value: `[batch, len, d_value_in]`
    ///
    /// # Panics
    ///
    /// When the module is not causal, a width does not fit, query, key and value differ in batch size or length, or the cache refuses the
    /// tokens.
    pub fn forward_cached(&self, input: MultiHeadAttentionInput, cache: &mut KvCache) -> Tensor<3> {
        input.context.check_cacheable(NAME, self.causal);
        let ([_, len_q, _], [_, len_kv, _]) = (input.query.dims(), input.key.dims());
        assert!(
            len_q == len_kv,
            "{NAME}: with a cache, queries and keys are those of the new tokens, but there are {len_q} queries and {len_kv} keys"
        );
        let gate = self.gate.as_ref().map(|gate| (gate, input.query.clone()));
        let recorder = &mut Recorder::default();
        let [query, key, value] = self.project([input.query, input.key, input.value], recorder);
        let projected = (query, Some([key, value]));
        let kind = (self.window, false);
        let shared = &mut SharedKeyValue::default();
        let merged = (self.heads).attend_cached(projected, input.context, kind, cache, shared);
        output(&self.output, merged, gate, recorder)
    }

    pub(super) fn run(&self, input: MultiHeadAttentionInput, recorder: &mut Recorder) -> Tensor<3> {
        let gate = self.gate.as_ref().map(|gate| (gate, input.query.clone()));
        let [query, key, value] = self.project([input.query, input.key, input.value], recorder);
        let (heads, context) = (&self.heads, input.context);
        let context = context.mask(by_position(self.causal, self.window));
        let position = context.position.as_ref().unwrap_or(&heads.position);
        let one_sequence = query.dims()[2] == key.dims()[2];
        let positions = context.positions_of_keys(NAME, one_sequence);
        let key = heads.prepare_key(key, position, &positions);
        let (query, options) = heads.prepare_pair(query, &key, context, (NAME, true));
        let merged = heads.attend([query, key, value], options, None, recorder);
        output(&self.output, merged, gate, recorder)
    }

    fn project(&self, [query, key, value]: [Tensor<3>; 3], recorder: &mut Recorder) -> Projected {
        let [d_model, _] = self.query.weight.dims();
        let [d_key_in, _] = self.key.weight.dims();
        let [d_value_in, _] = self.value.weight.dims();
        let [batch, _, _] = query.dims();
        let [_, len_kv, _] = key.dims();
        assert_shape!(query, [_, _, d_model]);
        assert_shape!(key, [batch, _, d_key_in]);
        assert_shape!(value, [batch, len_kv, d_value_in]);
        let [of_query, of_key, of_value] = self.heads.sizes.parts();
        let mut part = |name: &str, linear: &Linear, x: Tensor<3>, heads| {
            let projected = apply(linear, x);
            recorder.step(name, &projected);
            let [split] = split(projected, [heads]);
            split
        };
        [
            part("projected_query", &self.query, query, of_query),
            part("projected_key", &self.key, key, of_key),
            part("projected_value", &self.value, value, of_value),
        ]
    }
}
