//! Self-attention: a sequence attends to itself.

use burn::{
    module::Module,
    nn::{Initializer, Linear},
    tensor::{Device, Tensor, assert_shape},
};
use burn_attn_derive::Config;
use burn_attn_ops::{AttentionMask, AttentionOptions};

use super::{
    cached::{NO_KEYS, SharedKeyValue},
    context::{AttentionContext, context_builders},
    heads::{Heads, KeyValue, Sizes, split},
    heads_config::{HeadsConfig, heads_builders},
    masks::{by_position, hide_padding},
    place::at_positions,
    projections::ProjectionBias,
};
use crate::{
    cache::{KvCache, KvCacheConfig},
    error::{ConfigError, expect_valid},
    linear::{apply, apply_without_bias, fitted, kaiming_uniform, output, place, side_by_side},
    trace::Recorder,
};

const NAME: &str = "SelfAttention";

/// Configuration of [`SelfAttention`].
#[derive(Config, Debug)]
pub struct SelfAttentionConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Number of query heads.
    pub n_heads: usize,
    /// The configuration of the heads.
    #[config(default = "HeadsConfig::new()")]
    pub heads: HeadsConfig,
    /// Whether a position sees only itself and earlier positions (a decoder) or all positions (an encoder).
    #[config(default = false)]
    pub causal: bool,
    /// How many positions before itself a position sees, and, without `causal`, after itself (sliding-window attention,
    /// arXiv:2310.06825; local attention in encoders, arXiv:2412.13663, section 2.1.2). Default: all.
    ///
    /// A published `sliding_window` of a causal model counts the position itself, so it is one more: Mistral 7B's 4096 is `Some(4095)`.
    /// ModernBERT's `local_attention` counts both sides: its 128 is `Some(64)`.
    pub window: Option<usize>,
    /// Probability of dropping an attention weight in training.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Which projections add a learned bias; query, key and value share one linear layer and must agree.
    #[config(default = "ProjectionBias::all()", into)]
    pub bias: ProjectionBias,
    /// How the projections are initialised. Default: as Burn's `Linear`.
    #[config(default = "kaiming_uniform()")]
    pub initializer: Initializer,
}

heads_builders!(SelfAttentionConfig);

impl SelfAttentionConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.parts().map(|_| ())
    }

    /// The sizes, and whether the projection of query, key and value has a bias.
    fn parts(&self) -> Result<(Sizes, bool), ConfigError> {
        const NAME: &str = "SelfAttentionConfig";
        let heads = self.heads.directed(self.causal);
        let sizes = heads.sizes(NAME, self.d_model, self.n_heads)?;
        ConfigError::check_dropout(NAME, self.dropout)?;
        Ok((sizes, self.bias.of_one_input(NAME)?))
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> SelfAttention {
        self.init_with(false, device)
    }

    /// As [`init`](Self::init); with `shared_key_value`, without projections and norm of keys and values.
    pub(crate) fn init_with(&self, shared_key_value: bool, device: &Device) -> SelfAttention {
        let (sizes, bias) = expect_valid(self.parts());
        let widths = sizes.widths();
        let own = if shared_key_value { 1 } else { widths.len() };
        let linear = |d_input, widths: &[usize], bias| {
            side_by_side(d_input, widths, bias, &self.initializer, device)
        };
        let mut attention = SelfAttention {
            query_key_value: linear(self.d_model, &widths[..own], bias),
            output: linear(sizes.merged(), &[self.d_model], self.bias.output),
            gate: (self.heads.gate).then(|| linear(self.d_model, &[sizes.merged()], bias)),
            heads: (self.heads.directed(self.causal)).init(sizes, self.dropout, device),
            causal: self.causal,
            window: self.window,
            shared_key_value,
        };
        if let (true, Some(norm)) = (shared_key_value, &mut attention.heads.qk_norm) {
            norm.key = None;
        }
        attention
    }
}

