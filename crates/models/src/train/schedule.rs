//! The learning rate.

use burn::lr_scheduler::{
    LrSchedulerConfig, cosine::CosineAnnealingLrSchedulerConfig, linear::LinearLrSchedulerConfig,
    module_lr_scheduler::ModuleLrScheduler, sequential::SequentialLrSchedulerConfig,
};

/// Burn's schedulers for the usual recipe: a linear rise to `peak` in the first `warmup` steps, the rate `peak` up to step `hold_until`, then
/// half a cosine that reaches `floor` after `steps` steps, where training should end: after that it would rise again.
///
/// Without `steps`, which may not be known yet, the rate stays at `peak`, and so it does if `steps` are over before the cosine begins.
///
/// # Errors
///
/// When a rate is refused: `peak` must be above 0 and at most 1, and `floor` from 0 to `peak`.
///
/// ```
/// use burn_attn_models::train::warmup_cosine;
///
/// let mut scheduler = warmup_cosine(1e-3, 2, 4, Some(8), 0.0).unwrap();
/// let rates: Vec<f64> = (0..9).map(|_| scheduler.step().base()).collect();
/// let expected = [0.5, 1.0, 1.0, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0].map(|part| 1e-3 * part);
/// for (rate, expected) in rates.into_iter().zip(expected) {
///     assert!((rate - expected).abs() < 1e-6, "{rate}, not {expected}");
/// }
/// ```
pub fn warmup_cosine(
    peak: f64,
    warmup: usize,
    hold_until: usize,
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
    // Burn's rises from its first rate to its last in so many steps, of which the first comes before.
    let rise = LinearLrSchedulerConfig::new(peak / warmup as f64, peak, (warmup - 1).max(1));
    let from = hold_until.max(warmup);
    match steps.map(|steps| steps.saturating_sub(from)) {
        None | Some(0) => rise.init(),
        Some(falling) => {
            let fall = CosineAnnealingLrSchedulerConfig::new(peak, falling).with_min_lr(floor);
            let parts: Vec<LrSchedulerConfig> = vec![rise.into(), fall.into()];
            SequentialLrSchedulerConfig::new(parts, vec![from]).init()
        }
    }
}
