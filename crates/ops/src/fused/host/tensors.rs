//! Tensors in host memory, as the kernels read them, and tensors of flex.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor, IntTensor},
    },
    tensor::{Element, Shape},
};
use burn_attn_kernels_cpu::tiled::{self, Rows};

use crate::composed::cast;

/// A slice that starts at a tensor's first element, and the tensor's strides in elements.
pub(super) type Strided<'a, T> = (&'a [T], Vec<usize>);

/// A backend whose tensors are in host memory.
pub(super) trait Host: Backend {
    /// The elements in place; `None` if their order cannot be expressed with non-negative strides. The dtype must be that of `T`.
    fn floats<T: Plain>(tensor: &FloatTensor<Self>) -> Option<Strided<'_, T>>;
    /// The bools in place, like [`floats`](Self::floats).
    fn bools(tensor: &BoolTensor<Self>) -> Option<Strided<'_, bool>>;
    /// All elements, row-major.
    fn ints(tensor: &IntTensor<Self>) -> Vec<i64>;
    /// A row-major copy.
    fn copy_floats(tensor: &FloatTensor<Self>) -> FloatTensor<Self>;
    /// A row-major copy.
    fn copy_bools(tensor: &BoolTensor<Self>) -> BoolTensor<Self>;
    /// The tensor, row-major, with its elements rewritten by `change`: in place if nothing else holds the elements and the
    /// backend can. The dtype must be that of `T`.
    fn changed<T: Plain>(
        tensor: FloatTensor<Self>,
        change: impl FnOnce(&mut [T]),
    ) -> FloatTensor<Self>;
    /// A row-major tensor.
    fn float_tensor<T: Plain>(elements: Vec<T>, shape: Shape) -> FloatTensor<Self>;
}

/// A number with the same representation in a tensor and in a slice.
pub(super) trait Plain: Element + bytemuck::Pod {}
impl<T: Element + bytemuck::Pod> Plain for T {}

/// A float type that both Burn and the kernels know.
pub(super) trait HostElement: tiled::Element<Real: Plain> + Plain {}
impl<T: tiled::Element<Real: Plain> + Plain> HostElement for T {}

/// The tensor, copied if it could not be read as a slice.
pub(super) fn readable_bools<B: Host>(tensor: BoolTensor<B>) -> BoolTensor<B> {
    match B::bools(&tensor) {
        Some(_) => tensor,
        None => B::copy_bools(&tensor),
    }
}

/// The tensor in the dtype of `R`, copied if it could not be read as a slice.
pub(super) fn strided<B: Host, R: Plain>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    let tensor = cast::<B>(tensor, <R as Element>::dtype().into());
    match B::floats::<R>(&tensor) {
        Some(_) => tensor,
        None => B::copy_floats(&tensor),
    }
}

/// A guarantee of every reader of a tensor.
pub(super) const READABLE: &str = "the tensor was made readable";

/// The tensor with contiguous rows.
pub(super) fn with_rows<B: Host, T: Plain>(tensor: &FloatTensor<B>) -> FloatTensor<B> {
    match B::floats::<T>(tensor) {
        Some((_, strides)) if strides[3] == 1 || tensor.shape().dims::<4>()[3] == 1 => {
            tensor.clone()
        }
        _ => B::copy_floats(tensor),
    }
}

/// The rows of a tensor that [`with_rows`] has returned.
pub(super) fn rows<B: Host, T: Plain>(tensor: &FloatTensor<B>) -> Rows<'_, T> {
    let (data, strides) = B::floats::<T>(tensor).expect(READABLE);
    Rows::new(data, [strides[0], strides[1], strides[2]])
}

/// The tensor in the dtype of `R`, row-major.
pub(super) fn row_major<B: Host, R: Plain>(tensor: &FloatTensor<B>) -> FloatTensor<B> {
    let tensor = cast::<B>(tensor.clone(), <R as Element>::dtype().into());
    match contiguous::<B, R>(&tensor) {
        Some(_) => tensor,
        None => B::copy_floats(&tensor),
    }
}

