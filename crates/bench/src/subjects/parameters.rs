//! Parameters: given ones instead of random ones, so that modules of different libraries compute the same; and how many.

use std::collections::VecDeque;

use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{Tensor, TensorData},
};

use crate::generator::{numbers, seed};

/// `module` with its parameters replaced by `values`, in the order of its fields.
pub fn assign<M: Module>(module: M, values: Vec<Vec<f32>>) -> M {
    let mut assign = Assign(values.into());
    let module = module.map(&mut assign);
    assert!(assign.0.is_empty(), "more values than parameters");
    module
}

struct Assign(VecDeque<Vec<f32>>);

impl ModuleMapper for Assign {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let values = self.0.pop_front().expect("a value for every parameter");
        let (id, tensor, mapper) = param.consume();
        let data = TensorData::new(values, tensor.shape());
        let tensor = Tensor::from_data(data, &tensor.device()).require_grad();
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// The parameters of a module as a result that contestants must agree on.
pub fn count(module: &impl Module) -> (&'static str, Vec<f32>) {
    ("parameters", vec![module.num_params() as f32])
}

/// Weight and bias of one linear layer made of several of the four projections side by side: query, key, value, output.
pub fn projection(d_model: usize, parts: &[usize]) -> [Vec<f32>; 2] {
    // Keeps the variance of the numbers, which are uniform with a third of the scale's square.
    let scale = (3.0 / d_model as f32).sqrt();
    let weights: Vec<Vec<f32>> = parts
        .iter()
        .map(|&part| numbers(seed::WEIGHTS[part], d_model * d_model, scale))
        .collect();
    let rows = (0..d_model).flat_map(|row| {
        let row = row * d_model..(row + 1) * d_model;
        weights
            .iter()
            .flat_map(move |weight| weight[row.clone()].iter())
    });
    let biases = parts
        .iter()
        .flat_map(|&part| numbers(seed::BIASES[part], d_model, 0.125));
    [rows.copied().collect(), biases.collect()]
}
