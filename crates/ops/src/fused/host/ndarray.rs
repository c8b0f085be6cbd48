//! NdArray: arrays of one type each.

#![allow(
    deprecated,
    reason = "deprecated upstream in favour of flex, but supported here as long as Burn has it"
)]

use burn::{
    backend::ops::FloatTensorOps,
    tensor::{Shape, TensorData, read_sync},
};
use burn_ndarray::{NdArray, NdArrayTensor};

use super::tensors::{Host, Plain, Strided};

/// The elements and strides of a storage, if the elements are contiguous and in a forward direction.
macro_rules! strided {
    ($storage:expr) => {{
        let view = $storage.view();
        let strides = view.strides().iter();
        let strides = strides.map(|&stride| usize::try_from(stride).ok());
        view.to_slice_memory_order()
            .zip(strides.collect::<Option<Vec<usize>>>())
    }};
}

impl Host for NdArray {
    fn floats<T: Plain>(tensor: &NdArrayTensor) -> Option<Strided<'_, T>> {
        match tensor {
            NdArrayTensor::F32(storage) => to_itself(strided!(storage)?),
            NdArrayTensor::F64(storage) => to_itself(strided!(storage)?),
            _ => panic!("attention: NdArray has no {:?}", T::dtype()),
        }
    }

    fn bools(tensor: &NdArrayTensor) -> Option<Strided<'_, bool>> {
        let NdArrayTensor::Bool(storage) = tensor else {
            panic!("attention: the mask is not a bool tensor");
        };
        strided!(storage)
    }

    fn ints(tensor: &NdArrayTensor) -> Vec<i64> {
        elements(tensor).iter::<i64>().collect()
    }

    fn copy_floats(tensor: &NdArrayTensor) -> NdArrayTensor {
        NdArrayTensor::from_data(elements(tensor))
    }

    fn copy_bools(tensor: &NdArrayTensor) -> NdArrayTensor {
        NdArrayTensor::from_data(elements(tensor))
    }

    fn changed<T: Plain>(tensor: NdArrayTensor, change: impl FnOnce(&mut [T])) -> NdArrayTensor {
        let mut data = elements(&tensor);
        change(
            data.as_mut_slice()
                .expect("the tensor holds numbers of this type"),
        );
        NdArrayTensor::from_data(data)
    }

    fn float_tensor<T: Plain>(elements: Vec<T>, shape: Shape) -> NdArrayTensor {
        NdArrayTensor::from_data(TensorData::new(elements, shape))
    }
}

/// A cast from a type to itself.
fn to_itself<T: Plain, U: Plain>((elements, strides): Strided<'_, T>) -> Option<Strided<'_, U>> {
    Some((bytemuck::try_cast_slice(elements).ok()?, strides))
}

/// The elements in row-major order, whatever their type.
fn elements(tensor: &NdArrayTensor) -> TensorData {
    let data = read_sync(NdArray::float_into_data(tensor.clone()));
    data.expect("arrays are in host memory")
}
