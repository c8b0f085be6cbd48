//! The devices of this build.

use burn::tensor::{DType, Device};

/// A device with its name, for messages.
pub type Named = (&'static str, Device);

/// The CPU backends, flex and ndarray, as far as this build has them, without autodiff.
pub fn cpu() -> Vec<Named> {
    [
        #[cfg(feature = "flex")]
        ("flex", Device::flex()),
        #[cfg(feature = "ndarray")]
        ("ndarray", ndarray()),
    ]
    .into()
}

/// The CPU backends, each without autodiff and with it.
pub fn with_and_without_autodiff() -> Vec<(String, Device)> {
    let both = cpu().into_iter().flat_map(|(name, device)| {
        let tracked = (format!("{name}, autodiff"), device.clone().autodiff());
        [(name.to_owned(), device), tracked]
    });
    both.collect()
}

/// The CPU backend that a test uses when one is enough.
pub fn any() -> Device {
    let (_, device) = cpu()
        .into_iter()
        .next()
        .expect("the suite needs feature flex or ndarray");
    device
}

/// Both CPU backends, for tests that need two devices.
#[cfg(all(feature = "flex", feature = "ndarray"))]
pub fn two() -> [Device; 2] {
    [Device::flex(), ndarray()]
}

/// The CPU backends, and the other backends of this build but a remote server; wgpu where this machine has an adapter. The others fail in Burn where their
/// device is missing: a suite that was asked to test them and cannot must not pass.
pub fn named() -> Vec<Named> {
    let others: &[Option<Named>] = &[
        #[cfg(feature = "wgpu")]
        wgpu().map(|device| ("wgpu", device)),
        #[cfg(feature = "cuda")]
        Some(("cuda", Device::cuda(0))),
        #[cfg(feature = "rocm")]
        Some(("rocm", Device::rocm(0))),
        #[cfg(feature = "cpu")]
        Some(("cpu", Device::cpu())),
        #[cfg(feature = "tch")]
        Some(("tch", libtorch())),
    ];
    let others = others.iter().flatten().cloned();
    cpu().into_iter().chain(others).collect()
}

/// Those on which the suites take all of their calls.
pub fn unsampled() -> Vec<Named> {
    let mut devices = named();
    devices.retain(|(_, device)| !is_sampled(device));
    devices
}

/// [`named`] without the names.
pub fn all() -> Vec<Device> {
    unnamed(named())
}

/// The devices of [`all`] that compute in `dtype`. Burn 0.22.1 says that wgpu computes in f64, and its results are wrong.
pub fn with(dtype: DType) -> Vec<Device> {
    let mut devices = named();
    devices.retain(|(name, device)| {
        let is_wrong = *name == "wgpu" && dtype == DType::F64;
        device.supports_dtype(dtype) && !is_wrong
    });
    unnamed(devices)
}

fn unnamed(devices: Vec<Named>) -> Vec<Device> {
    devices.into_iter().map(|(_, device)| device).collect()
}

/// Whether it is one of the CPU backends.
pub fn is_cpu(device: &Device) -> bool {
    cpu().iter().any(|(_, cpu)| cpu == device)
}

/// Whether the suites take only some of their calls on this device: everywhere but on the CPU, unless `BURN_ATTN_LONG` is 1, as in `cargo run-checks --long`,
/// or a server is tested. A driver in software compiles for seconds what a CPU computes in milliseconds.
pub fn is_sampled(device: &Device) -> bool {
    let is_long = std::env::var_os("BURN_ATTN_LONG").is_some_and(|value| value == "1");
    !is_cpu(device) && !is_long && cfg!(not(feature = "remote"))
}

#[cfg(feature = "ndarray")]
#[allow(
    deprecated,
    reason = "deprecated by Burn in favour of flex, still one of our features"
)]
fn ndarray() -> Device {
    Device::ndarray()
}

#[cfg(feature = "tch")]
#[allow(
    deprecated,
    reason = "deprecated by Burn in favour of CubeCL's backends, still one of our features"
)]
fn libtorch() -> Device {
    Device::libtorch()
}

/// Set it to 1 to let the suites pass on a machine where wgpu finds no adapter.
#[cfg(feature = "wgpu")]
const ALLOW_NO_ADAPTER: &str = "BURN_ATTN_ALLOW_NO_ADAPTER";

/// The wgpu device of this machine; `None`, after printing so, where there is no adapter and `BURN_ATTN_ALLOW_NO_ADAPTER` is 1.
///
/// Panics without an adapter otherwise: a suite that was asked to test wgpu and cannot must not pass. OpenGL, to which wgpu falls back, is no adapter here:
/// many machines without a GPU have OpenGL in software, which would conceal that Vulkan's driver is missing.
#[cfg(feature = "wgpu")]
pub fn wgpu() -> Option<Device> {
    use std::sync::OnceLock;

    use burn::tensor::wgpu::{WgpuInitError, wgpu::Backend};

    // A second initialization would be an error, and tests run side by side.
    static DEVICE: OnceLock<Result<Option<Device>, String>> = OnceLock::new();
    let device = DEVICE.get_or_init(|| {
        let missing = match Device::wgpu_options().init_with_setup() {
            Ok((device, setup)) if setup.backend != Backend::Gl => return Ok(Some(device)),
            Ok((_, setup)) => format!(
                "there is only OpenGL, on {:?}",
                setup.adapter.get_info().name
            ),
            Err(WgpuInitError::AdapterUnavailable { .. }) => "wgpu finds no adapter".to_owned(),
            Err(error) => return Err(error.to_string()),
        };
        if std::env::var_os(ALLOW_NO_ADAPTER).is_some_and(|value| value == "1") {
            Ok(None)
        } else {
            Err(format!(
                "{missing} (Debian: mesa-vulkan-drivers computes in software; {ALLOW_NO_ADAPTER}=1 passes without an adapter)"
            ))
        }
    });
    match device {
        Ok(device) => {
            if device.is_none() {
                println!("without wgpu: no adapter");
            }
            device.clone()
        }
        Err(error) => {
            panic!("the tests on wgpu need a Vulkan, Metal or DirectX 12 adapter: {error}")
        }
    }
}

/// A device that a server on the loopback interface computes for: flex, behind Burn's router and fusion.
#[cfg(feature = "remote")]
pub fn remote() -> Device {
    use std::{net::TcpListener, sync::OnceLock, thread};

    use burn::{
        remote::RemoteHost,
        server::{RemoteServer, WebSocketTransport},
    };

    // One server for the process: every device keeps its thread until the end.
    static DEVICE: OnceLock<Device> = OnceLock::new();
    let device = DEVICE.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("ws://{}", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            RemoteServer::new([Device::flex()])
                .serve(WebSocketTransport::from_listener(listener))
                .expect("a server");
        });
        Device::remote_options(&RemoteHost::websocket(&url))
            .init()
            .expect("a connection to the server")
    });
    device.clone()
}
