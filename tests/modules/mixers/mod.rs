//! Mixers of tokens: those of this crate against `transformers`, and a user's own.

mod either;
mod gated_delta_rule;
mod latent_attention;
mod own;

use burn::{
    module::Module,
    tensor::{DType, Device, FloatDType, Tensor},
};
use burn_attn::{KvCacheConfig, MixerState, SelfAttentionInput, TokenMixer};
use burn_attn_models::weights::{Table, Weights};
use burn_attn_tests::{
    compare::assert_close_to_largest,
    golden::{GoldenFile, path},
    parameters,
};

use crate::quantized::{packed, schemes, unpacked};

/// As close as `transformers`, which computes some of it in f32, is itself.
const TOLERANCE: f64 = 1e-5;

/// One of `tests/golden/mixers`: its parameters, their gradients, and values.
struct Golden {
    name: &'static str,
    table: Table,
    values: GoldenFile,
}

impl Golden {
    fn new(name: &'static str, table: Table) -> Self {
        Self {
            name,
            table,
            values: GoldenFile::open(&format!("mixers/{name}_values")),
        }
    }

    /// `module` with the numbers of this file.
    fn loaded<M: Module>(&self, mut module: M, file: &str) -> M {
        let weights = Weights::open(path(format!("mixers/{}{file}.safetensors", self.name)));
        let weights = weights.expect("a file");
        weights.load(&self.table, &mut module).expect("its tensors");
        module
    }

    #[track_caller]
    fn close(&self, what: &str, actual: Tensor<3>) {
        let expected = self.values.data(what);
        assert_close_to_largest(what, &actual.into_data(), &expected, TOLERANCE, 0.0);
    }

    /// The gradients of the input `x` and of every parameter are the reference's.
    fn check_gradients<M: TokenMixer>(&self, init: impl Fn(&Device) -> M, device: &Device) {
        let device = &device.clone().autodiff();
        let module = self.loaded(init(device), "");
        let x = self.values.tensor::<3>("x", device).require_grad();
        let output = module.forward(SelfAttentionInput::new(x.clone()));
        let weight: Tensor<3> = self.values.tensor("loss_weight", device);
        let gradients = (output * weight).sum().backward();
        self.close("x.grad", x.grad(&gradients).expect("a gradient"));
        let expected = parameters::values(&self.loaded(init(device), "_gradients"));
        let actual = parameters::gradients(&module, &gradients);
        assert!(actual.keys().eq(expected.keys()));
        for (name, gradient) in &actual {
            assert_close_to_largest(name, gradient, &expected[name], TOLERANCE, 0.0);
        }
    }
}

/// `x` token by token, after a prompt of `prompt` tokens.
fn token_by_token<M: TokenMixer>(
    mixer: &M,
    x: &Tensor<3>,
    prompt: usize,
    state: &mut M::State,
) -> Tensor<3> {
    let [_, len, _] = x.dims();
    let mut ends = vec![prompt];
    ends.extend(vec![1; len - prompt]);
    let parts = x.clone().split_with_sizes(ends, 1).into_iter();
    let outputs = parts.map(|part| mixer.forward_cached(SelfAttentionInput::new(part), state));
    Tensor::cat(outputs.collect(), 1)
}

/// What `mixer` computes in bf16 is close to what it computes in f32, and with parameters in 8 bits the same as with these in floats.
fn check_precisions<M: TokenMixer>(mixer: M, x: Tensor<3>) {
    let both = |mixer: &M, x: &Tensor<3>| {
        let [batch, _, _] = x.dims();
        let mut state = mixer.cache(batch, &KvCacheConfig::new(20));
        [
            mixer.forward(x.clone()),
            token_by_token(mixer, x, 5, &mut state),
        ]
    };
    let close = |what, actual: [Tensor<3>; 2], expected: [Tensor<3>; 2], tolerance| {
        for (actual, expected) in actual.into_iter().zip(expected) {
            let actual = actual.cast(FloatDType::F32).into_data();
            assert_close_to_largest(what, &actual, &expected.into_data(), tolerance, 0.0);
        }
    };
    if x.device().supports_dtype(DType::BF16) {
        let half = parameters::in_dtype(mixer.clone(), DType::BF16);
        let actual = both(&half, &x.clone().cast(FloatDType::BF16));
        close("bf16", actual, both(&mixer, &x), 0.03);
    }
    let [(_, scheme), _] = schemes();
    let packed = packed(mixer, scheme);
    let expected = both(&unpacked(packed.clone()), &x);
    close("8 bits", both(&packed, &x), expected.clone(), 1e-6);
    if x.device().supports_dtype(DType::BF16) {
        let actual = both(&packed, &x.cast(FloatDType::BF16));
        close("8 bits in bf16", actual, expected, 0.03);
    }
}

