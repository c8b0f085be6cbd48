//! The parameters of any module by name, read and replaced.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{DType, Gradients, Tensor, TensorData},
};

/// Numbers by the path of their parameter, such as `layers.0.attention.output.weight`.
pub type Named = BTreeMap<String, TensorData>;

/// The parameters of a module, converted to f32 whatever their type.
pub fn values<M: Module>(module: &M) -> Named {
    Reader::read(module, None)
}

/// The gradients of a module's parameters, converted to f32 whatever their type; those that got none are absent.
pub fn gradients<M: Module>(module: &M, gradients: &Gradients) -> Named {
    Reader::read(module, Some(gradients))
}

/// The module with every parameter made by `make` from its path and shape.
///
/// The old values are never read, so lazy parameters draw nothing from Burn's generators.
pub fn replace<M: Module>(module: M, make: impl FnMut(&str, &[usize]) -> Vec<f32>) -> M {
    module.map(&mut Writer {
        path: Vec::new(),
        make,
    })
}

/// The module in f64.
pub fn wide<M: Module>(module: M) -> M {
    in_dtype(module, DType::F64)
}

/// The module with its parameters in `dtype`.
pub fn in_dtype<M: Module>(module: M, dtype: DType) -> M {
    struct Cast(DType);
    impl ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
            // Not `Param::map`, which leaves the result untracked.
            Param::from_tensor(parameter.val().cast(self.0).detach())
        }
    }
    module.map(&mut Cast(dtype))
}

struct Reader<'a> {
    path: Vec<String>,
    gradients: Option<&'a Gradients>,
    found: Named,
}

impl<'a> Reader<'a> {
    fn read<M: Module>(module: &M, gradients: Option<&'a Gradients>) -> Named {
        let mut reader = Self {
            path: Vec::new(),
            gradients,
            found: Named::new(),
        };
        module.visit(&mut reader);
        reader.found
    }
}

impl ModuleVisitor for Reader<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = match self.gradients {
            Some(gradients) => param.val().grad(gradients),
            None => Some(param.val()),
        };
        if let Some(tensor) = tensor {
            let data = tensor.into_data();
            // Copied at once: on wgpu (Burn 0.22.1, lavapipe) the bytes that were read change when more is computed.
            let numbers: Vec<f32> = data.iter().collect();
            let data = TensorData::new(numbers, data.shape().clone());
            self.found.insert(self.path.join("."), data);
        }
    }
}

struct Writer<F> {
    path: Vec<String>,
    make: F,
}

impl<F: FnMut(&str, &[usize]) -> Vec<f32>> ModuleMapper for Writer<F> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape: [usize; D] = param.lazy_shape().dims();
        let numbers = (self.make)(&self.path.join("."), &shape);
        Param::from_data(TensorData::new(numbers, shape), &param.lazy_device())
    }
}
