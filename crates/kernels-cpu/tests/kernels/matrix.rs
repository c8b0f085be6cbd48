//! Every option on every path, in every precision, with and without vector instructions, in every layout.

use burn_attn_kernels_cpu::Broadcast;
use half::{bf16, f16};

use crate::{
    allowed::largest_error,
    case::{Case, Tensors, coarse},
    options::{every_option, hides_a_third, shapes},
    paths::{self, Path},
    run::{How, Layout, PORTABLE, USUAL, bits, run},
    tolerance::assert_as_good_as_plain,
};

fn check((name, sizes): Path) {
    let plain = || Case::new(name, sizes);
    let without_options = plain().oracle();
    let mut without_effect = Vec::new();
    for case in every_option(&plain) {
        let oracle = case.oracle();
        assert_as_good_as_plain::<f32>(&case, &oracle, &[USUAL, PORTABLE]);
        assert_as_good_as_plain::<f64>(&case, &oracle, &[USUAL, PORTABLE]);
        assert_as_good_as_plain::<f16>(&case, &oracle, &[USUAL]);
        assert_as_good_as_plain::<bf16>(&case, &oracle, &[USUAL]);
        let strided = How {
            layout: Layout::Strided,
            ..USUAL
        };
        // The layout does not change a bit of the result.
        let same = bits(&run::<f32>(&case, strided)) == bits(&run::<f32>(&case, USUAL));
        let same_half = bits(&run::<f16>(&case, strided)) == bits(&run::<f16>(&case, USUAL));
        assert!(same && same_half, "{}", case.name);
        if !changes_anything(&oracle, &without_options) {
            without_effect.push(case.name);
        }
    }
    // A test notices a dropped option only where the option changes a result: a causal mask hides nothing from the last query.
    assert!(without_effect.len() <= 16, "{without_effect:#?}");
}

/// Whether a result or a gradient that both have differs.
fn changes_anything(oracle: &Tensors, without: &Tensors) -> bool {
    oracle.iter().any(|(name, data)| {
        let other = without.iter().find(|(other, _)| other == name);
        other.is_some_and(|(_, other)| largest_error(data, other).0 > 1e-2)
    })
}

#[test]
fn decode() {
    check(paths::ONE_QUERY);
}

#[test]
fn one_query_of_grouped_heads() {
    check(paths::ONE_QUERY_GROUPED);
}

#[test]
fn one_query_and_many_keys() {
    check(paths::ONE_QUERY_MANY_KEYS);
}

#[test]
fn one_query_and_keys_of_several_tasks() {
    check(paths::ONE_QUERY_SPLIT);
}

#[test]
fn few_queries_and_keys() {
    check(paths::SHORT);
}

#[test]
fn more_queries_than_keys() {
    check(paths::TALL);
}

#[test]
fn one_key() {
    check(paths::ONE_KEY);
}

#[test]
fn grouped_heads() {
    check(paths::GROUPED);
}

#[test]
fn a_task_for_each_head() {
    check(paths::MANY_HEADS);
}

#[test]
fn one_head_among_several_tasks() {
    check(paths::SPLIT);
}

#[test]
fn several_tiles_and_blocks() {
    check(paths::TILES);
}

#[test]
fn several_tiles_and_more_queries_than_keys() {
    check(paths::TALL_TILES);
}

#[test]
#[cfg(debug_assertions)]
fn vectors_of_64_bytes_on_any_machine() {
    use crate::run::EMULATED_512;

    for (name, sizes) in [
        paths::ONE_QUERY_GROUPED,
        paths::ONE_QUERY_SPLIT,
        paths::GROUPED,
        paths::SPLIT,
        paths::TILES,
        paths::TALL_TILES,
    ] {
        for case in every_option(&|| Case::new(name, sizes)) {
            let oracle = case.oracle();
            assert_as_good_as_plain::<f32>(&case, &oracle, &[EMULATED_512]);
            assert_as_good_as_plain::<f64>(&case, &oracle, &[EMULATED_512]);
        }
    }
    // Dims that fill vectors: micro-panels of every width.
    for dims in [[64, 64], [32, 80], [16, 24]] {
        let sizes = [1, 2, 1, 150, 210, dims[0], dims[1]];
        let mut case = Case::new("wide", sizes);
        for causal in [
            None,
            Some(burn_attn_kernels_cpu::CausalAlignment::BottomRight),
        ] {
            case.causal = causal;
            assert_as_good_as_plain::<f32>(&case, &case.oracle(), &[EMULATED_512, USUAL]);
        }
    }
}

#[test]
fn expanded_operands_are_those_that_were_copied() {
    let (name, sizes) = paths::GROUPED;
    for shape in shapes(Case::new(name, sizes).scores()) {
        let mut expanded = Case::new(name, sizes);
        expanded.bias = Some((shape, coarse(6, shape.iter().product())));
        expanded.masked = Some((shape, hides_a_third(shape)));
        let mut copied = expanded.clone();
        let scores = copied.scores();
        copied.bias = copied
            .bias
            .map(|(shape, data)| (scores, copy(&data, shape, scores)));
        copied.masked = copied
            .masked
            .map(|(shape, data)| (scores, copy(&data, shape, scores)));
        let expand = How {
            layout: Layout::Expanded,
            ..USUAL
        };
        assert!(
            bits(&run::<f32>(&expanded, expand)) == bits(&run::<f32>(&copied, USUAL)),
            "{shape:?}"
        );
    }
}

fn copy<T: Copy>(data: &[T], shape: [usize; 4], full: [usize; 4]) -> Vec<T> {
    let operand = Broadcast::new(data, shape).unwrap();
    let at = |flat: usize| {
        let [_, heads, queries, keys] = full;
        (
            flat / keys / queries / heads,
            flat / keys / queries % heads,
            flat / keys % queries,
            flat % keys,
        )
    };
    let get = |(batch_item, head, query, key)| operand.get(batch_item, head, query, key);
    (0..full.iter().product())
        .map(|flat| get(at(flat)))
        .collect()
}
