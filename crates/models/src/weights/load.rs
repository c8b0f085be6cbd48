//! Reads a table from source to target: tensors of files become parameters of a model.

use std::{any::Any, collections::BTreeMap, path::Path};

use burn::{
    module::{Module, ModuleMapper, Param, ParamId},
    tensor::{Bytes, DType, FloatDType, Tensor, TensorData},
};
use serde_json::{Map, Value};

use super::{
    Reason, Table, WeightsError,
    fit::{Fit, NotLoaded, Options},
    numbers::{converted, copy},
    plan::{self, Plan},
    source::{self, Stored, Tensors},
    table::below,
};

/// The tensors of another library's checkpoint, and how strictly they have to match.
///
/// Only names, shapes and dtypes are read at first. The numbers stay in the files until [`load`](Self::load), so do not change the files
/// until then.
///
/// # Example
///
/// ```
/// use burn::{nn::LinearConfig, tensor::Device};
/// use burn_attn_models::weights::{Table, Weights, save};
///
/// let table = Table::new().linear("", "classifier.dense");
/// let linear = LinearConfig::new(3, 5).init(&Device::default());
/// let path = std::env::temp_dir().join("burn-attn-weights.safetensors");
/// save(&table, &linear, &path)?;
///
/// let mut model = LinearConfig::new(3, 5).init(&Device::default());
/// let weights = Weights::open(&path)?;
/// assert!(weights.tensors().any(|tensor| tensor == ("classifier.dense.weight", &[5, 3])));
/// weights.load(&table, &mut model)?;
/// assert_eq!(model.weight.val().into_data(), linear.weight.val().into_data());
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Weights {
    tensors: Tensors,
    options: Options,
}

impl Weights {
    /// Opens a file, or a folder with `model.safetensors`, `model.safetensors.index.json`, `pytorch_model.bin` or
    /// `pytorch_model.bin.index.json`.
    ///
    /// A file is safetensors, what `torch.save` wrote (`.pt`, `.pth`, `.bin`), a burnpack (`.bpk`), GGUF, or an index of such files in the same
    /// folder; its first bytes tell which. Nothing in a file is executed, and no index can name a file outside its folder.
    ///
    /// GGUF tensors of types F64, F32, F16, BF16, Q8_0, Q4_0 and Q6_K are read, the last three as f32; of the metadata, an alignment of at most 1 MiB and
    /// `split.count`: a file that is one of several parts is refused, and llama.cpp's `gguf-split --merge` joins them. llama.cpp's converter renames the
    /// tensors of `transformers`, permutes the rows of query and key of Llama, Mistral and Mixtral, and adds 1 to the norms of Gemma. The public tables of
    /// this crate are for `transformers`, and would load these tensors as they are. Such a file needs another table, with
    /// [`rotary_pairs`](super::Source::rotary_pairs). [`llama::from_pretrained`](crate::llama::from_pretrained()) has one.
    ///
    /// # Errors
    ///
    /// When a file is missing, damaged, malicious, or of another format.
    ///
    /// # Cost
    ///
    /// Reads names, shapes and dtypes.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WeightsError> {
        Ok(Self::of(source::open(path.as_ref())?))
    }

    fn of(tensors: Tensors) -> Self {
        Self {
            tensors,
            options: Options::default(),
        }
    }

    /// The metadata of a GGUF file by key, in which arrays and long texts are empty, and its tensors.
    pub(crate) fn open_gguf(path: &Path) -> Result<(Map<String, Value>, Self), Reason> {
        let (metadata, tensors) = source::open_gguf(path)?;
        Ok((metadata, Self::of(tensors)))
    }

    pub(crate) fn from_burnpack(bytes: Bytes) -> Result<Self, Reason> {
        Ok(Self::of(source::from_burnpack(bytes)?))
    }

    pub(crate) fn within(&self, prefix: &str) -> Self {
        let mut within = self.clone();
        let tensors = &mut within.tensors;
        tensors.retain(|name, _| below(name, prefix).is_some());
        within
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The numbers of a small tensor, if it is there.
    pub(crate) fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>, String> {
        let stored = self.tensors.get(name);
        let numbers = stored.map(Stored::small).transpose();
        numbers.map_err(|reason| format!("the numbers of {name} cannot be read: {reason}"))
    }

    /// Leaves out tensors of this name, in addition to those that the table ignores; `*` stands for anything.
    pub fn ignore(mut self, pattern: &str) -> Self {
        self.options.ignored.push(pattern.into());
        self
    }

    /// Renames tensors from `from` to `to`, before the table's own renaming; `*` stands for anything, the same in both.
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        self.options.renamed.push((from.into(), to.into()));
        self
    }

    /// Whether parameters may stay unchanged and tensors may be left over. Default: false.
    pub fn partial(mut self, partial: bool) -> Self {
        self.options.partial = partial;
        self
    }

    /// The dtype of parameters that are not initialised yet. Default: that of their device.
    pub fn dtype(self, dtype: FloatDType) -> Self {
        self.dtype_if_any(Some(dtype))
    }

    pub(crate) fn dtype_if_any(mut self, dtype: Option<FloatDType>) -> Self {
        self.options.dtype = dtype;
        self
    }

    /// The names and shapes of all tensors, as the files have them, in alphabetical order.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize])> {
        let tensors = self.tensors.iter();
        tensors.map(|(name, stored)| (name.as_str(), stored.shape.as_slice()))
    }

    /// Loads the tensors into the parameters of `model`, as `table` assigns them.
    ///
    /// Parameters keep their identity, device and dtype, and stay trainable or frozen; f16, bf16, f32 and f64 are converted. A parameter that
    /// is not initialised yet is loaded without being initialised first, in the [dtype](Self::dtype) of these weights or the default dtype of the
    /// device.
    ///
    /// # Errors
    ///
    /// When anything does not match. One error reports everything, and `model` is unchanged.
    ///
    /// # Cost
    ///
    /// Reads each tensor once for every parameter that has a part of it, one tensor at a time. Parameters that are initialised already stay in
    /// memory until the last tensor is read.
    pub fn load<M: Module>(&self, table: &Table, model: &mut M) -> Result<NotLoaded, WeightsError> {
        let plan = Plan::new(table, model)?;
        let fit = Fit::new(&self.tensors, table, &plan, &self.options)?;
        let mut loader = Loader {
            plan: &plan,
            fit: &fit,
            dtype: self.options.dtype,
            path: Vec::new(),
            before: BTreeMap::new(),
            error: None,
        };
        let loaded = model.clone().map(&mut loader);
        match loader.error {
            None => *model = loaded,
            // In Burn 0.22.1 clones share running statistics, which this gives their values back.
            Some(_) => drop(loaded.map(&mut loader)),
        }
        loader.error.map_or(Ok(fit.not_loaded), Err)
    }
}

