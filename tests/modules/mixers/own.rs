//! A user's own mixer of tokens, in a layer, a stack and a language model.

use std::cell::Cell;

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use burn_attn::{
    AttentionMask, BlockConfig, KvCache, KvCacheConfig, LayerInput, LayerPattern, MixerCall,
    MixerState, NormPlacement, SelfAttention, SelfAttentionConfig, SelfAttentionInput, TokenMixer,
    TransformerCache, TransformerLayerConfig, TransformerStack, TransformerStackConfig, linear,
    positions::{PositionEncoding, Positions, RotaryConfig},
};
use burn_attn_models::{
    generate::{GenerateOptions, generate},
    language_model::LanguageModelConfig,
};
use burn_attn_tests::{
    compare::{assert_close, assert_same, differs, numbers},
    devices,
    numbers::{filled, tensor},
    parameters, sentence,
};

const D_MODEL: usize = 15;
const D_FF: usize = 29;
const N_HEADS: usize = 3;
const N_LAYERS: usize = 2;

/// The mean of a token and all before it, projected.
#[derive(Module, Debug)]
struct RunningMean {
    output: Linear,
}

/// The sum of the tokens of each sequence, `[1, d_model]`, and their number.
#[derive(Clone, Debug)]
struct Sums(Vec<(Tensor<2>, usize)>);

impl RunningMean {
    fn new(device: &Device) -> Self {
        let output = LinearConfig::new(D_MODEL, D_MODEL).init(device);
        Self { output }
    }
}

impl TokenMixer for RunningMean {
    type State = Sums;

    fn cache(&self, batch: usize, _config: &KvCacheConfig) -> Sums {
        let zero = Tensor::zeros([1, D_MODEL], &self.output.weight.device());
        Sums(vec![(zero, 0); batch])
    }

    fn mix(
        &self,
        input: SelfAttentionInput,
        state: Option<&mut Sums>,
        _call: &mut MixerCall,
    ) -> Tensor<3> {
        let (x, lengths) = input.sequences("RunningMean");
        let [batch, len, _] = x.dims();
        let mut fresh = self.cache(batch, &KvCacheConfig::new(1));
        let Sums(sums) = state.unwrap_or(&mut fresh);
        let rows = sums.iter_mut().zip(lengths).enumerate();
        let rows = rows.map(|(b, ((sum, count), length))| {
            let new = x.clone().narrow(0, b, 1).squeeze_dim::<2>(0);
            let sums = new.cumsum(0) + sum.clone();
            let counts: Vec<f32> = (1..=len).map(|at| (*count + at) as f32).collect();
            let counts = Tensor::<1>::from_data(counts.as_slice(), &x.device());
            if length > 0 {
                *sum = sums.clone().narrow(0, length - 1, 1);
            }
            *count += length;
            sums / counts.unsqueeze_dim(1)
        });
        linear(&self.output, Tensor::stack(rows.collect(), 0))
    }
}

impl MixerState for Sums {
    fn lengths(&self) -> Vec<usize> {
        self.0.iter().map(|(_, count)| *count).collect()
    }

    fn bytes(&self) -> usize {
        let sums = self.0.iter().map(|(sum, _)| sum);
        sums.map(|sum| sum.shape().num_elements() * sum.dtype().size())
            .sum()
    }

    fn reorder(&mut self, rows: &[usize]) {
        self.0 = rows.iter().map(|&row| self.0[row].clone()).collect();
    }

    fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn reset(&mut self) {
        for (sum, count) in &mut self.0 {
            (*sum, *count) = (sum.zeros_like(), 0);
        }
    }
}

fn config() -> TransformerStackConfig {
    let block = BlockConfig::new()
        .with_dropout(0.0)
        .with_norm_placement(NormPlacement::Pre);
    TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, N_LAYERS).with_block(block)
}

fn stack(device: &Device) -> TransformerStack<RunningMean> {
    filled(config().init_with(|_| RunningMean::new(device), device), 1)
}

/// `x`, token by token from `from` on, after what the cache holds.
fn token_by_token(
    stack: &TransformerStack<RunningMean>,
    x: &Tensor<3>,
    cache: &mut TransformerCache<Sums>,
) -> Tensor<3> {
    let tokens = x.clone().split(1, 1).into_iter();
    let outputs = tokens.map(|token| stack.forward_cached(token, cache));
    Tensor::cat(outputs.collect(), 1)
}

