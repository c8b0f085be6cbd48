//! The names of the weights below a prefix, and the parameters that they are.

use std::fmt::{self, Display, Formatter};

use burn::{module::Module, nn::Linear};

use crate::weights::{Table, Weights, WeightsError, joined};

/// The library that the weights come from, which determines their names and layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Library {
    /// PyTorch's `state_dict`: a linear layer's weight is `[d_output, d_input]`.
    Pytorch,
    /// burn-nn's modules: a linear layer's weight is `[d_input, d_output]`.
    BurnNn,
}

impl Display for Library {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pytorch => "PyTorch",
            Self::BurnNn => "burn-nn",
        })
    }
}

/// The weights below a prefix, the library that they come from, and whether their attention has sinks at 0.
#[derive(Debug)]
pub struct Part<'a> {
    pub(super) library: Library,
    /// `None` if sinks are allowed but not required.
    pub(super) sinks_at_zero: Option<bool>,
    /// `None` if there are none yet.
    pub(super) weights: Option<&'a Weights>,
    pub(super) prefix: String,
}

impl Part<'_> {
    pub(super) fn below(&self, name: &str) -> Self {
        Self {
            prefix: self.full(name),
            ..*self
        }
    }

    /// The full name of a tensor or part of this part.
    pub(super) fn full(&self, name: &str) -> String {
        joined(&self.prefix, name)
    }

    /// `table` with a module of this part.
    pub(super) fn with(
        &self,
        table: Table,
        [target, source]: [&str; 2],
        module: &impl NamedTensors,
    ) -> Result<Table, WeightsError> {
        let of_module = module.table(&self.below(source))?;
        Ok(table.part(target, source, of_module))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        let name = self.full(name);
        self.weights.is_some_and(|weights| weights.has(&name))
    }

    pub(super) fn unsupported(&self, name: &str, reason: impl Into<String>) -> WeightsError {
        WeightsError::Unsupported {
            name: self.full(name),
            reason: reason.into(),
        }
    }

    /// Refuses a layer whose adapter would be lost with its weight.
    pub(super) fn without_adapter(&self, name: &str, like: &Linear) -> Result<(), WeightsError> {
        match like.weight.adapter() {
            None => Ok(()),
            Some(_) => Err(self.unsupported(
                name,
                "the module's weight has an adapter (LoRA), which would be lost; load the weights first",
            )),
        }
    }

    /// A linear layer that is one of the source.
    pub(super) fn linear(
        &self,
        target: &str,
        source: &str,
        like: &Linear,
    ) -> Result<Table, WeightsError> {
        self.without_adapter(&format!("{source}.weight"), like)?;
        Ok(match self.library {
            Library::Pytorch => Table::new().linear(target, source),
            Library::BurnNn => Table::new().same_names(target, source, ["weight", "bias"]),
        })
    }

    /// A norm, whose gamma and beta PyTorch calls weight and bias.
    pub(super) fn norm(&self, target: &str, source: &str) -> Table {
        match self.library {
            Library::Pytorch => Table::new().norm(target, source),
            Library::BurnNn => Table::new().same_names(target, source, ["gamma", "beta"]),
        }
    }
}

/// A module that takes weights of other libraries, by [`Checkpoint::load`](super::Checkpoint::load), and is written as one of theirs, by
/// [`table`](super::table()).
pub trait Import: NamedTensors {}

impl<M: NamedTensors> Import for M {}

pub trait NamedTensors: Module {
    /// Which parameter is which tensor below the part's prefix.
    fn table(&self, part: &Part) -> Result<Table, WeightsError>;
}
