//! What hidden means: rows that see nothing, padding of NaN, and scores beside hidden ones.

use burn_attn_kernels_cpu::{BlockSize, CausalAlignment, RelativeBuckets, Window};
use half::f16;

use crate::{
    case::{Case, coarse, tensor},
    number::Number,
    paths,
    run::{How, PORTABLE, USUAL, run},
};

/// Cases in which some rows see nothing, one for every way to hide.
fn cases_with_hidden_rows() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, sizes) in [
        paths::TALL,
        paths::TALL_TILES,
        paths::SHORT,
        paths::ONE_QUERY,
    ] {
        let plain = Case::new(name, sizes);
        let [batch, heads, len_q, len_kv] = plain.scores();
        let mut with = |set: &dyn Fn(&mut Case)| {
            let mut case = plain.clone();
            set(&mut case);
            cases.push(case);
        };
        if len_q > len_kv {
            with(&|case| case.causal = Some(CausalAlignment::BottomRight));
        }
        if batch > 1 {
            with(&|case| {
                let mut lengths = vec![len_kv; batch];
                lengths[1] = 0;
                case.key_lengths = Some(lengths);
            });
        }
        with(&|case| {
            let queries = (0..batch * len_q)
                .map(|at| i64::from(at % 3 == 0))
                .collect();
            case.segments = Some((queries, vec![0; batch * len_kv]));
        });
        with(&|case| {
            let size = BlockSize::from([3, 1000]);
            let shape = case.table(size);
            let visible = (0..shape.iter().product()).map(|block| block % 5 != 1);
            case.visible_blocks = Some((shape, visible.collect(), size));
        });
        with(&|case| {
            let rows = batch * heads * len_q;
            case.masked = Some((
                [batch, heads, len_q, 1],
                (0..rows).map(|row| row % 5 == 1).collect(),
            ));
        });
        with(&|case| {
            let rows = batch * heads * len_q;
            let bias = (0..rows).map(|row| if row % 5 == 1 { f64::NEG_INFINITY } else { 0.5 });
            case.bias = Some(([batch, heads, len_q, 1], bias.collect()));
        });
    }
    cases
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn rows_that_see_nothing_are_zero_and_have_no_gradient() {
    for mut case in cases_with_hidden_rows() {
        let p = case.problem;
        let visible = tensor(&case.oracle(), "logsumexp").to_vec();
        let hidden: Vec<usize> = (0..p.query_rows())
            .filter(|&row| visible[row] == f64::NEG_INFINITY)
            .collect();
        assert!(
            !hidden.is_empty() && hidden.len() < p.query_rows(),
            "{}",
            case.name
        );
        // The gradient of a logsumexp of −∞ may well be NaN.
        let mut of_logsumexp = coarse(7, p.query_rows());
        hidden.iter().for_each(|&row| of_logsumexp[row] = f64::NAN);
        case.logsumexp_gradient = Some(of_logsumexp);
        for how in [USUAL, PORTABLE] {
            let results = run::<f32>(&case, how);
            for &row in &hidden {
                assert_eq!(
                    tensor(&results, "logsumexp")[row],
                    f64::NEG_INFINITY,
                    "{}",
                    case.name
                );
                let zero = |name, dim: usize| {
                    tensor(&results, name)[row * dim..][..dim]
                        .iter()
                        .all(|&x| x == 0.0)
                };
                assert!(
                    zero("output", p.dim_v) && zero("query gradient", p.dim_qk),
                    "{}",
                    case.name
                );
            }
            for (name, data) in &results {
                assert!(data.iter().all(|x| !x.is_nan()), "{}: {name}", case.name);
            }
        }
    }
}

