//! Tensors on the device that wgpu finds, or on one with fewer storage buffers.

use std::sync::LazyLock;

use cubecl::{
    Device,
    bytes::Bytes,
    client::Client,
    ir::{DeviceProperties, ElemType, FloatKind, IntKind, UIntKind, features::MmaConfig},
    prelude::CubeElement,
    wgpu::{
        AutoGraphicsApi, RuntimeOptions, WgpuDevice, WgpuInitError, WgpuSetup, try_init_setup,
        wgpu::Backend,
    },
};
use half::{bf16, f16};

use super::wgsl::instead;
use crate::Operand;

pub const F32: ElemType = ElemType::Float(FloatKind::F32);
pub const I32: ElemType = ElemType::Int(IntKind::I32);
pub const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// 1 lets the tests pass on a machine where wgpu finds no adapter.
const ALLOW_NO_ADAPTER: &str = "BURN_ATTN_ALLOW_NO_ADAPTER";

/// The setup of the adapter that wgpu finds, registered as the default device; `None` if it finds nothing and [`ALLOW_NO_ADAPTER`] is 1.
///
/// OpenGL does not count, as in the suites of the workspace. Errors are returned: after a panic, only the first test would show the message.
static FOUND: LazyLock<Result<Option<WgpuSetup>, String>> = LazyLock::new(|| {
    let device = WgpuDevice::default();
    let missing = match try_init_setup::<AutoGraphicsApi>(&device, RuntimeOptions::default()) {
        Ok(setup) if setup.backend != Backend::Gl => return Ok(Some(setup)),
        Ok(_) => "wgpu finds only OpenGL",
        Err(WgpuInitError::AdapterUnavailable { .. }) => "wgpu finds no adapter",
        Err(error) => return Err(error.to_string()),
    };
    if std::env::var_os(ALLOW_NO_ADAPTER).is_some_and(|value| value == "1") {
        return Ok(None);
    }
    Err(format!(
        "these tests need a Vulkan, Metal or DirectX 12 adapter, but {missing}; {ALLOW_NO_ADAPTER}=1 skips them"
    ))
});

pub fn found() -> Option<&'static WgpuSetup> {
    match &*FOUND {
        Ok(Some(setup)) => Some(setup),
        Ok(None) => {
            eprintln!("skipped: no adapter");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The device's client; `None` without an adapter.
pub fn client() -> Option<Client> {
    found()?;
    Some(instead().unwrap_or_else(|| Device::default().client()))
}

/// The device's properties with these products `[m, n, k]` by type, planes of 32 units, and so many bytes of shared memory.
pub fn listing(
    client: &Client,
    products: &[(ElemType, [u32; 3])],
    shared_memory: usize,
) -> DeviceProperties {
    let mut properties: DeviceProperties = client.properties().clone();
    properties.hardware.plane_size_min = 32;
    properties.hardware.plane_size_max = 32;
    properties.hardware.max_shared_memory_size = shared_memory;
    properties.hardware.max_units_per_cube = 1024;
    let product = |&(elem, [m, n, k]): &(ElemType, [u32; 3])| MmaConfig {
        a_type: elem,
        b_type: elem,
        cd_type: F32,
        m,
        n,
        k,
    };
    properties.features.matmul.cmma = products.iter().map(product).collect();
    properties
}

pub fn upload<T: CubeElement>(
    client: &Client,
    data: &[T],
    shape: &[usize],
    elem: ElemType,
) -> Operand {
    assert_eq!(data.len(), shape.iter().product::<usize>());
    let handle = client.create(Bytes::from_bytes_vec(T::as_bytes(data).to_vec()));
    Operand::row_major(handle, shape, elem)
}

pub fn floats(client: &Client, data: &[f64], shape: &[usize]) -> Operand {
    reals(client, data, F32, shape)
}

/// A tensor of one of the three types of floats.
pub fn reals(client: &Client, data: &[f64], elem: ElemType, shape: &[usize]) -> Operand {
    fn all<T>(data: &[f64], of: impl Fn(f64) -> T) -> Vec<T> {
        data.iter().map(|&number| of(number)).collect()
    }
    match elem {
        ElemType::Float(FloatKind::F16) => upload(client, &all(data, f16::from_f64), shape, elem),
        ElemType::Float(FloatKind::BF16) => upload(client, &all(data, bf16::from_f64), shape, elem),
        _ => upload(client, &all(data, |number| number as f32), shape, elem),
    }
}

/// A tensor `[batch, heads, len, dim]` that lies in memory as `[batch, len, heads, dim + padding]`. The padding is NaN.
pub fn interleaved(
    client: &Client,
    data: &[f64],
    elem: ElemType,
    shape: [usize; 4],
    padding: usize,
) -> Operand {
    let [batch, heads, len, dim] = shape;
    let row = dim + padding;
    let mut memory = vec![f64::NAN; batch * len * heads * row];
    for (at, numbers) in data.chunks(dim).enumerate() {
        let (head, position) = (at / len, at % len);
        let to = ((head / heads * len + position) * heads + head % heads) * row;
        memory[to..to + dim].copy_from_slice(numbers);
    }
    Operand {
        shape: shape.to_vec(),
        strides: vec![len * heads * row, row, heads * row, 1],
        ..reals(client, &memory, elem, &[batch, len, heads, row])
    }
}

/// A tensor of NaN.
pub fn unwritten(client: &Client, elem: ElemType, shape: &[usize]) -> Operand {
    reals(client, &vec![f64::NAN; shape.iter().product()], elem, shape)
}

pub fn read(client: &Client, operand: &Operand) -> Vec<f64> {
    fn all<T: CubeElement>(bytes: &[u8], count: usize, of: impl Fn(&T) -> f64) -> Vec<f64> {
        T::from_bytes(bytes)[..count].iter().map(of).collect()
    }
    let bytes = client.read_one_unchecked(operand.handle.clone());
    let count = operand.shape.iter().product();
    match operand.elem {
        ElemType::Float(FloatKind::F16) => all(&bytes, count, |number: &f16| number.to_f64()),
        ElemType::Float(FloatKind::BF16) => all(&bytes, count, |number: &bf16| number.to_f64()),
        _ => all(&bytes, count, |&number: &f32| f64::from(number)),
    }
}
