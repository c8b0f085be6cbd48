//! Query offsets: another position for every batch item.

use burn_attn_kernels_cpu::{BlockSize, CausalAlignment, RelativeBuckets, Window};
use half::f16;

use crate::{
    allowed::largest_error,
    case::{Case, coarse, tensor},
    number::Number,
    options::{self, cache},
    paths,
    run::{How, PORTABLE, USUAL, run},
};

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn offsets_of_the_alignment_change_no_bit() {
    let paths = [
        paths::ONE_QUERY_GROUPED,
        paths::ONE_QUERY_SPLIT,
        paths::SHORT,
        paths::TALL,
        paths::SPLIT,
        paths::TILES,
        paths::TALL_TILES,
    ];
    for (name, sizes) in paths {
        let cases = options::every_option(&|| Case::new(name, sizes));
        for case in cases.iter().filter(|case| case.query_offsets.is_none()) {
            let p = case.problem;
            let offset = case.causal.unwrap_or_default().offset(p.len_q, p.len_kv);
            let mut at_offsets = case.clone();
            at_offsets.query_offsets = Some(vec![offset as i64; p.batch]);
            assert_same_bits(case, &at_offsets);
        }
    }
}

/// The axes of distances differ: their common entries have equal gradients, and the other gradients are zero.
fn assert_same_bits(aligned: &Case, at_offsets: &Case) {
    let (narrow, wide) = (aligned.axis(), at_offsets.axis());
    let (len, wide_len) = (narrow.len(), wide.len());
    let first = narrow.relative_position(0);
    let shift = wide
        .relative_positions()
        .position(|position| position == first);
    let results = [run::<f32>(aligned, USUAL), run::<f32>(at_offsets, USUAL)];
    for ((name, expected), (_, actual)) in results[0].iter().zip(&results[1]) {
        let mut padded = expected.clone();
        if *name == "distance bias gradient" {
            padded = vec![0.0; aligned.problem.heads_q * wide_len];
            for (head, sums) in expected.chunks(len).enumerate() {
                padded[head * wide_len + shift.unwrap()..][..len].copy_from_slice(sums);
            }
        }
        let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || *a == 0.0 && *b == 0.0;
        let as_long = actual.len() == padded.len();
        assert!(
            as_long && actual.iter().zip(&padded).all(same),
            "{}: {name}",
            aligned.name
        );
    }
}

/// Sequences of several lengths in one padded cache, to be compared with one call per sequence.
fn caches() -> Vec<Case> {
    let mut cases = Vec::new();
    for sizes in [
        [5, 4, 2, 1, 37, 5, 3],
        [3, 2, 2, 1, 1097, 2, 3],
        [5, 4, 2, 3, 37, 5, 3],
        [3, 2, 1, 131, 277, 3, 2],
    ] {
        for option in 0..6 {
            let mut case = Case::new(&format!("{sizes:?}, option {option}"), sizes);
            cache(&mut case);
            case.logsumexp_gradient = Some(coarse(7, case.problem.query_rows()));
            let heads = case.problem.heads_q;
            match option {
                0 => {}
                1 => {
                    case.window = Some(Window {
                        left: Some(7),
                        right: None,
                    });
                }
                2 => case.alibi = Some(coarse(9, heads)),
                3 => {
                    let buckets = RelativeBuckets {
                        buckets: 11,
                        max_distance: 40,
                        bidirectional: true,
                    };
                    case.relative = Some((coarse(9, 11 * heads), buckets));
                    case.causal = None;
                }
                4 => case.sinks = Some(coarse(10, heads)),
                _ => {
                    // The table shows the same keys to all queries.
                    let size = BlockSize::from([1000, 5]);
                    let shape = case.table(size);
                    let table = [1, 1, 1, shape[3]];
                    let visible = (0..shape[3]).map(|block| block % 3 != 1).collect();
                    case.visible_blocks = Some((table, visible, size));
                }
            }
            cases.push(case);
        }
    }
    cases
}

