//! Training in half precision, with master weights in f32.

use burn::{
    module::{Module, ModuleDisplay, ModuleMapper, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{DType, FloatDType, Tensor},
    train::{InferenceStep, TrainOutput, TrainStep},
};

use super::shares::Parameters;

#[doc = include_str!("half_precision.md")]
#[derive(Module, Debug)]
pub struct MixedPrecision<M: Module> {
    /// The model with its master weights, which the optimizer updates.
    pub model: M,
    #[module(skip)]
    dtype: FloatDType,
}

impl<M: Module> MixedPrecision<M> {
    /// Steps of `model` in `dtype`.
    ///
    /// If `dtype` is the type of the master weights, the steps are those of the model.
    pub fn new(model: M, dtype: FloatDType) -> Self {
        Self { model, dtype }
    }

    /// The model with copies of its parameters in the type.
    fn cast(&self) -> M {
        let (masters, types) = (Parameters::of(&self.model), Types::of(&self.model));
        let copy = self.model.clone().map(&mut Cast { dtype: self.dtype });
        // A clone shares running statistics with the model, so casting them cast the model's own.
        if Types::of(&self.model) != types {
            drop(masters.put_into(self.model.clone()));
            panic!(
                "MixedPrecision: running statistics, such as those of a batch norm, are not supported"
            );
        }
        copy
    }
}

/// Gradients are in the types of the master weights.
///
/// # Panics
///
/// When a device of the model does not compute in the type; when the model has running statistics, such as those of a batch norm, and the type
/// is not theirs. They are left as they were.
///
/// # Cost
///
/// The cost of the model's step in the type; two passes over the parameters and over their gradients.
impl<M> TrainStep for MixedPrecision<M>
where
    M: Module + ModuleDisplay + TrainStep,
{
    type Input = M::Input;
    type Output = M::Output;

    fn step(&self, batch: M::Input) -> TrainOutput<M::Output> {
        for device in self.model.devices() {
            assert!(
                device.supports_dtype(self.dtype),
                "MixedPrecision: {device:?} does not compute in {:?}",
                self.dtype
            );
        }
        let TrainOutput { item, grads } = self.cast().step(batch);
        let mut widen = Widen { gradients: grads };
        self.model.visit(&mut widen);
        TrainOutput {
            item,
            grads: widen.gradients,
        }
    }
}

/// Runs the model with its master weights.
impl<M> InferenceStep for MixedPrecision<M>
where
    M: Module + ModuleDisplay + InferenceStep,
{
    type Input = M::Input;
    type Output = M::Output;

    fn step(&self, batch: M::Input) -> M::Output {
        self.model.step(batch)
    }
}

/// Makes every float parameter one of another type with the same identity. Quantised ones stay as they are.
struct Cast {
    dtype: FloatDType,
}

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dtype = param.dtype();
        if !dtype.is_float() || dtype == self.dtype.into() {
            return param;
        }
        // A separate leaf: a node below the master weight would keep no gradient, and replicas would wait for each other.
        let tracked = param.is_require_grad();
        param.map(|master| {
            let copy = master.cast(self.dtype).detach();
            copy.set_require_grad(tracked)
        })
    }
}

#[derive(Default, PartialEq)]
struct Types(Vec<DType>);

impl Types {
    fn of<M: Module>(model: &M) -> Self {
        let mut all = Self::default();
        model.visit(&mut all);
        all
    }
}

impl ModuleVisitor for Types {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(param.dtype());
    }
}

/// Casts the gradients of parameters to the types of their master weights.
struct Widen {
    gradients: GradientsParams,
}

impl ModuleVisitor for Widen {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients
                .register(param.id, gradient.cast(param.dtype()));
        }
    }
}
