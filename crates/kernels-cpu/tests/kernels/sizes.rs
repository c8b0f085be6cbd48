//! Odd sizes: dims and lengths that fill no vector, no panel and no tile, and sizes of zero.

use half::{bf16, f16};

use crate::{
    case::{Case, coarse, tensor},
    run::{PORTABLE, USUAL, run},
    tolerance::assert_as_good_as_plain,
};
use burn_attn_kernels_cpu::{BlockSize, CausalAlignment, alibi_slopes};

const DIMS: [usize; 11] = [1, 2, 3, 5, 8, 16, 40, 59, 64, 111, 512];

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn every_dim_beside_every_kind_of_other_dim() {
    for (index, dim_qk) in DIMS.into_iter().enumerate() {
        // A different dim of the values, alternately smaller and larger.
        for dim_v in [
            DIMS[(index + 4) % DIMS.len()],
            DIMS[(index + 9) % DIMS.len()],
        ] {
            for [len_q, len_kv] in [[1, 37], [7, 37], [37, 7]] {
                let name = format!("dims {dim_qk} and {dim_v}, {len_q} queries");
                let sizes = [1, 2, 1, len_q, len_kv, dim_qk, dim_v];
                let case = Case::fine(&name, sizes);
                let oracle = case.oracle();
                assert_as_good_as_plain::<f32>(&case, &oracle, &[USUAL, PORTABLE]);
                assert_as_good_as_plain::<f64>(&case, &oracle, &[USUAL, PORTABLE]);
                let case = Case::new(&name, sizes);
                let oracle = case.oracle();
                assert_as_good_as_plain::<f16>(&case, &oracle, &[USUAL, PORTABLE]);
                assert_as_good_as_plain::<bf16>(&case, &oracle, &[USUAL, PORTABLE]);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn every_length_beside_every_other() {
    for len_q in [1, 7, 97, 1025] {
        for len_kv in [1, 7, 97, 1025] {
            for causal in [None, Some(CausalAlignment::BottomRight)] {
                let mut case = Case::fine("lengths", [1, 1, 1, len_q, len_kv, 3, 2]);
                case.name = format!("{len_q} queries, {len_kv} keys, {causal:?}");
                case.causal = causal;
                let oracle = case.oracle();
                assert_as_good_as_plain::<f32>(&case, &oracle, &[USUAL, PORTABLE]);
                assert_as_good_as_plain::<f64>(&case, &oracle, &[USUAL]);
            }
        }
    }
}

#[test]
fn nothing_goes_in_and_zeros_come_out() {
    for (name, sizes) in [
        ("no batch item", [0, 2, 1, 7, 5, 3, 2]),
        ("no query", [2, 2, 1, 0, 5, 3, 2]),
        ("no key", [2, 2, 1, 7, 0, 3, 2]),
        ("one query and no key", [2, 2, 1, 1, 0, 3, 2]),
        ("neither query nor key", [2, 2, 1, 0, 0, 3, 2]),
    ] {
        let plain = Case::new(name, sizes);
        let mut all = plain.clone();
        all.name = format!("{name}, with options");
        all.bias = Some((all.scores(), coarse(6, all.scores().iter().product())));
        all.masked = Some((all.scores(), vec![false; all.scores().iter().product()]));
        let size = BlockSize::from(3);
        let table = all.table(size);
        all.visible_blocks = Some((table, vec![true; table.iter().product()], size));
        all.alibi = Some(alibi_slopes(all.problem.heads_q));
        all.key_lengths = Some(vec![0; all.problem.batch]);
        all.causal = Some(CausalAlignment::BottomRight);
        let mut sinks = all.clone();
        sinks.name = format!("{name}, with options and sinks");
        sinks.sinks = Some(vec![0.5, -3.0]);
        sinks.logsumexp_gradient = Some(coarse(7, sinks.problem.query_rows()));
        for case in [&plain, &all, &sinks] {
            let oracle = case.oracle();
            assert_as_good_as_plain::<f32>(case, &oracle, &[USUAL, PORTABLE]);
            assert_as_good_as_plain::<f64>(case, &oracle, &[USUAL, PORTABLE]);
            assert_as_good_as_plain::<f16>(case, &oracle, &[USUAL, PORTABLE]);
        }
        let results = run::<f32>(&plain, USUAL);
        assert!(tensor(&results, "output").iter().all(|&x| x == 0.0));
        assert!(
            tensor(&results, "logsumexp")
                .iter()
                .all(|&x| x == f64::NEG_INFINITY)
        );
    }
}
