//! The numbers that a step of training computes in.

use burn::tensor::{Device, FloatDType};
use example_common::error::Error;
use serde::{Deserialize, Serialize};

/// What a step computes in; weights and optimizer are in f32 either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit numbers
    #[default]
    F32,
    /// 16-bit numbers with the range of f32 and two to three digits
    Bf16,
}

impl Precision {
    /// Burn's name of this precision.
    pub fn dtype(self) -> FloatDType {
        match self {
            Self::F32 => FloatDType::F32,
            Self::Bf16 => FloatDType::BF16,
        }
    }

    /// Makes sure that a device computes in this precision; `name` is the device's in the error.
    ///
    /// # Errors
    /// If the device does not.
    pub fn check(self, device: &Device, name: &str) -> Result<(), Error> {
        match device.supports_dtype(self.dtype()) {
            true => Ok(()),
            false => Err(format!(
                "--precision {} needs a device that computes in it, such as flex, got {name}",
                format!("{self:?}").to_lowercase()
            )
            .into()),
        }
    }
}

#[cfg(all(test, feature = "ndarray"))]
mod tests;
