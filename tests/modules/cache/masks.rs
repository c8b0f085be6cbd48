//! Masks and biases beside a cache say what they say of whole sequences.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionContext, AttentionMask, Captured, CausalAlignment, MaskFunction,
    ScoreFunction, SelfAttentionConfig, SelfAttentionInput, positions::Positions,
};
use burn_attn_tests::{
    compare::{assert_close, differs},
    devices,
    numbers::{filled, tensor, uniform},
    sentence,
};

use super::{D_MODEL, modules, one_by_one, small};

const TOLERANCE: f64 = 2e-6;
const LEN: usize = 23;

fn some(seed: u64, shape: [usize; 4], device: &Device) -> Tensor<4, Bool> {
    let hidden = uniform(seed, shape.iter().product());
    let hidden: Vec<bool> = hidden.iter().map(|&x| x > 0.3).collect();
    Tensor::from_data(TensorData::new(hidden, shape), device)
}

/// The context for the queries `from .. to` of a whole sequence, and the keys before `to`.
type Part = Box<dyn Fn(usize, usize) -> AttentionContext>;

fn parts(device: &Device) -> Vec<(&'static str, Part)> {
    fn of_mask(mask: impl Fn(usize, usize) -> AttentionMask + 'static) -> Part {
        Box::new(move |from, to| AttentionContext::new().mask(mask(from, to)))
    }
    fn of_bias(bias: impl Fn(usize, usize) -> AttentionBias + 'static) -> Part {
        Box::new(move |from, to| AttentionContext::new().bias(bias(from, to)))
    }
    let scores = some(1, [2, 6, LEN, LEN], device);
    let of_keys: Tensor<2, Bool> = some(2, [2, 1, 1, LEN], device).squeeze_dims(&[1, 2]);
    let ids: Vec<i32> = (0..2 * LEN as i32).map(|at| at / 5 % 3).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [2, LEN]), device);
    let keys = Tensor::<1, Int>::from_data([9, 14], device);
    let table = some(3, [1, 6, LEN, LEN.div_ceil(4)], device);
    let bias: Tensor<4> = tensor([1, 6, LEN, LEN], 4, device);
    let numbers: Tensor<2> = tensor([6, 4 * LEN - 1], 5, device);
    let (ids_of_function, numbers_of_function) = (ids.clone(), numbers.clone());
    let of_keys_of_function: Tensor<2> = tensor([2, LEN], 6, device);
    vec![
        (
            "scores",
            of_mask(move |from, to| {
                AttentionMask::masked(scores.clone().slice([0..2, 0..6, from..to, 0..to]))
            }),
        ),
        (
            "keys",
            of_mask(move |_, to| AttentionMask::mask_pad(of_keys.clone().narrow(1, 0, to))),
        ),
        (
            "segments",
            of_mask(move |from, to| {
                let queries = ids.clone().narrow(1, from, to - from);
                AttentionMask::segments(queries, ids.clone().narrow(1, 0, to))
            }),
        ),
        (
            "key lengths",
            of_mask(move |_, to| AttentionMask::key_lengths(keys.clone().clamp_max(to as i64))),
        ),
        ("window", of_mask(|_, _| AttentionMask::window(3, 0))),
        (
            "blocks",
            of_mask(move |from, to| {
                let table = table
                    .clone()
                    .slice([0..1, 0..6, from..to, 0..to.div_ceil(4)]);
                AttentionMask::visible_blocks(table, [1, 4])
            }),
        ),
        (
            "bias",
            of_bias(move |from, to| {
                AttentionBias::dense(bias.clone().slice([0..1, 0..6, from..to, 0..to]))
            }),
        ),
        (
            "distances",
            of_bias(move |from, to| {
                // The entry of distance 0 is the last of queries and keys together.
                let both = to - from + to;
                let numbers = numbers.clone().narrow(1, 2 * LEN - both, 2 * both - 1);
                AttentionBias::distances(numbers)
            }),
        ),
        (
            "ALiBi",
            of_bias({
                let device = device.clone();
                move |_, _| AttentionBias::paper_alibi(6, &device)
            }),
        ),
        (
            "mask function",
            of_mask(move |from, to| {
                let [of_query, of_key] = [(from, to), (0, to)]
                    .map(|(from, to)| ids_of_function.clone().narrow(1, from, to - from));
                let function = MaskFunction::new("ids", |pairs| {
                    let [of_query, of_key] = pairs.ints();
                    let even = (pairs.keys() + pairs.positions()).remainder_scalar(2);
                    ((of_query - of_key) * even).equal_elem(0)
                });
                let function = function.capture(Captured::per_query(of_query));
                AttentionMask::function(function.capture(Captured::per_key(of_key)))
            }),
        ),
        (
            "score function",
            Box::new(move |from, to| {
                let both = to - from + to;
                let numbers = numbers_of_function
                    .clone()
                    .narrow(1, 2 * LEN - both, 2 * both - 1);
                let function = ScoreFunction::new("distances", |scores, pairs| {
                    let [numbers, of_key] = pairs.floats();
                    let apart = (pairs.distances() + pairs.keys() * 2).float();
                    scores * numbers + of_key * apart.sin()
                })
                .capture(Captured::by_distance(numbers))
                .capture(Captured::per_key(
                    of_keys_of_function.clone().narrow(1, 0, to),
                ));
                AttentionContext::new().score_function(function)
            }),
        ),
    ]
}

