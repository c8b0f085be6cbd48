//! Caches that drop their oldest tokens, but the first ones.

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionMask, BlockConfig, CacheStorage, KvCache, KvCacheConfig, LayerInput,
    ScoreFunction, SelfAttention, SelfAttentionConfig, SelfAttentionInput, TransformerStackConfig,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::{D_MODEL, in_pieces, modules, small};

const MAX_LEN: usize = 9;
const SINKS: usize = 2;
const LEN: usize = 23;
const TOLERANCE: f64 = 3e-6;

fn config() -> KvCacheConfig {
    small(MAX_LEN).with_sink_tokens(SINKS)
}

/// What a cache keeps of `read` tokens.
fn kept(read: usize) -> Vec<usize> {
    let dropped = read.saturating_sub(MAX_LEN);
    (0..read)
        .filter(|&token| token < SINKS || token >= SINKS + dropped)
        .collect()
}

/// The outputs for the last `new` of the tokens that are left when sequence `b` has read `read`.
fn expected(
    module: &SelfAttention,
    x: &Tensor<3>,
    (b, read, new): (usize, usize, usize),
) -> TensorData {
    let kept = kept(read);
    let rows: Vec<i64> = kept.iter().map(|&token| token as i64).collect();
    let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [kept.len()]), &x.device());
    let left = x.clone().narrow(0, b, 1).select(1, rows);
    let output = module.forward(SelfAttentionInput::new(left));
    output.narrow(1, kept.len() - new, new).into_data()
}

fn without_window(device: &Device) -> impl Iterator<Item = (&'static str, SelfAttention)> {
    let modules = modules(device).into_iter();
    modules.filter(|(_, module)| module.window.is_none())
}

#[test]
fn a_call_gives_what_forward_gives_for_what_is_left() {
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        for (name, module) in without_window(&device) {
            for pieces in [vec![1; LEN], vec![7, 1, 1, 5, 2, 7], vec![3, 6, 4, 7, 3]] {
                let mut cache = module.cache(2, &config());
                let mut read = 0;
                for &new in &pieces {
                    let piece = x.clone().narrow(1, read, new);
                    read += new;
                    let actual = module.forward_cached(SelfAttentionInput::new(piece), &mut cache);
                    for b in 0..2 {
                        let what = format!("{backend}, {name}, {pieces:?}, after {read}");
                        let actual = actual.clone().narrow(0, b, 1).into_data();
                        let expected = expected(&module, &x, (b, read, new));
                        assert_close(&what, &actual, &expected, TOLERANCE);
                    }
                }
                assert_eq!(cache.lengths(), [LEN; 2]);
                assert!(cache.capacity() <= MAX_LEN + 1, "{}", cache.capacity());
            }
        }
    }
}

/// Sequences of different lengths, padding that is NaN, and one sequence that joins, one that leaves.
#[test]
fn sequences_of_different_lengths() {
    let device = devices::any();
    let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
    for (name, module) in without_window(&device) {
        let mut cache = module.cache(2, &config());
        let mut read = [0, 0];
        let mut step = |cache: &mut KvCache, counts: [usize; 2]| {
            let longest = counts[0].max(counts[1]);
            let rows = (0..2).map(|b| {
                let real = x.clone().slice([b..b + 1, read[b]..read[b] + counts[b]]);
                let padding = Tensor::full([1, longest - counts[b], D_MODEL], f32::NAN, &device);
                match longest - counts[b] {
                    0 => real,
                    _ => Tensor::cat(vec![real, padding], 1),
                }
            });
            let input = SelfAttentionInput::new(Tensor::cat(rows.collect(), 0)).lengths(&counts);
            let actual = module.forward_cached(input, cache);
            for b in 0..2 {
                read[b] += counts[b];
                let actual = actual.clone().slice([b..b + 1, 0..counts[b]]).into_data();
                let expected = expected(&module, &x, (b, read[b], counts[b]));
                assert_close(&format!("{name}, {read:?}"), &actual, &expected, TOLERANCE);
            }
        };
        for counts in [[7, 3], [2, 1], [1, 6], [1, 1], [3, 5]] {
            step(&mut cache, counts);
        }
        // The sequences change places, and are themselves again.
        cache.reorder(&[1, 0]);
        let mut second = cache.clone();
        cache.reorder(&[1]);
        second.reorder(&[0]);
        cache.join(second);
        step(&mut cache, [1, 1]);
    }
}

