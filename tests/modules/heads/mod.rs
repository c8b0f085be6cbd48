//! Everything that the heads of an attention module can be told, in every module, against attention written out by hand:
//! outputs, weights, and the gradients of every input and parameter.

mod by_hand;
mod choices;
mod cross_attention;
mod multi_head;
mod self_attention;
mod weights;

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor, TensorData},
};
use burn_attn::AttentionOutput;
use burn_attn_tests::{
    compare::assert_close_to_largest,
    devices,
    numbers::uniform,
    parameters::{self, in_dtype},
};

use self::weights::Weights;

const D_MODEL: usize = 24;
const N_HEADS: usize = 6;
const BATCH: usize = 2;

/// A type in which a module computes, on a device that can, and how close it comes, relative to the largest number of a tensor.
struct Precision {
    name: String,
    device: Device,
    dtype: DType,
    tolerance: f64,
}

/// f32 on every CPU backend, f16 and bf16 on the one that has them.
fn precisions() -> Vec<Precision> {
    let of = |name, device: Device, dtype, tolerance| Precision {
        name: format!("{name} in {dtype:?}"),
        device: device.autodiff(),
        dtype,
        tolerance,
    };
    let mut precisions: Vec<_> = devices::cpu()
        .into_iter()
        .map(|(name, device)| of(name, device, DType::F32, 5e-6))
        .collect();
    #[cfg(feature = "flex")]
    precisions.extend([
        of("flex", Device::flex(), DType::F16, 8.0 / 1024.0),
        of("flex", Device::flex(), DType::BF16, 8.0 / 128.0),
    ]);
    precisions
}

/// A module, and inputs for it.
struct Subject<M> {
    what: String,
    module: M,
    inputs: Vec<Tensor<3>>,
    tolerance: f64,
}

impl<M: Module> Subject<M> {
    /// `module` with parameters that matter, and tracked inputs of these lengths and widths.
    fn new(choice: &str, precision: &Precision, module: M, inputs: &[[usize; 2]]) -> Self {
        let mut seed = 100;
        let module = parameters::replace(module, |path, shape| {
            seed += 1;
            let numbers = uniform(seed, shape.iter().product()).into_iter();
            // Weights keep the size of what passes through, so that the scores differ by a few units. Nothing is at the value
            // that it would have if it were forgotten.
            let (center, spread) = match shape {
                [d_input, _] if path.ends_with("weight") => (0.0, 2.0 / (*d_input as f32).sqrt()),
                _ if path.ends_with("gamma") => (1.0, 0.5),
                _ if path.ends_with("factor") => (3.0, 1.5),
                _ => (0.0, 1.0),
            };
            numbers.map(|number| center + spread * number).collect()
        });
        let inputs = inputs.iter().enumerate().map(|(seed, &[len, width])| {
            let numbers = uniform(seed as u64 + 1, BATCH * len * width);
            let data = TensorData::new(numbers, [BATCH, len, width]);
            let data = data.convert_dtype(precision.dtype);
            Tensor::<3>::from_data(data, (&precision.device, precision.dtype)).require_grad()
        });
        Self {
            what: format!("{choice} on {}", precision.name),
            module: in_dtype(module, precision.dtype),
            inputs: inputs.collect(),
            tolerance: precision.tolerance,
        }
    }

    /// Compares the module's output and weights, and the gradients of inputs and parameters, with those that `by_hand` makes of
    /// the same numbers in f64.
    fn check(
        &self,
        forward: impl Fn(&M, &[Tensor<3>]) -> Tensor<3>,
        with_weights: impl Fn(&M, &[Tensor<3>]) -> AttentionOutput,
        by_hand: impl Fn(&Weights, &[Tensor<3>]) -> (Tensor<3>, Tensor<4>),
    ) {
        let close = |name: &str, actual: TensorData, expected: TensorData| {
            let what = format!("{}: {name}", self.what);
            // Without norms or positions, a bias of the keys adds the same to every score of a row: its gradient is zero but
            // for rounding.
            let least = if name.ends_with("key.bias") { 1.0 } else { 0.1 };
            assert_close_to_largest(&what, &actual, &expected, self.tolerance, least);
        };
        let wide = devices::any().autodiff();
        let weights = Weights::of(&self.module, &wide);
        let of_hand = self.inputs.iter().map(|input| {
            let shape = input.dims();
            let numbers = input.to_data().iter::<f64>().collect();
            by_hand::wide(numbers, shape, &wide).require_grad()
        });
        let of_hand: Vec<Tensor<3>> = of_hand.collect();
        let (expected, expected_weights) = by_hand(&weights, &of_hand);
        let output = forward(&self.module, &self.inputs);
        let asked = with_weights(&self.module, &self.inputs);
        close("output", output.to_data(), expected.to_data());
        close("context", asked.states.into_data(), expected.to_data());
        close(
            "weights",
            asked.weights.into_data(),
            expected_weights.into_data(),
        );

        // Every number with a weight of its own, which all types hold exactly.
        let numbers = uniform(9, output.shape().num_elements()).into_iter();
        let upstream: Vec<f32> = numbers
            .map(|number| (number * 64.0).round() / 32.0)
            .collect();
        let gradients = |output: Tensor<3>| {
            let upstream = TensorData::new(upstream.clone(), output.dims());
            let upstream = upstream.convert_dtype(output.dtype());
            let upstream = Tensor::from_data(upstream, (&output.device(), output.dtype()));
            (output * upstream).sum().backward()
        };
        let (actual, expected) = (gradients(output), gradients(expected));
        for (at, (input, of_hand)) in self.inputs.iter().zip(&of_hand).enumerate() {
            let actual = input.grad(&actual).expect("the gradient of an input");
            let expected = of_hand.grad(&expected).expect("the same by hand");
            close(
                &format!("gradient of input {at}"),
                actual.into_data(),
                expected.into_data(),
            );
        }
        let actual = parameters::gradients(&self.module, &actual);
        let expected = weights.gradients(&expected);
        let paths = |named: &parameters::Named| named.keys().cloned().collect::<Vec<_>>();
        assert_eq!(paths(&actual), paths(&expected), "{}", self.what);
        for ((path, actual), (_, expected)) in actual.into_iter().zip(expected) {
            close(&format!("gradient of {path}"), actual, expected);
        }
    }
}
