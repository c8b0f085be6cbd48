//! Weights from other libraries, by name, and the names of parameters there.

use std::{collections::BTreeSet, fs, path::Path};

use burn::{store::ModuleRecord, tensor::Bytes};

use super::part::{Import, Library, Part};
use crate::weights::{
    Format, Mismatch, Reason, Table, Weights, WeightsError, below, format, joined,
};

/// Weights from another library, by name. [`pytorch`], [`burn_nn`] and [`burn_nn_record`] open one.
///
/// The numbers of a tensor stay in the file until a module takes them, so do not change the file until then. A burnpack is read at once.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use burn_attn::MultiHeadAttentionConfig;
/// use burn_attn_models::import;
///
/// let device = Device::default();
/// let source = burn::nn::attention::MultiHeadAttentionConfig::new(32, 4).init(&device);
/// let mut target = MultiHeadAttentionConfig::new(32, 4).init(&device);
///
/// let mut weights = import::burn_nn_record(burn::module::Module::into_record(source))?;
/// weights.load("", &mut target)?;
/// weights.finish()?;
/// # Ok::<(), burn_attn_models::weights::WeightsError>(())
/// ```
#[derive(Debug)]
pub struct Checkpoint {
    library: Library,
    sinks_at_zero: bool,
    weights: Weights,
    taken: BTreeSet<String>,
}

/// Weights of PyTorch modules: a `state_dict` that `torch.save` wrote (`.pt`, `.pth`, `.bin`), or safetensors.
///
/// The file's first bytes tell which. A dictionary inside another, as in the checkpoint of a training run, becomes a prefix: `state_dict.encoder`.
///
/// # Errors
///
/// When the file is missing, damaged, or of another format.
///
/// # Cost
///
/// Reads the names and shapes, not the numbers.
pub fn pytorch(path: impl AsRef<Path>) -> Result<Checkpoint, WeightsError> {
    let path = path.as_ref();
    let reason = match format(path).map_err(|reason| WeightsError::file(path, reason))? {
        Format::Burnpack => "it is a burnpack, which Burn wrote and import::burn_nn reads",
        Format::Gguf => "it is GGUF, which llama.cpp reads and PyTorch does not",
        Format::Safetensors | Format::Index | Format::Other => {
            return Ok(Checkpoint::new(Library::Pytorch, Weights::open(path)?));
        }
    };
    Err(WeightsError::file(path, reason))
}

/// Weights of burn-nn's modules in a file that Burn wrote: a burnpack (`Module::save_file`), or safetensors.
///
/// # Errors
///
/// When the file is missing, damaged, or of another format.
///
/// # Cost
///
/// Reads a burnpack whole; of safetensors, only the names and shapes.
pub fn burn_nn(path: impl AsRef<Path>) -> Result<Checkpoint, WeightsError> {
    let path = path.as_ref();
    let refused = |reason: Reason| WeightsError::file(path, reason);
    let weights = match format(path).map_err(refused)? {
        // Burn would read each number at its first use, and the file may be gone by then.
        Format::Burnpack => {
            let bytes = fs::read(path).map_err(|error| refused(error.into()))?;
            Weights::from_burnpack(Bytes::from_bytes_vec(bytes)).map_err(refused)?
        }
        Format::Safetensors => Weights::open(path)?,
        Format::Gguf | Format::Index | Format::Other => {
            let reason = "it is neither a burnpack nor safetensors, which Burn writes";
            return Err(refused(reason.into()));
        }
    };
    Ok(Checkpoint::new(Library::BurnNn, weights))
}

/// Weights of burn-nn's modules in memory, from `Module::into_record`.
///
/// # Errors
///
/// When Burn cannot read its own record.
pub fn burn_nn_record(record: ModuleRecord) -> Result<Checkpoint, WeightsError> {
    let bytes = record.into_bytes().map_err(Reason::from);
    let weights = bytes.and_then(Weights::from_burnpack);
    let weights = weights.map_err(|reason| WeightsError::Record {
        reason: reason.to_string(),
    })?;
    Ok(Checkpoint::new(Library::BurnNn, weights))
}

