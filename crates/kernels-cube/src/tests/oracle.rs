//! A case, computed by the oracle and by the kernels.

use burn_attn_kernels_cpu::{
    AttentionDropout, BlockSize, Blocks, Broadcast, DistanceAxis, FirstKeys, Mask, Options,
    PositionMask, Problem, Segments, oracle,
};

use super::{
    case::Case,
    compare::{LARGEST_FACTOR, compare},
    device::{F32, I32, U32, client, floats, interleaved, read, reals, unwritten, upload},
};
use crate::{Gradients, Inputs, Operand, Upstream};

const LARGEST_OF_F16: f64 = 65_504.0;

/// Numbers in −1 .. 1 that have few enough bits for half precision.
pub fn numbers(count: usize, seed: u32) -> Vec<f64> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 24) / 128.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn broadcast_shape(problem: &Problem, whole: [bool; 4]) -> [usize; 4] {
    let all = [
        problem.batch,
        problem.heads_q,
        problem.len_q,
        problem.len_kv,
    ];
    core::array::from_fn(|axis| if whole[axis] { all[axis] } else { 1 })
}

#[derive(Debug, Default, PartialEq)]
pub struct All {
    pub output: Vec<f64>,
    pub logsumexp: Vec<f64>,
    pub gradients: Vec<(&'static str, Vec<f64>)>,
}

fn present<T>(pairs: [(&'static str, Option<T>); 6]) -> Vec<(&'static str, T)> {
    let present = |(name, gradient)| Some((name, gradient?));
    pairs.into_iter().filter_map(present).collect()
}

/// Results of the oracle and of the kernels, `None` without an adapter.
fn both(case: &Case) -> Option<[All; 2]> {
    let client = client()?;
    let problem = case.problem;
    let Problem {
        batch,
        heads_q,
        heads_kv,
        len_q,
        len_kv,
        dim_qk,
        dim_v,
    } = problem;
    let times = |count, seed, factor: f64| -> Vec<f64> {
        let numbers = numbers(count, seed).into_iter();
        match case.matrix.pieces {
            None => numbers.map(|number| number * factor).collect(),
            // As many digits as f32 has.
            Some(_) => numbers
                .map(|number| f64::from((number * factor / 1.1) as f32))
                .collect(),
        }
    };
    let first_times = |mut numbers: Vec<f64>, dim: usize, factor: f64| {
        for row in numbers.chunks_mut(dim).filter(|_| case.largest) {
            row[0] = (row[0] * factor).clamp(-LARGEST_OF_F16, LARGEST_OF_F16);
        }
        numbers
    };
    let q = times(problem.query_elements(), 1, 1.0 / case.keys);
    let mut q = first_times(q, dim_qk, 1.0 / LARGEST_FACTOR);
    let k = times(problem.key_elements(), 2, case.keys);
    let mut k = first_times(k, dim_qk, LARGEST_FACTOR);
    let v = times(problem.value_elements(), 3, 1.0);
    let mut v = first_times(v, dim_v, LARGEST_FACTOR);
    let by_position = PositionMask::new(case.causal, case.window);
    let lengths: Option<Vec<usize>> = case.lengths.then(|| {
        (0..batch)
            // The last batch item has no keys.
            .map(|item| (len_kv * (batch - 1 - item)).div_ceil(batch))
            .collect()
    });
    let first_keys: Option<Vec<usize>> = case
        .first_keys
        .map(|_| (0..batch).map(|item| len_kv.min(3 + 40 * item)).collect());
    if let Some(lengths) = lengths.as_ref().filter(|_| case.padding_is_nan) {
        for (tensor, dim) in [(&mut k, dim_qk), (&mut v, dim_v)] {
            let heads = tensor.chunks_mut(len_kv * dim);
            for (at, head) in heads.enumerate() {
                head[lengths[at / heads_kv] * dim..].fill(f64::NAN);
            }
        }
    }
    if let Some(at) = case.nan_value {
        v[at] = f64::NAN;
    }
    let offsets: Option<Vec<i64>> = case.offsets.map(|first| {
        (0..batch)
            .map(|item| first + item as i64 * 7)
            .map(|offset| offset.clamp(-(len_q as i64), len_kv as i64))
            .collect()
    });
    let segments = case.segments.then(|| {
        let of = |len: usize, step: usize| {
            (0..batch * len)
                .map(|at| (at % len / step) as i64 - 1)
                .collect::<Vec<_>>()
        };
        [of(len_q, 19), of(len_kv, 23)]
    });
    let masked = case.masked.map(|whole| {
        let shape = broadcast_shape(&problem, whole);
        let data = numbers(shape.iter().product(), 4);
        let data: Vec<bool> = data.iter().map(|&number| number > 0.2).collect();
        (data, shape)
    });
    let table = case.blocks.map(|size| {
        let size = BlockSize::from(size);
        let [rows, columns] = size.table(len_q, len_kv);
        let shape = [1, heads_q, rows, columns];
        let data = numbers(shape.iter().product(), 10);
        let data: Vec<bool> = data.iter().map(|&number| number > -0.3).collect();
        (data, shape, size)
    });
    let bias = case.bias.map(|whole| {
        let shape = broadcast_shape(&problem, whole);
        (numbers(shape.iter().product(), 5), shape)
    });
    let slopes = case.alibi.then(|| numbers(heads_q, 6));
    let sinks = case.sinks.then(|| numbers(heads_q, 7));
    let dropout = case.dropout.map(|probability| AttentionDropout {
        probability,
        seed: 0x1234_5678_9abc,
    });
    let mask = Mask {
        by_position,
        first_keys: first_keys
            .as_ref()
            .zip(case.first_keys)
            .map(|(counts, causal)| FirstKeys { counts, causal }),
        key_lengths: lengths.as_deref(),
        query_offsets: offsets.as_deref(),
        segments: segments
            .as_ref()
            .map(|[queries, keys]| Segments { queries, keys }),
        blocks: table.as_ref().map(|(data, shape, size)| Blocks {
            visible: Broadcast::new(data, *shape).unwrap(),
            size: *size,
        }),
        masked: masked
            .as_ref()
            .map(|(data, shape)| Broadcast::new(data, *shape).unwrap()),
    };
    let without_sinks = Options {
        mask,
        bias: bias
            .as_ref()
            .map(|(data, shape)| Broadcast::new(data, *shape).unwrap()),
        softcap: case.softcap,
        dropout,
        ..Options::default()
    };
    // Rows that see no key, if they are to be NaN.
    let unseeing: Vec<bool> = if case.unseeing_are_nan {
        let inputs = oracle::Inputs {
            options: without_sinks,
            alibi: slopes.as_deref(),
            ..oracle::Inputs::new(&q, &k, &v)
        };
        let logsumexp = oracle::forward(&problem, &inputs).unwrap().logsumexp;
        logsumexp
            .iter()
            .map(|&it| it == f64::NEG_INFINITY)
            .collect()
    } else {
        Vec::new()
    };
    assert!(!case.unseeing_are_nan || unseeing.contains(&true));
    let with_nan = |numbers: &mut [f64], dim: usize| {
        for (row, _) in numbers
            .chunks_mut(dim)
            .zip(&unseeing)
            .filter(|(_, it)| **it)
        {
            row.fill(f64::NAN);
        }
    };
    with_nan(&mut q, dim_qk);
    let exact = oracle::Inputs {
        options: Options {
            sinks: sinks.as_deref(),
            ..without_sinks
        },
        alibi: slopes.as_deref(),
        ..oracle::Inputs::new(&q, &k, &v)
    };
    let forward = oracle::forward(&problem, &exact).unwrap();
    let mut expected = All {
        output: forward.output,
        logsumexp: forward.logsumexp,
        ..All::default()
    };

    let axis = DistanceAxis::new(&problem, &mask);
    let distance_bias = slopes.as_ref().map(|slopes| {
        let data: Vec<f64> = slopes
            .iter()
            .flat_map(|slope| {
                axis.relative_positions()
                    .map(move |position| -slope * position.unsigned_abs() as f64)
            })
            .collect();
        floats(&client, &data, &[heads_q, axis.len()])
    });
    let ints = |data: Vec<i32>, shape: &[usize]| upload(&client, &data, shape, I32);
    let counts = |counts: &[usize]| ints(counts.iter().map(|&it| it as i32).collect(), &[batch]);
    let tensor = |data: &[f64], shape: [usize; 4]| match case.interleaved {
        Some(padding) => interleaved(&client, data, case.elem, shape, padding),
        None => reals(&client, data, case.elem, &shape),
    };
    let inputs = Inputs {
        query: tensor(&q, [batch, heads_q, len_q, dim_qk]),
        key: tensor(&k, [batch, heads_kv, len_kv, dim_qk]),
        value: tensor(&v, [batch, heads_kv, len_kv, dim_v]),
        bias: bias
            .as_ref()
            .map(|(data, shape)| floats(&client, data, shape)),
        distance_bias,
        sinks: sinks
            .as_ref()
            .map(|sinks| floats(&client, sinks, &[heads_q])),
        masked: masked.as_ref().map(|(data, shape)| {
            let data: Vec<u32> = data.iter().map(|&hidden| u32::from(hidden)).collect();
            upload(&client, &data, shape, U32)
        }),
        visible_blocks: table.as_ref().map(|(data, shape, size)| {
            let data: Vec<u32> = data.iter().map(|&visible| u32::from(visible)).collect();
            (upload(&client, &data, shape, U32), *size)
        }),
        first_keys: first_keys.as_deref().map(counts),
        first_keys_are_causal: case.first_keys == Some(true),
        key_lengths: lengths.as_deref().map(counts),
        query_offsets: offsets
            .as_ref()
            .map(|offsets| ints(offsets.iter().map(|&it| it as i32).collect(), &[batch])),
        segments: segments.as_ref().map(|[query, key]| {
            let rows = query.chunks(len_q).zip(key.chunks(len_kv));
            let all = rows.flat_map(|(query, key)| query.iter().chain(key));
            ints(all.map(|&id| id as i32).collect(), &[batch, len_q + len_kv])
        }),
        by_position,
        scale: problem.default_scale(),
        softcap: case.softcap,
        dropout,
    };
    let (mask, optional) = (inputs.mask_elem(), inputs.optional());
    assert!(crate::supports(
        &client, &problem, case.elem, mask, optional, case.alibi
    ));
    let output = unwritten(&client, case.elem, &[batch, heads_q, len_q, dim_v]);
    let logsumexp = unwritten(&client, F32, &[batch, heads_q, len_q]);
    crate::forward(&client, &inputs, &output, &logsumexp).unwrap();
    let mut actual = All {
        output: read(&client, &output),
        logsumexp: read(&client, &logsumexp),
        ..All::default()
    };
    if !case.gradients {
        return Some([expected, actual]);
    }

    let output_gradient = times(problem.output_elements(), 8, case.upstream);
    let mut output_gradient = first_times(output_gradient, dim_v, 1.0 / LARGEST_FACTOR);
    with_nan(&mut output_gradient, dim_v);
    let mut logsumexp_gradient = times(problem.query_rows(), 9, case.upstream);
    if !case.sinks {
        with_nan(&mut logsumexp_gradient, 1);
    }
    let gradients = oracle::backward(
        &problem,
        &exact,
        &output_gradient,
        Some(&logsumexp_gradient),
    )
    .unwrap();
    expected.gradients = present([
        ("query", (!case.frozen).then_some(gradients.q)),
        ("key", (!case.frozen).then_some(gradients.k)),
        ("value", (!case.frozen).then_some(gradients.v)),
        ("bias", gradients.bias),
        ("slopes", gradients.alibi),
        ("sinks", gradients.sinks),
    ]);
    let upstream = Upstream {
        output,
        logsumexp,
        output_gradient: reals(
            &client,
            &output_gradient,
            case.elem,
            &[batch, heads_q, len_q, dim_v],
        ),
        logsumexp_gradient: floats(&client, &logsumexp_gradient, &[batch, heads_q, len_q]),
    };
    let like = |operand: &Operand| unwritten(&client, operand.elem, &operand.shape);
    let places = Gradients {
        query: (!case.frozen).then(|| like(&inputs.query)),
        key: (!case.frozen).then(|| like(&inputs.key)),
        value: (!case.frozen).then(|| like(&inputs.value)),
        bias: inputs.bias.as_ref().map(like),
        distance_bias: inputs.distance_bias.as_ref().map(like),
        sinks: inputs.sinks.as_ref().map(like),
    };
    crate::backward(&client, &inputs, &upstream, &places).unwrap();
    let of_slopes = |place: &Operand| {
        let gradient = read(&client, place);
        let of_head = |entries: &[f64]| {
            let terms = entries.iter().zip(axis.relative_positions());
            terms
                .map(|(entry, position)| -entry * position.unsigned_abs() as f64)
                .sum()
        };
        gradient.chunks(axis.len()).map(of_head).collect()
    };
    actual.gradients = present([
        ("query", places.query.map(|place| read(&client, &place))),
        ("key", places.key.map(|place| read(&client, &place))),
        ("value", places.value.map(|place| read(&client, &place))),
        ("bias", places.bias.map(|place| read(&client, &place))),
        ("slopes", places.distance_bias.as_ref().map(of_slopes)),
        ("sinks", places.sinks.map(|place| read(&client, &place))),
    ]);
    Some([expected, actual])
}

/// All results of the kernels, `None` without an adapter.
pub fn computed(case: &Case) -> Option<All> {
    let [_, actual] = case.forced(|| both(case))?;
    Some(actual)
}

/// Fails unless all results agree; passes if there is no adapter and need not be.
pub fn check(case: &Case) {
    let Some([expected, actual]) = case.forced(|| both(case)) else {
        return;
    };
    let p = &case.problem;
    compare(case, "output", p.dim_v, &expected.output, &actual.output);
    let (of_oracle, of_kernels) = (&expected.logsumexp, &actual.logsumexp);
    compare(case, "logsumexp", p.len_q, of_oracle, of_kernels);
    assert_eq!(expected.gradients.len(), actual.gradients.len());
    for ((name, expected), (same, actual)) in expected.gradients.iter().zip(&actual.gradients) {
        assert_eq!(name, same);
        let row = match (*name, case.bias) {
            ("query" | "key", _) => p.dim_qk,
            ("value", _) => p.dim_v,
            ("bias", Some([.., true])) => p.len_kv,
            ("bias", Some([.., true, false])) => p.len_q,
            _ => p.heads_q,
        };
        compare(case, name, row, expected, actual);
    }
}
