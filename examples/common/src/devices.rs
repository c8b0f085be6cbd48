//! The devices of the examples by name. One that is not built in is refused with the feature that adds it.

use std::{fmt, str::FromStr};

use burn::tensor::Device;
use clap::ValueEnum;

/// These devices or, if there are none, the default one.
///
/// # Errors
///
/// If a backend was not compiled in, or `BURN_DEVICE` names an unknown device.
pub fn open_all(devices: &[DeviceArg]) -> Result<Vec<Device>, String> {
    match devices {
        [] => Ok(vec![choose(None)?.device]),
        devices => devices.iter().map(|device| device.open()).collect(),
    }
}

/// The devices by Burn's names for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DeviceName {
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

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// A device as one names it on the command line: `flex`, `wgpu`, `cuda:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceArg {
    name: DeviceName,
    number: Option<usize>,
}

impl DeviceArg {
    /// The GPU with this number, or the default one. A CPU has no number. wgpu, vulkan, metal and webgpu count discrete GPUs alone.
    ///
    /// # Errors
    ///
    /// If its backend was not compiled in.
    pub fn open(self) -> Result<Device, String> {
        let Self { name, number } = self;
        #[cfg(any(
            feature = "wgpu",
            feature = "vulkan",
            feature = "metal",
            feature = "webgpu"
        ))]
        let kind = match number {
            Some(number) => burn::tensor::DeviceKind::DiscreteGpu(number),
            None => burn::tensor::DeviceKind::DefaultDevice,
        };
        let _ = number;
        match name {
            #[cfg(feature = "flex")]
            DeviceName::Flex => Ok(Device::flex()),
            #[cfg(feature = "ndarray")]
            #[allow(deprecated, reason = "Burn keeps it until 0.23, and so do we")]
            DeviceName::Ndarray => Ok(Device::ndarray()),
            #[cfg(feature = "wgpu")]
            DeviceName::Wgpu => Ok(Device::wgpu(kind)),
            #[cfg(feature = "vulkan")]
            DeviceName::Vulkan => Ok(Device::vulkan(kind)),
            #[cfg(feature = "metal")]
            DeviceName::Metal => Ok(Device::metal(kind)),
            #[cfg(feature = "webgpu")]
            DeviceName::Webgpu => Ok(Device::webgpu(kind)),
            #[cfg(feature = "cuda")]
            DeviceName::Cuda => Ok(Device::cuda(number.unwrap_or(0))),
            #[cfg(feature = "rocm")]
            DeviceName::Rocm => Ok(Device::rocm(number.unwrap_or(0))),
            #[cfg(feature = "cpu")]
            DeviceName::Cpu => Ok(Device::cpu()),
            #[allow(
                unreachable_patterns,
                reason = "with every feature on, nothing is missing"
            )]
            missing => Err(format!(
                "device `{missing}` is not built in: add --features {missing}"
            )),
        }
    }

    /// The name of its backend, which is also that of the cargo feature.
    pub fn backend(self) -> String {
        self.name.to_string()
    }
}

impl FromStr for DeviceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            let names: Vec<_> = DeviceName::value_variants()
                .iter()
                .map(DeviceName::to_string)
                .collect();
            let names = names.join(", ");
            format!(
                "{text:?} is not a device: use {names}, or the number of a GPU behind its name, as in cuda:1; wgpu, vulkan, metal and webgpu number discrete GPUs alone"
            )
        };
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number.parse().map_err(|_| unknown())?)),
            None => (text, None),
        };
        let name = DeviceName::from_str(name, true).map_err(|_| unknown())?;
        let is_cpu = matches!(
            name,
            DeviceName::Flex | DeviceName::Ndarray | DeviceName::Cpu
        );
        match number {
            Some(_) if is_cpu => Err(unknown()),
            _ => Ok(Self { name, number }),
        }
    }
}

impl fmt::Display for DeviceArg {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.name)?;
        self.number.map_or(Ok(()), |number| write!(f, ":{number}"))
    }
}

/// A device with its name.
#[derive(Clone, Debug)]
pub struct TargetDevice {
    /// Where to compute.
    pub device: Device,
    /// Its name in reports.
    pub name: String,
}

/// The device to use: the one asked for, or that of `BURN_DEVICE`, or Burn's default.
///
/// # Errors
///
/// If there is no such device in this build.
pub fn choose(asked: Option<DeviceArg>) -> Result<TargetDevice, String> {
    let arg = match (asked, std::env::var("BURN_DEVICE")) {
        (Some(arg), _) => Some(arg),
        // Left to Burn, which reads the variable too: a device of LibTorch has a kind, a remote one an address.
        (None, Ok(text)) if ["tch", "remote"].contains(&text.to_lowercase().as_str()) => None,
        (None, Ok(text)) => Some(text.parse().map_err(|_| {
            format!("the environment variable BURN_DEVICE names an unknown device {text:?}")
        })?),
        (None, Err(_)) => None,
    };
    let (device, name) = match arg {
        Some(arg) => (arg.open()?, arg.to_string()),
        None => {
            let device = Device::default();
            let name = format!("{:?}", device.as_dispatch()).to_lowercase();
            // A device that has no settings prints as `Flex(Flex)`: its name is enough.
            let short = name.split('(').next().filter(|&name| name != "cube");
            let name = short.unwrap_or(&name).to_string();
            (device, name)
        }
    };
    Ok(TargetDevice { device, name })
}

#[cfg(test)]
mod tests;