#[test]
fn token_by_token_it_reads_what_it_reads_at_once() {
    for (name, device) in devices::cpu() {
        let stack = stack(&device);
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        let whole = stack.forward(x.clone());
        let mut cache = stack.cache(2, &KvCacheConfig::new(20));
        let one_by_one = token_by_token(&stack, &x, &mut cache);
        assert_close(name, &one_by_one.into_data(), &whole.into_data(), 1e-5);
        assert_eq!(cache.lengths(), [7, 7]);
        assert_eq!(cache.bytes(), N_LAYERS * 2 * D_MODEL * 4);
    }
}

#[test]
fn sequences_are_padded_moved_and_joined() {
    let device = devices::any();
    let stack = stack(&device);
    let x: Tensor<3> = tensor([3, 7, D_MODEL], 1, &device);
    let config = KvCacheConfig::new(20);
    let row = |b, from, len| x.clone().narrow(0, b, 1).narrow(1, from, len);
    // Five and two tokens of the first two sequences; the third joins; then they change places, and each goes on.
    let mut cache = stack.cache(2, &config);
    let start = LayerInput::new(x.clone().narrow(0, 0, 2).narrow(1, 0, 5)).lengths(&[5, 2]);
    stack.forward_cached(start, &mut cache);
    let mut other = stack.cache(1, &config);
    stack.forward_cached(row(2, 0, 3), &mut other);
    cache.join(other);
    cache.reorder(&[2, 0, 1]);
    assert_eq!(cache.lengths(), [3, 5, 2]);
    let next = Tensor::cat(vec![row(2, 3, 1), row(0, 5, 1), row(1, 2, 1)], 0);
    let actual = stack.forward_cached(next, &mut cache);
    let last_of = |b, len| stack.forward(row(b, 0, len)).narrow(1, len - 1, 1);
    let expected = Tensor::cat(vec![last_of(2, 4), last_of(0, 6), last_of(1, 3)], 0);
    assert_close("rows", &actual.into_data(), &expected.into_data(), 1e-5);
    // All or nothing is forgotten.
    assert!(cache.can_truncate(&[4, 6, 3]) && cache.can_truncate(&[0; 3]));
    let refused = "MixerState: [4, 6, 3] tokens cannot be truncated to [4, 5, 3]: only all or none can be removed";
    assert_eq!(sentence(|| cache.truncate(&[4, 5, 3])), refused);
    cache.truncate(&[0; 3]);
    let again = token_by_token(&stack, &x, &mut cache);
    let (actual, expected) = (again.into_data(), stack.forward(x.clone()).into_data());
    assert_close("again", &actual, &expected, 1e-5);
    let forked = "MixerState: one sequence can be forked, but there are 3";
    assert_eq!(sentence(|| cache.fork(2)), forked);
}

#[test]
fn what_it_cannot_read_is_refused() {
    let device = devices::any();
    let stack = stack(&device);
    let input = || LayerInput::new(tensor([2, 3, D_MODEL], 1, &device));
    let masked = input().mask(AttentionMask::window(1, 1));
    assert_eq!(
        sentence(|| stack.forward(masked)),
        "RunningMean: a mask was given, but it has no scores of queries and keys"
    );
    assert_eq!(
        sentence(|| stack.forward(input().lengths(&[3, 4]))),
        "RunningMean: lengths [3, 4] do not fit 2 sequences of 3 tokens"
    );
    let shares = BlockConfig::new().with_shared_key_value(true);
    let pattern = LayerPattern::Cycle(vec![BlockConfig::new(), shares]);
    let stack = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, 2).with_pattern(pattern);
    assert_eq!(
        sentence(|| stack.init_with(|_| RunningMean::new(&device), &device)),
        "TransformerStackConfig: shared_key_value is true, but only layers of self-attention can take keys and values from the layer before"
    );
}

#[test]
fn its_parameters_stand_where_self_attention_has_its_own() {
    let device = devices::any();
    let layer = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS);
    let layer = layer.init_with(RunningMean::new(&device), &device);
    let values = parameters::values(&layer);
    let weight = values["self_attention.output.weight"].shape();
    assert_eq!(weight.to_vec(), [D_MODEL, D_MODEL]);
    assert!(!values.keys().any(|name| name.contains("query")));
}

