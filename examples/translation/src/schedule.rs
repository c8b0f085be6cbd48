//! The learning rate, by Burn's schedulers.

use burn::lr_scheduler::{module_lr_scheduler::ModuleLrScheduler, noam::NoamLrSchedulerConfig};
use burn_attn_models::train::warmup_cosine;

use crate::error::Error;
use crate::run_config::{RunConfig, Schedule};

/// The last rate of the cosine, as a part of the highest.
const FLOOR: f64 = 0.02;

/// The scheduler of a run whose epochs have so many steps, after `step` steps.
///
/// # Errors
/// If Burn refuses the learning rate.
pub fn scheduler(
    config: &RunConfig,
    epoch_steps: usize,
    step: usize,
) -> Result<ModuleLrScheduler, Error> {
    let RunConfig {
        learning_rate: peak,
        warmup,
        ..
    } = *config;
    let scheduler = match config.schedule {
        Schedule::Cosine => {
            let steps = config.last_step(epoch_steps);
            warmup_cosine(peak, warmup, 0, steps, FLOOR * peak)
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
    let refused = |problem| Error::Option(format!("--learning-rate {peak}: {problem}"));
    let mut scheduler = scheduler.map_err(refused)?;
    for _ in 0..step {
        scheduler.step();
    }
    Ok(scheduler)
}

#[cfg(test)]
mod tests;
