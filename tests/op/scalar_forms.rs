//! The functions of the suites, number by number.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use burn::tensor::{DType, Device, Tensor};
use burn_attn::{
    AttentionMask, AttentionOptions, Captured, CausalAlignment, MaskFunction, Number, Pair,
    PairBlock, ScoreForm, ScoreFunction, Shown, VisibleForm, ops,
};
use burn_attn_tests::{devices, sentence};

use crate::{
    body::Body,
    case::Case,
    mask_functions::{SIZES, forms},
    oracle::{assert_is_of_oracle, implementations},
};

macro_rules! forms {
    ($($name:ident<$n:literal>: |$score:ident, $pair:ident, $captured:pat_param| $result:expr, $derivatives:expr;)*) => {$(
        pub struct $name;

        impl ScoreForm<$n> for $name {
            fn score<R: Number>(&self, $score: R, $pair: Pair, $captured: [R; $n]) -> R {
                $result
            }

            fn derivatives<R: Number>(&self, $score: R, $pair: Pair, $captured: [R; $n]) -> (R, [R; $n]) {
                $derivatives
            }
        }
    )*};
}

forms! {
    Same<0>: |score, _pair, []| score, { let _ = score; (R::constant(1.0), []) };
    Factor<1>: |score, _pair, [factor]| score * factor, (factor, [score]);
    Product<2>: |score, _pair, [a, b]| score + a * b, { let _ = score; (R::constant(1.0), [b, a]) };
    OfKeys<2>: |score, _pair, [of_key, factor]| score * of_key + of_key * factor, (of_key, [score + factor, of_key]);
    Penalty<1>: |score, pair, [slope]|
        score.tanh() * R::constant(2.0) - slope * R::from_i32(pair.distance().abs()) * R::constant(0.01),
        {
            let tanh = score.tanh();
            let one = R::constant(1.0);
            let _ = slope;
            ((one - tanh * tanh) * R::constant(2.0), [-R::from_i32(pair.distance().abs()) * R::constant(0.01)])
        };
    Indices<0>: |score, pair, []|
        score + R::from_i32(pair.batch_item * 3 + pair.head * 2 + pair.query - pair.key) * R::constant(0.1),
        {
            let _ = (score, pair);
            (R::constant(1.0), [])
        };
}

pub struct Causal;

impl VisibleForm<0> for Causal {
    fn visible(&self, pair: Pair, _: [i64; 0]) -> bool {
        pair.distance() >= 0
    }

    fn block(&self, block: &PairBlock) -> Shown {
        let (keys, positions) = (&block.keys, &block.positions);
        if positions.start >= keys.end - 1 {
            Shown::All
        } else if positions.end > keys.start {
            Shown::Some
        } else {
            Shown::Nothing
        }
    }
}

pub struct Parity;

impl VisibleForm<0> for Parity {
    fn visible(&self, pair: Pair, _: [i64; 0]) -> bool {
        (pair.head + pair.key) % 2 == 0
    }
}

pub struct Documents;

impl VisibleForm<2> for Documents {
    fn visible(&self, _: Pair, [of_query, of_key]: [i64; 2]) -> bool {
        of_query == of_key
    }
}

pub struct Odd;

impl VisibleForm<0> for Odd {
    fn visible(&self, pair: Pair, _: [i64; 0]) -> bool {
        pair.query % 2 == 1 && (pair.key + pair.batch_item) % 2 == 1
    }
}