/// Cases whose last third of keys no query of batch item 0 sees, one for every way to hide.
fn cases_with_padding() -> Vec<Case> {
    let paths = [
        paths::SHORT,
        paths::GROUPED,
        paths::TILES,
        paths::TALL_TILES,
    ];
    let of_one_query = [
        paths::ONE_QUERY,
        paths::ONE_QUERY_GROUPED,
        paths::ONE_QUERY_MANY_KEYS,
    ];
    let mut cases = Vec::new();
    for (name, sizes) in paths.into_iter().chain(of_one_query) {
        let plain = Case::new(name, sizes);
        let [batch, heads, len_q, len_kv] = plain.scores();
        let padding = |at: usize| at < len_kv && at >= first_hidden(len_kv);
        let mut with = |option: &str, set: &dyn Fn(&mut Case)| {
            let mut case = plain.clone();
            case.name = format!("{name}: {option}");
            set(&mut case);
            cases.push(case);
        };
        with("key lengths", &|case| {
            let mut lengths = vec![len_kv; batch];
            lengths[0] = first_hidden(len_kv);
            case.key_lengths = Some(lengths);
        });
        with("segments", &|case| {
            let keys = (0..batch * len_kv)
                .map(|at| i64::from(padding(at)))
                .collect();
            case.segments = Some((vec![0; batch * len_q], keys));
        });
        with("block table", &|case| {
            case.visible_blocks = Some((
                [batch, 1, 1, len_kv],
                (0..batch * len_kv).map(|at| !padding(at)).collect(),
                BlockSize::from([5, 1]),
            ));
        });
        with("dense mask", &|case| {
            case.masked = Some((
                [batch, 1, 1, len_kv],
                (0..batch * len_kv).map(padding).collect(),
            ));
        });
        with("dense bias", &|case| {
            let bias = |at| if padding(at) { f64::NEG_INFINITY } else { 0.5 };
            case.bias = Some((
                [batch, 1, 1, len_kv],
                (0..batch * len_kv).map(bias).collect(),
            ));
        });
        if batch == 1 {
            with("causal window", &|case| {
                // The last query stands at the last visible key, or before.
                case.causal = Some(CausalAlignment::TopLeft);
                case.window = Some(Window {
                    left: Some(3),
                    right: None,
                });
            });
            with("relative bias", &|case| {
                let buckets = RelativeBuckets {
                    buckets: 4 * (len_q + len_kv),
                    max_distance: 2 * (len_q + len_kv),
                    bidirectional: true,
                };
                case.causal = Some(CausalAlignment::TopLeft);
                let mut table = vec![0.5; buckets.buckets * heads];
                for position in 1..len_kv as isize {
                    table[buckets.bucket(position) * heads..][..heads].fill(f64::NEG_INFINITY);
                }
                case.relative = Some((table, buckets));
            });
        }
    }
    // A causal mask hides the last third of the keys only if no query stands there.
    cases.retain(|case| {
        case.causal.is_none() || case.problem.len_q <= first_hidden(case.problem.len_kv)
    });
    cases
}

fn first_hidden(len_kv: usize) -> usize {
    len_kv - len_kv / 3
}

fn assert_padding_is_not_read<T: Number>(case: &Case, how: How) {
    let p = case.problem;
    let clean = run::<T>(case, how);
    let mut dirty = case.clone();
    for head in 0..p.heads_kv {
        for key in first_hidden(p.len_kv)..p.len_kv {
            let row = p.key_row(0, head, key);
            dirty.key[row * p.dim_qk] = f64::NAN;
            dirty.key[(row + 1) * p.dim_qk - 1] = f64::INFINITY;
            dirty.value[row * p.dim_v] = f64::NEG_INFINITY;
            dirty.value[(row + 1) * p.dim_v - 1] = f64::NAN;
        }
    }
    // Compared as numbers: a NaN equals nothing.
    for ((name, clean), (_, dirty)) in clean.iter().zip(run::<T>(&dirty, how)) {
        assert!(
            *clean == dirty,
            "{}, {}, {how:?}: {name}",
            case.name,
            T::NAME
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn padding_of_nan_and_infinity_reaches_nothing() {
    for case in cases_with_padding() {
        assert_padding_is_not_read::<f32>(&case, USUAL);
        assert_padding_is_not_read::<f32>(&case, PORTABLE);
        assert_padding_is_not_read::<f64>(&case, USUAL);
        assert_padding_is_not_read::<f16>(&case, USUAL);
    }
}

#[test]
fn a_very_low_score_beside_hidden_keys_gets_all_the_weight() {
    for len_q in [1, 7] {
        let mut case = Case::new("one visible key", [1, 1, 1, len_q, 5, 1, 1]);
        case.query.fill(200.0);
        case.key = vec![200.0, 200.0, -200.0, 200.0, 0.0];
        case.scale = Some(1.0);
        let keys = [true, true, false, true, true];
        let hide = |hidden: bool| if hidden { f64::NEG_INFINITY } else { 0.0 };
        let mut by_mask = case.clone();
        by_mask.masked = Some(([1, 1, 1, 5], keys.to_vec()));
        let mut by_bias = case.clone();
        by_bias.bias = Some(([1, 1, 1, 5], keys.map(hide).to_vec()));
        for case in [by_mask, by_bias] {
            for results in [run::<f32>(&case, USUAL), run::<f16>(&case, PORTABLE)] {
                assert!(
                    tensor(&results, "output")
                        .iter()
                        .all(|&x| x == case.value[2])
                );
                assert!(
                    tensor(&results, "logsumexp")
                        .iter()
                        .all(|&x| (x + 4e4).abs() < 0.01)
                );
            }
        }
    }
}

/// A query that sees nothing but a sink, beside one that sees a key of NaN.
#[test]
fn a_key_of_nan_reaches_no_query_that_does_not_see_it() {
    for sinks in [None, Some(vec![0.5])] {
        let mut case = Case::new("nan beside", [1, 1, 1, 2, 2, 8, 8]);
        case.masked = Some(([1, 1, 2, 2], vec![true, true, false, true]));
        case.sinks = sinks;
        case.key[..8].fill(f64::NAN);
        for how in [USUAL, PORTABLE] {
            let found = run::<f32>(&case, how);
            let gradient = tensor(&found, "query gradient");
            assert!(gradient[..8].iter().all(|&x| x == 0.0), "{gradient:?}");
            assert!(gradient[8..].iter().all(|x| x.is_nan()), "{gradient:?}");
        }
    }
}
