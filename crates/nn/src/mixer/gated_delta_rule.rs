//! Linear attention with the gated delta rule: a memory of fixed size that forgets, and corrects what it holds.

use burn::{
    module::{Module, Param},
    nn::{Initializer, Linear},
    tensor::{
        Bool, Device, Tensor, TensorData,
        activation::{sigmoid, silu, softplus},
        assert_shape,
    },
};
use burn_attn_derive::Config;
use burn_attn_ops::split_heads;

use super::{GatedDeltaState, MixerCall, TokenMixer, gated_delta_state::Memory};
use crate::{
    KvCacheConfig, Norm, NormConfig, SelfAttentionInput,
    error::{ConfigError, expect_valid},
    linear::{apply, kaiming_uniform, side_by_side},
    padding,
    parameter::{floats, wide},
};

const NAME: &str = "GatedDeltaRule";

/// Added to the squared length of queries and keys, as in `transformers`.
const LEAST_SQUARE: f64 = 1e-6;

/// Configuration of [`GatedDeltaRule`].
#[derive(Config, Debug)]
pub struct GatedDeltaRuleConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Number of query and key heads, each shared by `n_value_heads / n_key_heads` value heads.
    pub n_key_heads: usize,
    /// Number of value heads, each with its own memory.
    pub n_value_heads: usize,
    /// Width of a query or key head.
    pub d_key_head: usize,
    /// Width of a value head.
    pub d_value_head: usize,
    /// How many tokens the convolution reads: a token and those before it.
    #[config(default = 4)]
    pub kernel_len: usize,
    /// Added to the mean square of a head in the norm of the output.
    #[config(default = 1e-6)]
    pub norm_epsilon: f64,
    /// How many tokens are computed together. It changes the cost, and nothing else.
    #[config(default = 64)]
    pub chunk_len: usize,
    /// How the projections are initialised. Default: as Burn's `Linear`.
    #[config(default = "kaiming_uniform()")]
    pub initializer: Initializer,
}

impl GatedDeltaRuleConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "GatedDeltaRuleConfig";
        let sizes = [
            ("d_model", self.d_model),
            ("n_key_heads", self.n_key_heads),
            ("n_value_heads", self.n_value_heads),
            ("d_key_head", self.d_key_head),
            ("d_value_head", self.d_value_head),
            ("chunk_len", self.chunk_len),
        ];
        ConfigError::check_positive(NAME, &sizes)?;
        ConfigError::check(NAME, self.kernel_len >= 2, || {
            format!("kernel_len must be at least 2, got {}", self.kernel_len)
        })?;
        let (values, keys) = (self.n_value_heads, self.n_key_heads);
        let (values, keys) = (("n_value_heads", values), ("n_key_heads", keys));
        ConfigError::check_divisible(NAME, values, keys)?;
        ConfigError::check_finite_positive(NAME, &[("norm_epsilon", Some(self.norm_epsilon))])
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> GatedDeltaRule {
        expect_valid(self.validate());
        let [n_heads, values] = [self.n_value_heads, self.n_value_heads * self.d_value_head];
        let keys = self.n_key_heads * self.d_key_head;
        let linear = |d_input, widths: &[usize]| {
            side_by_side(d_input, widths, false, &self.initializer, device)
        };
        let uniform = |min, max| Initializer::Uniform { min, max };
        let bound = 1.0 / (self.kernel_len as f64).sqrt();
        let (taps, rates) = (uniform(-bound, bound), uniform(0.01, 16.0));
        GatedDeltaRule {
            query_key_value_gate: linear(self.d_model, &[keys, keys, values, values]),
            beta_decay: linear(self.d_model, &[n_heads; 2]),
            convolution: taps.init([2 * keys + values, 1, self.kernel_len], device),
            log_decay_rate: rates.init([n_heads], device).init_mapper(Tensor::<1>::log),
            decay_bias: Initializer::Ones.init([n_heads], device),
            norm: NormConfig::rms_norm()
                .with_epsilon(self.norm_epsilon)
                .init(self.d_value_head, device),
            output: linear(values, &[self.d_model]),
            n_key_heads: self.n_key_heads,
            d_key_head: self.d_key_head,
            chunk_len: self.chunk_len,
        }
    }
}

