//! Sequences that begin alike hold their first tokens once, and compute what they would with a copy each.

use std::time::{Duration, Instant};

use burn::tensor::{Bool, Device, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionContext, AttentionMask, CacheStorage, CausalAlignment, KvCache,
    LayerInput, MaskFunction, ScoreFunction, SelfAttention, SelfAttentionConfig,
    SelfAttentionInput, TransformerStackConfig,
    positions::{AlibiConfig, PositionEncoding},
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor, uniform},
    parameters, sentence,
};

use super::{D_MODEL, modules, small};

const TOLERANCE: f64 = 3e-6;
const PROMPT: usize = 11;
const ROWS: usize = 3;
const MAX_LEN: usize = 40;

/// A cache that has read a prompt, for several sequences: with one copy of it, and with one each.
fn forked(module: &SelfAttention, device: &Device) -> [KvCache; 2] {
    let mut shared = module.cache(1, &small(MAX_LEN));
    let prompt = SelfAttentionInput::new(tensor([1, PROMPT, D_MODEL], 1, device));
    module.forward_cached(prompt, &mut shared);
    let mut copied = shared.clone();
    shared.fork(ROWS);
    copied.reorder(&[0; ROWS]);
    [shared, copied]
}

fn token(rows: usize, len: usize, seed: u64, device: &Device) -> SelfAttentionInput {
    SelfAttentionInput::new(tensor([rows, len, D_MODEL], seed, device))
}

/// The same input to both; the outputs are alike.
fn step(
    what: &str,
    module: &SelfAttention,
    [shared, copied]: &mut [KvCache; 2],
    input: SelfAttentionInput,
) {
    let actual = module.forward_cached(input.clone(), shared);
    let expected = module.forward_cached(input, copied);
    assert_close(what, &actual.into_data(), &expected.into_data(), TOLERANCE);
    assert_eq!(shared.lengths(), copied.lengths(), "{what}");
}

#[test]
fn they_read_on_as_with_a_copy_each() {
    for (backend, device) in devices::cpu() {
        for (name, module) in modules(&device) {
            let what = format!("{backend}, {name}");
            let mut caches = forked(&module, &device);
            let is_shared = module.window.is_none();
            assert_eq!(caches[0].bytes() < caches[1].bytes(), is_shared, "{what}");
            for (seed, len) in [(2, 1), (3, 1), (4, 3), (5, 1)] {
                step(&what, &module, &mut caches, token(ROWS, len, seed, &device));
            }
            // Sequences of different lengths.
            let input = token(ROWS, 4, 6, &device).lengths(&[4, 1, 2]);
            let outputs = caches.each_mut().map(|cache| {
                let output = module.forward_cached(input.clone(), cache);
                [(0, 4), (1, 1), (2, 2)].map(|(b, len)| output.clone().slice([b..b + 1, 0..len]))
            });
            let [actual, expected] = outputs;
            for (actual, expected) in actual.into_iter().zip(expected) {
                assert_close(&what, &actual.into_data(), &expected.into_data(), TOLERANCE);
            }
            step(&what, &module, &mut caches, token(ROWS, 1, 7, &device));
            // Places change, one sequence leaves, another is there twice.
            for cache in &mut caches {
                cache.reorder(&[2, 0, 0, 2]);
            }
            step(&what, &module, &mut caches, token(4, 1, 8, &device));
            // A competing draft is taken back.
            for cache in &mut caches {
                let lengths = cache.lengths();
                cache.reserve(3);
                module.forward_cached(token(4, 3, 9, &device), cache);
                let drafts = lengths.iter().map(|&length| [length, length + 2]);
                let drafts: Vec<[usize; 2]> = drafts.collect();
                let drafts: Vec<&[usize]> = drafts.iter().map(|drafts| &drafts[..]).collect();
                cache.keep(&lengths, &drafts);
            }
            step(&what, &module, &mut caches, token(4, 2, 10, &device));
            // Into the prompt, where it is not shared any more.
            if is_shared {
                for cache in &mut caches {
                    cache.truncate(&[PROMPT + 2, PROMPT - 4, 0, PROMPT]);
                }
                step(&what, &module, &mut caches, token(4, 1, 11, &device));
            }
            // Another request joins, whose prompt was shared too.
            for cache in &mut caches {
                let mut other = forked(&module, &device)[0].clone();
                module.forward_cached(token(ROWS, 1, 12, &device), &mut other);
                cache.join(other);
            }
            step(&what, &module, &mut caches, token(4 + ROWS, 1, 13, &device));
            for cache in &mut caches {
                cache.truncate(&[0; 4 + ROWS]);
            }
            step(&what, &module, &mut caches, token(4 + ROWS, 3, 14, &device));
        }
    }
}

