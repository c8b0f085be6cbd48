//! Windows and biases between positions of every kind, beside the same as dense tensors.

use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, Captured, CausalAlignment, MaskFunction, Pairs,
    ScoreFunction, ops,
};
use burn_attn_tests::{
    compare::{assert_close, numbers},
    devices,
    numbers::uniform,
    sentence,
};

use crate::case::Case;

const LEN_Q: usize = 7;
const LEN_KV: usize = 11;
const HEADS: usize = 5;

/// Positions of queries and keys of two sequences.
type Lists = [Vec<Vec<usize>>; 2];

fn lists() -> Vec<(&'static str, Lists)> {
    let run = |first: usize, len: usize| (first..first + len).collect::<Vec<_>>();
    let far = |first: usize, len: usize| {
        let step = |at: usize| first + at * at + (at / 3) * 20_000_000;
        (0..len).map(step).collect::<Vec<_>>()
    };
    vec![
        ("one list", [vec![run(4, LEN_Q)], vec![run(0, LEN_KV)]]),
        (
            "sequences at different places",
            [
                vec![run(4, LEN_Q), run(1_000_002, LEN_Q)],
                vec![run(0, LEN_KV), run(1_000_000, LEN_KV)],
            ],
        ),
        (
            "neighbours far from the first token",
            [
                vec![far(3, LEN_Q), far(usize::MAX >> 2, LEN_Q)],
                vec![far(0, LEN_KV), far(usize::MAX >> 2, LEN_KV)],
            ],
        ),
    ]
}

/// `of_distance(key − query)` of every pair: `[2, 1, LEN_Q, LEN_KV]`.
fn of_pairs<T>([query, key]: &Lists, of_distance: impl Fn(i64) -> T) -> Vec<T> {
    let list = |lists: &[Vec<usize>], b: usize| lists[b % lists.len()].clone();
    let pairs = (0..2).flat_map(|b| {
        let key = list(key, b);
        let pairs = list(query, b).into_iter();
        pairs.flat_map(move |q| key.clone().into_iter().map(move |k| k as i64 - q as i64))
    });
    pairs.map(of_distance).collect()
}

fn attend(options: AttentionOptions, device: &Device) -> TensorData {
    let [query, key, value] = Case::usual("positions").operands(device, DType::F32);
    ops::attention(query, key, value, options).into_data()
}

fn placed(options: AttentionOptions, [of_query, of_key]: &Lists, device: &Device) -> TensorData {
    let [query, _, _] = Case::usual("positions").operands(device, DType::F32);
    attend(
        options.at_positions(of_query, of_key, &query, LEN_KV),
        device,
    )
}

#[test]
fn a_window_and_alibi_count_between_positions() {
    for (backend, device) in devices::cpu() {
        for (name, lists) in lists() {
            let what = format!("{backend}, {name}");
            let window = AttentionOptions::default().mask(AttentionMask::window(3, 1));
            let hidden = of_pairs(&lists, |distance| !(-3..=1).contains(&distance));
            let hidden = TensorData::new(hidden, [2, 1, LEN_Q, LEN_KV]);
            let hidden = Tensor::<4, Bool>::from_data(hidden, &device);
            let dense = AttentionOptions::default().mask(AttentionMask::masked(hidden));
            assert_eq!(
                placed(window, &lists, &device),
                attend(dense, &device),
                "{what}"
            );

            let slopes = [0.5, 0.25, 0.125, 1e-3, 1e-8];
            let alibi = AttentionBias::alibi(Tensor::from_data(slopes, &device));
            let alibi = AttentionOptions::default().bias(alibi);
            let of_head = |slope: f64| of_pairs(&lists, move |at| -slope * at.abs() as f64);
            let heads: Vec<Vec<f64>> = slopes.into_iter().map(of_head).collect();
            let pairs = LEN_Q * LEN_KV;
            let parts =
                (0..2).flat_map(|b| heads.iter().map(move |head| &head[b * pairs..][..pairs]));
            let dense = TensorData::new(
                parts.collect::<Vec<_>>().concat(),
                [2, HEADS, LEN_Q, LEN_KV],
            );
            let dense = AttentionBias::dense(Tensor::from_data(dense, (&device, DType::F32)));
            let dense = AttentionOptions::default().bias(dense);
            assert_close(
                &what,
                &placed(alibi, &lists, &device),
                &attend(dense, &device),
                1e-6,
            );
        }
    }
}

