//! Mask functions against dense masks, and what functions are refused for.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, AttentionOptions, Captured, CausalAlignment, MaskFunction, Pairs, ScoreFunction,
    ops,
};
use burn_attn_tests::{compare::numbers, devices, sentence};

use crate::{
    case::Case,
    oracle::{TOLERANCE_OF_F32, assert_is_of_oracle, implementations},
    scalar_forms::{Causal, Documents, Odd, Parity},
};

pub const SIZES: [usize; 7] = [2, 6, 3, 7, 11, 5, 13];

/// Whether a query sees a key: of a batch item, a head, and the indices of both.
pub type Visible = fn([usize; 4]) -> bool;

/// A mask in both forms.
pub struct Form {
    pub name: &'static str,
    pub function: fn(&Device) -> MaskFunction,
    pub visible: Visible,
}

/// The document of each token of a batch item, by its distance from the last one.
fn document(batch_item: usize, from_last: usize) -> usize {
    from_last / (3 + batch_item)
}

fn documents(len: usize, device: &Device) -> Tensor<2, Int> {
    let documents = (0..2 * len).map(|at| document(at / len, len - 1 - at % len) as i64);
    Tensor::from_data(
        TensorData::new(documents.collect::<Vec<_>>(), [2, len]),
        device,
    )
}

pub fn forms() -> Vec<Form> {
    vec![
        Form {
            name: "causal",
            function: |_| {
                MaskFunction::new("causal", |pairs| pairs.distances().greater_equal_elem(0))
                    .scalar(Causal)
            },
            visible: |[_, _, query, key]| key <= query + 4,
        },
        Form {
            name: "even keys of even heads, odd ones of odd heads",
            function: |_| {
                MaskFunction::new("parity", |pairs| {
                    (pairs.heads() + pairs.keys())
                        .remainder_scalar(2)
                        .equal_elem(0)
                })
                .scalar(Parity)
            },
            visible: |[_, head, _, key]| (head + key) % 2 == 0,
        },
        Form {
            name: "documents",
            function: |device| {
                MaskFunction::new("documents", |pairs| {
                    let [of_query, of_key] = pairs.ints();
                    (of_query - of_key).equal_elem(0)
                })
                .capture(Captured::per_query(documents(7, device)))
                .capture(Captured::per_key(documents(11, device)))
                .scalar(Documents)
            },
            visible: |[batch_item, _, query, key]| {
                document(batch_item, 6 - query) == document(batch_item, 10 - key)
            },
        },
        Form {
            name: "some queries see nothing, some keys are never seen",
            function: |_| {
                MaskFunction::new("odd", |pairs| {
                    let odd = |x: Tensor<4, Int>| x.remainder_scalar(2);
                    (odd(pairs.queries()) * odd(pairs.keys() + pairs.batch_items())).equal_elem(1)
                })
                .scalar(Odd)
            },
            visible: |[batch_item, _, query, key]| query % 2 == 1 && (key + batch_item) % 2 == 1,
        },
        Form {
            name: "a number of the query",
            function: |device| {
                let reach = Tensor::<2>::from_data([[0.0, 3.5, 1.0, 20.0, 5.0, 2.0, 7.5]], device);
                MaskFunction::new("reach", |pairs| {
                    let [reach] = pairs.floats();
                    let [_, _, queries, keys] = pairs.sizes();
                    let of_key = pairs.keys().float().expand([1, 1, queries, keys]);
                    of_key.lower_equal(
                        reach
                            .cast(burn::tensor::FloatDType::F32)
                            .expand([1, 1, queries, keys]),
                    )
                })
                .capture(Captured::per_query(reach))
            },
            visible: |[_, _, query, key]| key as f64 <= [0.0, 3.5, 1.0, 20.0, 5.0, 2.0, 7.5][query],
        },
    ]
}