/// What is taken back before a full cache has dropped anything for it, and what comes in its place.
#[test]
fn drafts_are_taken_back() {
    let device = devices::any();
    let x: Tensor<3> = tensor([1, MAX_LEN, D_MODEL], 1, &device);
    let whole = |module: &SelfAttention, tokens: &[i64]| {
        let tokens = Tensor::<1, Int>::from_data(TensorData::from(tokens), &device);
        let output = module.forward(SelfAttentionInput::new(x.clone().select(1, tokens)));
        let [_, len, _] = output.dims();
        output.narrow(1, len - 1, 1).into_data()
    };
    type Change = fn(&mut KvCache);
    let taken_back: [(Change, &[i64]); 4] = [
        (|cache| cache.truncate(&[4]), &[0, 1, 2, 3]),
        (|cache| cache.keep(&[3], &[&[4, 6]]), &[0, 1, 2, 4, 6]),
        (|cache| cache.truncate(&[0]), &[]),
        // The sinks of 12 tokens, three of which have been dropped.
        (|cache| cache.truncate(&[SINKS]), &[0, 1]),
    ];
    for (name, module) in without_window(&device) {
        for (case, (take_back, left)) in taken_back.iter().enumerate() {
            let mut cache = module.cache(1, &config());
            in_pieces(&module, &mut cache, &x, &[5, 2]);
            if case == 3 {
                in_pieces(&module, &mut cache, &x, &[5]);
            }
            take_back(&mut cache);
            let next = SelfAttentionInput::new(x.clone().narrow(1, 7, 1));
            let actual = module.forward_cached(next, &mut cache).into_data();
            let tokens: Vec<i64> = left.iter().copied().chain([7]).collect();
            let what = format!("{name}, {tokens:?}");
            assert_close(&what, &actual, &whole(&module, &tokens), TOLERANCE);
        }
    }
}

/// Tokens that fit are taken, however many: also with padding that would not.
#[test]
fn what_fits_is_taken() {
    let device = devices::any();
    let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_max_len(MAX_LEN));
    let module = SelfAttentionConfig::new(D_MODEL, 5).with_causal(true);
    let module = filled(module.with_position(rotary).init(&device), 1);
    let x: Tensor<3> = tensor([1, 2 * MAX_LEN, D_MODEL], 1, &device);
    let first = |len| SelfAttentionInput::new(x.clone().narrow(1, 0, len));
    for (padded, len) in [(MAX_LEN, MAX_LEN), (2 * MAX_LEN, MAX_LEN - 2)] {
        let mut cache = module.cache(1, &config());
        let actual = module.forward_cached(first(padded).lengths(&[len]), &mut cache);
        let actual = actual.narrow(1, 0, len).into_data();
        let expected = module.forward(first(len)).into_data();
        assert_close("the first tokens", &actual, &expected, TOLERANCE);
        // Two of five are tokens, and the rest has no room.
        let next = SelfAttentionInput::new(x.clone().narrow(1, len, 5)).lengths(&[2]);
        let actual = module.forward_cached(next, &mut cache).narrow(1, 0, 2);
        let expected = self::expected(&module, &x, (0, len + 2, 2));
        assert_close("the next two", &actual.into_data(), &expected, TOLERANCE);
    }
}

/// A stack goes on beyond the table of its rotary positions, also in 8 bits.
#[test]
fn a_stack_reads_on_without_end() {
    for (_, device) in devices::cpu() {
        let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_max_len(MAX_LEN));
        let block = BlockConfig::new().with_position(rotary);
        let stack = TransformerStackConfig::causal(D_MODEL, 19, 3, 2).with_block(block);
        let stack = stack.init(&device);
        for storage in [CacheStorage::Float, CacheStorage::Int8] {
            let mut cache = stack.cache(1, &config().with_storage(storage));
            let mut bytes = Vec::new();
            for step in 0..3 * MAX_LEN {
                let token = LayerInput::new(tensor([1, 1, D_MODEL], step as u64, &device));
                let output = stack.forward_cached(token, &mut cache);
                let numbers = output.into_data();
                assert!(numbers.iter::<f32>().all(f32::is_finite));
                bytes.push(cache.bytes());
            }
            assert_eq!(cache.lengths(), [3 * MAX_LEN]);
            assert_eq!(bytes[MAX_LEN], bytes[3 * MAX_LEN - 1]);
        }
    }
}