/// Which parameter of a module is which tensor of PyTorch or burn-nn: to write the module with
/// [`weights::save`](crate::weights::save()), or as a [part](Table::part) of a larger table.
///
/// # Errors
///
/// When the library has no such module.
///
/// # Example
///
/// An encoder that PyTorch's `nn.TransformerEncoder` reads with `load_state_dict(safetensors.torch.load_file(path))`.
///
/// ```
/// use burn::tensor::Device;
/// use burn_attn::TransformerStackConfig;
/// use burn_attn_models::{import::{self, Library}, weights};
///
/// let encoder = TransformerStackConfig::encoder(12, 7, 3, 2).init(&Device::default());
/// let table = import::table(&encoder, Library::Pytorch)?;
/// let path = std::env::temp_dir().join("burn-attn-encoder.safetensors");
/// weights::save(&table, &encoder, &path)?;
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn table<M: Import>(module: &M, library: Library) -> Result<Table, WeightsError> {
    module.table(&Part {
        library,
        sinks_at_zero: None,
        weights: None,
        prefix: String::new(),
    })
}

impl Checkpoint {
    fn new(library: Library, weights: Weights) -> Self {
        Self {
            library,
            sinks_at_zero: false,
            weights,
            taken: BTreeSet::new(),
        }
    }

    /// Declares that the attention to load was made with burn-nn's `quiet_softmax` or PyTorch's `add_zero_attn`. Default: false.
    ///
    /// Both are sinks at 0, which leave no trace in the weights. [`load`](Self::load) then needs a module with sinks and sets them to 0;
    /// freeze them to keep them there. Otherwise it needs a module without sinks.
    pub fn sinks_at_zero(mut self, sinks_at_zero: bool) -> Self {
        self.sinks_at_zero = sinks_at_zero;
        self
    }

    /// The names of all tensors, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.weights.tensors().map(|(name, _)| name)
    }

    /// Loads the weights below `prefix`, such as `"layers.0.self_attn"`, into `module`; with `""`, all of them.
    ///
    /// Parameters keep their identity, device and dtype, and stay trainable or frozen; f16, bf16, f32 and f64 are converted.
    ///
    /// # Errors
    ///
    /// When tensors and parameters do not match: one error names all missing, unexpected and misshapen tensors, and those without floating-point
    /// numbers. When a weight of the module has an adapter, or its sinks are not what [`sinks_at_zero`](Self::sinks_at_zero) says. After an error
    /// the module is unchanged.
    ///
    /// # Cost
    ///
    /// Reads each tensor once for every parameter that has a part of it; the old and the new parameters are in memory at the same time.
    pub fn load<M: Import>(&mut self, prefix: &str, module: &mut M) -> Result<(), WeightsError> {
        let part = Part {
            library: self.library,
            sinks_at_zero: Some(self.sinks_at_zero),
            weights: Some(&self.weights),
            prefix: prefix.trim_end_matches('.').to_string(),
        };
        let weights = self.weights.within(&part.prefix);
        if weights.tensors().next().is_none() {
            return Err(self.nothing_below(&part.prefix));
        }
        // With full names, so that errors have them too.
        let table = Table::new().part("", &part.prefix, module.table(&part)?);
        weights.load(&table, module)?;
        let taken = weights.tensors().map(|(name, _)| name.to_owned());
        self.taken.extend(taken);
        Ok(())
    }

    /// The error if there is no tensor: names the modules below the longest part of the prefix that exists.
    fn nothing_below(&self, prefix: &str) -> WeightsError {
        // A module beside the one that the prefix names, or above it.
        let child = |name: &str, parent: &str| {
            let rest = below(name, parent)?;
            let child = rest.split('.').next()?;
            Some(joined(parent, child))
        };
        let children = |parent: &str| -> BTreeSet<String> {
            let children = self.names().filter_map(|name| child(name, parent));
            children.collect()
        };
        let parents = prefix.match_indices('.').map(|(end, _)| &prefix[..end]);
        let mut found = parents.rev().chain([""]).map(children);
        let found = found.find(|found| !found.is_empty()).unwrap_or_default();
        WeightsError::Prefix {
            prefix: prefix.into(),
            found: found.into_iter().collect(),
        }
    }

    /// Checks that modules have taken every tensor.
    ///
    /// # Errors
    ///
    /// When tensors are left. The error names them.
    pub fn finish(self) -> Result<(), WeightsError> {
        let names = self.names().filter(|name| !self.taken.contains(*name));
        let wrong = Mismatch {
            unexpected: names.map(str::to_string).collect(),
            ..Mismatch::default()
        };
        wrong.into_result()
    }
}