/// Loads the parameters that it visits, until one cannot be read; from then on, gives them the values back that they had.
struct Loader<'a> {
    plan: &'a Plan,
    fit: &'a Fit<'a>,
    dtype: Option<FloatDType>,
    path: Vec<String>,
    /// What the loaded parameters were, each a `Tensor<D>`.
    before: BTreeMap<ParamId, Box<dyn Any>>,
    error: Option<WeightsError>,
}

impl Loader<'_> {
    /// The numbers of the parameter being visited, if the files have any for it.
    fn numbers(&self, dtype: DType) -> Result<Option<Vec<u8>>, WeightsError> {
        let found = self.plan.job_of.get(&self.path.join("."));
        let found = found.filter(|[job, _]| !self.fit.skipped.contains(job));
        let Some(&[job, target]) = found else {
            return Ok(None);
        };
        let job = &self.plan.jobs[job];
        let (layout, width) = (&job.layout, dtype.size());
        let mut numbers = vec![0; layout.len(target) * width];
        let summand = if job.plus_one { 1.0 } else { 0.0 };
        for (source, names) in job.source.iter().enumerate() {
            if !layout.shares(target, source) {
                continue;
            }
            for (file, name) in names.iter().flatten().enumerate() {
                let mut read = || -> Result<(), Reason> {
                    let (_, stored) = self.fit.tensors.get(name).ok_or("it is not there")?;
                    let (found, read) = stored.open()?;
                    for block in layout.blocks([target, source], file) {
                        let count = block.range.len();
                        let data = read(block.range.clone())?;
                        let data = TensorData::from_bytes_vec(data, [count], found);
                        let data = converted(data, dtype, summand)?;
                        layout.each([target, source], &block, |at, source_at, step, len| {
                            let from = &data.as_bytes()[source_at * width..];
                            copy(from, step, &mut numbers[at * width..], 1, [len, width]);
                        });
                    }
                    Ok(())
                };
                read().map_err(|reason| WeightsError::numbers(name, reason))?;
            }
        }
        Ok(Some(numbers))
    }
}

impl ModuleMapper for Loader<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let id = param.id;
        if self.error.is_some() {
            let before = self
                .before
                .get(&id)
                .and_then(|value| value.downcast_ref::<Tensor<D>>());
            return before
                .cloned()
                .map_or(param, |value| Param::initialized(id, value));
        }
        let dtype = match self.dtype {
            Some(dtype) if !param.is_initialized() => dtype.into(),
            _ => plan::dtype(&param),
        };
        let numbers = self.numbers(dtype).unwrap_or_else(|error| {
            self.error = Some(error);
            None
        });
        let Some(numbers) = numbers else {
            return param;
        };
        let data = TensorData::from_bytes_vec(numbers, param.lazy_shape(), dtype);
        let value = Tensor::from_data(data, (&param.lazy_device(), dtype));
        if param.is_initialized() {
            let value = || Box::new(param.base()) as Box<dyn Any>;
            self.before.entry(id).or_insert_with(value);
        }
        param.transform_for_load(value, id)
    }
}
