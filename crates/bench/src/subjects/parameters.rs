//! Parameters: given ones instead of random ones, so that modules of different libraries compute the same; and their gradients,
//! put in an order that does not depend on the library.
//!
//! Libraries order the parameters of a layer differently, and lay some of them side by side in one. So a [`Parameter`] says of
//! which parts it is made, each of which has a seed that no other has.

use std::collections::VecDeque;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{Tensor, TensorData},
};

use super::subject::{Results, values};
use crate::generator::{numbers, seed};

/// The four projections of an attention (query, key, value, output), each a linear layer.
pub const APART: [&[usize]; 4] = [&[0], &[1], &[2], &[3]];
/// Query, key and value side by side in one layer.
pub const PACKED: [&[usize]; 2] = [&[0, 1, 2], &[3]];
/// Key and value side by side, for attention to another sequence.
pub const ACROSS: [&[usize]; 3] = [&[0], &[1, 2], &[3]];

/// What a library has as one parameter: parts of as many columns each, side by side.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Under which name its gradient is compared.
    group: &'static str,
    layer: usize,
    /// One for each part.
    seeds: Vec<u32>,
    /// Rows and columns of each part.
    size: [usize; 2],
    scale: f32,
    offset: f32,
}

/// The layer, the group and the seed of a part.
type Part = (usize, &'static str, u32);

/// What a layer norm stands before.
#[derive(Clone, Copy, Debug)]
pub enum NormOf {
    SelfAttention,
    CrossAttention,
    FeedForward,
}

impl Parameter {
    fn values(&self) -> Vec<f32> {
        let [rows, columns] = self.size;
        let parts = self.seeds.iter().map(|seed| {
            let seed = seed + seed::LAYER * self.layer as u32;
            numbers(seed, rows * columns, self.scale)
        });
        let parts: Vec<_> = parts.collect();
        let numbers = (0..rows).flat_map(|row| {
            let parts = parts.iter();
            parts.flat_map(move |part| &part[row * columns..][..columns])
        });
        numbers.map(|number| number + self.offset).collect()
    }

    /// The numbers of each part, of those of the parameter.
    fn split(&self, all: &[f32]) -> Vec<(Part, Vec<f32>)> {
        let [rows, columns] = self.size;
        let width = self.seeds.len() * columns;
        assert_eq!(all.len(), rows * width, "a gradient of another size");
        let parts = self.seeds.iter().enumerate().map(|(part, &seed)| {
            let rows = all.chunks(width);
            let own = rows.flat_map(|row| &row[part * columns..][..columns]);
            ((self.layer, self.group, seed), own.copied().collect())
        });
        parts.collect()
    }
}

/// `module` with its parameters replaced by those described, in the order of its fields.
pub fn assign<M: Module>(module: M, parameters: &[Parameter]) -> M {
    let values = parameters.iter().map(Parameter::values);
    let mut assign = Assign(values.collect());
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

/// The gradients of a module with these parameters: one result for the weights of each layer, one for its biases, and so on.
///
/// Not one for each parameter, because a key's bias changes nothing: its gradient is nothing but rounding errors.
pub fn gradients(
    module: &impl Module,
    parameters: &[Parameter],
    gradients: &GradientsParams,
) -> Results {
    let mut collect = Collect {
        gradients,
        found: Vec::new(),
    };
    module.visit(&mut collect);
    let (found, wanted) = (collect.found.len(), parameters.len());
    assert_eq!(found, wanted, "as many gradients as parameters");
    let pairs = parameters.iter().zip(&collect.found);
    let mut parts: Vec<_> = pairs
        .flat_map(|(parameter, all)| parameter.split(all))
        .collect();
    parts.sort_by_key(|(part, _)| *part);
    let mut results = Results::new();
    for ((layer, group, _), values) in parts {
        let name = format!("d{group} {layer}");
        match results.last_mut() {
            Some((last, all)) if *last == name => all.extend(values),
            _ => results.push((name, values)),
        }
    }
    results
}

struct Collect<'a> {
    gradients: &'a GradientsParams,
    found: Vec<Vec<f32>>,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = self.gradients.get::<D>(param.id);
        self.found
            .push(values(gradient.expect("every parameter is trained")));
    }
}