#[test]
fn any_pieces_see_what_the_whole_sees() {
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        for (name, module) in modules(&device) {
            let plain = module.forward(x.clone());
            for (of, part) in parts(&device) {
                let input = |from: usize, to: usize| {
                    let x = x.clone().narrow(1, from, to - from);
                    SelfAttentionInput::new(x).context(part(from, to))
                };
                let whole = module.forward(input(0, LEN));
                assert!(name.contains("window") || differs(&whole, &plain), "{of}");
                for pieces in [vec![7, 1, 1, 11, 3], vec![1; LEN]] {
                    let mut cache = module.cache(2, &small(LEN));
                    let cached = one_by_one(&pieces, |from, len| {
                        module.forward_cached(input(from, from + len), &mut cache)
                    });
                    let what = format!("{backend}, {name}, {of}, {pieces:?}");
                    assert_close(&what, &cached.into_data(), &whole.to_data(), TOLERANCE);
                }
            }
        }
    }
}

/// Three sequences whose tokens come in different numbers, each with a mask of its own.
#[test]
fn sequences_of_unequal_lengths_have_masks_of_their_own() {
    const STEPS: [[usize; 3]; 6] = [
        [5, 2, 7],
        [1, 1, 1],
        [3, 1, 0],
        [1, 0, 1],
        [0, 1, 1],
        [2, 2, 2],
    ];
    const MOST: usize = 17;
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([3, MOST, D_MODEL], 1, &device);
        let hidden = some(7, [3, 1, MOST, MOST], &device);
        let bias: Tensor<4> = tensor([3, 6, MOST, MOST], 8, &device);
        for (name, module) in modules(&device) {
            let mut cache = module.cache(3, &small(40));
            let mut at = [0; 3];
            for counts in STEPS {
                let len = counts.into_iter().max().expect("three sequences");
                let longest = at.into_iter().max().expect("three sequences") + len;
                let of_sequence = |b: usize| {
                    let rows = x.clone().narrow(0, b, 1).narrow(1, at[b], len);
                    let part = [b..b + 1, 0..1, at[b]..at[b] + len, 0..longest];
                    let mut of_bias = part.clone();
                    of_bias[1] = 0..6;
                    (
                        rows,
                        hidden.clone().slice(part),
                        bias.clone().slice(of_bias),
                    )
                };
                let parts: Vec<_> = (0..3).map(of_sequence).collect();
                let x_of_call = Tensor::cat(parts.iter().map(|(x, ..)| x.clone()).collect(), 0);
                let mask = Tensor::cat(parts.iter().map(|(_, mask, _)| mask.clone()).collect(), 0);
                let added = Tensor::cat(parts.iter().map(|(.., bias)| bias.clone()).collect(), 0);
                let input = SelfAttentionInput::new(x_of_call)
                    .lengths(&counts)
                    .mask(AttentionMask::masked(mask))
                    .bias(AttentionBias::dense(added));
                let output = module.forward_cached(input, &mut cache);
                for b in 0..3 {
                    let end = at[b] + counts[b];
                    if counts[b] > 0 {
                        let alone = x.clone().narrow(0, b, 1).narrow(1, 0, end);
                        let mask = hidden.clone().slice([b..b + 1, 0..1, 0..end, 0..end]);
                        let bias = bias.clone().slice([b..b + 1, 0..6, 0..end, 0..end]);
                        let alone = SelfAttentionInput::new(alone)
                            .mask(AttentionMask::masked(mask))
                            .bias(AttentionBias::dense(bias));
                        let expected = module.forward(alone).narrow(1, at[b], counts[b]);
                        let actual = output.clone().narrow(0, b, 1).narrow(1, 0, counts[b]);
                        let what = format!("{backend}, {name}, sequence {b} at {}", at[b]);
                        assert_close(&what, &actual.into_data(), &expected.into_data(), TOLERANCE);
                    }
                    at[b] = end;
                }
            }
        }
    }
}

