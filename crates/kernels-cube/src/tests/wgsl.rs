//! A device that binds a given number of tensors. Its kernels are WGSL, in every build: SPIR-V has addresses in place of bindings.

use std::{
    any::TypeId,
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use cubecl::{
    Device, MemoryConfiguration, WgpuCompilationOptions,
    client::Client,
    future::block_on,
    ir::{ElemType, IntKind, MemoryDeviceProperties, TargetProperties, UIntKind},
    logging::ServerLogger,
    profile::TimingMethod,
    server::ServerUtilities,
    wgpu::{
        RuntimeOptions, WgpuServer, WgpuSetup, WgslCompiler,
        wgpu::{DeviceDescriptor, Features, Limits},
    },
};
use cubecl_server::allocator::ContiguousMemoryLayoutPolicy;

use super::device::found;

/// Integers that SPIR-V has, and WGSL does not.
pub const NARROW: [ElemType; 4] = [
    ElemType::Int(IntKind::I8),
    ElemType::Int(IntKind::I16),
    ElemType::UInt(UIntKind::U8),
    ElemType::UInt(UIntKind::U16),
];

thread_local! {
    /// Client in place of the default device's.
    static INSTEAD: RefCell<Option<Client>> = const { RefCell::new(None) };
}

/// The client that this thread has in place of the default one.
pub fn instead() -> Option<Client> {
    INSTEAD.with_borrow(Clone::clone)
}

/// Runs `call` on a device of the same hardware with `count` storage buffers: wgpu refuses every kernel with more. `None` without an adapter.
pub fn with_storage_buffers<T>(count: u32, call: impl FnOnce(Client) -> T) -> Option<T> {
    let found = found()?;
    let adapter = &found.adapter;
    let features = Features::MAPPABLE_PRIMARY_BUFFERS | Features::all_experimental_mask();
    let (device, queue) = block_on(adapter.request_device(&DeviceDescriptor {
        required_features: adapter.features().difference(features),
        required_limits: Limits {
            max_storage_buffers_per_shader_stage: count,
            ..adapter.limits()
        },
        ..DeviceDescriptor::default()
    }))
    .expect("a device");
    let client = client_of(WgpuSetup {
        device,
        queue,
        ..found.clone()
    });
    INSTEAD.set(Some(client.clone()));
    let result = call(client);
    INSTEAD.set(None);
    Some(result)
}

/// Makes a client of a setup as CubeCL does, with the WGSL compiler instead of one that the driver's features choose.
fn client_of(setup: WgpuSetup) -> Client {
    static DEVICES: AtomicU16 = AtomicU16::new(0);
    let default = Device::default().client();
    let mut service = default.service_id();
    service.service = TypeId::of::<WgpuServer<WgslCompiler>>();
    service.device.index_id = DEVICES.fetch_add(1, Ordering::Relaxed);
    let mut properties = default.properties().clone();
    let limits = setup.device.limits();
    properties.hardware.max_bindings = limits.max_storage_buffers_per_shader_stage - 1;
    properties.features.matmul.cmma.clear();
    // As a device that compiles WGSL, which has none.
    for narrow in NARROW {
        properties.features.types.elem.remove(&narrow);
    }
    let memory: MemoryDeviceProperties = properties.memory.clone();
    let alignment = memory.alignment as usize;
    let (utilities, captures) = ServerUtilities::init(
        service,
        "wgpu<wgsl>",
        properties,
        TargetProperties::default(),
        Arc::new(ServerLogger::default()),
        ContiguousMemoryLayoutPolicy::new(alignment),
    );
    let server = WgpuServer::<WgslCompiler>::new(
        memory,
        MemoryConfiguration::default(),
        WgpuCompilationOptions::default(),
        setup.device,
        setup.queue,
        RuntimeOptions::default().tasks_max,
        setup.backend,
        TimingMethod::System,
        utilities,
        captures,
    );
    Client::try_init(service.device, server).expect("a device of its own")
}
