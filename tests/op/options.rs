//! What the options say together, and in which types.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, CausalAlignment,
    ops::{attention, attention_with_logsumexp, backend::composed_attention, merge_partial},
};
use burn_attn_tests::{
    compare::{assert_close, difference, numbers_f64},
    devices,
    numbers::uniform,
};

use crate::{case::Case, properties::output_with};

const F32: DType = DType::F32;

fn run(case: &Case, device: &Device, options: AttentionOptions) -> Vec<f64> {
    numbers_f64(&output_with(case, device, options))
}

#[test]
fn masks_given_one_after_the_other_all_hide() {
    for device in devices::all() {
        let case = Case::usual("masks");
        let lengths = || AttentionMask::key_lengths(Tensor::from_data([9, 4], &device));
        let window = || AttentionMask::window(2, 1);
        let both = AttentionMask::causal().and(lengths()).and(window());
        let expected = run(&case, &device, AttentionOptions::default().mask(both));
        for options in [
            AttentionOptions::default()
                .causal()
                .mask(lengths())
                .mask(window()),
            AttentionOptions::default()
                .mask(window())
                .mask(lengths())
                .causal(),
        ] {
            assert_eq!(run(&case, &device, options), expected);
        }
    }
}

#[test]
fn a_causal_mask_takes_the_alignment_that_another_names() {
    for device in devices::all() {
        let case = Case::usual("alignment");
        let run = |mask| run(&case, &device, AttentionOptions::default().mask(mask));
        let named = || AttentionMask::causal_aligned(CausalAlignment::TopLeft);
        let expected = run(named());
        assert_ne!(run(AttentionMask::causal()), expected);
        assert_eq!(run(AttentionMask::causal().and(named())), expected);
        assert_eq!(run(named().and(AttentionMask::causal())), expected);
    }
}

#[test]
fn biases_given_one_after_the_other_are_added() {
    for device in devices::all() {
        let case = Case::usual("biases");
        let dense = || {
            let (_, data) = Case::usual("bias").with_bias([1, 5, 1, 11]).bias.unwrap();
            let data = TensorData::new(data, [1, 5, 1, 11]).convert_dtype(F32);
            AttentionBias::dense(Tensor::from_data(data, &device))
        };
        let slopes =
            || AttentionBias::alibi(Tensor::from_data([0.5_f32, 0.25, 0.125, 0.1, 0.0], &device));
        let options = AttentionOptions::default;
        let expected = run(&case, &device, options().bias(dense().and(slopes())));
        assert_eq!(
            run(&case, &device, options().bias(dense()).bias(slopes())),
            expected
        );
        assert_ne!(run(&case, &device, options().bias(slopes())), expected);
    }
}

#[test]
fn key_lengths_may_be_of_a_type_too_narrow_to_count_the_keys() {
    let case = Case::new("narrow lengths", [2, 1, 1, 3, 300, 2, 5]);
    for device in devices::all() {
        let bodies = [attention_with_logsumexp, composed_attention];
        let count = if devices::is_sampled(&device) { 1 } else { 2 };
        for attention in bodies.into_iter().take(count) {
            let run = |dtype| {
                let lengths = TensorData::from([100_i64, 7]).convert_dtype(dtype);
                let lengths = Tensor::<1, Int>::from_data(lengths, (&device, dtype));
                let options = AttentionOptions::default().mask(AttentionMask::key_lengths(lengths));
                let [query, key, value] = case.operands(&device, F32);
                numbers_f64(&attention(query, key, value, options).0)
            };
            let expected = run(DType::I32);
            for dtype in [DType::U8, DType::I8, DType::I16] {
                if device.supports_dtype(dtype) {
                    assert_eq!(run(dtype), expected, "{dtype:?} on {device:?}");
                }
            }
        }
    }
}

#[test]
fn key_lengths_of_two_types_are_both_kept() {
    let case = Case::new("two types", [2, 1, 1, 3, 300, 2, 5]);
    for device in devices::all() {
        let types = [DType::U8, DType::I8];
        if !types.iter().all(|&dtype| device.supports_dtype(dtype)) {
            continue;
        }
        let run = |mask| run(&case, &device, AttentionOptions::default().mask(mask));
        let lengths = |lengths: [i64; 2], dtype| {
            let lengths = TensorData::from(lengths).convert_dtype(dtype);
            AttentionMask::key_lengths(Tensor::from_data(lengths, (&device, dtype)))
        };
        let expected = run(lengths([100, 7], DType::I32));
        let longer = || lengths([200, 7], DType::U8);
        let shorter = || lengths([100, 9], DType::I8);
        assert_eq!(run(longer().and(shorter())), expected, "{device:?}");
        assert_eq!(run(shorter().and(longer())), expected, "{device:?}");
    }
}

