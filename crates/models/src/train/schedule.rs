//! The learning rate.

use burn::lr_scheduler::{
    LrSchedulerConfig, cosine::CosineAnnealingLrSchedulerConfig, linear::LinearLrSchedulerConfig,
    module_lr_scheduler::ModuleLrScheduler, sequential::SequentialLrSchedulerConfig,
};

/// Burn's schedulers for the usual recipe: a linear rise to `peak` in the first `warmup` steps, the rate `peak` up to step `from`, then half
/// a cosine that reaches `floor` after `steps` steps. Without `steps`, which may not be known yet, the rate stays at `peak`.
///
/// # Errors
///
/// When Burn refuses a rate: it must be greater than 0 and at most 1, and `floor` at most `peak`.
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
    from: usize,
    steps: Option<usize>,
    floor: f64,
) -> Result<ModuleLrScheduler, String> {
    let warmup = warmup.max(1);
    // Burn's rises from its first rate to its last in so many steps, of which the first comes before.
    let rise = LinearLrSchedulerConfig::new(peak / warmup as f64, peak, (warmup - 1).max(1));
    let from = from.max(warmup);
    match steps.map(|steps| steps.saturating_sub(from)) {
        None | Some(0) => rise.init(),
        Some(falling) => {
            let fall = CosineAnnealingLrSchedulerConfig::new(peak, falling).with_min_lr(floor);
            let parts: Vec<LrSchedulerConfig> = vec![rise.into(), fall.into()];
            SequentialLrSchedulerConfig::new(parts, vec![from]).init()
        }
    }
}
