//! Parameters: given ones instead of random ones, so that modules of different libraries compute the same; and their gradients,
//! put in an order that does not depend on the library.
//!
//! Libraries order the parameters of a layer differently, and lay some of them side by side in one. So a [`Parameter`] says of
//! which [`Part`]s it is made, each of which has a seed that no other has.

use std::collections::VecDeque;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{Tensor, TensorData},
};

use super::Results;
use super::op::values;
use crate::generator::{numbers, seed};

/// What a library has as one parameter: some columns of each of its parts.
#[derive(Clone, Debug)]
pub struct Parameter {
    rows: usize,
    parts: Vec<Part>,
}

/// A parameter as every library has it, if only as a part of another.
#[derive(Clone, Debug)]
struct Part {
    /// Under which name its gradient is compared.
    group: &'static str,
    layer: usize,
    seed: u32,
    columns: usize,
    scale: f32,
    offset: f32,
}

/// What a layer norm stands before.
#[derive(Clone, Copy, Debug)]
pub enum NormOf {
    SelfAttention,
    CrossAttention,
    FeedForward,
}

impl Parameter {
    fn values(&self) -> Vec<f32> {
        let parts = self.parts.iter().map(|part| {
            let seed = part.seed + seed::LAYER * part.layer as u32;
            let numbers = numbers(seed, self.rows * part.columns, part.scale);
            (part, numbers)
        });
        let parts: Vec<_> = parts.collect();
        let rows = (0..self.rows).flat_map(|row| {
            parts.iter().flat_map(move |(part, numbers)| {
                let row = &numbers[row * part.columns..(row + 1) * part.columns];
                row.iter().map(|number| number + part.offset)
            })
        });
        rows.collect()
    }

    /// The numbers of each part, of those of the parameter.
    fn split(&self, all: &[f32]) -> impl Iterator<Item = (&Part, Vec<f32>)> {
        let columns: usize = self.parts.iter().map(|part| part.columns).sum();
        assert_eq!(all.len(), self.rows * columns, "a gradient of another size");
        let mut first = 0;
        self.parts.iter().map(move |part| {
            let own = first..first + part.columns;
            first = own.end;
            let rows = all.chunks(columns).flat_map(|row| &row[own.clone()]);
            (part, rows.copied().collect())
        })
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
    assert_eq!(
        collect.found.len(),
        parameters.len(),
        "as many gradients as parameters"
    );
    let pairs = parameters.iter().zip(&collect.found);
    let mut parts: Vec<_> = pairs
        .flat_map(|(parameter, all)| parameter.split(all))
        .collect();
    parts.sort_by_key(|(part, _)| (part.layer, part.group, part.seed));
    let mut results = Results::new();
    for (part, values) in parts {
        let name = format!("d{} {}", part.group, part.layer);
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

/// Weight and bias of one linear layer made of several of the four projections of an attention side by side: query, key,
/// value, output. `layer` is the attention's place in a stack.
pub fn projection(layer: usize, d_model: usize, parts: &[usize]) -> Vec<Parameter> {
    let seeds: Vec<_> = parts
        .iter()
        .map(|&part| [seed::WEIGHTS[part], seed::BIASES[part]])
        .collect();
    linear(layer, &seeds, [d_model, d_model])
}

/// The four projections, each a linear layer.
pub fn projections(layer: usize, d_model: usize) -> Vec<Parameter> {
    (0..4)
        .flat_map(|part| projection(layer, d_model, &[part]))
        .collect()
}

/// Weights and biases of the two linear layers of a feed-forward network, four times as wide inside.
pub fn feed_forward(layer: usize, d_model: usize) -> Vec<Parameter> {
    let sizes = [[d_model, 4 * d_model], [4 * d_model, d_model]];
    let seeds = seed::FEED_FORWARD.into_iter().zip(sizes);
    seeds
        .flat_map(|(seeds, sizes)| linear(layer, &[seeds], sizes))
        .collect()
}

/// Gain and bias of a layer norm.
pub fn norm(layer: usize, of: NormOf, d_model: usize) -> Vec<Parameter> {
    let part = |seed, offset| Part {
        group: "norms",
        layer,
        seed,
        columns: d_model,
        scale: 0.0,
        offset,
    };
    let parts = [
        part(seed::GAINS[of as usize], 1.0),
        part(seed::SHIFTS[of as usize], 0.0),
    ];
    parts
        .map(|part| Parameter {
            rows: 1,
            parts: vec![part],
        })
        .into()
}

/// The vectors of all tokens.
pub fn embedding(vocabulary: usize, d_model: usize) -> Vec<Parameter> {
    let part = Part {
        group: "embedding",
        layer: 0,
        seed: seed::EMBEDDING,
        columns: d_model,
        scale: scale(d_model),
        offset: 0.0,
    };
    vec![Parameter {
        rows: vocabulary,
        parts: vec![part],
    }]
}

fn linear(layer: usize, seeds: &[[u32; 2]], [d_input, d_output]: [usize; 2]) -> Vec<Parameter> {
    let part = |group, seed, scale| Part {
        group,
        layer,
        seed,
        columns: d_output,
        scale,
        offset: 0.0,
    };
    let weights = seeds
        .iter()
        .map(|&[seed, _]| part("weights", seed, scale(d_input)));
    let biases = seeds.iter().map(|&[_, seed]| part("biases", seed, 0.125));
    vec![
        Parameter {
            rows: d_input,
            parts: weights.collect(),
        },
        Parameter {
            rows: 1,
            parts: biases.collect(),
        },
    ]
}

/// Keeps the variance of the numbers, which are uniform with a third of the scale's square.
fn scale(d_input: usize) -> f32 {
    (3.0 / d_input as f32).sqrt()
}