/// Gated DeltaNet: a [mixer of tokens](TokenMixer) whose cost per token does not depend on the number of earlier tokens. It is causal and needs no
/// positions.
///
/// ```text
/// [query | key | value] = silu(convolution(x · W))            per channel, over the last kernel_len tokens
/// query = query / |query| / √d_key_head,  key = key / |key|
/// beta  = sigmoid(x · W_beta)                                 how much of what the memory says for a key is replaced
/// decay = exp(−exp(log_decay_rate) · softplus(x · W_decay + decay_bias))
/// memory = decay · memory
/// memory = memory + key ⊗ beta · (value − keyᵀ · memory)      per value head: [d_key_head, d_value_head]
/// output = concat over heads of (norm(queryᵀ · memory) · silu(x · W_gate)) · W_output
/// ```
///
/// It computes `chunk_len` tokens at once: what they read from each other solves a triangular system, what they read from before is in the
/// memory. A single token, or a `chunk_len` of 1, is the recurrence above.
///
/// # Padding
///
/// What follows the [lengths](SelfAttentionInput::lengths) of an input changes no memory. The output there is meaningless.
///
/// # Cost
///
/// For the sequences, with `d = d_key_head · d_value_head` and chunks of `c` tokens: about
/// `2 · batch · len · n_value_heads · (3 · d + c · (3 · d_key_head + 2 · d_value_head + 2 · c · log₂ c))` operations beside the projections, and
/// a state of `batch · (n_value_heads · d + (kernel_len − 1) · channels)` numbers.
///
/// # Source
///
/// "Gated delta networks: improving Mamba2 with delta rule" (arXiv:2412.06464), with the convolution, norms and gate of Qwen3-Next; chunks:
/// "Parallelizing linear transformers with the delta rule over sequence length" (arXiv:2406.06484). PyTorch equivalent:
/// `Qwen3NextGatedDeltaNet` of Hugging Face's `transformers`.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{GatedDeltaRuleConfig, KvCacheConfig, TokenMixer};
///
/// let device = Device::default();
/// let mixer = GatedDeltaRuleConfig::new(32, 2, 4, 8, 6).init(&device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// let whole = mixer.forward(x.clone());
///
/// let mut state = mixer.cache(2, &KvCacheConfig::new(100));
/// mixer.forward_cached(x.clone().narrow(1, 0, 6), &mut state);
/// let last = mixer.forward_cached(x.narrow(1, 6, 1), &mut state);
/// whole.narrow(1, 6, 1).into_data().assert_approx_eq::<f32>(&last.into_data(), Default::default());
/// ```
#[derive(Module, Debug)]
pub struct GatedDeltaRule {
    /// Query, key, value and output gate: `[d_model, 2 · n_key_heads · d_key_head + 2 · n_value_heads · d_value_head]`.
    pub query_key_value_gate: Linear,
    /// Beta and decay of every value head: `[d_model, 2 · n_value_heads]`.
    pub beta_decay: Linear,
    /// One filter for each channel of query, key and value, oldest token first: `[channels, 1, kernel_len]`.
    pub convolution: Param<Tensor<3>>,
    /// The logarithm of each head's rate of decay: `[n_value_heads]`.
    pub log_decay_rate: Param<Tensor<1>>,
    /// Added to the projected decay: `[n_value_heads]`.
    pub decay_bias: Param<Tensor<1>>,
    /// Normalises what each head reads: `[d_value_head]`.
    pub norm: Norm,
    /// Mixes the heads: `[n_value_heads · d_value_head, d_model]`.
    pub output: Linear,
    n_key_heads: usize,
    d_key_head: usize,
    chunk_len: usize,
}

/// What tokens write into the memory of every value head, and ask of it: `[batch, n_value_heads, len, width]`.
struct Tokens {
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    /// The width of `beta` and `log_decay` is 1.
    beta: Tensor<4>,
    log_decay: Tensor<4>,
}

impl TokenMixer for GatedDeltaRule {
    type State = GatedDeltaState;

    fn cache(&self, batch: usize, _config: &KvCacheConfig) -> GatedDeltaState {
        GatedDeltaState::new(batch)
    }