/// The case with a dense mask in place of the function.
pub fn dense(case: &Case, visible: Visible) -> Case {
    let p = case.problem;
    let shape @ [_, heads, len_q, len_kv] = [p.batch, p.heads_q, p.len_q, p.len_kv];
    let masked = (0..shape.iter().product()).map(|at: usize| {
        let (row, key) = (at / len_kv, at % len_kv);
        let (head, query) = (row / len_q, row % len_q);
        !visible([head / heads, head % heads, query, key])
    });
    Case {
        masked: Some((shape, masked.collect())),
        ..case.clone()
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case::new("nothing else", SIZES),
        Case {
            window: Some(burn_attn_kernels_cpu::Window {
                left: Some(4),
                right: Some(2),
            }),
            key_lengths: Some(vec![11, 6]),
            softcap: Some(1.5),
            ..Case::new("a window, padding and more", SIZES)
                .with_sinks()
                .with_alibi()
        },
    ]
}

fn agree(dtype: DType, tolerance: f64) {
    for case in cases() {
        for form in forms() {
            let expected = || dense(&case, form.visible).oracle();
            for (body, device) in implementations(dtype) {
                let add = |options: AttentionOptions, device: &Device| {
                    options.mask(AttentionMask::function((form.function)(device)))
                };
                let actual = case.run_with(body, &device, [dtype, dtype], add);
                let what = format!(
                    "of '{}' in '{}' by {body:?} on {device:?}",
                    form.name, case.name
                );
                assert_is_of_oracle(expected(), actual, tolerance, &what);
            }
        }
    }
}

#[test]
fn mask_functions_in_f64_are_dense_masks() {
    agree(DType::F64, 1e-13);
}

#[test]
fn mask_functions_in_f32_are_dense_masks() {
    agree(DType::F32, TOLERANCE_OF_F32);
}

/// A union with a function, and a causal mask that names another alignment.
#[test]
fn functions_combine_as_masks_do() {
    let parity = |device: &Device| {
        AttentionMask::function(MaskFunction::new("parity", |pairs| {
            (pairs.queries() + pairs.keys())
                .remainder_scalar(2)
                .equal_elem(0)
        }))
        .or(AttentionMask::key_lengths(Tensor::<1, Int>::from_data(
            [3, 5],
            device,
        )))
        .and(AttentionMask::causal_aligned(CausalAlignment::TopLeft))
    };
    let case = Case::new("combined", SIZES);
    let expected = dense(&case, |[batch_item, _, query, key]| {
        ((query + key) % 2 == 0 || key < [3, 5][batch_item]) && key <= query
    });
    for (body, device) in implementations(DType::F64) {
        let add = |options: AttentionOptions, device: &Device| options.mask(parity(device));
        let actual = case.run_with(body, &device, [DType::F64; 2], add);
        let what = format!("by {body:?} on {device:?}");
        assert_is_of_oracle(expected.oracle(), actual, 1e-13, &what);
    }
}

/// The steps show what a function hides, and the scores that it makes.
#[test]
fn steps_show_functions() {
    let device = devices::any();
    let case = Case::new("steps", SIZES);
    let [query, key, _] = case.operands(&device, DType::F32);
    let options = AttentionOptions::default()
        .mask(AttentionMask::function((forms()[1].function)(&device)))
        .score_function(ScoreFunction::new("twice", |scores, _| scores * 2.0))
        .scale(0.25);
    let steps = ops::attention_steps(query, key, options);
    let [(name, hidden)] = &steps.hidden[..] else {
        panic!("one part hides");
    };
    assert_eq!(*name, "function");
    let hidden = hidden.to_data();
    let seen: Vec<bool> = hidden.iter::<bool>().map(|hidden| !hidden).collect();
    let expected = dense(&case, forms()[1].visible)
        .masked
        .expect("it is dense")
        .1;
    assert!(
        seen.iter()
            .zip(&expected)
            .all(|(seen, masked)| seen != masked)
    );
    // The function sees a score of 1 where a pair is hidden.
    let half = (steps.scores * 0.5).mask_fill(steps.hidden[0].1.clone(), 2.0);
    let half = (steps.scaled - half).abs().max().into_scalar::<f32>();
    assert!(half <= 1e-6, "off by {half}");
}

