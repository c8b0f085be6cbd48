//! The weights below a prefix, and the parameters that are made of them.

use std::{cell::RefCell, collections::BTreeSet, ops::Range};

use burn::{
    module::Param,
    nn::Linear,
    tensor::{DType, Tensor, TensorData},
};
use burn_attn::Norm;
use burn_store::bridge;

use super::{ImportError, checkpoint::Layout, file::Tensors};

/// The weights below a prefix. Every name that is asked for counts as taken.
#[derive(Debug)]
pub struct Part<'a> {
    pub(super) layout: Layout,
    /// See [`Checkpoint::sinks_at_zero`](super::Checkpoint::sinks_at_zero).
    pub(super) sinks_at_zero: bool,
    tensors: &'a Tensors,
    prefix: String,
    taken: RefCell<BTreeSet<String>>,
}

/// A linear layer as Burn has it: weight `[d_input, d_output]`, bias `[d_output]`.
pub(super) struct Dense {
    pub(super) weight: Tensor<2>,
    pub(super) bias: Option<Tensor<1>>,
}

impl<'a> Part<'a> {
    pub(super) fn new(
        layout: Layout,
        sinks_at_zero: bool,
        tensors: &'a Tensors,
        prefix: &str,
    ) -> Result<Self, ImportError> {
        let part = Self {
            layout,
            sinks_at_zero,
            tensors,
            prefix: prefix.trim_end_matches('.').to_string(),
            taken: RefCell::default(),
        };
        let is_empty = part.names().next().is_none();
        match is_empty {
            false => Ok(part),
            true => Err(part.nothing_here()),
        }
    }

    /// What `module` makes of the weights below `name`.
    pub(super) fn below<T>(
        &self,
        name: &str,
        module: impl FnOnce(&Part) -> Result<T, ImportError>,
    ) -> Result<T, ImportError> {
        let part = Part {
            prefix: self.full(name),
            taken: RefCell::default(),
            ..*self
        };
        let made = module(&part)?;
        self.taken.borrow_mut().append(&mut part.taken.into_inner());
        Ok(made)
    }

    /// The names that were taken.
    ///
    /// # Errors
    ///
    /// When there are others.
    pub(super) fn finish(self) -> Result<BTreeSet<String>, ImportError> {
        let names = self.names().map(str::to_string);
        let names: Vec<String> = names
            .filter(|name| !self.taken.borrow().contains(name))
            .collect();
        match names.is_empty() {
            true => Ok(self.taken.into_inner()),
            false => Err(ImportError::Unexpected { names }),
        }
    }

    /// The whole name of a tensor or part of this one.
    pub(super) fn full(&self, name: &str) -> String {
        match (self.prefix.as_str(), name) {
            ("", name) => name.to_string(),
            (prefix, "") => prefix.to_string(),
            (prefix, name) => format!("{prefix}.{name}"),
        }
    }

