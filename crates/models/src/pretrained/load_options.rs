//! How a published model is loaded.

use std::path::Path;

use burn::tensor::{Device, FloatDType};

use super::{PretrainedError, Result, source::folder_with, wanted::Wanted};
use crate::weights::{Weights, is_float};

/// Where and how `from_pretrained` loads a model. It takes a `&device` too, for the device's default dtype.
///
/// ```
/// use burn::tensor::{Device, FloatDType};
/// use burn_attn_models::pretrained::LoadOptions;
///
/// let options = LoadOptions::new(&Device::default()).dtype(FloatDType::BF16);
/// ```
#[derive(Clone, Debug)]
pub struct LoadOptions {
    pub(crate) device: Device,
    dtype: Option<FloatDType>,
}

impl LoadOptions {
    /// Parameters on this device, of its default dtype.
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            dtype: None,
        }
    }

    /// The dtype of the parameters, in which the model then computes: [`BF16`](FloatDType::BF16) and [`F16`](FloatDType::F16) take half the
    /// memory of [`F32`](FloatDType::F32). Default: that of the device. Published T5s were trained in bf16, and their sums may overflow f16: an
    /// output is NaN then, which `generate` reports.
    ///
    /// `from_pretrained` refuses a dtype in which the device does not compute: on ndarray bf16 and f16, and bf16 on wgpu, whose shaders (WGSL) have no such type, and
    /// on Vulkan, where CubeCL 0.11.3 only stores it. With cuda and the others it depends on the device.
    ///
    /// # Cost
    ///
    /// On flex, every product in bf16 converts both operands to f32, and the result back: every weight, for each token that is generated. In bf16 and
    /// f16, Burn's own products also take the place of these crates' kernels, which are for f32, and with few rows for f64.
    pub fn dtype(mut self, dtype: FloatDType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// The weights of a model whose configuration is supported, which are `opened` already in a GGUF file: those of a name on the Hub are only now
    /// downloaded.
    pub(crate) fn weights(&self, source: &Path, opened: Option<Weights>) -> Result<Weights> {
        if let Some(dtype) = self.dtype
            && (!is_float(dtype.into()) || !self.device.supports_dtype(dtype))
        {
            return Err(PretrainedError::DType {
                dtype,
                device: format!("{:?}", self.device),
            });
        }
        let weights = match opened {
            Some(weights) => weights,
            None => Weights::open(folder_with(source, Wanted::Model)?)
                .map_err(|error| PretrainedError::weights(source, error))?,
        };
        Ok(weights.dtype_if_any(self.dtype))
    }
}

impl From<&Device> for LoadOptions {
    fn from(device: &Device) -> Self {
        Self::new(device)
    }
}
