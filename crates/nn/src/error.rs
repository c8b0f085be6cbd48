//! Errors of configurations.

use core::{error::Error, fmt};

/// Why a configuration cannot be built, as one sentence with the offending values.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A size that must be positive is zero.
    Zero {
        /// The configuration.
        config: &'static str,
        /// The field.
        field: &'static str,
    },
    /// The width does not split evenly into heads.
    Indivisible {
        /// The configuration.
        config: &'static str,
        /// The model's width.
        d_model: usize,
        /// The number of heads.
        n_heads: usize,
    },
    /// Values that contradict each other.
    Invalid {
        /// The configuration.
        config: &'static str,
        /// The fields and their values, as a sentence.
        reason: String,
    },
    /// A dropout probability outside `[0, 1)`.
    Dropout {
        /// The configuration.
        config: &'static str,
        /// The probability given.
        dropout: f64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { config, field } => {
                write!(f, "{config}: {field} must be at least 1, got 0")
            }
            Self::Indivisible {
                config,
                d_model,
                n_heads,
            } => write!(
                f,
                "{config}: d_model {d_model} is not divisible by n_heads {n_heads}"
            ),
            Self::Dropout { config, dropout } => {
                write!(f, "{config}: dropout must be in [0, 1), got {dropout}")
            }
            Self::Invalid { config, reason } => write!(f, "{config}: {reason}"),
        }
    }
}

impl Error for ConfigError {}

impl ConfigError {
    /// The same error in the name of another configuration with these fields: the one that the user wrote.
    ///
    /// ```
    /// use burn_attn::SelfAttentionConfig;
    ///
    /// let error = SelfAttentionConfig::new(15, 4).validate().unwrap_err();
    /// assert_eq!(
    ///     error.in_name_of("ModelConfig").to_string(),
    ///     "ModelConfig: d_model 15 is not divisible by n_heads 4"
    /// );
    /// ```
    pub fn in_name_of(mut self, name: &'static str) -> Self {
        match &mut self {
            Self::Zero { config, .. }
            | Self::Indivisible { config, .. }
            | Self::Invalid { config, .. }
            | Self::Dropout { config, .. } => *config = name,
        }
        self
    }

    /// Checks that none of the sizes, given with their names, is zero.
    ///
    /// # Errors
    ///
    /// [`Zero`](Self::Zero), with the first field that is zero.
    pub fn check_positive(
        config: &'static str,
        sizes: &[(&'static str, usize)],
    ) -> Result<(), Self> {
        match sizes.iter().find(|(_, size)| *size == 0) {
            Some(&(field, _)) => Err(Self::Zero { config, field }),
            None => Ok(()),
        }
    }

    /// Checks that `d_model` and `n_heads` are positive, and that `d_model` is divisible by `n_heads`.
    ///
    /// # Errors
    ///
    /// [`Zero`](Self::Zero) or [`Indivisible`](Self::Indivisible).
    pub fn check_heads(config: &'static str, d_model: usize, n_heads: usize) -> Result<(), Self> {
        Self::check_positive(config, &[("d_model", d_model), ("n_heads", n_heads)])?;
        if !d_model.is_multiple_of(n_heads) {
            return Err(Self::Indivisible {
                config,
                d_model,
                n_heads,
            });
        }
        Ok(())
    }

    /// Checks that only a causal module has a window.
    pub(crate) fn check_window(
        config: &'static str,
        causal: bool,
        window: Option<usize>,
    ) -> Result<(), Self> {
        match (causal, window) {
            (false, Some(window)) => Err(Self::Invalid {
                config,
                reason: format!(
                    "a window of {window} needs causal true; AttentionMask::window is for both directions"
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Checks that `dropout` is in `[0, 1)`.
    ///
    /// # Errors
    ///
    /// [`Dropout`](Self::Dropout).
    pub fn check_dropout(config: &'static str, dropout: f64) -> Result<(), Self> {
        if !(0.0..1.0).contains(&dropout) {
            return Err(Self::Dropout { config, dropout });
        }
        Ok(())
    }
}

/// The value, or the panic of `init` for an invalid configuration.
///
/// # Panics
///
/// With the error's sentence.
pub(crate) fn expect_valid<T>(result: Result<T, ConfigError>) -> T {
    match result {
        Ok(valid) => valid,
        Err(error) => panic!("{error}"),
    }
}