#[test]
fn masks_biases_and_positions_reach_the_prompt() {
    let device = devices::any();
    let keys = PROMPT + 4;
    let hidden: Vec<bool> = uniform(1, ROWS * keys).iter().map(|&x| x > 0.2).collect();
    let hidden = TensorData::new(hidden, [ROWS, 1, 1, keys]);
    let hidden = Tensor::<4, Bool>::from_data(hidden, &device);
    let bias: Tensor<4> = tensor([1, 6, 4, keys], 2, &device);
    let numbers: Tensor<2> = tensor([6, 2 * (4 + keys) - 1], 3, &device);
    let odd = MaskFunction::new("odd", |pairs| {
        (pairs.distances() - pairs.keys())
            .remainder_scalar(3)
            .not_equal_elem(1)
    });
    let falling = ScoreFunction::new("falling", |scores, pairs| {
        scores - pairs.distances().float().sqrt()
    });
    let at = vec![
        vec![11, 12, 12, 14],
        vec![11, 11, 12, 13],
        vec![12, 13, 14, 15],
    ];
    for (name, context) in [
        (
            "mask",
            AttentionContext::new().mask(AttentionMask::masked(hidden)),
        ),
        (
            "window",
            AttentionContext::new().mask(AttentionMask::window(6, 0)),
        ),
        (
            "bias",
            AttentionContext::new().bias(AttentionBias::dense(bias)),
        ),
        (
            "distances",
            AttentionContext::new().bias(AttentionBias::distances(numbers)),
        ),
        ("positions", AttentionContext::new().positions(at)),
        (
            "mask function",
            AttentionContext::new().mask(AttentionMask::function(odd.clone())),
        ),
        (
            "score function",
            AttentionContext::new().score_function(falling.clone()),
        ),
    ] {
        for (kind, module) in modules(&device) {
            let what = format!("{name}, {kind}");
            let mut caches = forked(&module, &device);
            let input = token(ROWS, 4, 4, &device).context(context.clone());
            step(&what, &module, &mut caches, input);
            // A function in every call, and another context in one.
            let next = match name.ends_with("function") {
                true => context.clone(),
                false => AttentionContext::new(),
            };
            let next = token(ROWS, 1, 5, &device).context(next);
            step(&what, &module, &mut caches, next);
        }
    }
}

/// Drafts at positions of their own, then every method that looks back into the prompt.
#[test]
fn the_prompt_keeps_its_places_beside_given_positions() {
    let device = devices::any();
    let drafts = vec![vec![11, 12, 12, 14]; ROWS];
    type Change = fn(&mut KvCache);
    let back: [(&str, Change); 5] = [
        ("truncate", |cache| cache.truncate(&[2, 13, 15])),
        ("keep", |cache| {
            cache.keep(&[3, 11, 12], &[&[4, 6], &[12, 14], &[]]);
        }),
        ("reorder", |cache| cache.reorder(&[2, 2, 0])),
        ("join", |cache| {
            let mut other = cache.clone();
            cache.reorder(&[0]);
            other.reorder(&[2, 1]);
            cache.join(other);
        }),
        ("fork", |cache| {
            cache.reorder(&[1]);
            cache.fork(ROWS);
        }),
    ];
    for (name, module) in modules(&device) {
        for (method, back) in back {
            let what = format!("{name}, {method}");
            let mut caches = forked(&module, &device);
            let input = token(ROWS, 4, 2, &device).positions(drafts.clone());
            step(&what, &module, &mut caches, input);
            if module.window.is_some() && ["truncate", "keep"].contains(&method) {
                continue;
            }
            caches.iter_mut().for_each(back);
            for seed in [3, 4] {
                step(&what, &module, &mut caches, token(ROWS, 2, seed, &device));
            }
        }
    }
}

#[test]
fn causal_masks_and_distances_count_from_the_prompt() {
    let device = devices::any();
    let alignment = CausalAlignment::BottomRight;
    for mask in [
        AttentionMask::causal(),
        AttentionMask::causal_aligned(alignment),
    ] {
        for (name, module) in modules(&device) {
            let mut caches = forked(&module, &device);
            for (seed, len) in [(2, 3), (3, 1), (4, 2)] {
                let context = AttentionContext::new().mask(mask.clone());
                let context = context.positions(vec![vec![11, 12, 12][..len].to_vec(); ROWS]);
                let input = token(ROWS, len, seed, &device).context(context);
                step(name, &module, &mut caches, input);
            }
        }
    }
    for (name, module) in modules(&device) {
        let mut caches = forked(&module, &device);
        for (at, len) in [(PROMPT, 1), (PROMPT + 1, 1), (PROMPT + 2, 3)] {
            let numbers: Tensor<2> = tensor([6, 2 * (at + 2 * len) - 1], 3, &device);
            let input = token(ROWS, len, 4, &device).bias(AttentionBias::distances(numbers));
            step(name, &module, &mut caches, input);
        }
    }
}

/// Room that no token can use is not held.
#[test]
fn buffers_behind_a_prompt_hold_what_is_left_of_the_longest_sequence() {
    let device = devices::any();
    let module = SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
    let module = module.init(&device);
    let mut cache = module.cache(1, &small(MAX_LEN).with_initial_capacity(MAX_LEN));
    module.forward_cached(token(1, PROMPT, 1, &device), &mut cache);
    cache.fork(ROWS);
    assert_eq!(cache.capacity(), MAX_LEN - PROMPT);
    module.forward_cached(token(ROWS, MAX_LEN - PROMPT, 2, &device), &mut cache);
    assert_eq!(cache.lengths(), [MAX_LEN; ROWS]);
    assert_eq!(cache.capacity(), MAX_LEN - PROMPT);
}

