//! Multi-head latent attention: keys and values of all heads from one narrow vector per token, which is all that a cache holds.

use burn::{
    module::Module,
    nn::{Initializer, Linear},
    tensor::{Device, Tensor, assert_shape},
};
use burn_attn_derive::Config;
use burn_attn_ops::split_heads;

use super::{
    cached::SharedKeyValue,
    context::AttentionContext,
    heads::{Heads, Sizes, merge},
    heads_config::HeadsConfig,
    masks::{by_position, hide_padding},
    place::at_positions,
    self_attention::SelfAttentionInput,
};
use crate::{
    KvCache, KvCacheConfig, MixerCall, Norm, NormConfig, TokenMixer,
    error::{ConfigError, expect_valid},
    linear::{apply, kaiming_uniform, output, place, side_by_side},
    parameter::floats,
    positions::{Position, PositionEncoding, Positions, check_lengths},
    trace::Recorder,
};

const NAME: &str = "LatentAttention";

/// Configuration of [`LatentAttention`].
#[derive(Config, Debug)]
pub struct LatentAttentionConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Width of the vector from which keys and values are computed.
    pub d_latent: usize,
    /// Width of the vector from which queries are computed. Default: they are computed from the input.
    pub d_query_latent: Option<usize>,
    /// Width of the part of each head that has no positions.
    pub d_head: usize,
    /// Width of the part of each head that has positions. All heads share its key.
    pub d_rotary: usize,
    /// Width of a value head.
    pub d_value_head: usize,
    /// Factor on the dot products. Default: `1 / √(d_head + d_rotary)`.
    pub scale: Option<f64>,
    /// The positions of the `d_rotary` numbers: rotary or none.
    #[config(default = "PositionEncoding::rotary()")]
    pub position: PositionEncoding,
    /// Probability of dropping an attention weight in training.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether the projections to the latent vectors and the output projection add a learned bias.
    #[config(default = false)]
    pub bias: bool,
    /// Added to the mean square in the norms of the latent vectors.
    #[config(default = 1e-6)]
    pub norm_epsilon: f64,
    /// How the projections are initialised. Default: as Burn's `Linear`.
    #[config(default = "kaiming_uniform()")]
    pub initializer: Initializer,
}

impl LatentAttentionConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "LatentAttentionConfig";
        let sizes = [
            ("d_model", self.d_model),
            ("n_heads", self.n_heads),
            ("d_latent", self.d_latent),
            ("d_query_latent", self.d_query_latent.unwrap_or(1)),
            ("d_head", self.d_head),
            ("d_rotary", self.d_rotary),
            ("d_value_head", self.d_value_head),
        ];
        ConfigError::check_positive(NAME, &sizes)?;
        let epsilon = Some(self.norm_epsilon);
        let numbers = [("scale", self.scale), ("norm_epsilon", epsilon)];
        ConfigError::check_finite_positive(NAME, &numbers)?;
        ConfigError::check_dropout(NAME, self.dropout)?;
        let has_bias = matches!(
            self.position,
            PositionEncoding::Alibi(_) | PositionEncoding::Relative(_)
        );
        ConfigError::check(NAME, !has_bias, || {
            format!("position must be Rotary or None, got {:?}", self.position)
        })?;
        self.position.validate(NAME, self.n_heads, self.d_rotary)
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> LatentAttention {
        expect_valid(self.validate());
        let n_heads = self.n_heads;
        let linear = |d_input, d_output, bias| {
            side_by_side(d_input, &[d_output], bias, &self.initializer, device)
        };
        let norm = |width| {
            let norm = NormConfig::rms_norm().with_epsilon(self.norm_epsilon);
            norm.init(width, device)
        };
        let d_query = self.d_head + self.d_rotary;
        // The heads as a cache has them: one key, whose last numbers are the value.
        let sizes = Sizes {
            n_heads,
            n_kv_heads: 1,
            d_head: self.d_rotary + self.d_latent,
            d_value_head: self.d_latent,
        };
        let scale = self.scale.unwrap_or((d_query as f64).powf(-0.5));
        let heads = HeadsConfig::new().with_scale(Some(scale));
        let mut heads = heads.init(sizes, self.dropout, device);
        heads.position = self.position.init(n_heads, self.d_rotary, device);
        let query_latent = self.d_query_latent;
        LatentAttention {
            query_down: query_latent.map(|width| linear(self.d_model, width, self.bias)),
            query_norm: query_latent.map(norm),
            query: linear(
                query_latent.unwrap_or(self.d_model),
                n_heads * d_query,
                false,
            ),
            key_value_down: linear(self.d_model, self.d_latent + self.d_rotary, self.bias),
            key_value_norm: norm(self.d_latent),
            key_value: linear(
                self.d_latent,
                n_heads * (self.d_head + self.d_value_head),
                false,
            ),
            output: linear(n_heads * self.d_value_head, self.d_model, self.bias),
            heads,
            d_head: self.d_head,
        }
    }
}

