//! Biases that are combined, and options where there is nothing to attend to.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionOptions, RelativeBuckets,
    ops::{attention, attention_weights, attention_with_logsumexp},
};
use burn_attn_tests::{
    compare::{difference, numbers_f64},
    devices,
    numbers::uniform_f64,
};

use crate::{
    case::Case,
    option_tensors::gradient,
    properties::{output, output_with},
};

const F32: DType = DType::F32;

fn weights(case: &Case, device: &Device, bias: AttentionBias) -> Vec<f64> {
    let options = AttentionOptions::default().bias(bias);
    let [query, key, _] = case.operands(device, F32);
    numbers_f64(&attention_weights(query, key, options))
}

#[track_caller]
fn assert_close(actual: &[f64], expected: &[f64]) {
    let difference = difference(actual, expected);
    assert!(difference < 1e-6, "off by {difference:e}");
}

fn tensor<const D: usize>(seed: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    let data = Tensor::<1>::from_data(uniform_f64(seed, shape.iter().product()).as_slice(), device);
    data.reshape(shape)
}

/// Against the dense bias that they are, forward and backward, with and without query offsets. Numbers for all offsets fit both.
#[test]
fn numbers_for_every_distance() {
    let (len_q, len_kv) = (7, 11);
    for device in devices::all() {
        let device = device.autodiff();
        let case = Case::usual("distances");
        for (offsets, all) in [(None, false), (None, true), (Some([1_i64, 9]), true)] {
            let (count, zero) = match all {
                false => (len_q + len_kv - 1, len_q - 1),
                true => (2 * (len_q + len_kv) - 1, len_q + len_kv - 1),
            };
            let numbers = tensor(21, [5, count], &device).require_grad();
            // Which entry each pair reads: the last query stands on the last key, or each batch item's first on its offset.
            let firsts = offsets.unwrap_or([4; 2]);
            let entries = firsts.iter().flat_map(|&first| {
                (0..len_q as i64).flat_map(move |query| {
                    (0..len_kv as i64).map(move |key| zero as i64 - (key - first - query))
                })
            });
            let entries = TensorData::new(entries.collect::<Vec<_>>(), [2 * len_q * len_kv]);
            let entries = Tensor::<1, Int>::from_data(entries, &device);
            let dense = || {
                let dense = numbers.clone().select(1, entries.clone());
                let dense = dense.reshape([5, 2, len_q, len_kv]).swap_dims(0, 1);
                AttentionBias::dense(dense)
            };
            let run = |bias: AttentionBias| {
                let mut options = AttentionOptions::default().causal().bias(bias);
                if let Some(offsets) = offsets {
                    options = options.query_offsets(Tensor::from_data(offsets, &device));
                }
                let output = output_with(&case, &device, options);
                let loss = (output.clone() * tensor(22, output.dims(), &device)).sum();
                (numbers_f64(&output), gradient(&numbers, &loss.backward()))
            };
            let (actual, expected) = (run(AttentionBias::distances(numbers.clone())), run(dense()));
            assert_close(&actual.0, &expected.0);
            assert_eq!(actual.1.len(), 5 * count);
            assert!(difference(&actual.1, &expected.1) < 1e-5);
        }
    }
}

#[test]
fn two_biases_of_a_kind_add_up() {
    for device in devices::all() {
        let case = Case::usual("two of a kind");
        let first = tensor(11, [2, 1, 1, 11], &device);
        let second = tensor(12, [1, 5, 7, 1], &device);
        let both = AttentionBias::dense(first.clone()).and(AttentionBias::dense(second.clone()));
        let sum = AttentionBias::dense(first + second);
        assert_close(
            &weights(&case, &device, both),
            &weights(&case, &device, sum),
        );

        let (first, second) = (tensor(13, [5], &device), tensor(14, [5], &device));
        let both = AttentionBias::alibi(first.clone()).and(AttentionBias::alibi(second.clone()));
        let sum = AttentionBias::alibi(first + second);
        assert_close(
            &weights(&case, &device, both),
            &weights(&case, &device, sum),
        );

        // Tables of different buckets cannot be added up: their dense biases can.
        let fine = RelativeBuckets {
            buckets: 10,
            max_distance: 8,
            bidirectional: true,
        };
        let coarse = RelativeBuckets {
            buckets: 4,
            max_distance: 11,
            bidirectional: false,
        };
        let parts = [(15, fine), (16, coarse)]
            .map(|(seed, buckets)| (uniform_f64(seed, buckets.buckets * 5), buckets));
        let tables = parts.clone().map(|(table, buckets)| {
            let table = Tensor::<1>::from_data(table.as_slice(), &device);
            AttentionBias::relative(table.reshape([buckets.buckets, 5]), buckets)
        });
        let [first, second] = tables;
        let mut dense = Vec::new();
        for (head, query, key) in (0..5 * 7 * 11).map(|i| (i / 77, i / 11 % 7, i % 11)) {
            // The last of 7 queries stands on the last of 11 keys.
            let position = key as isize - (query as isize + 4);
            let bias = |(table, buckets): &(Vec<f64>, RelativeBuckets)| {
                table[buckets.bucket(position) * 5 + head]
            };
            dense.push(parts.iter().map(bias).sum::<f64>());
        }
        let dense = Tensor::<1>::from_data(dense.as_slice(), &device).reshape([1, 5, 7, 11]);
        assert_close(
            &weights(&case, &device, first.and(second)),
            &weights(&case, &device, AttentionBias::dense(dense)),
        );
    }
}