#[test]
fn distances_are_those_between_tokens_of_one_sequence() {
    let device = devices::any();
    let count = 2 * (LEN_Q + LEN_KV) - 1;
    let entries = uniform(1, HEADS * count);
    let zero = (LEN_Q + LEN_KV) as i64 - 1;
    let numbers = TensorData::new(entries.clone(), [HEADS, count]);
    let numbers = AttentionBias::distances(Tensor::from_data(numbers, &device));
    for (name, lists) in lists().into_iter().take(2) {
        let pairs = of_pairs(&lists, |distance| (zero - distance) as usize);
        let (first, second) = pairs.split_at(LEN_Q * LEN_KV);
        let mut dense = Vec::new();
        for pairs in [first, second] {
            for head in 0..HEADS {
                dense.extend(pairs.iter().map(|&entry| entries[head * count + entry]));
            }
        }
        let dense = TensorData::new(dense, [2, HEADS, LEN_Q, LEN_KV]);
        let dense = AttentionBias::dense(Tensor::from_data(dense, &device));
        let expected = attend(AttentionOptions::default().bias(dense), &device);
        let options = AttentionOptions::default().bias(numbers.clone());
        assert_close(name, &placed(options, &lists, &device), &expected, 1e-6);
    }
}

/// The short form counts from the alignment that a union names.
#[test]
fn short_distances_beside_a_union() {
    let device = devices::any();
    let lengths = |counts: [i64; 2]| AttentionMask::key_lengths(Tensor::from_data(counts, &device));
    let top_left = || AttentionMask::causal_aligned(CausalAlignment::TopLeft);
    let short = TensorData::new(
        uniform(1, HEADS * (LEN_Q + LEN_KV - 1)),
        [HEADS, LEN_Q + LEN_KV - 1],
    );
    let short: Tensor<2> = Tensor::from_data(short, &device);
    let by = |mask: AttentionMask| {
        let bias = AttentionBias::distances(short.clone());
        let [query, key, value] = Case::usual("positions").operands(&device, DType::F32);
        let options = AttentionOptions::default().mask(mask).bias(bias);
        numbers(&ops::attention(query, key, value, options))
    };
    // The second part of the first union shows nothing; the other union shows everything.
    assert_eq!(by(top_left().or(lengths([0, 0]))), by(top_left()));
    let everything = top_left().or(lengths([LEN_KV as i64; 2]));
    let [expected, actual] = [top_left(), everything].map(|mask| by(mask.and(lengths([1, 1]))));
    assert_eq!(actual, expected);
}

/// Of queries that are placed elsewhere, the short form of a captured tensor is refused as that of a bias is.
#[test]
fn short_distances_of_placed_queries() {
    let device = devices::any();
    let [query, key, value] = Case::usual("positions").operands(&device, DType::F32);
    let short = || Tensor::<2>::zeros([HEADS, LEN_Q + LEN_KV - 1], &device);
    let function = ScoreFunction::new("mine", |scores, pairs| {
        let [numbers] = pairs.floats();
        scores + numbers
    });
    let function = function.capture(Captured::by_distance(short()));
    let causal = || AttentionOptions::default().causal();
    for (options, name) in [
        (
            causal().bias(AttentionBias::distances(short())),
            "a bias by distance",
        ),
        (
            causal().score_function(function),
            "captured tensor 0 of the function 'mine'",
        ),
    ] {
        let options = options.placed(&query, LEN_KV, &[0]);
        assert_eq!(
            sentence(|| ops::attention(query.clone(), key.clone(), value.clone(), options)),
            format!(
                "attention: {name} [5, 17] does not fit 5 query heads, 7 queries and 11 keys, which need 35 distances"
            )
        );
    }
}