/// One call for a tree of 32 drafts is 32 calls, one for each draft with its ancestors alone.
#[test]
fn a_tree_of_drafts_is_verified_at_once() {
    const PROMPT: usize = 11;
    const DRAFTS: usize = 32;
    let parent = |draft: usize| (draft > 0).then(|| (draft * 7 + 3) % draft);
    let path = |draft: usize| {
        let mut path = vec![draft];
        while let Some(parent) = parent(path[0]) {
            path.insert(0, parent);
        }
        path
    };
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([1, PROMPT + DRAFTS, D_MODEL], 1, &device);
        let prompt = x.clone().narrow(1, 0, PROMPT);
        let draft = |draft: usize| x.clone().narrow(1, PROMPT + draft, 1);
        let positions = (0..DRAFTS).map(|draft| PROMPT + path(draft).len() - 1);
        let positions = Positions::from(vec![positions.collect::<Vec<_>>()]);
        let visible: Vec<bool> = (0..DRAFTS)
            .flat_map(|query| {
                let path = path(query);
                let seen = move |key: usize| key < PROMPT || path.contains(&(key - PROMPT));
                (0..PROMPT + DRAFTS).map(seen)
            })
            .collect();
        let visible = TensorData::new(visible, [1, 1, DRAFTS, PROMPT + DRAFTS]);
        let visible = AttentionMask::visible(Tensor::from_data(visible, &device));
        for (name, module) in modules(&device) {
            let mut cache = module.cache(1, &small(64));
            module.forward_cached(prompt.clone(), &mut cache);
            let mut of_tree = cache.clone();
            let drafts = SelfAttentionInput::new(x.clone().narrow(1, PROMPT, DRAFTS));
            let drafts = drafts.positions(positions.clone()).mask(visible.clone());
            let at_once = module.forward_cached(drafts, &mut of_tree);
            for node in 0..DRAFTS {
                let mut of_path = cache.clone();
                of_path.reserve(DRAFTS);
                let mut expected = None;
                for step in path(node) {
                    expected = Some(module.forward_cached(draft(step), &mut of_path));
                }
                let actual = at_once.clone().narrow(1, node, 1).into_data();
                let expected = expected.expect("a path has a node").into_data();
                let what = format!("{backend}, {name}, draft {node}");
                assert_close(&what, &actual, &expected, TOLERANCE);
            }
            // The path of the last draft is accepted: the next token follows it.
            let mut accepted = of_tree.clone();
            let path = path(DRAFTS - 1);
            let tokens: Vec<usize> = path.iter().map(|draft| PROMPT + draft).collect();
            accepted.keep(&[PROMPT], &[&tokens]);
            let mut single = cache.clone();
            for &step in &path {
                module.forward_cached(draft(step), &mut single);
            }
            assert_eq!(accepted.lengths(), single.lengths());
            let next = || SelfAttentionInput::new(draft(3));
            let actual = module.forward_cached(next(), &mut accepted).into_data();
            let expected = module.forward_cached(next(), &mut single).into_data();
            let what = format!("{backend}, {name}, accepted");
            assert_close(&what, &actual, &expected, TOLERANCE);
        }
    }
}

#[test]
fn masks_that_do_not_fit_leave_the_cache_alone() {
    let device = devices::any();
    let config = SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
    let module = filled(config.init(&device), 1);
    let mut cache = module.cache(2, &small(9));
    let input = || SelfAttentionInput::new(tensor([2, 3, D_MODEL], 1, &device));
    module.forward_cached(input(), &mut cache);
    let masked = |shape| AttentionMask::masked(some(1, shape, &device));
    let top_left = || AttentionMask::causal_aligned(CausalAlignment::TopLeft);
    let misaligned = "SelfAttention: a mask aligned top-left cannot be combined with a cache, whose queries are the newest tokens";
    for (mask, expected) in [
        (
            masked([2, 1, 3, 3]),
            "attention: mask [2, 1, 3, 3] does not broadcast to the scores [2, 6, 3, 6] [batch, heads, len_q, len_kv]",
        ),
        (
            AttentionMask::padding(Tensor::ones([2, 1], &device), 0),
            "attention: a mask of padding [2, 1] does not fit batch 2 and 6 keys",
        ),
        (
            AttentionMask::key_lengths(Tensor::from_data([7, 1], &device)),
            "attention: the key length of batch item 0 is 7, but there are 6 keys",
        ),
        (top_left(), misaligned),
        (top_left().or(masked([1, 1, 3, 6])), misaligned),
    ] {
        assert_eq!(
            sentence(|| module.forward_cached(input().mask(mask), &mut cache)),
            expected
        );
        assert_eq!(cache.lengths(), [3, 3]);
    }
    let axes = vec![vec![vec![0, 1, 2]; 2]; 2];
    let of_one = "KvCache: positions of 1 sequences for 2";
    for (input, expected) in [
        (input().positions(vec![vec![0, 1, 2]]), of_one),
        (input().positions(vec![vec![vec![0; 3]]]), of_one),
        (
            input().positions(axes).mask(AttentionMask::window(1, 0)),
            "KvCache: positions on 2 axes have no distances, which a window, ALiBi or a relative bias counts",
        ),
    ] {
        assert_eq!(
            sentence(|| module.forward_cached(input, &mut cache)),
            expected
        );
    }
    assert_eq!(cache.lengths(), [3, 3]);
    for (first, then) in [(4, [1, 2]), (2, [1, 2]), (0, [2, 1]), (0, [1, 3])] {
        assert_eq!(
            sentence(|| cache.keep(&[first, 0], &[&then, &[]])),
            format!(
                "KvCache: sequence 0 has 3 tokens and cannot keep the first {first} and {then:?}"
            )
        );
    }
    assert_eq!(cache.lengths(), [3, 3]);
}
