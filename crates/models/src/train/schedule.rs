//! The learning rate.

use burn::lr_scheduler::{
    LrSchedulerConfig, cosine::CosineAnnealingLrSchedulerConfig, linear::LinearLrSchedulerConfig,
    module_lr_scheduler::ModuleLrScheduler, sequential::SequentialLrSchedulerConfig,
};

/// Burn's schedulers for the usual recipe: a linear rise to `peak` in the first `warmup` steps, then
/// half a cosine that reaches `floor` after `steps` steps, where training should end: after that it would rise again.
///
/// Without `steps`, which may not be known yet, the rate stays at `peak`. A run that ends before the cosine begins has no cosine, and a run that
/// ends within the warm-up never reaches `peak`.
///
/// The record of such a scheduler can be loaded into a scheduler with other `steps`, which goes on at the same step of its curve. Only if there were
/// no `steps` so far, and the cosine should have begun by now, does the cosine begin late.
///
/// # Errors
///
/// When a rate is refused: `peak` must be above 0 and at most 1, and `floor` from 0 to `peak`.
///
/// ```
/// use burn_attn_models::train::warmup_cosine;
///
/// let mut scheduler = warmup_cosine(1e-3, 2, Some(6), 0.0).unwrap();
/// let rates: Vec<f64> = (0..7).map(|_| scheduler.step().base()).collect();
/// let expected = [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0].map(|part| 1e-3 * part);
/// for (rate, expected) in rates.into_iter().zip(expected) {
///     assert!((rate - expected).abs() < 1e-6, "{rate}, not {expected}");
/// }
/// ```
pub fn warmup_cosine(
    peak: f64,
    warmup: usize,
    steps: Option<usize>,
    floor: f64,
) -> Result<ModuleLrScheduler, String> {
    // Burn's own checks let NaN pass.
    if !(peak > 0.0 && peak <= 1.0 && (0.0..=peak).contains(&floor)) {
        return Err(format!(
            "the highest rate must be above 0 and at most 1, and the lowest from 0 to that, got {peak} and {floor}"
        ));
    }
    let warmup = warmup.max(1);
    // Burn's scheduler rises from its first rate to its last in this many steps; the first rate itself is a step before.
    let rise = LinearLrSchedulerConfig::new(peak / warmup as f64, peak, (warmup - 1).max(1));
    // Two parts even where the second is never reached: otherwise the record of a short run would not fit the scheduler of a longer one, which
    // would warm up again without a word.
    let rest = match steps.map(|steps| steps.saturating_sub(warmup)) {
        None | Some(0) => LrSchedulerConfig::Constant(peak),
        Some(falling) => CosineAnnealingLrSchedulerConfig::new(peak, falling)
            .with_min_lr(floor)
            .into(),
    };
    SequentialLrSchedulerConfig::new(vec![rise.into(), rest], vec![warmup]).init()
}

#[cfg(test)]
mod tests;
