//! Tables of what mask functions show of blocks: they change the cost, never the numbers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use burn::tensor::{DType, Device, Int, Tensor};
use burn_attn::{
    AttentionMask, AttentionOptions, Captured, CausalAlignment, MaskFunction, ScoreFunction, ops,
};
use burn_attn_tests::{devices, sentence};

use crate::{
    body::Body,
    case::Case,
    mask_functions::{Form, SIZES, dense, forms},
    oracle::{assert_is_of_oracle, implementations},
};

const SCORES: [usize; 4] = [2, 6, 7, 11];

/// Panics unless a table for these scores, in blocks of this size, leaves the function a dense mask.
fn assert_is_dense(form: &Form, scores: [usize; 4], size: [usize; 2]) {
    let case = Case::new("tables", SIZES);
    let expected = dense(&case, form.visible);
    for (body, device) in implementations(DType::F64) {
        let add = |options: AttentionOptions, device: &Device| {
            let function = (form.function)(device).in_blocks(scores, size, device);
            options.mask(AttentionMask::function(function))
        };
        let actual = case.run_with(body, &device, [DType::F64; 2], add);
        let what = format!(
            "of '{}' with a table for {scores:?} in blocks of {size:?} by {body:?} on {device:?}",
            form.name
        );
        assert_is_of_oracle(expected.oracle(), actual, 1e-13, &what);
    }
}

#[test]
fn functions_with_tables_are_dense_masks() {
    for form in forms() {
        for size in [[2, 3], [1, 1], [4, 64]] {
            assert_is_dense(&form, SCORES, size);
        }
    }
}

/// One batch item or head stands for all where the function says the same of all.
#[test]
fn tables_of_one_item_or_head_are_broadcast() {
    let least = [[1, 1], [1, 6], [2, 1], [2, 1], [1, 1]];
    for (form, [batch, heads]) in forms().iter().zip(least) {
        // In blocks of one pair, the function is its table.
        for size in [[2, 3], [1, 1]] {
            assert_is_dense(form, [batch, heads, 7, 11], size);
        }
    }
    let (function, count) = counted();
    drop(function.in_blocks([1, 1, 7, 11], 4, &devices::any()));
    assert_eq!(count.load(Ordering::Relaxed), 7 * 11);
}

/// A causal function, and how many pairs it has been asked about.
fn counted() -> (MaskFunction, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let of_function = count.clone();
    let function = MaskFunction::new("causal", move |pairs| {
        of_function.fetch_add(pairs.sizes().iter().product(), Ordering::Relaxed);
        pairs.distances().greater_equal_elem(0)
    });
    (function, count)
}

/// Forward and backward; how many pairs were asked about.
fn asked(body: Body, mask: &AttentionMask, count: &AtomicUsize, device: &Device) -> usize {
    let options = AttentionOptions::default().mask(mask.clone());
    asked_with(body, options, count, device)
}

fn asked_with(
    body: Body,
    options: AttentionOptions,
    count: &AtomicUsize,
    device: &Device,
) -> usize {
    let before = count.load(Ordering::Relaxed);
    let case = Case::new("counted", [1, 1, 1, 64, 64, 8, 8]);
    let [query, key, value] = case.operands(&device.clone().autodiff(), DType::F32);
    let (output, _) = body.attend([query.require_grad(), key, value], options);
    output.sum().backward();
    count.load(Ordering::Relaxed) - before
}

#[test]
fn only_blocks_shown_in_part_are_asked_about() {
    let body = Body::Blockwise(64);
    for (_, device) in devices::cpu() {
        let (function, count) = counted();
        let plain = AttentionMask::function(function.clone());
        let all = asked(body, &plain, &count, &device);
        assert!(all >= 2 * 64 * 64, "{all}");
        let table = function.in_blocks([1, 1, 64, 64], 8, &device);
        let mask = AttentionMask::function(table);
        let few = asked(body, &mask, &count, &device);
        assert!(0 < few && 2 * few < all, "{few} of {all}");
        // Another layer, another step.
        assert_eq!(asked(body, &mask.clone(), &count, &device), few);
        // Each query is a block: nothing is shown in part.
        let (function, count) = counted();
        let exact = AttentionMask::function(function.in_blocks([1, 1, 64, 64], 1, &device));
        assert_eq!(asked(Body::Backend, &exact, &count, &device), 0);
    }
}

/// The blockwise body leaves out blocks that are hidden by a function that shows or hides whole blocks alone.
#[test]
fn blocks_hidden_by_exact_tables_are_left_out() {
    for (_, device) in devices::cpu() {
        let count = Arc::new(AtomicUsize::new(0));
        let of_function = count.clone();
        let score = ScoreFunction::new("counted", move |scores, _| {
            of_function.fetch_add(scores.shape().num_elements(), Ordering::Relaxed);
            scores
        });
        let options = AttentionOptions::default().score_function(score);
        let body = Body::Blockwise(4);
        let all = asked_with(body, options.clone(), &count, &device);
        let halves = MaskFunction::new("halves", |pairs| {
            let half = |x: Tensor<4, Int>| (x + 32) / 64;
            (half(pairs.queries()) - half(pairs.keys())).equal_elem(0)
        });
        let halves = halves.in_blocks([1, 1, 64, 64], 32, &device);
        let options = options.mask(AttentionMask::function(halves));
        let few = asked_with(body, options, &count, &device);
        assert!(0 < few && 2 * few <= all, "{few} of {all}");
    }
}