#[test]
fn what_does_not_go_with_sinks() {
    let device = devices::any();
    let attention = SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
    let module = filled(attention.init(&device), 1);
    let mut cache = module.cache(1, &config());
    let x: Tensor<3> = tensor([1, 12, D_MODEL], 1, &device);
    in_pieces(&module, &mut cache, &x, &[7, 5]);
    let input = |len| SelfAttentionInput::new(tensor([1, len, D_MODEL], 1, &device));
    let beside = |what: &str| {
        format!("KvCache: {what} given beside a cache with sink tokens, in which tokens move")
    };
    let bias = AttentionBias::alibi(Tensor::ones([6], &device));
    let function = ScoreFunction::new("twice", |scores, _| scores * 2.0);
    for (input, expected) in [
        (
            input(1).mask(AttentionMask::window(3, 0)),
            beside("a mask was"),
        ),
        (input(1).bias(bias), beside("a bias was")),
        (input(1).positions(vec![vec![4]]), beside("positions were")),
        (
            input(1).score_function(function),
            beside("a score function was"),
        ),
        (
            input(8),
            "KvCache: sequence 0 cannot take 8 tokens at once: beside 2 sink tokens, its max_len has room for 7".into(),
        ),
    ] {
        assert_eq!(
            sentence(|| module.forward_cached(input, &mut cache)),
            expected
        );
        assert_eq!(cache.lengths(), [12]);
    }
    // A shared encoding, in which a full cache would have tokens at positions without an angle.
    let shorter = RotaryConfig::new().with_max_len(MAX_LEN - 1);
    let shared = PositionEncoding::Rotary(shorter).init(6, 4, &device);
    assert_eq!(
        sentence(|| module.forward_cached(input(1).position(shared), &mut cache)),
        "KvCache: a cache of max_len 9 is longer than the 8 positions of the rotary table"
    );
    assert_eq!(cache.lengths(), [12]);
    let wider = PositionEncoding::rotary().init(6, 6, &device);
    let refused = sentence(|| module.forward_cached(input(1).position(wider), &mut cache));
    assert!(refused.contains('6'), "{refused}");
    assert_eq!(cache.lengths(), [12]);
    // Three of the first five have been dropped.
    assert_eq!(
        sentence(|| cache.keep(&[1], &[&[6]])),
        "KvCache: sequence 0 cannot keep the first 1 tokens and [6]: of the first 5, only 2 have been kept"
    );
    assert!(cache.can_truncate(&[5]) && cache.can_truncate(&[0]));
    assert_eq!(
        sentence(|| cache.truncate(&[4])),
        "KvCache: sequence 0 cannot be truncated to 4 tokens: of the first 5, only 2 have been kept"
    );
    let mut of_none = module.cache(1, &config().with_sink_tokens(0));
    in_pieces(&module, &mut of_none, &x, &[7, 5]);
    assert_eq!(
        sentence(|| of_none.truncate(&[2])),
        "KvCache: sequence 0 cannot be truncated to 2 tokens: of the first 3, only 0 have been kept"
    );
    of_none.truncate(&[3]);
    assert_eq!(of_none.lengths(), [3]);
    assert_eq!(
        sentence(|| cache.join(module.cache(1, &small(MAX_LEN)))),
        "KvCache: a cache of (max_len, storage, sink_tokens) (9, Float, None) cannot join one of (9, Float, Some(2))"
    );
    let window = attention.with_window(4).init(&device);
    assert_eq!(
        sentence(|| window.cache(1, &config())),
        "SelfAttention: sink_tokens were given to a cache for a window of 4, which drops tokens itself"
    );
    assert_eq!(
        sentence(|| module.cache(1, &config().with_sink_tokens(MAX_LEN))),
        "KvCacheConfig: sink_tokens 9 leave no room in max_len 9"
    );
}