/// Where kernels run the form of single numbers, nothing asks for that of tensors: forward, backward, and for one query.
#[test]
fn kernels_run_scalar_forms() {
    for (name, device) in devices::cpu() {
        for len_q in [7, 1] {
            // Burn's ndarray has no bf16.
            let bf16 = (name == "flex").then_some(DType::BF16);
            for dtype in [DType::F32, DType::F64].into_iter().chain(bf16) {
                let calls = Arc::new(AtomicUsize::new(0));
                let [of_scores, of_mask] = [calls.clone(), calls.clone()];
                let score = ScoreFunction::new("factor", move |scores, pairs| {
                    of_scores.fetch_add(1, Ordering::Relaxed);
                    let [factor] = pairs.floats();
                    scores * factor
                });
                let mask = MaskFunction::new("causal", move |pairs| {
                    of_mask.fetch_add(1, Ordering::Relaxed);
                    pairs.distances().greater_equal_elem(0)
                });
                let device = device.clone().autodiff();
                let factors = Tensor::<1>::from_data([0.5, 0.4, 0.3, 0.2, 0.1, 0.6], &device);
                let factors = factors.require_grad();
                let score = score.capture(Captured::per_head(factors.clone()));
                let options = AttentionOptions::default()
                    .score_function(score.scalar(Factor))
                    .mask(AttentionMask::function(mask.scalar(Causal)));
                let case = Case::new("scalar", [2, 6, 3, len_q, 11, 5, 13]);
                let operands = case.operands(&device, dtype);
                let (output, _) = Body::Backend.attend(operands.clone(), options.clone());
                let gradients = output.sum().backward();
                assert!(factors.grad(&gradients).is_some());
                assert_eq!(calls.load(Ordering::Relaxed), 0, "{dtype:?} on {device:?}");
                Body::Blockwise(2).attend(operands, options);
                assert!(calls.load(Ordering::Relaxed) >= 2);
            }
        }
    }
}

#[test]
fn forms_that_read_another_number_are_refused() {
    let device = devices::any();
    let [query, key, value] = Case::new("refused", SIZES).operands(&device, DType::F32);
    let attend = |options| {
        let operands = (query.clone(), key.clone(), value.clone());
        sentence(|| ops::attention(operands.0, operands.1, operands.2, options))
    };
    let score = ScoreFunction::new("mine", |scores, _| scores).scalar(Product);
    assert_eq!(
        attend(AttentionOptions::default().score_function(score)),
        "attention: the scalar form of the function 'mine' reads 2 floats, but 0 are captured"
    );
    let mask = MaskFunction::new("mine", |pairs| pairs.keys().equal_elem(0)).scalar(Documents);
    assert_eq!(
        attend(AttentionOptions::default().mask(AttentionMask::function(mask))),
        "attention: the scalar form of the function 'mine' reads 2 integers, but 0 are captured"
    );
}

/// A function that captures a tensor with gradient checkpointing runs again without it, with the same gradients.
#[test]
fn gradient_checkpointing_changes_no_gradient() {
    for (_, device) in devices::cpu() {
        let gradient = |device: Device| {
            let factors = Tensor::<1>::from_data([0.5, 0.4, 0.3, 0.2, 0.1, 0.6], &device);
            let factors = factors.require_grad();
            let score = ScoreFunction::new("factor", |scores, pairs| {
                let [factor] = pairs.floats();
                scores * factor
            });
            let score = score.capture(Captured::per_head(factors.clone() * 2.0));
            let options = AttentionOptions::default().score_function(score);
            let operands = Case::new("checkpointed", SIZES).operands(&device, DType::F32);
            let (output, _) = Body::Blockwise(7).attend(operands, options);
            let gradients = output.powi_scalar(2).sum().backward();
            factors.grad(&gradients).expect("a gradient").into_data()
        };
        let plain = gradient(device.clone().autodiff());
        assert!(plain.iter::<f32>().all(|x| x != 0.0));
        assert_eq!(gradient(device.autodiff().gradient_checkpointing()), plain);
    }
}

/// A scalar form gets the positions that offsets name, and is asked about blocks at them.
#[test]
fn mask_functions_count_from_query_offsets() {
    let case = Case {
        query_offsets: Some(vec![3, -2]),
        ..Case::new("offsets", SIZES)
    };
    let expected = Case {
        causal: Some(CausalAlignment::BottomRight),
        ..case.clone()
    };
    for (body, device) in implementations(DType::F64) {
        let add = |options: AttentionOptions, device: &Device| {
            options.mask(AttentionMask::function((forms()[0].function)(device)))
        };
        let actual = case.run_with(body, &device, [DType::F64; 2], add);
        let what = format!("by {body:?} on {device:?}");
        assert_is_of_oracle(expected.oracle(), actual, 1e-13, &what);
    }
}