    fn mix(
        &self,
        input: SelfAttentionInput,
        state: Option<&mut GatedDeltaState>,
        call: &mut MixerCall,
    ) -> Tensor<3> {
        let (x, lengths) = input.sequences(NAME);
        let [d_model, _] = self.query_key_value_gate.weight.dims();
        assert_shape!(x, [_, _, d_model]);
        let [batch, len, _] = x.dims();
        let mut fresh = GatedDeltaState::new(batch);
        let state = state.unwrap_or(&mut fresh);
        let [channels, _, kernel_len] = self.convolution.dims();
        let [values, _] = self.output.weight.dims();
        let (n_heads, dtype) = (self.n_value_heads(), x.dtype());
        let [d_key, d_value] = [self.d_key_head, values / n_heads];
        state.check(&x, [kernel_len - 1, channels, n_heads, d_key, d_value]);
        if batch == 0 || len == 0 {
            return x;
        }
        let projected = apply(&self.query_key_value_gate, x.clone());
        let gate = projected.clone().narrow(2, channels, values);
        let Memory { tail, matrix } = state.memory.clone().unwrap_or_else(|| {
            let device = x.device();
            Memory {
                tail: Tensor::zeros([batch, kernel_len - 1, channels], (&device, dtype)),
                matrix: Tensor::zeros([batch, n_heads, d_key, d_value], (&device, wide(dtype))),
            }
        });
        let read = Tensor::cat(vec![tail, projected.narrow(2, 0, channels)], 1);
        let tokens = self.tokens(self.convolved(read.clone(), len), x, &lengths);
        for (name, tensor) in [
            ("query", &tokens.query),
            ("key", &tokens.key),
            ("value", &tokens.value),
        ] {
            call.recorder.step(name, tensor);
        }
        let (mixed, matrix) = scan(tokens, matrix, self.chunk_len);
        call.recorder.step("mixed", &mixed);
        state.add(&lengths, len, read, matrix);
        let mixed = self.norm.forward(mixed.swap_dims(1, 2));
        let gate = silu(gate.cast(wide(dtype)));
        let merged = (mixed.reshape([batch, len, values]) * gate).cast(dtype);
        let output = apply(&self.output, merged);
        call.recorder.step("output", &output);
        output
    }
}

impl GatedDeltaRule {
    fn n_value_heads(&self) -> usize {
        let [n_heads] = self.decay_bias.dims();
        n_heads
    }

    /// The last `len` tokens of `read`, `[batch, kernel_len − 1 + len, channels]`, after convolution and activation, in f32 or wider.
    fn convolved(&self, read: Tensor<3>, len: usize) -> Tensor<3> {
        let [channels, _, kernel_len] = self.convolution.dims();
        let read = read.clone().cast(wide(read.dtype()));
        let filters = floats(&self.convolution).cast(read.dtype());
        let filters: Tensor<3> = filters.reshape([1, channels, kernel_len]);
        let tap = |at| {
            let filter = filters.clone().narrow(2, at, 1).swap_dims(1, 2);
            read.clone().narrow(1, at, len) * filter
        };
        silu((1..kernel_len).fold(tap(0), |sum, at| sum + tap(at)))
    }

    /// The heads of query, key and value, side by side in `convolved`, and beta and decay of `x`. Padding writes nothing and lets nothing decay.
    fn tokens(&self, convolved: Tensor<3>, x: Tensor<3>, lengths: &[usize]) -> Tokens {
        let ([batch, len, channels], dtype) = (convolved.dims(), convolved.dtype());
        let (n_keys, n_heads) = (self.n_key_heads, self.n_value_heads());
        let keys = n_keys * self.d_key_head;
        let padding = lengths.iter().any(|&length| length < len).then(|| {
            let padding = padding(lengths, len, &x.device());
            padding.reshape([batch, 1, len, 1])
        });
        let kept = |x: Tensor<4>| match &padding {
            Some(padding) => x.clone().mask_fill(padding.clone().expand(x.dims()), 0.0),
            None => x,
        };
        let heads = |first, width, n_heads| {
            let [part] = split_heads(convolved.clone().narrow(2, first, width), [n_heads]);
            kept(part)
        };
        // Each head is that of several value heads in a row.
        let unit = |x: Tensor<4>| {
            let square = x.clone().square().sum_dim(3);
            let x = (x / (square + LEAST_SQUARE).sqrt()).unsqueeze_dim::<5>(2);
            let x = x.expand([batch, n_keys, n_heads / n_keys, len, self.d_key_head]);
            x.reshape([batch, n_heads, len, self.d_key_head])
        };
        let rates = apply(&self.beta_decay, x).cast(dtype).swap_dims(1, 2);
        let rates = |first| rates.clone().narrow(1, first, n_heads).unsqueeze_dim(3);
        let per_head = |numbers: &Param<Tensor<1>>| {
            let numbers = floats(numbers).cast(dtype);
            numbers.reshape([1, n_heads, 1, 1])
        };
        let rate = per_head(&self.log_decay_rate).exp();
        let log_decay = softplus(rates(n_heads) + per_head(&self.decay_bias), 1.0) * -rate;
        Tokens {
            query: unit(heads(0, keys, n_keys)) / (self.d_key_head as f64).sqrt(),
            key: unit(heads(keys, keys, n_keys)),
            value: heads(2 * keys, channels - 2 * keys, n_heads),
            beta: kept(sigmoid(rates(0))),
            log_decay: kept(log_decay),
        }
    }
}