#[test]
fn positions_that_do_not_fit() {
    let device = devices::any();
    let [query, _, _] = Case::usual("positions").operands(&device, DType::F32);
    let window = || AttentionOptions::default().mask(AttentionMask::window(3, 1));
    let refused = |of_query: &[Vec<usize>], of_key: &[Vec<usize>]| {
        sentence(|| window().at_positions(of_query, of_key, &query, LEN_KV))
    };
    let keys = vec![(0..LEN_KV).collect::<Vec<_>>()];
    assert_eq!(
        refused(&[], &keys),
        "attention: positions of [] queries were given for a batch of 2 with 7 each"
    );
    assert_eq!(
        refused(&[vec![7]], &keys),
        "attention: positions of [1] queries were given for a batch of 2 with 7 each"
    );
    assert_eq!(
        refused(&[(0..LEN_Q).collect()], &[vec![0, 1], vec![0]]),
        "attention: positions of [2, 1] keys were given for a batch of 2 with 11 each"
    );
    let queries = vec![(0..LEN_Q).collect::<Vec<_>>()];
    assert_eq!(
        refused(&queries, &[]),
        "attention: positions of [] keys were given for a batch of 2 with 11 each"
    );
    assert_eq!(
        refused(&queries, &[vec![3]]),
        "attention: positions of [1] keys were given for a batch of 2 with 11 each"
    );
    assert_eq!(
        refused(&[vec![0, 1, 2, 3, 4, 5, (1 << 30) + 1]], &keys),
        "attention: the positions of a sequence are from 0 to 1073741825, and distances are counted up to 1073741824"
    );
}

/// Functions count on from queries of one sequence that are near its keys and of another far behind them, in a union and beside causality, too.
#[test]
fn functions_count_from_queries_far_away() {
    let device = devices::any();
    let [query, key, value] = Case::new("far", [2, 4, 2, 5, 9, 7, 7]).operands(&device, DType::F64);
    let offsets = [3, 40];
    // Where the positions come from: the call, or numbers.
    let outputs = [false, true].map(|is_placed| {
        let device = device.clone();
        let positions = move |pairs: &Pairs| match is_placed {
            true => pairs.positions(),
            false => {
                let first = TensorData::new(offsets.to_vec(), [2, 1, 1, 1]);
                pairs.queries() + Tensor::from_data(first, &device)
            }
        };
        let of_mask = positions.clone();
        let falling = ScoreFunction::new("falling", move |scores, pairs| {
            let distances = (positions(pairs) - pairs.keys()).float();
            let dtype = scores.dtype();
            scores - distances.cast(dtype).powi_scalar(2) * 0.003
        });
        let thirds = MaskFunction::new("thirds", move |pairs| {
            let sums = of_mask(pairs) * 2 + pairs.keys();
            sums.remainder_scalar(3).greater_elem(0)
        });
        let first = AttentionMask::key_lengths(Tensor::from_data([1, 2], &query.device()));
        let mask = AttentionMask::function(thirds).or(first);
        let options = AttentionOptions::default().mask(mask.and(AttentionMask::causal()));
        let options = options.score_function(falling);
        let options = options.placed(&query, key.dims()[2], &offsets);
        // What counts from one place may be placed again.
        let again = options.clone().placed(&query, key.dims()[2], &offsets);
        [options, again].map(|options| {
            let operands = [query.clone(), key.clone(), value.clone()];
            let [query, key, value] = operands;
            ops::attention(query, key, value, options).into_data()
        })
    });
    let [of_call, of_numbers] = outputs;
    for output in of_call {
        assert_close("far away", &output, &of_numbers[0], 1e-9);
    }
}
