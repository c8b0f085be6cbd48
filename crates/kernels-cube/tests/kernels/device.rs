//! Tensors on the device that wgpu finds.

use burn_attn_kernels_cube::Operand;
use cubecl::{
    bytes::Bytes,
    client::Client,
    ir::{ElemType, FloatKind, IntKind, UIntKind},
    prelude::CubeElement,
};

pub const F32: ElemType = ElemType::Float(FloatKind::F32);
pub const I32: ElemType = ElemType::Int(IntKind::I32);
pub const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// The device's client.
pub fn client() -> Client {
    cubecl::Device::default().client()
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
    let data: Vec<f32> = data.iter().map(|&number| number as f32).collect();
    upload(client, &data, shape, F32)
}

/// A tensor of NaN.
pub fn unwritten(client: &Client, shape: &[usize]) -> Operand {
    floats(client, &vec![f64::NAN; shape.iter().product()], shape)
}

pub fn read(client: &Client, operand: &Operand) -> Vec<f64> {
    let bytes = client.read_one_unchecked(operand.handle.clone());
    f32::from_bytes(&bytes)[..operand.shape.iter().product()]
        .iter()
        .map(|&number| f64::from(number))
        .collect()
}
