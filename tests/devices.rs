//! The devices of this build.

use burn::tensor::Device;

/// A device with its name, for messages.
pub type Named = (&'static str, Device);

/// The CPU backends of this build, without autodiff.
pub fn cpu() -> Vec<Named> {
    [
        #[cfg(feature = "flex")]
        ("flex", Device::flex()),
        #[cfg(feature = "ndarray")]
        ("ndarray", ndarray()),
    ]
    .into()
}

/// The CPU backend that a test uses when one is enough.
pub fn any() -> Device {
    let (_, device) = cpu()
        .into_iter()
        .next()
        .expect("the suite needs feature flex or ndarray");
    device
}

#[cfg(feature = "ndarray")]
#[allow(
    deprecated,
    reason = "deprecated by Burn in favour of flex, still one of our features"
)]
fn ndarray() -> Device {
    Device::ndarray()
}

/// The wgpu device of this machine, if it has an adapter.
#[cfg(feature = "wgpu")]
pub fn wgpu() -> Option<Device> {
    use std::sync::OnceLock;

    use burn::tensor::wgpu::WgpuInitError;

    // A second initialization would be an error, and tests run side by side.
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    DEVICE
        .get_or_init(|| match Device::wgpu_options().init() {
            Ok(device) => Some(device),
            Err(WgpuInitError::AdapterUnavailable { .. }) => None,
            Err(error) => panic!("there is an adapter, but: {error}"),
        })
        .clone()
}
