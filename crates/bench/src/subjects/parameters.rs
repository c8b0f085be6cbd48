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
        let assigned = Tensor::from_data(data, &tensor.device());
        let tensor = match tensor.is_require_grad() {
            true => assigned.require_grad(),
            false => assigned,
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// The parameters of a module as a result that contestants must agree on.
pub fn count(module: &impl Module) -> (&'static str, Vec<f32>) {
    ("parameters", vec![module.num_params() as f32])
}

/// Weight and bias of one linear layer made of several of the four projections of an attention side by side: query, key,
/// value, output. `layer` is the attention's place in a stack.
pub fn projection(layer: usize, d_model: usize, parts: &[usize]) -> Vec<Vec<f32>> {
    let layers = parts.iter().map(|&part| {
        let seeds = [seed::WEIGHTS[part], seed::BIASES[part]];
        linear(layer, seeds, [d_model, d_model])
    });
    let layers: Vec<_> = layers.collect();
    let rows = (0..d_model).flat_map(|row| {
        let row = row * d_model..(row + 1) * d_model;
        layers
            .iter()
            .flat_map(move |[weight, _]| &weight[row.clone()])
    });
    let biases = layers.iter().flat_map(|[_, bias]| bias);
    vec![rows.copied().collect(), biases.copied().collect()]
}

/// Weights and biases of the two linear layers of a feed-forward network, four times as wide inside.
pub fn feed_forward(layer: usize, d_model: usize) -> Vec<Vec<f32>> {
    let sizes = [[d_model, 4 * d_model], [4 * d_model, d_model]];
    let seeds = seed::FEED_FORWARD.into_iter().zip(sizes);
    seeds
        .flat_map(|(seeds, sizes)| linear(layer, seeds, sizes))
        .collect()
}

/// Gain and bias of a layer norm.
pub fn norm(d_model: usize) -> Vec<Vec<f32>> {
    vec![vec![1.0; d_model], vec![0.0; d_model]]
}

fn linear(layer: usize, seeds: [u32; 2], [d_input, d_output]: [usize; 2]) -> [Vec<f32>; 2] {
    let [weight, bias] = seeds.map(|seed| seed + seed::LAYER * layer as u32);
    // Keeps the variance of the numbers, which are uniform with a third of the scale's square.
    let scale = (3.0 / d_input as f32).sqrt();
    [
        numbers(weight, d_input * d_output, scale),
        numbers(bias, d_output, 0.125),
    ]
}
