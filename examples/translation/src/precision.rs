//! The numbers that a step of training computes in.

use std::fmt;

use burn::tensor::{Device, FloatDType};
use serde::{Deserialize, Serialize};

use crate::error::Error;

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
    /// Burn's name of it.
    pub fn dtype(self) -> FloatDType {
        match self {
            Self::F32 => FloatDType::F32,
            Self::Bf16 => FloatDType::BF16,
        }
    }

    /// Makes sure that a device of this name computes in it.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(self, device: &Device, name: &str) -> Result<(), Error> {
        match device.supports_dtype(self.dtype()) {
            true => Ok(()),
            false => Err(Error::Option(format!(
                "--precision {self} needs a device that computes in it, such as flex, got {name}"
            ))),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn it_has_one_name() {
        for precision in Precision::value_variants() {
            let option = precision.to_possible_value().unwrap();
            assert_eq!(option.get_name(), precision.to_string());
            let stored = serde_json::to_string(precision).unwrap();
            assert_eq!(stored, format!("\"{precision}\""));
        }
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn a_device_without_it_is_refused() {
        #[allow(deprecated, reason = "as in `example_common`")]
        let device = Device::ndarray();
        let check = |precision: Precision| precision.check(&device, "ndarray");
        assert!(check(Precision::F32).is_ok());
        assert_eq!(
            check(Precision::Bf16).unwrap_err().to_string(),
            "--precision bf16 needs a device that computes in it, such as flex, got ndarray"
        );
    }
}