#[test]
fn gradients_pass_through_the_prompt() {
    let device = devices::any().autodiff();
    let alibi = PositionEncoding::Alibi(AlibiConfig::new().with_learnable(true));
    for (name, encoding) in [
        ("none", PositionEncoding::None),
        ("rotary", PositionEncoding::rotary()),
        ("ALiBi", alibi),
        ("relative", PositionEncoding::relative()),
    ] {
        let config = SelfAttentionConfig::new(D_MODEL, 6)
            .with_causal(true)
            .with_dropout(0.0)
            .with_d_head(6)
            .with_n_kv_heads(2)
            .with_sinks(true)
            .with_position(encoding);
        let module = filled(config.init(&device), 3);
        let gradients = |output: Tensor<3>| {
            let weights = tensor([ROWS, 3, D_MODEL], 5, &device);
            parameters::gradients(&module, &(output * weights).sum().backward())
        };
        let [mut shared, _] = forked(&module, &device);
        let new: Tensor<3> = tensor([ROWS, 3, D_MODEL], 4, &device);
        let actual = gradients(module.forward_cached(new.clone(), &mut shared));
        let prompt = tensor::<3>([1, PROMPT, D_MODEL], 1, &device);
        let whole = Tensor::cat(vec![prompt.repeat_dim(0, ROWS), new], 1);
        let expected = gradients(module.forward(whole).narrow(1, PROMPT, 3));
        assert_eq!(actual.len(), expected.len());
        for (path, actual) in &actual {
            assert_close(&format!("{name}, {path}"), actual, &expected[path], 3e-5);
        }
    }
}

#[test]
fn one_sequence_is_forked() {
    let device = devices::any();
    let module = SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
    let module = filled(module.init(&device), 1);
    assert_eq!(
        sentence(|| module.cache(2, &small(9)).fork(3)),
        "KvCache: one sequence can be forked, but there are 2"
    );
    // A fork that went back to one sequence, and a fork of nothing.
    let [mut shared, mut copied] = forked(&module, &device);
    for cache in [&mut shared, &mut copied] {
        module.forward_cached(token(ROWS, 2, 2, &device), cache);
        cache.reorder(&[1]);
    }
    shared.fork(2);
    copied.reorder(&[0, 0]);
    let mut caches = [shared, copied];
    step("twice", &module, &mut caches, token(2, 1, 3, &device));
    // Where nothing joins, the prompt stays one; where nothing is left, it goes.
    let [mut shared, _] = forked(&module, &device);
    let bytes = shared.bytes();
    shared.join(module.cache(0, &small(MAX_LEN)));
    assert_eq!(shared.bytes(), bytes);
    shared.reorder(&[]);
    assert_eq!(shared.bytes(), 0);
    let mut empty = module.cache(1, &small(9));
    empty.fork(2);
    let mut caches = [empty, module.cache(2, &small(9))];
    step("empty", &module, &mut caches, token(2, 1, 3, &device));
}

/// 16 rows after a prompt of 2,000 tokens: what they hold, and how long a token takes, in one run with a copy each.
#[test]
fn a_long_prompt_of_many_rows() {
    const LONG: usize = 2000;
    let device = devices::any();
    for storage in [CacheStorage::Float, CacheStorage::Int8] {
        let stack = TransformerStackConfig::causal(64, 128, 4, 2).init(&device);
        let config = burn_attn::KvCacheConfig::new(4000).with_storage(storage);
        let mut shared = stack.cache(1, &config);
        let prompt = LayerInput::new(tensor([1, LONG, 64], 1, &device));
        stack.forward_cached(prompt, &mut shared);
        let mut copied = shared.clone();
        shared.fork(16);
        copied.reorder(&[0; 16]);
        let mut caches = [shared, copied];
        let mut times = [const { Vec::<Duration>::new() }; 2];
        for step in 0..9 {
            let outputs: Vec<_> = (0..2)
                .map(|kind| {
                    let start = Instant::now();
                    let token = LayerInput::new(tensor([16, 1, 64], step, &device));
                    let output = stack.forward_cached(token, &mut caches[kind]).into_data();
                    times[kind].push(start.elapsed());
                    output
                })
                .collect();
            assert_close("a token", &outputs[0], &outputs[1], 1e-5);
        }
        let [shared, copied] = times.map(|mut times| {
            times.sort();
            times[times.len() / 2]
        });
        let bytes = caches.each_ref().map(|cache| cache.bytes());
        println!(
            "16 rows after {LONG} tokens, {storage:?}: {} KiB instead of {} KiB, {:.2} of the time",
            bytes[0] >> 10,
            bytes[1] >> 10,
            shared.as_secs_f64() / copied.as_secs_f64()
        );
        assert!(bytes[0] * 12 < bytes[1], "{bytes:?}");
    }
}