/// Multi-head latent attention (MLA), causal: a [mixer of tokens](TokenMixer) whose cache has one narrow vector per token for all heads.
///
/// ```text
/// query        = norm(x · W_query_down) · W_query             without d_query_latent, x · W_query
/// [latent | rotary_key] = x · W_key_value_down,   latent = norm(latent)
/// [key | value] = latent · W_key_value                        per head
/// merged = concat over heads of softmax(scale · [query | rotate(rotary_query)] · [key | rotate(rotary_key)]ᵀ) · value
/// output = merged · W_output
/// ```
///
/// Whole sequences are computed so. Beside a cache, `W_key_value` is absorbed: `query · keyᵀ` is `(query · W_keyᵀ) · latentᵀ`, and a sum of
/// values is that of the latent vectors times `W_value`. All heads then attend to one key of width `d_rotary + d_latent`, whose last numbers are
/// the value.
///
/// # Cost
///
/// Beside the projections, `2 · batch · n_heads · len² · (d_head + d_rotary + d_value_head)` operations for whole sequences. A call with a cache
/// takes `2 · batch · n_heads · len · len_kv · (d_rotary + 2 · d_latent)` and, for the absorbed projections,
/// `2 · batch · n_heads · len · d_latent · (d_head + d_value_head)`; the cache holds `batch · capacity · (d_rotary + d_latent)` numbers.
///
/// # Source
///
/// "DeepSeek-V2: a strong, economical, and efficient mixture-of-experts language model" (arXiv:2405.04434), section 2.1. PyTorch equivalent:
/// `DeepseekV2Attention` of Hugging Face's `transformers`, whose rotary pairs are
/// [`Interleaved`](crate::positions::RotaryLayout::Interleaved).
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{KvCacheConfig, LatentAttentionConfig, TokenMixer};
///
/// let device = Device::default();
/// let attention = LatentAttentionConfig::new(32, 4, 12, 8, 4, 8).init(&device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// let whole = attention.forward(x.clone());
///
/// let mut cache = attention.cache(2, &KvCacheConfig::new(100).with_initial_capacity(7));
/// attention.forward_cached(x.clone().narrow(1, 0, 6), &mut cache);
/// let last = attention.forward_cached(x.narrow(1, 6, 1), &mut cache);
/// whole.narrow(1, 6, 1).into_data().assert_approx_eq::<f32>(&last.into_data(), Default::default());
/// assert_eq!(cache.bytes(), 2 * 7 * (4 + 12) * 4);
/// ```
#[derive(Module, Debug)]
pub struct LatentAttention {
    /// To the latent vectors of the queries, if there are any: `[d_model, d_query_latent]`.
    pub query_down: Option<Linear>,
    /// Normalises the latent vectors of the queries.
    pub query_norm: Option<Norm>,
    /// The queries of all heads, each with its rotary part last: `[d_query_latent or d_model, n_heads · (d_head + d_rotary)]`.
    pub query: Linear,
    /// The latent vectors of keys and values, and the rotary keys: `[d_model, d_latent + d_rotary]`.
    pub key_value_down: Linear,
    /// Normalises the latent vectors of keys and values.
    pub key_value_norm: Norm,
    /// Key and value of every head: `[d_latent, n_heads · (d_head + d_value_head)]`.
    pub key_value: Linear,
    /// Mixes the heads: `[n_heads · d_value_head, d_model]`.
    pub output: Linear,
    /// The attention between the projections, with the rotary positions.
    pub heads: Heads,
    d_head: usize,
}

/// What is computed of tokens, whether or not there is a cache.
struct Latents {
    /// `[batch, n_heads, len, d_head]`
    query: Tensor<4>,
    /// `[batch, n_heads, len, d_rotary]`, rotated.
    rotary_query: Tensor<4>,
    /// `[batch, len, d_latent]`, normalised.
    latent: Tensor<3>,
    /// `[batch, 1, len, d_rotary]`, rotated.
    rotary_key: Tensor<4>,
}

impl TokenMixer for LatentAttention {
    type State = KvCache;

    /// The cache of latent vectors and rotary keys. It has no [sink tokens](KvCacheConfig::sink_tokens), and panics as
    /// [`KvCacheConfig`] says.
    fn cache(&self, batch: usize, config: &KvCacheConfig) -> KvCache {
        assert!(
            config.sink_tokens.is_none(),
            "{NAME}: sink_tokens were given to a cache of rotated keys"
        );
        let place = place(&self.key_value_down);
        let cache = self.heads.cache(NAME, batch, config, (true, None), place);
        cache.with_values_in_keys()
    }

