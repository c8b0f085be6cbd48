//! The learning rate, by Burn's schedulers.

use burn::lr_scheduler::{module_lr_scheduler::ModuleLrScheduler, noam::NoamLrSchedulerConfig};
use burn_attn_models::train::{last_step, warmup_cosine};
use example_common::error::Error;

use crate::cli::{Recipe, Schedule};
use crate::run_config::RunConfig;

/// The last rate of the cosine, as a part of the highest.
const FLOOR: f64 = 0.02;

/// The scheduler of a run whose epochs have so many steps.
///
/// # Errors
/// If Burn refuses the learning rate.
pub fn scheduler(config: &RunConfig, epoch_steps: usize) -> Result<ModuleLrScheduler, Error> {
    let Recipe {
        epochs,
        steps,
        learning_rate: peak,
        warmup,
        schedule,
        ..
    } = config.recipe;
    let scheduler = match schedule {
        Schedule::Cosine => {
            let steps = last_step(epochs, steps, epoch_steps);
            warmup_cosine(peak, warmup, steps, FLOOR * peak)
        }
        Schedule::Noam => {
            // Vaswani et al. (2017), equation 3, is highest at the end of the warm-up, with (d_model · warmup)^-0.5.
            let d_model = config.model.d_model;
            NoamLrSchedulerConfig::new(peak * (d_model as f64 * warmup as f64).sqrt())
                .with_warmup_steps(warmup)
                .with_model_size(d_model)
                .init()
        }
    };
    scheduler.map_err(|problem| format!("--learning-rate {peak}: {problem}").into())
}

#[cfg(test)]
mod tests;
