//! The gradient rules, compared with Burn's autodiff of the composed body.

use burn::{
    backend::Dispatch,
    tensor::{Bool, Device, Int, Tensor, TensorData},
};

use crate::{
    AttentionBias, AttentionMask, AttentionOptions, RotaryLayout, attention,
    attention_with_logsumexp,
    backend::{AttentionOps, Rotation, blockwise_attention, composed_attention},
    composed,
};

type Results = (Tensor<4>, Tensor<3>);
type Attention = fn([Tensor<4>; 3], AttentionOptions) -> Results;

fn fused([query, key, value]: [Tensor<4>; 3], options: AttentionOptions) -> Results {
    attention_with_logsumexp(query, key, value, options)
}

fn blocks([query, key, value]: [Tensor<4>; 3], options: AttentionOptions) -> Results {
    blockwise_attention(query, key, value, options, Some(12))
}

fn composed_body([query, key, value]: [Tensor<4>; 3], options: AttentionOptions) -> Results {
    composed_attention(query, key, value, options)
}

/// Every tensor that may have a gradient.
struct Leaves {
    tensors: [Tensor<4>; 3],
    bias: Tensor<4>,
    slopes: Tensor<1>,
    sinks: Tensor<1>,
}

impl Leaves {
    fn new(device: &Device) -> Self {
        // Not from the device's generator, which all tests share.
        let mut state = 1_u32;
        let mut numbers = |count: usize| -> Vec<f32> {
            (0..count)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) as f32 / (1 << 22) as f32 - 2.0
                })
                .collect()
        };
        let mut random = |shape: [usize; 4]| {
            let data = TensorData::new(numbers(shape.iter().product()), shape);
            Tensor::from_data(data, device).require_grad()
        };
        Self {
            tensors: [
                random([2, 6, 7, 5]),
                random([2, 3, 11, 5]),
                random([2, 3, 11, 13]),
            ],
            bias: random([1, 6, 7, 11]),
            slopes: Tensor::from_floats([0.5, 0.25, 0.125, 0.1, 0.05, 0.0], device).require_grad(),
            sinks: Tensor::from_floats([-0.5, 1.25, 0.0, 0.1, -2.0, 0.75], device).require_grad(),
        }
    }

    fn options(&self) -> AttentionOptions {
        let device = self.bias.device();
        let lengths = Tensor::<1, Int>::from_data(TensorData::from([11_i64, 8]), &device);
        let bias = AttentionBias::dense(self.bias.clone());
        let visible = Tensor::<4, Bool>::from_data(
            [[[[true, true, true], [true, false, true], [false, true, true]]]],
            &device,
        );
        let mask = AttentionMask::causal().and(AttentionMask::key_lengths(lengths));
        AttentionOptions::default()
            .mask(mask.and(AttentionMask::visible_blocks(visible, [3, 4])))
            .bias(bias.and(AttentionBias::alibi(self.slopes.clone())))
            .softcap(3.0)
            .dropout(0.2, 5)
            .sinks(self.sinks.clone())
    }

    /// The gradients of a loss, one after the other.
    fn gradients(&self, loss: Tensor<1>) -> Vec<Vec<f32>> {
        let gradients = loss.backward();
        let numbers =
            |data: Option<TensorData>| data.map_or(Vec::new(), |data| data.iter::<f32>().collect());
        let [query, key, value] = &self.tensors;
        let mut all: Vec<_> = [query, key, value, &self.bias]
            .map(|x| numbers(x.grad(&gradients).map(Tensor::into_data)))
            .into();
        all.extend(
            [&self.slopes, &self.sinks].map(|x| numbers(x.grad(&gradients).map(Tensor::into_data))),
        );
        all
    }
}

