//! The parameters of a module by name, as leaves of a computation of their own.

use std::collections::BTreeMap;

use burn::{
    module::Module,
    tensor::{DType, Device, Gradients, Tensor, TensorData},
};
use burn_attn_tests::parameters::{self, Named};

/// The numbers of a module's parameters in f64, tracked.
pub struct Weights {
    /// Flat, with their shapes.
    leaves: BTreeMap<String, (Tensor<1>, Vec<usize>)>,
    device: Device,
}

impl Weights {
    pub fn of<M: Module>(module: &M, device: &Device) -> Self {
        let leaf = |data: TensorData| {
            let shape = data.shape().to_vec();
            let flat = TensorData::new(data.iter::<f64>().collect(), [data.num_elements()]);
            let leaf = Tensor::<1>::from_data(flat, (device, DType::F64));
            (leaf.require_grad(), shape)
        };
        let values = parameters::values(module).into_iter();
        Self {
            leaves: values.map(|(path, data)| (path, leaf(data))).collect(),
            device: device.clone(),
        }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The parameter of this path.
    pub fn get<const D: usize>(&self, path: &str) -> Tensor<D> {
        let (leaf, shape) = self
            .leaves
            .get(path)
            .unwrap_or_else(|| panic!("there is no {path}"));
        let shape: [usize; D] = shape.as_slice().try_into().expect("its rank");
        leaf.clone().reshape(shape)
    }

    /// The path with all these parts, if there is one.
    pub fn find(&self, parts: &[&str]) -> Option<String> {
        let mut paths = self.leaves.keys().filter(|path| {
            let names: Vec<&str> = path.split('.').collect();
            parts.iter().all(|part| names.contains(part))
        });
        let path = paths.next().cloned();
        assert!(
            paths.next().is_none(),
            "{parts:?} are parts of several paths"
        );
        path
    }

    /// The gradient of every parameter.
    pub fn gradients(&self, gradients: &Gradients) -> Named {
        let gradient = |leaf: &Tensor<1>| leaf.grad(gradients).expect("every parameter is used");
        let leaves = self.leaves.iter();
        leaves
            .map(|(path, (leaf, shape))| {
                let data = gradient(leaf).into_data();
                let data = TensorData::new(data.iter::<f64>().collect(), shape.clone());
                (path.clone(), data)
            })
            .collect()
    }
}
