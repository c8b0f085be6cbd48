//! Errors of configurations.

use crate::FeedForwardActivation;

/// Why a configuration cannot be built, as one sentence with the offending values.
///
/// ```
/// use burn_attn::SelfAttentionConfig;
///
/// let error = SelfAttentionConfig::new(15, 4).validate().unwrap_err();
/// assert_eq!(error.config, "SelfAttentionConfig");
/// assert_eq!(error.reason, "d_model 15 is not divisible by n_heads 4");
/// assert_eq!(
///     error.in_name_of("ModelConfig").to_string(),
///     "ModelConfig: d_model 15 is not divisible by n_heads 4"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{config}: {reason}")]
pub struct ConfigError {
    /// The name of the configuration.
    pub config: &'static str,
    /// The fields and their values, as a sentence.
    pub reason: String,
}

impl ConfigError {
    /// An error of `config`, the name of a configuration.
    pub fn new(config: &'static str, reason: impl Into<String>) -> Self {
        Self {
            config,
            reason: reason.into(),
        }
    }

    /// The same reason in the name of the configuration that the user wrote, which contains this one.
    pub fn in_name_of(self, config: &'static str) -> Self {
        Self { config, ..self }
    }

    /// Checks that none of the sizes, given with their names, is zero. The error names the first field that is zero.
    pub fn check_positive(
        config: &'static str,
        sizes: &[(&'static str, usize)],
    ) -> Result<(), Self> {
        sizes.iter().try_for_each(|(field, size)| {
            Self::check(config, *size > 0, || {
                format!("{field} must be at least 1, got 0")
            })
        })
    }

    /// Checks that the first of two sizes, given with their names, is divisible by the second. The error names both.
    pub fn check_divisible(
        config: &'static str,
        (field, size): (&str, usize),
        (by, divisor): (&str, usize),
    ) -> Result<(), Self> {
        Self::check(config, size.is_multiple_of(divisor), || {
            format!("{field} {size} is not divisible by {by} {divisor}")
        })
    }

    /// Checks that an activation, the named field, has no gate.
    pub fn check_no_gate(
        config: &'static str,
        field: &str,
        activation: FeedForwardActivation,
    ) -> Result<(), Self> {
        Self::check(config, !activation.is_gated(), || {
            format!("{field} {activation:?} has a gate")
        })
    }

    /// Checks that `dropout` is in `[0, 1)`. The error gives the probability.
    pub fn check_dropout(config: &'static str, dropout: f64) -> Result<(), Self> {
        Self::check_probability(config, "dropout", dropout)
    }

    /// Checks that a probability of dropout, the named field, is in `[0, 1)`.
    pub(crate) fn check_probability(
        config: &'static str,
        field: &str,
        probability: f64,
    ) -> Result<(), Self> {
        Self::check(config, (0.0..1.0).contains(&probability), || {
            format!("{field} must be in [0, 1), got {probability}")
        })
    }

    /// Checks that every number that is set, given with its name, is positive and finite.
    pub(crate) fn check_finite_positive(
        config: &'static str,
        numbers: &[(&str, Option<f64>)],
    ) -> Result<(), Self> {
        let mut numbers = numbers
            .iter()
            .filter_map(|(field, number)| Some((field, (*number)?)));
        numbers.try_for_each(|(field, number)| {
            Self::check(config, number > 0.0 && number.is_finite(), || {
                format!("{field} must be positive and finite, got {number}")
            })
        })
    }

    /// Checks that a condition holds, or else gives the reason.
    pub fn check(
        config: &'static str,
        holds: bool,
        reason: impl FnOnce() -> String,
    ) -> Result<(), Self> {
        match holds {
            true => Ok(()),
            false => Err(Self::new(config, reason())),
        }
    }
}

/// What a configuration was checked or computed for, or the panic of its `init`: the error's sentence.
pub fn expect_valid<T>(result: Result<T, ConfigError>) -> T {
    match result {
        Ok(valid) => valid,
        Err(error) => panic!("{error}"),
    }
}