#[test]
fn scores_below_every_f32_are_scores_in_f64() {
    let case = Case::usual("far below");
    for device in devices::with(DType::F64) {
        let operands = || case.operands(&device, DType::F64);
        // One bias for all keys changes no weight.
        let bias = Tensor::<4>::full([1, 1, 1, 1], -1e60, (&device, DType::F64));
        let far = AttentionOptions::default().bias(AttentionBias::dense(bias));
        // At −1e60 the differences of the scores are gone: every key has the same weight.
        let alike = AttentionOptions::default().scale(0.0);
        for attention in [attention_with_logsumexp, composed_attention] {
            let [query, key, value] = operands();
            let expected = numbers_f64(&attention(query, key, value, alike.clone()).0);
            let [query, key, value] = operands();
            let (output, logsumexp) = attention(query, key, value, far.clone());
            assert!(numbers_f64(&logsumexp).iter().all(|&x| x == -1e60));
            let part = (output.clone(), logsumexp);
            let (merged, _) = merge_partial(&[part.clone(), part]);
            for actual in [output, merged] {
                assert!(difference(&numbers_f64(&actual), &expected) < 1e-13);
            }
        }
    }
}

#[test]
fn masks_of_different_integer_types_go_together() {
    let case = Case::usual("integer types");
    for (name, device) in devices::cpu() {
        println!("on {name}");
        let device = &device;
        let ints = |numbers: Vec<i64>, len, dtype| {
            let numbers = TensorData::new(numbers, [2, len]).convert_dtype(dtype);
            Tensor::<2, Int>::from_data(numbers, (device, dtype))
        };
        let lengths = |numbers: [i64; 2], dtype| {
            let numbers = TensorData::from(numbers).convert_dtype(dtype);
            AttentionMask::key_lengths(Tensor::from_data(numbers, (device, dtype)))
        };
        let segments = |shift: i64, types: [DType; 2]| {
            let queries = (0..14).map(|at| at % 3 + shift).collect();
            let keys = (0..22).map(|at| at % 2 + shift).collect();
            AttentionMask::segments(ints(queries, 7, types[0]), ints(keys, 11, types[1]))
        };
        let mask = |types: [DType; 2]| {
            segments(0, types)
                .and(segments(7, types))
                .and(lengths([9, 4], types[0]))
                .and(lengths([11, 3], types[1]))
        };
        let options = |types| AttentionOptions::default().mask(mask(types));
        let expected = run(&case, device, options([DType::I64; 2]));
        for types in [[DType::I32, DType::I64], [DType::I64, DType::I32]] {
            assert_eq!(run(&case, device, options(types)), expected);
        }
        // An id beyond the range of the narrower type equals no id of that type.
        let far = |types: [DType; 2]| {
            let mask = AttentionMask::segments(
                ints(vec![5; 14], 7, types[0]),
                ints(vec![5 + (1 << 32); 22], 11, types[1]),
            );
            run(&case, device, AttentionOptions::default().mask(mask))
        };
        let output = far([DType::I32, DType::I64]);
        assert!(output.iter().all(|&x| x == 0.0));
    }
}

/// Two packings, of which the second is a dense mask, beside a cache that has dropped keys: what they hide of the kept ones.
#[test]
fn two_packings_of_kept_keys() {
    for (name, device) in devices::cpu() {
        let ids = |ids: [i32; 9]| Tensor::<2, Int>::from_data([ids], &device);
        let query = || Tensor::<2, Int>::from_data([[1, 1, 2]], &device);
        let keys = [[1, 1, 2, 2, 1, 1, 1, 2, 2], [1, 2, 1, 2, 1, 2, 1, 1, 2]];
        let [first, second] = keys.map(|keys| AttentionMask::segments(query(), ids(keys)));
        let options = AttentionOptions::default().mask(first.and(second));
        let [q, k, v] = [(3, 1), (9, 2), (9, 3)].map(|(len, seed)| {
            let numbers = TensorData::new(uniform(seed, len * 8), [1, 1, len, 8]);
            Tensor::<4>::from_data(numbers, &device)
        });
        let hides_four = Tensor::<1, Int>::from_data([4], &device);
        let whole = options.clone().mask(AttentionMask::masked(
            Tensor::<1, Int>::arange(0..9, &device)
                .lower(hides_four)
                .reshape([1, 1, 1, 9]),
        ));
        let expected = attention(q.clone(), k.clone(), v.clone(), whole);
        let kept = options.of_kept_keys(&[4], 5, [3, 9]);
        let [k, v] = [k, v].map(|all| all.narrow(2, 4, 5));
        let found = attention(q, k, v, kept);
        assert_close(name, &found.into_data(), &expected.into_data(), 1e-6);
    }
}
