//! What the models that are trained here have in common.

use std::path::Path;

use burn::{
    module::{Module, ModuleDisplay},
    tensor::Device,
    train::{InferenceStep, SequenceOutput, TrainStep},
};
use burn_attn_models::{
    train::{TokenBatch, TrainingData},
    weights::{self, Table, in_f16},
};
use example_common::error::Error;
use serde::{Deserialize, Serialize};

use crate::mnist::Mnist;

/// The last scans of the training part, one of so many, are for validation.
pub const VALIDATION: usize = 12;

/// What a resumed run has to repeat.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recipe {
    /// Passes over the training part.
    pub epochs: usize,
    /// Images of a step.
    pub batch: usize,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// The seed of parameters, order and augmentation.
    pub seed: u64,
}

/// What a model is trained on, and the model.
pub trait TrainingTask: TrainingData<Batch: TokenBatch> + Sized {
    /// The model.
    type Model: Module
        + ModuleDisplay
        + Send
        + TrainStep<Input = Self::Batch, Output = SequenceOutput>
        + InferenceStep<Input = Self::Batch, Output = SequenceOutput>;

    /// The default recipe.
    const RECIPE: Recipe;

    /// The data of a run.
    fn new(mnist: Mnist, recipe: &Recipe) -> Self;

    /// A model with random parameters.
    fn init(device: &Device) -> Self::Model;

    /// Saves a model with its configuration.
    fn save(model: Self::Model, folder: &Path) -> Result<(), Error>;
}

/// Saves a model in f16 as `transformers` does.
pub fn save_half(table: &Table, model: impl Module, folder: &Path) -> Result<(), Error> {
    let path = folder.join("model.safetensors");
    Ok(weights::save(table, &in_f16(model), path)?)
}

#[cfg(test)]
pub mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Holds for one test Burn's generators, of which a process has one.
    pub fn alone() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        // A failed test must fail alone.
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