/// Scores beyond f16 whose scaled numbers are within it.
#[test]
fn steps_of_half_precision_are_in_f32() {
    for (_, device) in devices::cpu() {
        if !device.supports_dtype(DType::F16) {
            continue;
        }
        let x = |len: usize| Tensor::<4>::full([2, 3, len, 64], 40.0, (&device, DType::F16));
        let steps = ops::attention_steps(x(5), x(7), AttentionOptions::default());
        let [scores, scaled] = [steps.scores, steps.scaled].map(|x| numbers(&x));
        assert_eq!(scores, [102_400.0; 2 * 3 * 5 * 7]);
        assert_eq!(scaled, [12_800.0; 2 * 3 * 5 * 7]);
    }
}

/// Every part counts from the position that the whole mask names, in the steps as in the call.
#[test]
fn steps_count_as_the_call_does() {
    let device = devices::any();
    let case = Case::new("steps", SIZES);
    let causal = MaskFunction::new("causal", |pairs| pairs.distances().greater_equal_elem(0));
    let lengths = Tensor::<1, Int>::from_data([3, 5], &device);
    let parts = [
        ("function", AttentionMask::function(causal)),
        (
            "union",
            AttentionMask::causal().or(AttentionMask::key_lengths(lengths)),
        ),
    ];
    for (part, mask) in parts {
        let mask = mask.and(AttentionMask::causal_aligned(CausalAlignment::TopLeft));
        let [query, key, _] = case.operands(&device, DType::F32);
        let steps = ops::attention_steps(query, key, AttentionOptions::default().mask(mask));
        let names: Vec<_> = steps.hidden.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["causal", part]);
        let expected = dense(
            &case,
            match part {
                "function" => |[_, _, query, key]| key <= query,
                _ => |[batch_item, _, query, key]| key <= query || key < [3, 5][batch_item],
            },
        );
        let hidden: Vec<bool> = steps.hidden[1].1.to_data().iter().collect();
        assert_eq!(hidden, expected.masked.expect("it is dense").1, "{part}");
    }
}

/// `placed` makes a causal mask top-left that names no alignment.
#[test]
fn steps_of_placed_options_count_as_the_call_does() {
    let case = Case::new("placed", SIZES);
    let [query, key, _] = case.operands(&devices::any(), DType::F32);
    let causal = MaskFunction::new("causal", |pairs| pairs.distances().greater_equal_elem(0));
    let mask = AttentionMask::causal().and(AttentionMask::function(causal));
    let options = AttentionOptions::default().mask(mask);
    let options = options.placed(&query, key.dims()[2], &[0]);
    let steps = ops::attention_steps(query, key, options).hidden;
    let hidden = |step: usize| -> Vec<bool> { steps[step].1.to_data().iter().collect() };
    assert!(hidden(0) == hidden(1) && hidden(0).contains(&true));
}

/// What `attention` says of scores by a function.
fn refused(function: ScoreFunction, device: &Device) -> String {
    let case = Case::new("refused", SIZES);
    let [query, key, value] = case.operands(device, DType::F32);
    let options = AttentionOptions::default().score_function(function);
    sentence(|| ops::attention(query, key, value, options))
}