/// The elements, if they are row-major and contiguous.
pub(super) fn contiguous<B: Host, R: Plain>(tensor: &FloatTensor<B>) -> Option<&[R]> {
    let (data, strides) = B::floats::<R>(tensor)?;
    let shape = tensor.shape();
    let elements = shape.num_elements();
    let mut expected = 1;
    // The strides of a tensor without elements mean nothing.
    let contiguous = elements == 0
        || (0..strides.len()).rev().all(|axis| {
            let fits = shape[axis] == 1 || strides[axis] == expected;
            expected *= shape[axis];
            fits
        });
    contiguous.then(|| &data[..elements])
}

/// The elements of a tensor that [`row_major`] has returned.
pub(super) fn elements<B: Host, R: Plain>(tensor: &FloatTensor<B>) -> &[R] {
    contiguous::<B, R>(tensor).expect(READABLE)
}

/// Flex: bytes with a layout.
#[cfg(feature = "flex")]
mod flex {
    use burn::tensor::{DType, Shape, TensorData};
    use burn_flex::{Flex, FlexTensor, Layout};

    use crate::fused::host::tensors::{Host, Plain, Strided};

    impl Host for Flex {
        fn floats<T: Plain>(tensor: &FlexTensor) -> Option<Strided<'_, T>> {
            from_first(tensor.storage::<T>(), tensor.layout())
        }

        fn bools(tensor: &FlexTensor) -> Option<Strided<'_, bool>> {
            let (bytes, strides) = from_first(tensor.storage::<u8>(), tensor.layout())?;
            // The cast looks at every byte, and a view may be a small part of its storage.
            let steps = tensor.layout().shape().iter().zip(&strides);
            let last: usize = steps
                .map(|(&size, stride)| size.saturating_sub(1) * stride)
                .sum();
            let bytes = &bytes[..bytes.len().min(last + 1)];
            Some((bytemuck::checked::try_cast_slice(bytes).ok()?, strides))
        }

        fn ints(tensor: &FlexTensor) -> Vec<i64> {
            tensor.clone().into_data().iter::<i64>().collect()
        }

        fn copy_floats(tensor: &FlexTensor) -> FlexTensor {
            tensor.to_contiguous()
        }

        fn copy_bools(tensor: &FlexTensor) -> FlexTensor {
            // Bytes other than 0 and 1 are true as well.
            let bools: Vec<bool> = tensor
                .to_contiguous()
                .storage::<u8>()
                .iter()
                .map(|&byte| byte != 0)
                .collect();
            debug_assert!(matches!(tensor.dtype(), DType::Bool(_)));
            FlexTensor::from_data(TensorData::new(bools, tensor.layout().shape().clone()))
        }

        fn changed<T: Plain>(tensor: FlexTensor, change: impl FnOnce(&mut [T])) -> FlexTensor {
            let mut tensor = match tensor.is_contiguous() {
                true => tensor,
                false => tensor.to_contiguous(),
            };
            // Only the elements of this tensor: the storage may be larger.
            let start = tensor.layout().start_offset();
            let range = start..start + tensor.layout().num_elements();
            if tensor.is_unique() {
                change(&mut tensor.storage_mut()[range]);
                return tensor;
            }
            let mut elements = tensor.storage::<T>()[range].to_vec();
            change(&mut elements);
            Self::float_tensor(elements, tensor.layout().shape().clone())
        }

        fn float_tensor<T: Plain>(elements: Vec<T>, shape: Shape) -> FlexTensor {
            FlexTensor::from_data(TensorData::new(elements, shape))
        }
    }

    /// The slice from the tensor's first element on, if no stride is negative.
    fn from_first<'a, T>(storage: &'a [T], layout: &Layout) -> Option<Strided<'a, T>> {
        let strides = layout
            .strides()
            .iter()
            .map(|&stride| usize::try_from(stride).ok());
        // The start of an empty tensor may lie beyond the storage.
        let start = layout.start_offset().min(storage.len());
        Some((&storage[start..], strides.collect::<Option<_>>()?))
    }
}
