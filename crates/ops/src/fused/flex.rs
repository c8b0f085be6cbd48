//! Flex: bytes with a layout.

use burn::tensor::{DType, Shape, TensorData};
use burn_flex::{Flex, FlexTensor, Layout};

use super::readable::{Host, Plain, Strided};

impl Host for Flex {
    fn floats<T: Plain>(tensor: &FlexTensor) -> Option<Strided<'_, T>> {
        from_first(tensor.storage::<T>(), tensor.layout())
    }

    fn bools(tensor: &FlexTensor) -> Option<Strided<'_, bool>> {
        let (bytes, strides) = from_first(tensor.storage::<u8>(), tensor.layout())?;
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
        let (start, count) = (
            tensor.layout().start_offset(),
            tensor.layout().num_elements(),
        );
        if tensor.is_unique() {
            change(&mut tensor.storage_mut()[start..start + count]);
            return tensor;
        }
        // Only this tensor's elements, not all that the other holder has.
        let mut elements = tensor.storage::<T>()[start..start + count].to_vec();
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