/// Weights and biases of the projections of an attention, laid out as [`APART`], [`PACKED`] or [`ACROSS`]. `layer` is the attention's
/// place in a stack.
pub fn projections(layer: usize, d_model: usize, layout: &[&[usize]]) -> Vec<Parameter> {
    let linears = layout.iter().flat_map(|parts| {
        let seeds = |of: [u32; 4]| parts.iter().map(|&part| of[part]).collect();
        let seeds = [seeds(seed::WEIGHTS), seeds(seed::BIASES)];
        linear(layer, seeds, [d_model, d_model])
    });
    linears.collect()
}

/// The parameters of one layer of a stack, in the order of its fields: of this width, this number, and with this number of its attention to
/// the memory, if it is a decoder's.
pub type Layer = fn(usize, usize, Option<usize>) -> Vec<Parameter>;

/// A layer of ours, pre-norm or post-norm.
pub fn our_layer(d_model: usize, layer: usize, across: Option<usize>) -> Vec<Parameter> {
    let norm = |of| norm(layer, of, d_model);
    let across = across.map(|across| {
        let projections = projections(across, d_model, &ACROSS);
        [projections, norm(NormOf::CrossAttention)].concat()
    });
    [
        projections(layer, d_model, &PACKED),
        norm(NormOf::SelfAttention),
        across.unwrap_or_default(),
        feed_forward(layer, d_model),
        norm(NormOf::FeedForward),
    ]
    .concat()
}

pub fn burn_layer(d_model: usize, layer: usize, across: Option<usize>) -> Vec<Parameter> {
    let norm = |of| norm(layer, of, d_model);
    let projections = |layer| projections(layer, d_model, &APART);
    [
        across.map(projections).unwrap_or_default(),
        projections(layer),
        feed_forward(layer, d_model),
        across.map_or_else(Vec::new, |_| norm(NormOf::CrossAttention)),
        norm(NormOf::FeedForward),
        norm(NormOf::SelfAttention),
    ]
    .concat()
}

/// Weights and biases of the two linear layers of a feed-forward network, four times as wide inside.
fn feed_forward(layer: usize, d_model: usize) -> Vec<Parameter> {
    let sizes = [[d_model, 4 * d_model], [4 * d_model, d_model]];
    let seeds = seed::FEED_FORWARD.into_iter().zip(sizes);
    seeds
        .flat_map(|(seeds, size)| linear(layer, seeds.map(|seed| vec![seed]), size))
        .collect()
}

/// Gain and bias of a layer norm.
pub fn norm(layer: usize, of: NormOf, d_model: usize) -> Vec<Parameter> {
    let parameter = |seed, offset| Parameter {
        group: "norms",
        layer,
        seeds: vec![seed],
        size: [1, d_model],
        scale: 0.0,
        offset,
    };
    vec![
        parameter(seed::GAINS[of as usize], 1.0),
        parameter(seed::SHIFTS[of as usize], 0.0),
    ]
}

/// The vectors of all tokens.
pub fn embedding(vocabulary: usize, d_model: usize) -> Vec<Parameter> {
    vec![Parameter {
        group: "embedding",
        layer: 0,
        seeds: vec![seed::EMBEDDING],
        size: [vocabulary, d_model],
        scale: scale(d_model),
        offset: 0.0,
    }]
}

fn linear(layer: usize, seeds: [Vec<u32>; 2], size: [usize; 2]) -> [Parameter; 2] {
    let ([weights, biases], [d_input, d_output]) = (seeds, size);
    let parameter = |group, seeds, rows, scale| Parameter {
        group,
        layer,
        seeds,
        size: [rows, d_output],
        scale,
        offset: 0.0,
    };
    [
        parameter("weights", weights, d_input, scale(d_input)),
        parameter("biases", biases, 1, 0.125),
    ]
}

/// Keeps the variance of the numbers, which are uniform with a third of the scale's square.
fn scale(d_input: usize) -> f32 {
    (3.0 / d_input as f32).sqrt()
}