    fn mix(
        &self,
        input: SelfAttentionInput,
        state: Option<&mut KvCache>,
        call: &mut MixerCall,
    ) -> Tensor<3> {
        let SelfAttentionInput {
            x,
            context,
            query_key_position_embedding: embedding,
        } = input;
        match &state {
            Some(_) => context.check_cacheable(NAME, true),
            None => context.check_one_sequence(NAME),
        }
        assert!(
            embedding.is_none(),
            "{NAME}: a position embedding was given, which only queries and keys of the input itself can read"
        );
        let [d_model, _] = self.key_value_down.weight.dims();
        assert_shape!(x, [_, _, d_model]);
        let [batch, len, _] = x.dims();
        let counts = context.lengths.clone();
        let counts = counts.unwrap_or_else(|| vec![len; batch]);
        check_lengths(NAME, &counts, "", [batch, len]);
        if let Some(cache) = &state {
            let own = cache.batch();
            assert!(
                batch == own,
                "{NAME}: {batch} sequences do not fit a cache of {own}"
            );
            // Before the rotation, whose table may be as long.
            if let Some(reason) = cache.refuses_tokens(&counts) {
                panic!("{reason}");
            }
        }
        if batch == 0 || len == 0 {
            return x;
        }
        let positions = match (&context.positions, &state) {
            (Some(positions), _) => positions.clone(),
            (None, Some(cache)) => Positions::padded(cache.next_positions(), counts),
            (None, None) => Positions::default(),
        };
        let position = context.position.as_ref().unwrap_or(&self.heads.position);
        assert!(
            position.bias_source().is_none(),
            "{NAME}: the context has a position encoding that adds to scores, but only rotary ones are applied"
        );
        let latents = self.latents(x, |x| position.rotate(x, &positions));
        let merged = match state {
            Some(cache) => self.absorbed(latents, context, cache),
            None => self.expanded(latents, context, &positions, &mut call.recorder),
        };
        output(&self.output, merged, None, &mut call.recorder)
    }
}

impl LatentAttention {
    fn latents(&self, x: Tensor<3>, rotate: impl Fn(Tensor<4>) -> Tensor<4>) -> Latents {
        let sizes = self.heads.sizes;
        let (n_heads, d_latent) = (sizes.n_heads, sizes.d_value_head);
        let d_rotary = sizes.d_head - d_latent;
        let of_query = match self.query_down.as_ref().zip(self.query_norm.as_ref()) {
            Some((down, norm)) => norm.forward(apply(down, x.clone())),
            None => x.clone(),
        };
        let [query] = split_heads(apply(&self.query, of_query), [n_heads]);
        let of_keys = apply(&self.key_value_down, x);
        let [rotary_key] = split_heads(of_keys.clone().narrow(2, d_latent, d_rotary), [1]);
        Latents {
            query: query.clone().narrow(3, 0, self.d_head),
            rotary_query: rotate(query.narrow(3, self.d_head, d_rotary)),
            latent: self.key_value_norm.forward(of_keys.narrow(2, 0, d_latent)),
            rotary_key: rotate(rotary_key),
        }
    }

    /// The merged heads, from the keys and values of every head.
    fn expanded(
        &self,
        latents: Latents,
        context: AttentionContext,
        positions: &Positions,
        recorder: &mut Recorder,
    ) -> Tensor<3> {
        let [batch, n_heads, len, d_head] = latents.query.dims();
        let [key_value] = split_heads(apply(&self.key_value, latents.latent), [n_heads]);
        let [.., width] = key_value.dims();
        let value = key_value.clone().narrow(3, d_head, width - d_head);
        let [.., d_rotary] = latents.rotary_key.dims();
        let rotary_key = latents.rotary_key.expand([batch, n_heads, len, d_rotary]);
        let key = Tensor::cat(vec![rotary_key, key_value.narrow(3, 0, d_head)], 3);
        let query = Tensor::cat(vec![latents.rotary_query, latents.query], 3);
        let (lengths, device) = (context.lengths.as_deref(), query.device());
        let mask = hide_padding(NAME, context.mask, lengths, [batch, len], &device);
        let mask = mask.and(by_position(true, None));
        let options = (self.heads).options(mask, context.bias, context.score_function);
        let (options, _) = at_positions(options, (NAME, true), [positions; 2], (&query, len));
        let operands = [query, key, value];
        self.heads.attend(operands, options, None, recorder)
    }

    /// The merged heads, from the latent vectors themselves, which are added to the cache.
    fn absorbed(
        &self,
        latents: Latents,
        mut context: AttentionContext,
        cache: &mut KvCache,
    ) -> Tensor<3> {
        let [_, n_heads, _, d_head] = latents.query.dims();
        let [d_latent, width] = self.key_value.weight.dims();
        let width = width / n_heads;
        let per_head = floats(&self.key_value.weight).reshape([1, d_latent, n_heads, width]);
        // Packed weights are unpacked into the dtype of the device.
        let per_head = per_head.cast(latents.query.dtype());
        let per_head: Tensor<4> = per_head.swap_dims(1, 2);
        let of_key = per_head.clone().narrow(3, 0, d_head).swap_dims(2, 3);
        let of_value = per_head.narrow(3, d_head, width - d_head);
        let query = latents.query.matmul(of_key);
        let query = Tensor::cat(vec![latents.rotary_query, query], 3);
        let value: Tensor<4> = latents.latent.unsqueeze_dim(1);
        let key = Tensor::cat(vec![latents.rotary_key, value.clone()], 3);
        // They are rotated already.
        context.position = Some(Position::default());
        let projected = (query, Some([key, value]));
        let shared = &mut SharedKeyValue::default();
        let merged = (self.heads).attend_cached(projected, context, (None, true), cache, shared);
        let [mixed] = split_heads(merged, [n_heads]);
        merge(mixed.matmul(of_value))
    }
}