#[test]
fn a_language_model_generates_with_it() {
    let device = devices::any();
    let config = LanguageModelConfig::new(31)
        .with_d_model(D_MODEL)
        .with_n_heads(N_HEADS)
        .with_max_len(20);
    let model = config.init_with(|_| RunningMean::new(&device), &device);
    let model = filled(model, 1);
    let prompts = [vec![3, 1, 4, 1, 5], vec![9, 2]];
    let options = GenerateOptions::new(6);
    let outputs = generate(&model, model.start(2), &prompts, &options).expect("prompts");
    for (mut text, output) in prompts.into_iter().zip(outputs) {
        for token in output.tokens {
            let read = Tensor::<1, burn::tensor::Int>::from_data(text.as_slice(), &device);
            let logits = model.forward(read.unsqueeze());
            let last = numbers(&logits.narrow(1, text.len() - 1, 1));
            let best = (0..).zip(last).max_by(|a, b| a.1.total_cmp(&b.1));
            assert_eq!(Some(token), best.map(|(token, _)| token));
            text.push(token);
        }
    }
}

/// Turns each token to its position, in heads. For whole sequences: it has no state but the type of the running mean's.
#[derive(Module, Debug)]
struct Turned {
    mean: RunningMean,
}

impl TokenMixer for Turned {
    type State = Sums;

    fn cache(&self, batch: usize, config: &KvCacheConfig) -> Sums {
        self.mean.cache(batch, config)
    }

    fn mix(
        &self,
        input: SelfAttentionInput,
        state: Option<&mut Sums>,
        _call: &mut MixerCall,
    ) -> Tensor<3> {
        assert!(state.is_none(), "Turned: it reads whole sequences");
        let positions = input.token_positions().cloned().unwrap_or_default();
        let encoding = input.position_encoding().cloned().expect("an encoding");
        let (x, _) = input.sequences("Turned");
        let [batch, len, _] = x.dims();
        let heads = x.reshape([batch, len, N_HEADS, D_MODEL / N_HEADS]);
        let turned = encoding.rotate(heads.swap_dims(1, 2), &positions);
        turned.swap_dims(1, 2).reshape([batch, len, D_MODEL])
    }
}

/// A stack tells its mixers where the tokens stand, and gives them the encoding that its layers share.
#[test]
fn a_mixer_reads_positions() {
    let device = devices::any();
    let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_rotary_dim(4));
    let turned = Turned {
        mean: RunningMean::new(&device),
    };
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
    let encoding = rotary.init(N_HEADS, D_MODEL / N_HEADS, &device);
    let alone = |positions: Positions| {
        let input = SelfAttentionInput::new(x.clone()).position(encoding.clone());
        turned.forward(input.positions(positions))
    };
    let heads = |x: Tensor<3>| x.reshape([2, 7, N_HEADS, 5]).swap_dims(1, 2);
    let positions = Positions::from(vec![3, 0]);
    let expected = encoding.rotate(heads(x.clone()), &positions);
    assert_same(&heads(alone(positions.clone())), &expected);

    let block = config().block.with_position(rotary);
    let stack = config()
        .with_block(block)
        .init_with(|_| turned.clone(), &device);
    let output =
        |positions: Positions| stack.forward(LayerInput::new(x.clone()).positions(positions));
    assert_same(&output(Positions::default()), &stack.forward(x.clone()));
    assert!(differs(&output(positions), &stack.forward(x.clone())));
}

/// Self-attention with a window of its own.
#[derive(Module, Debug)]
struct Local {
    attention: SelfAttention,
    window: usize,
}

impl TokenMixer for Local {
    type State = KvCache;

    fn cache(&self, batch: usize, config: &KvCacheConfig) -> KvCache {
        TokenMixer::cache(&self.attention, batch, config)
    }

    fn mix(
        &self,
        input: SelfAttentionInput,
        state: Option<&mut KvCache>,
        call: &mut MixerCall,
    ) -> Tensor<3> {
        let window = AttentionMask::window(self.window, 0);
        self.attention.mix(input.mask(window), state, call)
    }
}

/// The layers of a stack share masks, but not those of a mixer that adds its own.
#[test]
fn a_mixer_of_self_attention_adds_a_mask() {
    let device = devices::any();
    let windows = Cell::new(0);
    let stack = config().init_with(
        |_| {
            windows.set(windows.get() + 2);
            Local {
                attention: SelfAttentionConfig::new(D_MODEL, N_HEADS)
                    .with_causal(true)
                    .init(&device),
                window: windows.get() - 1,
            }
        },
        &device,
    );
    let stack = filled(stack, 1);
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
    let whole = stack.forward(x.clone());
    let mut cache = stack.cache(2, &KvCacheConfig::new(20));
    let tokens = x.split(1, 1).into_iter();
    let outputs = tokens.map(|token| stack.forward_cached(token, &mut cache));
    let one_by_one = Tensor::cat(outputs.collect(), 1);
    assert_close("local", &one_by_one.into_data(), &whole.into_data(), 1e-5);
}
