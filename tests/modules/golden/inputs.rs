//! Runs a module on the inputs of a golden file and compares everything the file knows.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn::AttentionMask;
use burn_attn_tests::{compare::assert_close, golden::GoldenFile, parameters};

use super::layout::Layout;

/// Inputs by their names in the file, tracked.
pub struct Inputs<'a> {
    file: &'a GoldenFile,
    device: &'a Device,
    tensors: Vec<(&'static str, Tensor<3>)>,
}

impl<'a> Inputs<'a> {
    pub fn new(file: &'a GoldenFile, device: &'a Device) -> Self {
        Self {
            file,
            device,
            tensors: Vec::new(),
        }
    }

    /// Reads the input `name`, whose gradient is compared later.
    pub fn read(&mut self, name: &'static str) -> Tensor<3> {
        let tensor = self.file.tensor(name, self.device).require_grad();
        self.tensors.push((name, tensor.clone()));
        tensor
    }

    /// The mask of the lengths `name`.
    pub fn mask(&self, name: &str) -> AttentionMask {
        AttentionMask::key_lengths(Tensor::from_data(self.file.data(name), self.device))
    }

    /// Compares the output and the gradients of every input and parameter, and sees that the file has no other.
    pub fn check<M: Module>(self, layout: Layout, module: &M, output: Tensor<3>, tolerance: f64) {
        let close = |name: &str, actual: &Tensor<3>| {
            let expected = self.file.data(name);
            assert_close(name, &actual.to_data(), &expected, tolerance);
        };
        close("output", &output);
        let loss = (output * self.file.tensor("loss_weight", self.device)).sum();
        let gradients = loss.backward();

        let mut compared = 0;
        for (name, input) in &self.tensors {
            let gradient = input.grad(&gradients).expect("an input's gradient");
            close(&format!("grad.{name}"), &gradient);
            compared += gradient.dims().iter().product::<usize>();
        }
        for (path, gradient) in parameters::gradients(module, &gradients) {
            let expected = layout.place(&path).data(self.file, "grad.");
            let name = format!("grad of {path}");
            assert_close(&name, &gradient, &expected, tolerance);
            compared += gradient.shape().num_elements();
        }
        let golden = self.file.names().filter(|name| name.starts_with("grad."));
        let golden: usize = golden.map(|name| self.file.count(name)).sum();
        assert_eq!(
            compared, golden,
            "not every gradient of the file was compared"
        );
    }
}