/// Self-attention: every position attends to the positions of its own sequence.
///
/// ```text
/// [query | key | value] = x · W          one linear layer, split logically: d_head = d_model / n_heads
/// merged = concat over heads of softmax(query · keyᵀ / √d_head + mask) · value
/// output = merged · W_output
/// ```
///
/// With one head, this is plain self-attention. Decoders are `causal`, encoders are not.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.2. PyTorch equivalent: `nn.MultiheadAttention` called with
/// query, key and value the same.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{SelfAttentionConfig, SelfAttentionInput};
///
/// let device = Device::default();
/// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
/// let x = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let states = attention.forward(SelfAttentionInput::new(x));
/// assert_eq!(states.dims(), [2, 7, 32]);
/// ```
#[derive(Module, Debug)]
pub struct SelfAttention {
    /// Query, key and value of all heads, in this order: `[d_model, (n_heads + n_kv_heads) · d_head + n_kv_heads · d_value_head]`. Only the
    /// query in a layer that [shares](crate::BlockConfig::shared_key_value) keys and values.
    pub query_key_value: Linear,
    /// Mixes the heads: `[n_heads · d_value_head, d_model]`.
    pub output: Linear,
    /// The gate on the merged heads, if there is one: `[d_model, n_heads · d_value_head]`.
    pub gate: Option<Linear>,
    /// The attention between the projections.
    pub heads: Heads,
    /// Whether a position sees only itself and earlier positions.
    pub causal: bool,
    /// How many tokens a position sees before itself, and, if not `causal`, after itself. Default: all.
    pub window: Option<usize>,
    pub(super) shared_key_value: bool,
}

/// Input of [`SelfAttention`]: sequences and their [`AttentionContext`].
#[derive(Clone, Debug)]
pub struct SelfAttentionInput {
    pub(crate) x: Tensor<3>,
    pub(crate) context: AttentionContext,
    pub(crate) query_key_position_embedding: Option<Tensor<3>>,
}

context_builders!(SelfAttentionInput);

impl SelfAttentionInput {
    /// A batch of sequences, `[batch, len, d_model]`.
    pub fn new(x: Tensor<3>) -> Self {
        Self {
            x,
            context: AttentionContext::new(),
            query_key_position_embedding: None,
        }
    }

    /// Added to the input of the query and key projections, but not to that of the values: the position embeddings of a DETR
    /// (arXiv:2005.12872). Its shape is `[batch or 1, len, d_model]`.
    pub fn query_key_position_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.query_key_position_embedding = Some(embedding);
        self
    }
}

impl From<Tensor<3>> for SelfAttentionInput {
    fn from(x: Tensor<3>) -> Self {
        Self::new(x)
    }
}

impl SelfAttention {
    /// The output at every position, `[batch, len, d_model]` as the input.
    ///
    /// # Panics
    ///
    /// When the width is not `d_model`, the mask, the bias, the lengths, the positions or the embedding does not fit, a token is beyond a
    /// rotary table, an offset or key positions are given, or the keys and values are [another layer's](Self::has_shared_key_value).
    ///
    /// # Cost
    ///
    /// `8 · batch · len · d_model²` operations for the projections and `4 · batch · len² · d_model` for the attention.
    pub fn forward(&self, input: impl Into<SelfAttentionInput>) -> Tensor<3> {
        let shared = &mut SharedKeyValue::default();
        self.run(input.into(), &mut Recorder::default(), shared)
    }

    /// Whether the module projects no keys and values, and runs only in a stack:
    /// [`BlockConfig::shared_key_value`](crate::BlockConfig::shared_key_value).
    pub fn has_shared_key_value(&self) -> bool {
        self.shared_key_value
    }

    /// An empty cache for [`forward_cached`](Self::forward_cached), as [`KvCache`] describes. Panics when the module is not causal, or no
    /// cache can be made: see [`KvCacheConfig`].
    pub fn cache(&self, batch: usize, config: &KvCacheConfig) -> KvCache {
        let place = place(&self.query_key_value);
        self.heads
            .cache(NAME, batch, config, (self.causal, self.window), place)
    }

    /// The output, `[batch, len, d_model]` as the input, for the next tokens of each sequence, whose keys and values are added to the
    /// [cache](KvCache#decoding).
    ///
    /// # Panics
    ///
    /// When the module is not causal, the width is not `d_model`, the embedding does not fit, the cache refuses the tokens, or the
    /// keys and values are [another layer's](Self::has_shared_key_value).
    pub fn forward_cached(
        &self,
        input: impl Into<SelfAttentionInput>,
        cache: &mut KvCache,
    ) -> Tensor<3> {
        self.run_cached(input.into(), cache, &mut SharedKeyValue::default())
    }