/// What the tokens read, `[batch, heads, len, d_value_head]`, and the memory after the last.
fn scan(tokens: Tokens, memory: Tensor<4>, chunk_len: usize) -> (Tensor<4>, Tensor<4>) {
    let [batch, heads, len, d_key] = tokens.key.dims();
    let [.., d_value] = tokens.value.dims();
    let chunk = chunk_len.min(len);
    let n_chunks = len.div_ceil(chunk);
    // Zeros at the end write nothing and let nothing decay.
    let chunked = |x: Tensor<4>| {
        let [.., width] = x.dims();
        let place = (&x.device(), x.dtype());
        let missing = n_chunks * chunk - len;
        let x = match missing {
            0 => x,
            missing => {
                let zeros = Tensor::zeros([batch, heads, missing, width], place);
                Tensor::cat(vec![x, zeros], 2)
            }
        };
        x.reshape([batch * heads, n_chunks, chunk, width])
    };
    let [query, key, beta] = [tokens.query, tokens.key, tokens.beta].map(chunked);
    // From the beginning of its chunk to each token.
    let log_decay = chunked(tokens.log_decay).cumsum(2);
    let decay = log_decay.clone().exp();
    let between = log_decay.clone() - log_decay.clone().swap_dims(2, 3);
    let device = key.device();
    let shape = [batch * heads, n_chunks, chunk, chunk];
    let later = pairs(chunk, &device, |to, from| from > to).expand(shape);
    // Hidden before the exponential, which could overflow.
    let between = between.mask_fill(later, f64::NEG_INFINITY).exp();
    let transposed = key.clone().swap_dims(2, 3);
    let corrected = key.clone() * beta.clone();
    let overlap = corrected.clone().matmul(transposed.clone()) * between.clone();
    let inverse = inverse_of_unit_lower(overlap);
    let new = inverse.clone().matmul(chunked(tokens.value) * beta);
    let known = inverse.matmul(corrected * decay.clone());
    let within = query.clone().matmul(transposed) * between;
    let query = query * decay.clone();
    let last = log_decay.clone().narrow(2, chunk - 1, 1);
    let key = key * (last - log_decay).exp();
    let of_chunk = |x: &Tensor<4>, at| x.clone().narrow(1, at, 1).squeeze_dim::<3>(1);
    let mut memory = memory.reshape([batch * heads, d_key, d_value]);
    let mut outputs = Vec::with_capacity(n_chunks);
    for at in 0..n_chunks {
        let written = of_chunk(&new, at) - of_chunk(&known, at).matmul(memory.clone());
        let before = of_chunk(&query, at).matmul(memory.clone());
        outputs.push(before + of_chunk(&within, at).matmul(written.clone()));
        let decayed = memory * of_chunk(&decay, at).narrow(1, chunk - 1, 1);
        memory = decayed + of_chunk(&key, at).swap_dims(1, 2).matmul(written);
    }
    let output = Tensor::cat(outputs, 1).narrow(1, 0, len);
    (
        output.reshape([batch, heads, len, d_value]),
        memory.reshape([batch, heads, d_key, d_value]),
    )
}

/// The inverse of a matrix with ones on its diagonal and `lower` below it; what else is in `lower` is not read.
///
/// From blocks of one row up: with `a` and `b` inverted, the inverse of `[a 0; l b]` has `−b⁻¹ · l · a⁻¹` in the place of `l`.
fn inverse_of_unit_lower(lower: Tensor<4>) -> Tensor<4> {
    let [_, _, len, _] = lower.dims();
    let (shape, device) = (lower.dims(), lower.device());
    let ones = pairs(len, &device, |row, column| row == column).expand(shape);
    let mut inverse = lower.zeros_like().mask_fill(ones, 1.0);
    let mut block = 1;
    while block < len {
        let is_other = |row: usize, column: usize| {
            (row / block).is_multiple_of(2) || column / block + 1 != row / block
        };
        let others = pairs(len, &device, is_other).expand(shape);
        let between = lower.clone().mask_fill(others, 0.0);
        inverse = inverse.clone() - inverse.clone().matmul(between).matmul(inverse);
        block *= 2;
    }
    inverse
}

/// `[1, 1, len, len]`: whether something holds for a row and a column.
fn pairs(len: usize, device: &Device, holds: impl Fn(usize, usize) -> bool) -> Tensor<4, Bool> {
    let each = (0..len * len).map(|at| holds(at / len, at % len));
    let each: Vec<bool> = each.collect();
    Tensor::from_data(TensorData::new(each, [1, 1, len, len]), device)
}