/// Beside a cache that has dropped no key, a table holds; beside another, the function itself is asked.
#[test]
fn tables_hold_where_all_keys_are_kept() {
    let body = Body::Blockwise(64);
    for (_, device) in devices::cpu() {
        let (function, count) = counted();
        let table = function.in_blocks([1, 1, 64, 64], 8, &device);
        let mask = AttentionMask::function(table);
        let few = asked(body, &mask, &count, &device);
        let options = AttentionOptions::default().mask(mask);
        let kept = options.clone().of_kept_keys(&[0], 64, [64, 64]);
        assert_eq!(asked_with(body, kept, &count, &device), few);
        // 64 of 72 keys are left.
        let dropped = options.of_kept_keys(&[8], 64, [64, 72]);
        assert!(asked_with(body, dropped, &count, &device) >= 2 * 64 * 64);
    }
}

/// A table is for the default positions: elsewhere, the function itself is asked.
#[test]
fn tables_do_not_hold_for_queries_elsewhere() {
    for (_, device) in devices::cpu() {
        let case = Case {
            query_offsets: Some(vec![0, 2]),
            ..Case::new("offsets", SIZES)
        };
        let causal = Case {
            causal: Some(Default::default()),
            ..case.clone()
        };
        let top_left = Case {
            causal: Some(CausalAlignment::TopLeft),
            ..Case::new("top-left", SIZES)
        };
        for (case, expected) in [(&case, &causal), (&top_left, &top_left)] {
            for body in [Body::Backend, Body::Blockwise(7)] {
                let add = |options: AttentionOptions, device: &Device| {
                    let (function, _) = counted();
                    let table = function.in_blocks(SCORES, 2, device);
                    options.mask(AttentionMask::function(table))
                };
                let actual = case.run_with(body, &device, [DType::F64; 2], add);
                let what = format!("of '{}' by {body:?} on {device:?}", case.name);
                assert_is_of_oracle(expected.oracle(), actual, 1e-13, &what);
            }
        }
    }
}

#[cfg(all(feature = "flex", feature = "ndarray"))]
#[test]
fn tables_move_to_the_device_of_the_call() {
    let [first, second] = devices::two();
    let case = Case::new("moved", SIZES);
    let outputs = |of_table: &Device| {
        // In blocks of one pair, the function is its table, which the call reads.
        let table = counted().0.in_blocks([1, 1, 7, 11], 1, of_table);
        let mask = AttentionMask::function(table);
        let masks = [mask.clone(), mask.or(AttentionMask::window(1, 2))];
        masks.map(|mask| {
            let [query, key, value] = case.operands(&first, DType::F32);
            let options = AttentionOptions::default().mask(mask);
            ops::attention(query, key, value, options).into_data()
        })
    };
    assert_eq!(outputs(&second), outputs(&first));
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let device = devices::any();
    let case = Case::new("refused", SIZES);
    let (function, _) = counted();
    // Lengths of 1 stand for no others.
    for scores in [[2, 6, 7, 12], [3, 6, 7, 11], [1, 3, 7, 11], [1, 1, 1, 11]] {
        let table = function.clone().in_blocks(scores, 4, &device);
        let options = AttentionOptions::default().mask(AttentionMask::function(table));
        let [query, key, value] = case.operands(&device, DType::F32);
        assert_eq!(
            sentence(|| ops::attention(query, key, value, options)),
            format!(
                "attention: the table of the mask function 'causal' is for scores {scores:?}, but these are [2, 6, 7, 11] [batch, heads, len_q, len_kv]; \
                 a batch of 1 or 1 head in a table fits any number"
            )
        );
    }
    assert_eq!(
        sentence(|| function.clone().in_blocks(SCORES, [0, 4], &device)),
        "a block of a mask needs at least 1 query and 1 key, but has 0 and 4"
    );
    let refused = |captured: Captured| {
        let function = function.clone().capture(captured);
        sentence(|| function.in_blocks(SCORES, 4, &device))
    };
    let numbers = |shape: [usize; 2]| Tensor::<2>::zeros(shape, &device);
    assert_eq!(
        refused(Captured::per_key(numbers([2, 10]))),
        "attention: captured tensor 0 of the function 'causal' [2, 1, 1, 10] does not broadcast to the scores [2, 6, 7, 11] [batch, heads, len_q, len_kv]"
    );
    // It may say something else of each batch item.
    let of_items = function
        .clone()
        .capture(Captured::per_key(numbers([2, 11])));
    assert_eq!(
        sentence(|| of_items.in_blocks([1, 6, 7, 11], 4, &device)),
        "attention: captured tensor 0 of the function 'causal' [2, 1, 1, 11] does not broadcast to the scores [1, 6, 7, 11] [batch, heads, len_q, len_kv]"
    );
    for (captured, needs) in [
        (
            Captured::per_key(numbers([2, 1])),
            "[2, 1, 1, 1] needs one number for each of 11 keys",
        ),
        (
            Captured::per_query(numbers([1, 1])),
            "[1, 1, 1, 1] needs one number for each of 7 queries",
        ),
        (
            Captured::per_head(Tensor::<1>::zeros([1], &device)),
            "[1, 1, 1, 1] needs one number for each of 6 query heads",
        ),
    ] {
        assert_eq!(
            refused(captured),
            format!("attention: captured tensor 0 of the function 'causal' {needs}")
        );
    }
}