    /// Whether there is a tensor of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(&self.full(name))
    }

    /// The whole names of the tensors.
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.tensors
            .keys()
            .map(String::as_str)
            .filter(|name| below(name, &self.prefix).is_some())
    }

    /// What to say when there is no tensor: where the longest beginning of the prefix leads that has some.
    fn nothing_here(&self) -> ImportError {
        let parents = self.prefix.match_indices('.').map(|(end, _)| end).rev();
        let parents = parents.map(|end| &self.prefix[..end]).chain([""]);
        let found = parents
            .map(|parent| {
                let children = self.tensors.keys().filter_map(|name| {
                    let rest = below(name, parent)?;
                    let child = rest.split('.').next()?;
                    Some(name[..name.len() - rest.len() + child.len()].to_string())
                });
                children.collect::<BTreeSet<String>>()
            })
            .find(|found| !found.is_empty());
        ImportError::Prefix {
            prefix: self.prefix.clone(),
            found: found.unwrap_or_default().into_iter().collect(),
        }
    }

    /// The numbers of a tensor of this shape, as `dtype`.
    fn numbers(
        &self,
        name: &str,
        expected: &[usize],
        dtype: DType,
    ) -> Result<TensorData, ImportError> {
        let name = self.full(name);
        let Some(tensor) = self.tensors.get(&name) else {
            let shape = expected.to_vec();
            return Err(ImportError::Missing { name, shape });
        };
        let found: &[usize] = &tensor.shape;
        if found != expected {
            return Err(ImportError::Shape {
                name,
                found: found.to_vec(),
                expected: expected.to_vec(),
            });
        }
        if !(tensor.dtype.is_float() && dtype.is_float()) {
            return Err(ImportError::DType {
                name,
                found: tensor.dtype,
                expected: dtype,
            });
        }
        let failed = |reason: String| ImportError::Numbers {
            name: name.clone(),
            reason,
        };
        let data = bridge::to_data(tensor).map_err(|error| failed(error.to_string()))?;
        let data = data
            .try_cast(dtype)
            .map_err(|error| failed(error.to_string()))?;
        self.taken.borrow_mut().insert(name);
        // A parameter that were a view would keep the whole file in memory.
        let owned = data.as_bytes().to_vec();
        Ok(TensorData::from_bytes_vec(owned, expected, dtype))
    }

    /// A vector for a parameter like `like`.
    fn vector(&self, name: &str, like: &Param<Tensor<1>>) -> Result<Tensor<1>, ImportError> {
        let dtype = like.val().dtype();
        let data = self.numbers(name, &like.dims(), dtype)?;
        Ok(Tensor::from_data(data, (&like.lazy_device(), dtype)))
    }

    /// A vector in pieces for parameters like `likes`, one after the other.
    pub(super) fn vectors<const N: usize>(
        &self,
        name: &str,
        likes: [&Param<Tensor<1>>; N],
    ) -> Result<[Tensor<1>; N], ImportError> {
        let widths = likes.map(|like| like.dims()[0]);
        let dtype = likes[0].val().dtype();
        let data = self.numbers(name, &[widths.iter().sum()], dtype)?;
        let whole = Tensor::<1>::from_data(data, (&likes[0].lazy_device(), dtype));
        Ok(pieces(widths).map(|piece| whole.clone().slice(piece)))
    }

    /// Weights of linear layers like `likes`, which lie below each other in one PyTorch tensor.
    pub(super) fn stacked_weights<const N: usize>(
        &self,
        name: &str,
        likes: [&Linear; N],
    ) -> Result<[Tensor<2>; N], ImportError> {
        let [d_input, _] = likes[0].weight.dims();
        for like in likes {
            self.without_adapter(name, like)?;
        }
        let widths = likes.map(|like| like.weight.dims()[1]);
        let dtype = likes[0].weight.val().dtype();
        let data = self.numbers(name, &[widths.iter().sum(), d_input], dtype)?;
        let device = likes[0].weight.lazy_device();
        Ok(pieces(widths).map(|rows| Tensor::from_data(transposed(&data, rows), (&device, dtype))))
    }

    /// The weight of a linear layer like `like`.
    pub(super) fn weight(&self, name: &str, like: &Linear) -> Result<Tensor<2>, ImportError> {
        if self.layout == Layout::Pytorch {
            let [weight] = self.stacked_weights(name, [like])?;
            return Ok(weight);
        }
        self.without_adapter(name, like)?;
        let dtype = like.weight.val().dtype();
        let data = self.numbers(name, &like.weight.dims(), dtype)?;
        Ok(Tensor::from_data(data, (&like.weight.lazy_device(), dtype)))
    }

    /// Refuses a layer whose adapter would be lost with the weight that it belongs to.
    fn without_adapter(&self, name: &str, like: &Linear) -> Result<(), ImportError> {
        if like.weight.adapter().is_none() {
            return Ok(());
        }
        Err(ImportError::Unsupported {
            name: self.full(name),
            reason: "the module's weight has an adapter (LoRA), which would be lost; load the weights first".into(),
        })
    }

    /// A linear layer like `like`.
    pub(super) fn dense(&self, name: &str, like: &Linear) -> Result<Dense, ImportError> {
        let bias = like.bias.as_ref();
        Ok(Dense {
            weight: self.weight(&format!("{name}.weight"), like)?,
            bias: bias
                .map(|bias| self.vector(&format!("{name}.bias"), bias))
                .transpose()?,
        })
    }

    /// `like` with the weights `name`.
    pub(super) fn linear(&self, name: &str, like: &Linear) -> Result<Linear, ImportError> {
        Ok(self.dense(name, like)?.into_linear(like))
    }

    /// `like` with the weights `name`, which PyTorch calls weight and bias, Burn gamma and beta.
    pub(super) fn norm(&self, name: &str, like: &Norm) -> Result<Norm, ImportError> {
        let [factor, summand] = match self.layout {
            Layout::Pytorch => ["weight", "bias"],
            Layout::BurnNn => ["gamma", "beta"],
        };
        let mut norm = like.clone();
        let gamma = self.vector(&format!("{name}.{factor}"), &like.gamma)?;
        norm.gamma = replaced(&like.gamma, gamma);
        if let Some(beta) = &like.beta {
            let loaded = self.vector(&format!("{name}.{summand}"), beta)?;
            norm.beta = Some(replaced(beta, loaded));
        }
        Ok(norm)
    }
}

impl Dense {
    /// `like` with these numbers.
    pub(super) fn into_linear(self, like: &Linear) -> Linear {
        let bias = like.bias.as_ref().zip(self.bias);
        Linear {
            weight: replaced(&like.weight, self.weight),
            bias: bias.map(|(like, bias)| replaced(like, bias)),
        }
    }

    /// Layers of the same input as one, whose outputs lie side by side.
    pub(super) fn side_by_side(layers: Vec<Dense>) -> Dense {
        let (weights, biases): (_, Vec<_>) = layers
            .into_iter()
            .map(|layer| (layer.weight, layer.bias))
            .unzip();
        let biases: Option<Vec<_>> = biases.into_iter().collect();
        Dense {
            weight: Tensor::cat(weights, 1),
            bias: biases.map(|biases| Tensor::cat(biases, 0)),
        }
    }
}

/// The parameter `like` with another value: the same identity, trained if it was.
pub(super) fn replaced<const D: usize>(
    like: &Param<Tensor<D>>,
    value: Tensor<D>,
) -> Param<Tensor<D>> {
    like.clone().transform_for_load(value, like.id)
}

/// What follows `prefix` and a dot in `name`.
fn below<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    match prefix {
        "" => Some(name),
        prefix => name.strip_prefix(prefix)?.strip_prefix('.'),
    }
}

/// Where pieces of these widths lie, one after the other.
fn pieces<const N: usize>(widths: [usize; N]) -> [Range<usize>; N] {
    let mut end = 0;
    widths.map(|width| {
        end += width;
        end - width..end
    })
}

/// Rows of a matrix as columns.
fn transposed(matrix: &TensorData, rows: Range<usize>) -> TensorData {
    let [_, n_columns] = matrix.shape().dims();
    let n_rows = rows.len();
    let width = matrix.dtype().size();
    let bytes = matrix.as_bytes();
    let mut out = Vec::with_capacity(n_rows * n_columns * width);
    for column in 0..n_columns {
        for row in rows.clone() {
            let at = (row * n_columns + column) * width;
            out.extend_from_slice(&bytes[at..at + width]);
        }
    }
    TensorData::from_bytes_vec(out, [n_columns, n_rows], matrix.dtype())
}