fn assert_close(expected: &[Vec<f32>], actual: &[Vec<f32>], what: &str) {
    for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        assert_eq!(expected.len(), actual.len(), "{what}: gradient {index}");
        let largest = expected.iter().fold(1.0_f32, |max, x| max.max(x.abs()));
        for (expected, actual) in expected.iter().zip(actual) {
            let error = (expected - actual).abs() / largest;
            assert!(
                error <= 2e-6,
                "{what}: gradient {index} is off by {error:e}"
            );
        }
    }
}

type Loss = (&'static str, fn(Results) -> Tensor<1>);

/// The results that a loss may use.
fn losses() -> [Loss; 3] {
    [
        ("output", |(output, _)| output.powi_scalar(2).sum()),
        ("logsumexp", |(_, logsumexp)| logsumexp.powi_scalar(2).sum()),
        ("both", |(output, logsumexp)| {
            output.powi_scalar(3).sum() + logsumexp.sin().sum()
        }),
    ]
}

#[test]
fn the_rule_agrees_with_burns_autodiff_of_the_composed_body() {
    for device in [
        Device::flex().autodiff(),
        Device::flex().autodiff().gradient_checkpointing(),
    ] {
        for (what, loss) in losses() {
            let run = |attention: Attention| {
                let leaves = Leaves::new(&device);
                leaves.gradients(loss(attention(leaves.tensors.clone(), leaves.options())))
            };
            let mut expected = run(composed_body);
            if what == "logsumexp" {
                // Burn's autodiff gives the value no gradient, on which this loss does not depend.
                assert!(expected[2].is_empty());
                expected[2] = vec![0.0; 2 * 3 * 11 * 13];
            }
            assert_close(&expected, &run(fused), what);
            assert_close(&expected, &run(blocks), what);
        }
    }
}

#[test]
fn checkpointing_recomputes_what_the_operands_were_made_of() {
    let run = |device: &Device| {
        let leaves = Leaves::new(device);
        // Cheap operations before and after, which a balanced strategy recomputes.
        let tensors = leaves
            .tensors
            .clone()
            .map(|x| x.mul_scalar(1.5).add_scalar(0.1));
        let (output, logsumexp) = fused(tensors, leaves.options());
        let loss = output.mul_scalar(0.5).powi_scalar(2).sum() + logsumexp.mul_scalar(2.0).sum();
        leaves.gradients(loss)
    };
    let plain = run(&Device::flex().autodiff());
    let checkpointed = run(&Device::flex().autodiff().gradient_checkpointing());
    assert_eq!(plain, checkpointed);
    assert!(
        plain
            .iter()
            .all(|gradient| gradient.iter().any(|&x| x != 0.0))
    );
}

#[test]
fn untracked_operands_get_no_gradient() {
    let device = Device::flex().autodiff();
    let leaves = Leaves::new(&device);
    for tracked in 0..3 {
        let mut tensors = leaves
            .tensors
            .clone()
            .map(|x| Tensor::from_inner(x.inner()));
        tensors[tracked] = tensors[tracked].clone().require_grad();
        let kept = tensors.clone();
        let options = AttentionOptions {
            bias: AttentionBias::none(),
            sinks: None,
            ..leaves.options()
        };
        for attention in [fused, blocks] {
            let gradients = attention(tensors.clone(), options.clone())
                .0
                .sum()
                .backward();
            for (index, tensor) in kept.iter().enumerate() {
                assert_eq!(tensor.grad(&gradients).is_some(), index == tracked);
            }
        }
    }
    // Nothing tracked: nothing is recorded, and the numbers are the same.
    let untracked = leaves.tensors.clone().map(|x| x.inner());
    let options = AttentionOptions::default().causal();
    let [query, key, value] = leaves.tensors.clone();
    let recorded = attention(query, key, value, options.clone()).into_data();
    let [query, key, value] = untracked;
    recorded.assert_eq(&attention(query, key, value, options).into_data(), true);
}

#[test]
fn a_gradient_that_arrives_twice_is_summed() {
    let device = Device::flex().autodiff();
    let leaves = Leaves::new(&device);
    let once = {
        let (output, _) = fused(leaves.tensors.clone(), leaves.options());
        leaves.gradients(output.sum().mul_scalar(3.0))
    };
    let twice = {
        let (output, _) = fused(leaves.tensors.clone(), leaves.options());
        leaves.gradients(output.clone().sum() + output.sum().mul_scalar(2.0))
    };
    assert_close(&once, &twice, "twice");
}

#[test]
fn heads_split_from_one_projection_get_their_gradients_joined() {
    for device in [
        Device::flex().autodiff(),
        Device::flex().autodiff().gradient_checkpointing(),
    ] {
        let numbers: Vec<f32> = (0..2 * 7 * 30).map(|x| (x as f32).sin()).collect();
        let x = Tensor::<3>::from_data(TensorData::new(numbers, [2, 7, 30]), &device);
        let loss = |parts: [Tensor<4>; 3]| {
            let [a, _, c] = parts;
            // One part is used twice, one not at all.
            a.clone().powi_scalar(2).sum() + a.sum() + c.powi_scalar(3).sum()
        };
        let split = x.clone().require_grad();
        let parts = crate::split_heads(split.clone(), [2, 1, 3]);
        assert_eq!(
            parts.each_ref().map(Tensor::dims),
            [[2, 2, 7, 5], [2, 1, 7, 5], [2, 3, 7, 5]]
        );
        let gradients = loss(parts).backward();
        let joined = split.grad(&gradients).unwrap().into_data();

        let narrowed = x.require_grad();
        let heads = narrowed.clone().reshape([2, 7, 6, 5]).swap_dims(1, 2);
        let part = |first, count| heads.clone().narrow(1, first, count);
        let gradients = loss([part(0, 2), part(2, 1), part(3, 3)]).backward();
        narrowed
            .grad(&gradients)
            .unwrap()
            .into_data()
            .assert_eq(&joined, true);
    }
}

#[test]
fn rotations_are_those_of_the_composed_body() {
    let device = Device::flex().autodiff();
    let tensor = |count: usize, shape: &[usize]| {
        let numbers: Vec<f32> = (0..count).map(|x| (x as f32).sin()).collect();
        TensorData::new(numbers, shape.to_vec())
    };
    let numbers = |x: Tensor<4>| x.into_data().iter::<f32>().collect();
    for pairs in [3, 7] {
        let table = Tensor::<2>::from_data(tensor(23 * pairs, &[23, pairs]), &device);
        for layout in [RotaryLayout::HalfSplit, RotaryLayout::Interleaved] {
            for offsets in [vec![11], vec![3, 16, 0]] {
                for inverse in [false, true] {
                    let run = |rotate: fn(_, _, _, Rotation) -> _| -> Vec<Vec<f32>> {
                        let x = tensor(3 * 5 * 7 * 14, &[3, 5, 7, 14]);
                        let x = Tensor::<4>::from_data(x, &device).require_grad();
                        let rotation = Rotation {
                            offsets: offsets.clone(),
                            layout,
                            inverse,
                        };
                        let [cos, sin] = [table.clone() * 0.75, table.clone() * 1.5];
                        let rotated = Tensor::<4>::from_dispatch(rotate(
                            x.clone().into_dispatch(),
                            cos.into_dispatch(),
                            sin.into_dispatch(),
                            rotation,
                        ));
                        let gradients = rotated.clone().powi_scalar(2).sum().backward();
                        vec![numbers(rotated), numbers(x.grad(&gradients).unwrap())]
                    };
                    let composed = run(|x, cos, sin, rotation| {
                        composed::rotation::rotate::<Dispatch>(x, cos, sin, &rotation)
                    });
                    let fused = run(<Dispatch as AttentionOps>::rotate);
                    assert_close(&composed, &fused, &format!("{layout:?} {offsets:?}"));
                }
            }
        }
    }
}