/// Two sequences that are read in parts, padded, moved, joined by a third and repeated, go on as each does alone.
fn check_sequences<M: TokenMixer>(mixer: &M, x: Tensor<3>) {
    let config = KvCacheConfig::new(20);
    let [_, _, d_model] = x.dims();
    let row = |b, from, len| x.clone().narrow(0, b, 1).narrow(1, from, len);
    let mut state = mixer.cache(2, &config);
    // What follows a sequence is never read, whatever it is.
    let padding = Tensor::full([1, 3, d_model], f64::NAN, &x.device());
    let second = Tensor::cat(vec![row(1, 0, 2), padding], 1);
    let start = Tensor::cat(vec![row(0, 0, 5), second], 0);
    let start = SelfAttentionInput::new(start).lengths(&[5, 2]);
    mixer.forward_cached(start, &mut state);
    let mut other = mixer.cache(1, &config);
    mixer.forward_cached(SelfAttentionInput::new(row(2, 0, 3)), &mut other);
    state.join(other);
    state.reorder(&[2, 1, 0, 1]);
    assert_eq!(state.lengths(), [3, 2, 5, 2]);
    let next = vec![row(2, 3, 2), row(1, 2, 2), row(0, 5, 2), row(1, 2, 2)];
    let next = SelfAttentionInput::new(Tensor::cat(next, 0));
    let actual = mixer.forward_cached(next, &mut state);
    let last = |b, len| mixer.forward(row(b, 0, len)).narrow(1, len - 2, 2);
    let expected = vec![last(2, 5), last(1, 4), last(0, 7), last(1, 4)];
    let expected = Tensor::cat(expected, 0).into_data();
    assert_close_to_largest("rows", &actual.into_data(), &expected, TOLERANCE, 0.0);
    // Nothing of them is left, and no sequence.
    state.reset();
    let x = row(0, 0, 4);
    state.reorder(&[1]);
    let again = mixer.forward_cached(x.clone(), &mut state);
    let expected = mixer.forward(x).into_data();
    assert_close_to_largest("again", &again.into_data(), &expected, TOLERANCE, 0.0);
    state.reorder(&[]);
    assert!(state.lengths().is_empty());
}

/// Sequences without tokens join one that has some, and the other way round.
fn check_joins_of_fresh_sequences<M: TokenMixer>(mixer: &M, x: Tensor<3>) {
    let row = |b, from, len| x.clone().narrow(0, b, 1).narrow(1, from, len);
    for has_joined in [false, true] {
        let mut state = mixer.cache(1, &KvCacheConfig::new(20));
        let mut other = state.clone();
        let begun = usize::from(has_joined);
        let of_begun = if has_joined { &mut other } else { &mut state };
        mixer.forward_cached(row(begun, 0, 3), of_begun);
        state.join(other);
        let from = |b| if b == begun { 3 } else { 0 };
        assert_eq!(state.lengths(), [from(0), from(1)]);
        let next = [0, 1].map(|b| row(b, from(b), 2));
        let actual = mixer.forward_cached(Tensor::cat(next.into(), 0), &mut state);
        let expected = [0, 1].map(|b| {
            let whole = mixer.forward(row(b, 0, from(b) + 2));
            whole.narrow(1, from(b), 2)
        });
        let expected = Tensor::cat(expected.into(), 0).into_data();
        assert_close_to_largest("joined", &actual.into_data(), &expected, TOLERANCE, 0.0);
    }
}
