//! The types in which bodies compute, and changes of type and shape that do nothing where nothing differs.

use burn::{
    backend::{
        Backend, DeviceOps, Dispatch, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, Device, FloatTensor},
    },
    tensor::{self, DType, FloatDType, IntDType, Shape},
};

/// Half precision is computed in f32.
pub(crate) fn statistics_dtype(dtype: FloatDType) -> FloatDType {
    match dtype {
        FloatDType::F64 => FloatDType::F64,
        _ => FloatDType::F32,
    }
}

/// The integers in which positions are counted: negative ones, and long sequences, need more than some types hold that a user may
/// make the device's default.
pub(crate) fn counting_dtype<B: Backend>(device: &Device<B>) -> IntDType {
    match get_or_init_device_settings::<B>(device).int_dtype {
        dtype @ (IntDType::I32 | IntDType::I64) => dtype,
        // Every backend's own default is one of these.
        _ => DeviceOps::defaults(device).int_dtype,
    }
}

/// The `device` and the integers in which positions are counted on it, for making tensors: signed ones of 32 or 64 bits, whatever the device's
/// default is.
pub fn counting(device: &tensor::Device) -> (&tensor::Device, DType) {
    let dtype = counting_dtype::<Dispatch>(device.as_dispatch());
    (device, dtype.into())
}

/// Where a tensor is −∞; NaN is not.
pub(crate) fn is_minus_infinity<B: Backend>(tensor: FloatTensor<B>) -> BoolTensor<B> {
    let bool_dtype = get_or_init_device_settings::<B>(&tensor.device()).bool_dtype;
    let least = least(float_dtype(tensor.dtype()));
    B::float_lower_elem(tensor, least.into(), bool_dtype)
}

/// The mask in the type of the device's own bools: a tensor from elsewhere may have another.
pub(crate) fn of_device<B: Backend>(mask: BoolTensor<B>) -> BoolTensor<B> {
    let settings = get_or_init_device_settings::<B>(&mask.device());
    if mask.dtype() == settings.bool_dtype.into() {
        return mask;
    }
    let ones = B::bool_into_int(mask, settings.int_dtype);
    B::int_not_equal_elem(ones, 0.into(), settings.bool_dtype)
}

/// The least finite number: only −∞ is lower.
pub(crate) fn least(dtype: FloatDType) -> f64 {
    match dtype {
        FloatDType::F64 => f64::MIN,
        _ => f64::from(f32::MIN),
    }
}

pub(crate) fn float_dtype(dtype: DType) -> FloatDType {
    dtype.into()
}

/// Casts only if the dtype differs.
pub(crate) fn cast<B: Backend>(tensor: FloatTensor<B>, dtype: FloatDType) -> FloatTensor<B> {
    if float_dtype(tensor.dtype()) == dtype {
        return tensor;
    }
    B::float_cast(tensor, dtype)
}

/// Reshapes only if the shape differs: under autodiff every operation is a node.
pub(crate) fn reshape<B: Backend>(tensor: FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
    if tensor.shape() == shape {
        return tensor;
    }
    B::float_reshape(tensor, shape)
}

/// Expanded dimension by dimension, so that a gradient is summed dimension by dimension: in Burn 0.22.1's CubeCL backends one
/// sum over all dimensions is a single loop, which is slow and inexact, and which Mesa's software driver leaves after 65,535
/// rounds.
pub(super) fn expand<B: Backend>(tensor: FloatTensor<B>, shape: &Shape) -> FloatTensor<B> {
    let full = shape.dims::<4>();
    let mut dims = tensor.shape().dims::<4>();
    let mut expanded = tensor;
    for dim in 0..4 {
        if dims[dim] != full[dim] {
            dims[dim] = full[dim];
            expanded = B::float_expand(expanded, Shape::new(dims));
        }
    }
    expanded
}
