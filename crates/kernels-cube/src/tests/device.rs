//! Tensors on the device that wgpu finds, or on one that stands for a lesser one.

use std::{cell::RefCell, sync::LazyLock};

use burn_attn_kernels_cpu::PositionMask;
use cubecl::{
    Device,
    bytes::Bytes,
    client::Client,
    future::block_on,
    ir::{ElemType, FloatKind, IntKind, UIntKind},
    prelude::CubeElement,
    wgpu::{
        AutoGraphicsApi, RuntimeOptions, WgpuDevice, WgpuSetup, init_device, init_setup,
        wgpu::{DeviceDescriptor, Features, Limits},
    },
};
use half::{bf16, f16};

use crate::{Inputs, Operand};

pub const F32: ElemType = ElemType::Float(FloatKind::F32);
pub const I32: ElemType = ElemType::Int(IntKind::I32);
pub const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// What wgpu finds, registered as the default device.
static FOUND: LazyLock<WgpuSetup> = LazyLock::new(|| {
    init_setup::<AutoGraphicsApi>(&WgpuDevice::default(), RuntimeOptions::default())
});

thread_local! {
    /// Instead of the default device.
    static INSTEAD: RefCell<Option<Client>> = const { RefCell::new(None) };
}

/// The device's client.
pub fn client() -> Client {
    LazyLock::force(&FOUND);
    let instead = INSTEAD.with_borrow(Clone::clone);
    instead.unwrap_or_else(|| Device::default().client())
}

/// Runs `call` on the same hardware as a device with so many storage buffers: wgpu refuses every kernel with more.
#[cfg_attr(
    feature = "vulkan",
    allow(dead_code, reason = "kernels in SPIR-V bind no buffers")
)]
pub fn with_storage_buffers<T>(count: u32, call: impl FnOnce() -> T) -> T {
    let adapter = &FOUND.adapter;
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
    let setup = WgpuSetup {
        device,
        queue,
        ..FOUND.clone()
    };
    let device = Device::Wgpu(init_device(setup, RuntimeOptions::default()));
    INSTEAD.set(Some(device.client()));
    let result = call();
    INSTEAD.set(None);
    result
}

fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

pub fn upload<T: CubeElement>(
    client: &Client,
    data: &[T],
    shape: &[usize],
    elem: ElemType,
) -> Operand {
    assert_eq!(data.len(), shape.iter().product::<usize>());
    Operand {
        handle: client.create(Bytes::from_bytes_vec(T::as_bytes(data).to_vec())),
        shape: shape.to_vec(),
        strides: strides(shape),
        elem,
    }
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

/// A tensor `[batch, heads, len, dim]` that lies in memory as `[batch, len, heads, dim + padding]`. What pads it is NaN.
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

/// Without any option.
pub fn plain(query: Operand, key: Operand, value: Operand, scale: f64) -> Inputs {
    Inputs {
        query,
        key,
        value,
        bias: None,
        distance_bias: None,
        sinks: None,
        masked: None,
        visible_blocks: None,
        key_lengths: None,
        query_offsets: None,
        segments: None,
        by_position: PositionMask::new(None, None),
        scale,
        softcap: None,
        dropout: None,
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