#[test]
fn functions_that_cannot_be_are_refused() {
    for (_, device) in devices::cpu() {
        let score = |function: fn(Tensor<4>, &Pairs) -> Tensor<4>| {
            refused(ScoreFunction::new("mine", function), &device)
        };
        assert_eq!(
            score(|scores, _| scores.sum_dim(3)),
            "attention: the score function 'mine' returned [2, 6, 7, 1] for scores [2, 6, 7, 11] [batch, heads, queries, keys]"
        );
        assert_eq!(
            score(|scores, _| scores.cast(burn::tensor::FloatDType::F64)),
            "attention: the score function 'mine' returned F64 for scores of F32"
        );
        assert_eq!(
            score(|scores, pairs| {
                let [first, second] = pairs.floats();
                scores + first + second
            }),
            "attention: the function 'mine' reads 2 tensors of floats, but has captured 0"
        );
        let with_nan = |scores: Tensor<4>, pairs: &Pairs| {
            let third = (pairs.queries() * 11 + pairs.keys()).equal_elem(3 * 11 + 5);
            let dims = scores.dims();
            scores.mask_fill(third.expand(dims), f32::NAN)
        };
        // A NaN in what the function captures of another key does not conceal the function's NaN.
        let of_keys = Tensor::<2>::ones([1, 11], &device).slice_fill([0..1, 4..5], f32::NAN);
        let beside_another = ScoreFunction::new("mine", move |scores, pairs| {
            let [of_key] = pairs.floats();
            with_nan(scores * of_key, pairs)
        });
        for function in [
            ScoreFunction::new("mine", with_nan),
            beside_another.capture(Captured::per_key(of_keys)),
        ] {
            let nan = refused(function, &device);
            assert!(
                nan.starts_with(
                    "attention: the score function 'mine' returned NaN for query 3 and key 5 of batch item 0 in head 0, whose score is "
                ),
                "{nan}"
            );
        }
        let bias = Tensor::<4>::zeros([1, 6, 7, 10], &device);
        let function = ScoreFunction::new("mine", |scores, _| scores);
        assert_eq!(
            refused(function.clone().capture(Captured::per_pair(bias)), &device),
            "attention: captured tensor 0 of the function 'mine' [1, 6, 7, 10] does not broadcast to the scores [2, 6, 7, 11] [batch, heads, len_q, len_kv]"
        );
        let numbers = Tensor::<2>::zeros([6, 16], &device);
        assert_eq!(
            refused(function.capture(Captured::by_distance(numbers)), &device),
            "attention: captured tensor 0 of the function 'mine' [6, 16] does not fit 6 query heads, 7 queries and 11 keys, which need 17 distances"
        );
        let tracked = Tensor::<4>::ones([1, 6, 1, 1], &device.clone().autodiff()).require_grad();
        let function = ScoreFunction::new("mine", move |scores, _| scores * tracked.clone());
        assert_eq!(
            refused(function, &device.clone().autodiff()),
            "attention: the score function 'mine' uses a tensor with autodiff that it has not captured; one without a gradient can be moved into it by without_autodiff()"
        );
        let case = Case::new("refused", SIZES);
        let [query, key, value] = case.operands(&device, DType::F32);
        let mask = MaskFunction::new("mine", |pairs: &Pairs| {
            Tensor::<4, Bool>::full([1, 1, 2, 1], true, &pairs.keys().device())
        });
        let options = AttentionOptions::default().mask(AttentionMask::function(mask.clone()));
        assert_eq!(
            sentence(|| ops::attention(query, key, value, options)),
            "attention: the mask function 'mine' returned [1, 1, 2, 1], which does not broadcast to the block [2, 6, 7, 11] [batch, heads, queries, keys]"
        );
        let numbers = Tensor::<2>::zeros([6, 17], &device);
        assert_eq!(
            sentence(|| mask.capture(Captured::by_distance(numbers))),
            "attention: the mask function 'mine' cannot capture numbers by distance"
        );
    }
}

/// A NaN in the operands is not refused.
#[test]
fn a_nan_that_came_in_goes_out() {
    for (_, device) in devices::cpu() {
        let case = Case::new("NaN", SIZES);
        let [query, key, value] = case.operands(&device, DType::F32);
        let query = query.slice_fill([0..1, 0..1, 2..3], f32::NAN);
        let function = ScoreFunction::new("twice", |scores, _| scores * 2.0);
        let options = AttentionOptions::default().score_function(function);
        let output = ops::attention(query, key, value, options).into_data();
        let rows = output.iter::<f32>().collect::<Vec<_>>();
        let nan: Vec<usize> = (0..rows.len() / 13)
            .filter(|row| rows[row * 13].is_nan())
            .collect();
        assert_eq!(nan, [2]);
    }
}
