//! Devices by name. One that is not built in is refused with the feature that adds it.

use burn::tensor::Device;

use crate::error::Error;

/// The devices by Burn's names for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DeviceName {
    /// The CPU, with Burn's fast CPU backend
    Flex,
    /// The CPU, with the ndarray backend
    Ndarray,
    /// A GPU, through whatever wgpu finds
    Wgpu,
    /// A GPU, through Vulkan
    Vulkan,
    /// A GPU, through Metal
    Metal,
    /// A GPU, through WebGPU
    Webgpu,
    /// An NVIDIA GPU, through CUDA
    Cuda,
    /// An AMD GPU, through ROCm
    Rocm,
    /// The CPU, with CubeCL's compiler
    Cpu,
}

impl DeviceName {
    /// The name of the device, which is also the name of its cargo feature.
    pub fn feature(self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::Ndarray => "ndarray",
            Self::Wgpu => "wgpu",
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
            Self::Webgpu => "webgpu",
            Self::Cuda => "cuda",
            Self::Rocm => "rocm",
            Self::Cpu => "cpu",
        }
    }

    /// The device.
    ///
    /// # Errors
    /// If its backend was not compiled in.
    pub fn open(self) -> Result<Device, Error> {
        #[cfg(any(
            feature = "wgpu",
            feature = "vulkan",
            feature = "metal",
            feature = "webgpu"
        ))]
        use burn::tensor::DeviceKind;
        match self {
            #[cfg(feature = "flex")]
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "ndarray")]
            #[allow(deprecated, reason = "Burn keeps it until 0.23, and so do we")]
            Self::Ndarray => Ok(Device::ndarray()),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Ok(Device::wgpu(DeviceKind::DefaultDevice)),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Ok(Device::vulkan(DeviceKind::DefaultDevice)),
            #[cfg(feature = "metal")]
            Self::Metal => Ok(Device::metal(DeviceKind::DefaultDevice)),
            #[cfg(feature = "webgpu")]
            Self::Webgpu => Ok(Device::webgpu(DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            Self::Cuda => Ok(Device::cuda(0)),
            #[cfg(feature = "rocm")]
            Self::Rocm => Ok(Device::rocm(0)),
            #[cfg(feature = "cpu")]
            Self::Cpu => Ok(Device::cpu()),
            #[allow(
                unreachable_patterns,
                reason = "with every feature on, nothing is missing"
            )]
            missing => Err(Error::Option(format!(
                "device `{0}` is not built in: add --features {0}",
                missing.feature()
            ))),
        }
    }
}

/// The device to use and its name for the report: the one asked for, or that of `BURN_DEVICE`, or Burn's default.
///
/// # Errors
/// If there is no such device in this build.
pub fn choose(asked: Option<DeviceName>) -> Result<(Device, String), Error> {
    let name = match (asked, std::env::var("BURN_DEVICE")) {
        (Some(name), _) => Some(name),
        // LibTorch has devices of its own, and a remote one has an address: Burn reads the variable, too.
        (None, Ok(text)) if ["tch", "remote"].contains(&text.to_lowercase().as_str()) => None,
        (None, Ok(text)) => Some(clap::ValueEnum::from_str(&text, true).map_err(|_| {
            Error::Option(format!(
                "the environment variable BURN_DEVICE names an unknown device {text:?}"
            ))
        })?),
        (None, Err(_)) => None,
    };
    match name {
        Some(name) => Ok((name.open()?, name.feature().to_string())),
        None => {
            let device = Device::default();
            let name = format!("{:?}", device.as_dispatch()).to_lowercase();
            // A device that has no settings prints as `Flex(Flex)`: its name is enough.
            let name = name
                .split('(')
                .next()
                .filter(|&name| name != "cube")
                .unwrap_or(&name)
                .to_string();
            Ok((device, name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(feature = "cuda"))]
    fn a_missing_backend_names_its_feature() {
        let error = choose(Some(DeviceName::Cuda)).unwrap_err().to_string();
        assert_eq!(error, "device `cuda` is not built in: add --features cuda");
    }

    #[test]
    #[cfg(feature = "flex")]
    fn a_built_in_device_opens() {
        assert_eq!(choose(Some(DeviceName::Flex)).unwrap().1, "flex");
    }
}