#[test]
fn slopes_tables_and_sinks_may_be_more_precise_than_the_query() {
    // The CPU backends have both types.
    let device = devices::any();
    let case = Case::usual("mixed precision")
        .with_alibi()
        .with_relative(true)
        .with_sinks();
    let run = |dtype| {
        let output = output_with(&case, &device, case.options(&device, dtype));
        output.into_data().iter::<f32>().collect::<Vec<_>>()
    };
    assert_eq!(run(DType::F64), run(F32));
}

#[test]
fn nothing_to_attend_to_or_from_takes_every_option() {
    for inner in devices::all() {
        let device = inner.clone().autodiff();
        for sizes in [
            [0, 3, 3, 5, 7, 2, 2],
            [2, 3, 3, 0, 7, 2, 2],
            [2, 3, 3, 5, 0, 2, 2],
        ] {
            let [batch, heads, _, len_q, len_kv, _, _] = sizes;
            let case = Case::new("empty", sizes)
                .with_bias([batch, 1, 1, len_kv])
                .with_alibi()
                .with_relative(true)
                .with_sinks();
            let zeros = output(&Case::new("empty", sizes), &inner);
            assert_eq!(zeros.dims(), [batch, heads, len_q, 2]);
            assert!(numbers_f64(&zeros).iter().all(|&x| x == 0.0));

            let [query, key, value] = case.operands(&device, F32);
            let mut options = case.options(&device, F32);
            let sinks = options.sinks.take().unwrap().require_grad();
            let two = options.bias.clone();
            let options = options.bias(two).sinks(sinks.clone());
            let (output, logsumexp) = attention_with_logsumexp(query, key, value, options);
            assert_eq!(output.dims(), [batch, heads, len_q, 2]);
            assert_eq!(logsumexp.dims(), [batch, heads, len_q]);
            assert!(output.into_data().iter::<f32>().all(|x| x == 0.0));
            if len_kv > 0 {
                continue;
            }
            // Without a key, each row is the sink of its head.
            let expected: Vec<f32> = case.sinks.unwrap().iter().map(|&x| x as f32).collect();
            let rows = logsumexp.clone().into_data();
            for (row, logsumexp) in rows.iter::<f32>().enumerate() {
                assert_eq!(logsumexp, expected[row / len_q % heads]);
            }
            let of_sinks = gradient(&sinks, &logsumexp.sum().backward());
            let rows_of_a_head = (batch * len_q) as f64;
            assert!(of_sinks.iter().all(|&x| x == rows_of_a_head));
        }
    }
}

/// How a bias lies in memory is not what it says: expanded along the keys, or with its keys apart.
#[test]
fn a_bias_of_one_query_may_be_a_view() {
    for device in devices::all() {
        let [query, key, value] =
            [(21, 1), (22, 13), (23, 13)].map(|(seed, len)| tensor(seed, [2, 3, len, 5], &device));
        let attend = |bias: Tensor<4>| {
            let options = AttentionOptions::default().bias(AttentionBias::dense(bias));
            let output = attention(query.clone(), key.clone(), value.clone(), options);
            numbers_f64(&output)
        };
        let apart = tensor(24, [13, 3], &device);
        let hidden = Tensor::full([1, 3, 1, 1], f32::NEG_INFINITY, &device);
        for (view, copy) in [
            (
                tensor(25, [1, 3, 1, 1], &device).expand([2, 3, 1, 13]),
                tensor(25, [1, 3, 1, 1], &device).repeat_dim(3, 13),
            ),
            (
                hidden.clone().expand([2, 3, 1, 13]),
                hidden.repeat_dim(3, 13),
            ),
            (
                apart.clone().reshape([1, 1, 13, 3]).permute([0, 3, 1, 2]),
                apart.transpose().reshape([1, 3, 1, 13]),
            ),
        ] {
            assert_close(&attend(view), &attend(copy));
        }
    }
}