    pub(crate) fn run_cached(
        &self,
        input: SelfAttentionInput,
        cache: &mut KvCache,
        shared: &mut SharedKeyValue,
    ) -> Tensor<3> {
        input.context.check_cacheable(NAME, self.causal);
        let gate = self.gate.as_ref().map(|gate| (gate, input.x.clone()));
        let embedding = input.query_key_position_embedding;
        let recorder = &mut Recorder::default();
        let projected = self.project(input.x, embedding, recorder);
        let kind = (self.window, false);
        let merged = (self.heads).attend_cached(projected, input.context, kind, cache, shared);
        output(&self.output, merged, gate, recorder)
    }

    pub(crate) fn run(
        &self,
        input: SelfAttentionInput,
        recorder: &mut Recorder,
        shared: &mut SharedKeyValue,
    ) -> Tensor<3> {
        let SelfAttentionInput { x, context, .. } = input;
        context.check_one_sequence(NAME);
        let [_, len, _] = x.dims();
        let mask = match context.made_mask {
            Some(mask) => mask,
            None => self.mask(context.mask, context.lengths.as_deref(), &x),
        };
        let heads = &self.heads;
        let position = context.position.as_ref().unwrap_or(&heads.position);
        let bias = context.bias.and(position.bias());
        let options = heads.options(mask, bias, context.score_function);
        let gate = self.gate.as_ref().map(|gate| (gate, x.clone()));
        let (query, own) = self.project(x, input.query_key_position_embedding, recorder);
        let positions = context.positions.unwrap_or_default();
        let (options, _) = at_positions(options, (NAME, true), [&positions; 2], (&query, len));
        let query = heads.prepare_query(query, |query| position.rotate(query, &positions));
        let [key, value] = match own {
            Some([key, value]) => {
                let keys = [heads.prepare_key(key, position, &positions), value];
                shared.whole = shared.is_wanted.then(|| keys.clone());
                keys
            }
            None => shared.whole.clone().expect(NO_KEYS),
        };
        let merged = heads.attend([query, key, value], options, None, recorder);
        output(&self.output, merged, gate, recorder)
    }

    /// All that the module hides of `x`, where a call hides what `mask` does and what is after the `lengths`.
    fn mask(&self, mask: AttentionMask, lengths: Option<&[usize]>, x: &Tensor<3>) -> AttentionMask {
        let [batch, len, _] = x.dims();
        let mask = hide_padding(NAME, mask, lengths, [batch, len], &x.device());
        mask.and(by_position(self.causal, self.window))
    }

    /// All that the module hides of `x` in this context, made for several calls.
    pub(crate) fn mask_for_calls(
        &self,
        context: &AttentionContext,
        x: &Tensor<3>,
    ) -> AttentionMask {
        let [batch, len, _] = x.dims();
        let mask = self.mask(context.mask.clone(), context.lengths.as_deref(), x);
        let mask = match &context.positions {
            // There is nothing to hide among no tokens, which the layers check.
            Some(positions) if len > 0 => {
                let options = AttentionOptions::default().mask(mask);
                let like = (&x.clone().unsqueeze_dim(1), len);
                let (options, _) = at_positions(options, (NAME, true), [positions; 2], like);
                options.mask
            }
            _ => mask,
        };
        mask.for_calls([batch, self.heads.n_heads(), len, len], x)
    }

    /// The query of `x`, and key and value unless they are another layer's; for query and key, with the `embedding` added to `x`.
    fn project(
        &self,
        x: Tensor<3>,
        embedding: Option<Tensor<3>>,
        recorder: &mut Recorder,
    ) -> (Tensor<4>, Option<KeyValue>) {
        let [d_model, _] = self.query_key_value.weight.dims();
        assert_shape!(x, [_, _, d_model]);
        let parts @ [of_query, of_key, _] = self.heads.sizes.parts();
        let projected = apply(&self.query_key_value, x.clone());
        recorder.step("projected", &projected);
        let [query, key, _] = self.heads.sizes.widths();
        let columns = match self.shared_key_value {
            true => query,
            false => query + key,
        };
        let added = embedding.map(|embedding| {
            let embedding = fitted(embedding, x.dims());
            apply_without_bias(&self.query_key_value, embedding, columns)
        });
        if self.shared_key_value {
            let projected = match added {
                Some(added) => projected + added,
                None => projected,
            };
            let [query] = split(projected, [of_query]);
            return (query, None);
        }
        let [query, key, value] = split(projected, parts);
        let Some(added) = added else {
            return (query, Some([key, value]));
        };
        let [to_query, to_key] = split(added, [of_query, of_key]);
        (query + to_query, Some([key + to_key, value]))
    }
}
