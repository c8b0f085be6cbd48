//! What hidden means: rows that see nothing, whole blocks of padding, and scores beside hidden ones.

use burn_attn_kernels_cpu::{BlockSize, CausalAlignment};
use half::f16;

use crate::{
    case::{Case, coarse, tensor},
    paths,
    run::{PORTABLE, USUAL, run},
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
        let per_row = [batch, heads, len_q, 1];
        let hides = || (0..batch * heads * len_q).map(|row| row % 5 == 1);
        with(&|case| case.masked = Some((per_row, hides().collect())));
        with(&|case| {
            let bias = hides().map(|hides| if hides { f64::NEG_INFINITY } else { 0.5 });
            case.bias = Some((per_row, bias.collect()));
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
                for (name, dim, expected) in [
                    ("logsumexp", 1, f64::NEG_INFINITY),
                    ("output", p.dim_v, 0.0),
                    ("query gradient", p.dim_qk, 0.0),
                ] {
                    let numbers = &tensor(&results, name)[row * dim..][..dim];
                    let are_right = numbers.iter().all(|&x| x == expected);
                    assert!(are_right, "{}: {name}", case.name);
                }
            }
            for (name, data) in &results {
                assert!(data.iter().all(|x| !x.is_nan()), "{}: {name}", case.name);
            }
        }
    }
}

/// The padding is the last third of the keys. In the list of poisons, segments, blocks, masks and dense biases hide only single keys.
#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn nan_in_whole_blocks_of_padding_reaches_nothing() {
    for (name, sizes) in [paths::TILES, paths::TALL_TILES, paths::ONE_QUERY_SPLIT] {
        let plain = Case::new(name, sizes);
        let [_, _, len_q, len_kv] = plain.scores();
        let visible = len_kv - len_kv / 3;
        let per_key = [1, 1, 1, len_kv];
        let hides = || (0..len_kv).map(|key| key >= visible);
        let mut cases = [(); 5].map(|()| plain.clone());
        cases[0].key_lengths = Some(vec![visible]);
        cases[1].segments = Some((vec![0; len_q], hides().map(i64::from).collect()));
        let shows = hides().map(|hides| !hides).collect();
        cases[2].visible_blocks = Some((per_key, shows, BlockSize::from([5, 1])));
        cases[3].masked = Some((per_key, hides().collect()));
        let bias = hides().map(|hides| if hides { f64::NEG_INFINITY } else { 0.5 });
        cases[4].bias = Some((per_key, bias.collect()));
        let ways = ["a key length", "segments", "blocks", "a mask", "a bias"];
        for (way, clean) in ways.into_iter().zip(cases) {
            let mut dirty = clean.clone();
            let p = clean.problem;
            for (rows, dim) in [(&mut dirty.key, p.dim_qk), (&mut dirty.value, p.dim_v)] {
                for head in rows.chunks_mut(len_kv * dim) {
                    head[visible * dim..].fill(f64::NAN);
                }
            }
            // Compared as numbers: a NaN equals nothing.
            for how in [USUAL, PORTABLE] {
                let same = run::<f32>(&clean, how) == run::<f32>(&dirty, how);
                assert!(same, "{name}: {way}, {how:?}");
            }
            let same = run::<f16>(&clean, USUAL) == run::<f16>(&dirty, USUAL);
            assert!(same, "{name}: {way}, f16");
        }
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
                let [output, logsumexp] =
                    ["output", "logsumexp"].map(|name| tensor(&results, name));
                assert!(output.iter().all(|&x| x == case.value[2]));
                assert!(logsumexp.iter().all(|&x| (x + 4e4).abs() < 0.01));
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
