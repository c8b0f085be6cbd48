//! Tensors of a backend as Burn's `Tensor` holds them, and back: functions of users take and return `Tensor`.

#![allow(
    deprecated,
    reason = "NdArray is deprecated upstream but supported here as long as Burn has it"
)]

use core::any::Any;

use burn::{
    backend::{
        Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor,
        DispatchTensorKind,
        tensor::{BoolTensor, FloatTensor, IntTensor},
    },
    tensor::{Bool, Int, Tensor},
};

const NOT_ROUTED: &str = "Burn's Tensor holds tensors of this backend";

macro_rules! backends {
    ($($feature:literal: $backend:ident,)*) => {
        /// The tensor as Burn's `Tensor` holds it.
        fn held<B: Backend>(tensor: BackendTensor<B>) -> DispatchTensor {
            let tensor: Box<dyn Any> = Box::new(tensor);
            let tensor = match tensor.downcast::<BackendTensor<Dispatch>>() {
                Ok(tensor) => {
                    return match *tensor {
                        BackendTensor::Float(tensor) => tensor,
                        BackendTensor::Int(tensor) => tensor,
                        BackendTensor::Bool(tensor) => tensor,
                        _ => unreachable!("{NOT_ROUTED}"),
                    };
                }
                Err(tensor) => tensor,
            };
            $(
                #[cfg(feature = $feature)]
                let tensor = match tensor.downcast::<BackendTensor<burn::backend::$backend>>() {
                    Ok(tensor) => {
                        return DispatchTensor {
                            kind: DispatchTensorKind::$backend(*tensor),
                            autodiff: DispatchAutodiffContext::Disabled,
                        };
                    }
                    Err(tensor) => tensor,
                };
            )*
            drop(tensor);
            unreachable!("{NOT_ROUTED}")
        }

        /// The reverse of [`held`]; `of_dispatch` says which kind of tensor it is.
        fn released<B: Backend>(
            tensor: DispatchTensor,
            of_dispatch: impl Fn(DispatchTensor) -> BackendTensor<Dispatch>,
        ) -> BackendTensor<B> {
            let is_dispatch = core::any::TypeId::of::<B>() == core::any::TypeId::of::<Dispatch>();
            #[allow(
                unreachable_patterns,
                reason = "a build with one backend and no autodiff has one kind of tensor"
            )]
            let tensor: Box<dyn Any> = match tensor.kind {
                _ if is_dispatch => Box::new(of_dispatch(tensor)),
                $(
                    #[cfg(feature = $feature)]
                    DispatchTensorKind::$backend(tensor) => Box::new(tensor),
                )*
                _ => unreachable!("{NOT_ROUTED}"),
            };
            *tensor.downcast().expect(NOT_ROUTED)
        }
    };
}

backends! {
    "flex": Flex,
    "ndarray": NdArray,
    "cube": Cube,
    "tch": LibTorch,
    "remote": Remote,
}

pub(crate) fn tensor<B: Backend, const D: usize>(tensor: FloatTensor<B>) -> Tensor<D> {
    Tensor::from_dispatch(held::<B>(BackendTensor::Float(tensor)))
}

pub(crate) fn int_tensor<B: Backend, const D: usize>(tensor: IntTensor<B>) -> Tensor<D, Int> {
    Tensor::from_dispatch(held::<B>(BackendTensor::Int(tensor)))
}

pub(crate) fn bool_tensor<B: Backend, const D: usize>(tensor: BoolTensor<B>) -> Tensor<D, Bool> {
    Tensor::from_dispatch(held::<B>(BackendTensor::Bool(tensor)))
}

/// The reverse of [`tensor`].
pub(crate) fn primitive<B: Backend, const D: usize>(tensor: Tensor<D>) -> FloatTensor<B> {
    released::<B>(tensor.into_dispatch(), BackendTensor::Float).float()
}

/// The reverse of [`bool_tensor`].
pub(crate) fn bool_primitive<B: Backend, const D: usize>(tensor: Tensor<D, Bool>) -> BoolTensor<B> {
    released::<B>(tensor.into_dispatch(), BackendTensor::Bool).bool()
}
