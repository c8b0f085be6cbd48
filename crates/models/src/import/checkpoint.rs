//! Weights from elsewhere, by name.

use std::{collections::BTreeSet, path::Path};

use burn::store::ModuleRecord;

use super::{
    ImportError,
    file::{self, Tensors},
    part::Part,
};

/// How the weights are named and laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// PyTorch's `state_dict`: a linear layer's weight is `[d_output, d_input]`.
    Pytorch,
    /// burn-nn's modules: a linear layer's weight is `[d_input, d_output]`.
    BurnNn,
}

/// Weights from elsewhere, by name; [`pytorch`], [`burn_nn`] and [`burn_nn_record`] make one.
///
/// The numbers of a tensor stay in the file until a module takes them (those of a burnpack are read at once), so keep the
/// file as it is for as long.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use burn_attn::MultiHeadAttentionConfig;
/// use burn_attn_models::import;
///
/// let device = Device::default();
/// let theirs = burn::nn::attention::MultiHeadAttentionConfig::new(32, 4).init(&device);
/// let mut ours = MultiHeadAttentionConfig::new(32, 4).init(&device);
///
/// let mut weights = import::burn_nn_record(burn::module::Module::into_record(theirs))?;
/// weights.load("", &mut ours)?;
/// weights.finish()?;
/// # Ok::<(), import::ImportError>(())
/// ```
#[derive(Debug)]
pub struct Checkpoint {
    layout: Layout,
    sinks_at_zero: bool,
    tensors: Tensors,
    taken: BTreeSet<String>,
}

/// Weights of PyTorch modules: a `state_dict` that `torch.save` wrote (`.pt`, `.pth`, `.bin`), or safetensors.
///
/// Which of the two it is follows from the file's first bytes. A dictionary inside another, as checkpoints of training runs
/// have, becomes a prefix: `state_dict.encoder`.
///
/// # Errors
///
/// When the file is not there, something else, or damaged.
///
/// # Cost
///
/// Reads the names and shapes, not the numbers.
pub fn pytorch(path: impl AsRef<Path>) -> Result<Checkpoint, ImportError> {
    let tensors = file::pytorch(path.as_ref())?;
    Ok(Checkpoint::new(Layout::Pytorch, tensors))
}

/// Weights of burn-nn's modules in a file of Burn's: a burnpack (`Module::save_file`), or safetensors.
///
/// # Errors
///
/// When the file is not there, something else, or damaged.
///
/// # Cost
///
/// Reads the whole burnpack; of safetensors only the names and shapes.
pub fn burn_nn(path: impl AsRef<Path>) -> Result<Checkpoint, ImportError> {
    let tensors = file::burn(path.as_ref())?;
    Ok(Checkpoint::new(Layout::BurnNn, tensors))
}

/// Weights of burn-nn's modules in memory, from `Module::into_record`.
///
/// # Errors
///
/// When Burn cannot read its record.
pub fn burn_nn_record(record: ModuleRecord) -> Result<Checkpoint, ImportError> {
    let tensors = file::record(record)?;
    Ok(Checkpoint::new(Layout::BurnNn, tensors))
}

impl Checkpoint {
    fn new(layout: Layout, tensors: Tensors) -> Self {
        Self {
            layout,
            sinks_at_zero: false,
            tensors,
            taken: BTreeSet::new(),
        }
    }

    /// Says that the attention to load was made with burn-nn's `quiet_softmax` or PyTorch's `add_zero_attn`. Default: false.
    ///
    /// Both are sinks at 0, of which the weights hold no trace. [`load`](Self::load) then needs a module with sinks and sets them
    /// to 0; freeze them to keep them there. Otherwise it needs one without.
    pub fn sinks_at_zero(mut self, sinks_at_zero: bool) -> Self {
        self.sinks_at_zero = sinks_at_zero;
        self
    }

    /// The names of all tensors, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Gives `module` the weights below `prefix`, as in `"layers.0.self_attn"`; all of them with `""`.
    ///
    /// Parameters keep their identity, device, dtype and whether they are trained; f16, bf16, f32 and f64 are rounded to the
    /// module's dtype.
    ///
    /// # Errors
    ///
    /// When a parameter has no tensor, a tensor below `prefix` has no parameter, or one has another shape or no
    /// floating-point numbers; when a weight of the module has an adapter, or its sinks are not what
    /// [`sinks_at_zero`](Self::sinks_at_zero) says. The module is as it was before.
    ///
    /// # Cost
    ///
    /// Reads each tensor once; the old and the new parameters are in memory together.
    pub fn load<M: Import>(&mut self, prefix: &str, module: &mut M) -> Result<(), ImportError> {
        let part = Part::new(self.layout, self.sinks_at_zero, &self.tensors, prefix)?;
        let loaded = module.import(&part)?;
        let taken = part.finish()?;
        self.taken.extend(taken);
        *module = loaded;
        Ok(())
    }

    /// Sees that modules have taken every tensor: nothing that was trained stays behind unnoticed.
    ///
    /// # Errors
    ///
    /// Names the tensors that none has taken.
    pub fn finish(self) -> Result<(), ImportError> {
        let names = self.tensors.into_keys();
        let names: Vec<String> = names.filter(|name| !self.taken.contains(name)).collect();
        match names.is_empty() {
            true => Ok(()),
            false => Err(ImportError::Unexpected { names }),
        }
    }
}

/// A module that weights from elsewhere can be loaded into, by [`Checkpoint::load`].
pub trait Import: Sized {
    /// This module with the weights of `part`.
    #[doc(hidden)]
    fn import(&self, part: &Part) -> Result<Self, ImportError>;
}