/// One sequence alone, without padding and without offsets.
fn alone(case: &Case, item: usize) -> Case {
    let p = case.problem;
    let length = case.key_lengths.as_ref().unwrap()[item];
    let sizes = [1, p.heads_q, p.heads_kv, p.len_q, length, p.dim_qk, p.dim_v];
    let mut single = Case::new(&format!("{}, item {item}", case.name), sizes);
    let part = |data: &[f64]| {
        let len = data.len() / p.batch;
        data[item * len..(item + 1) * len].to_vec()
    };
    let keys = |data: &[f64], dim: usize| {
        let heads = part(data);
        let heads = heads.chunks(p.len_kv * dim);
        heads
            .flat_map(|head| head[..length * dim].to_vec())
            .collect()
    };
    single.query = part(&case.query);
    single.key = keys(&case.key, p.dim_qk);
    single.value = keys(&case.value, p.dim_v);
    single.output_gradient = part(&case.output_gradient);
    single.logsumexp_gradient = case.logsumexp_gradient.as_deref().map(part);
    single.causal = case.causal.map(|_| CausalAlignment::BottomRight);
    single.window = case.window;
    single.alibi = case.alibi.clone();
    single.relative = case.relative.clone();
    single.sinks = case.sinks.clone();
    single.visible_blocks = case.visible_blocks.as_ref().map(|(_, visible, size)| {
        let shape = single.table(*size);
        ([1, 1, 1, shape[3]], visible[..shape[3]].to_vec(), *size)
    });
    single
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn a_padded_cache_is_its_sequences_one_after_the_other() {
    for case in caches() {
        let together = case.of_parameters(run::<f64>(&case, USUAL));
        let p = case.problem;
        let mut sums: Vec<(&str, Vec<f64>)> = Vec::new();
        for item in 0..p.batch {
            let single = alone(&case, item);
            let length = single.problem.len_kv;
            for (name, expected) in single.of_parameters(run::<f64>(&single, USUAL)) {
                let all = tensor(&together, name);
                let per_key = ["key gradient", "value gradient"].contains(&name);
                if !per_key && (name.ends_with("gradient") && name != "query gradient") {
                    // These gradients are sums over all batch items.
                    match sums.iter_mut().find(|(other, _)| *other == name) {
                        Some((_, sums)) => {
                            sums.iter_mut()
                                .zip(&expected)
                                .for_each(|(sum, x)| *sum += x);
                        }
                        None => sums.push((name, expected)),
                    }
                    continue;
                }
                let own = &all[item * all.len() / p.batch..(item + 1) * all.len() / p.batch];
                let mut actual = own.to_vec();
                if per_key {
                    let dim = own.len() / p.heads_kv / p.len_kv;
                    let heads = own.chunks(p.len_kv * dim);
                    // The padding has no gradient.
                    let padding = heads.clone().flat_map(|head| &head[length * dim..]);
                    assert!(padding.clone().all(|&x| x == 0.0), "{}", single.name);
                    actual = heads
                        .flat_map(|head| head[..length * dim].to_vec())
                        .collect();
                }
                let (error, at) = largest_error(&actual, &expected);
                assert!(error < 1e-13, "{}: {name}[{at}]: {error:e}", single.name);
            }
        }
        for (name, expected) in sums {
            let (error, at) = largest_error(tensor(&together, name), &expected);
            assert!(error < 1e-11, "{}: {name}[{at}]: {error:e}", case.name);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn what_lies_behind_the_sequences_of_a_cache_is_not_read() {
    fn check<T: Number>(case: &Case, how: How) {
        let p = case.problem;
        // Causality alone hides what comes after the last query, without key lengths.
        for lengths in [case.key_lengths.clone(), None] {
            let mut clean = case.clone();
            clean.key_lengths = lengths;
            if clean.causal.is_none() && clean.key_lengths.is_none() {
                continue;
            }
            let mut dirty = clean.clone();
            for (item, &offset) in case.query_offsets.as_ref().unwrap().iter().enumerate() {
                let end = (offset + p.len_q as i64) as usize;
                for head in 0..p.heads_kv {
                    for key in end..p.len_kv {
                        let row = p.key_row(item, head, key);
                        dirty.key[row * p.dim_qk] = f64::NAN;
                        dirty.value[row * p.dim_v] = f64::INFINITY;
                    }
                }
            }
            let results = [run::<T>(&clean, how), run::<T>(&dirty, how)];
            for ((name, clean), (_, dirty)) in results[0].iter().zip(&results[1]) {
                assert!(clean == dirty, "{}, {how:?}: {name}", case.name);
            }
        }
    }
    for case in caches() {
        check::<f32>(&case, USUAL);
        check::<f32>(&case, PORTABLE);
        check::<f16>(&case, USUAL);
    }
}
