//! Gradient clipping by the norm of all gradients together.
//!
//! Burn's `GradientClipping` clips every parameter separately, which changes the direction of the step; the usual recipe
//! (Pascanu et al., 2013) scales the whole gradient.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use crate::loss::wide;

/// Scales the gradients so that their common norm is at most `limit`. Never waits for the device. The squares are added up in f32, or in f64 if
/// the gradients are in f64, on the device of the first gradient.
///
/// PyTorch equivalent: `torch.nn.utils.clip_grad_norm_`.
///
/// # Panics
///
/// Unless the limit is above 0.
///
/// # Cost
///
/// Four passes over the gradients, and two more over those in half precision.
pub fn clip_by_global_norm<M: Module>(
    gradients: GradientsParams,
    module: &M,
    limit: f64,
) -> GradientsParams {
    check(limit);
    match squares(&gradients, module) {
        Some(sum) => scaled(gradients, module, factor(sum, limit)),
        None => gradients,
    }
}

/// Rejects limits that are not positive: they would flip the gradients.
pub(super) fn check(limit: f64) {
    assert!(
        limit > 0.0,
        "clip_by_global_norm: the limit must be above 0, got {limit}"
    );
}

pub(super) fn squares<M: Module>(gradients: &GradientsParams, module: &M) -> Option<Tensor<1>> {
    let mut squares = Squares {
        gradients,
        sum: None,
    };
    module.visit(&mut squares);
    squares.sum
}

/// What to multiply gradients by whose squares add up to `sum`.
pub(super) fn factor(sum: Tensor<1>, limit: f64) -> Tensor<1> {
    (sum.sqrt() + 1e-6).recip().mul_scalar(limit).clamp_max(1.0)
}

/// A sum and another one, on the device and in the type of the first.
pub(super) fn plus(sum: Tensor<1>, more: Tensor<1>) -> Tensor<1> {
    let (device, dtype) = (sum.device(), sum.dtype());
    sum + more.to_device(&device).cast(dtype)
}

pub(super) fn scaled<M: Module>(
    gradients: GradientsParams,
    module: &M,
    scale: Tensor<1>,
) -> GradientsParams {
    let mut scaling = Scaling { gradients, scale };
    module.visit(&mut scaling);
    scaling.gradients
}

struct Squares<'a> {
    gradients: &'a GradientsParams,
    sum: Option<Tensor<1>>,
}

impl ModuleVisitor for Squares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            let computed = wide(gradient.dtype());
            let square = gradient.cast(computed).square().sum();
            self.sum = Some(match self.sum.take() {
                Some(sum) => plus(sum, square),
                None => square,
            });
        }
    }
}

struct Scaling {
    gradients: GradientsParams,
    scale: Tensor<1>,
}

impl ModuleVisitor for Scaling {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            let dtype = gradient.dtype();
            let computed = wide(dtype);
            let scale = self.scale.clone().to_device(&gradient.device());
            let scale: Tensor<D> = scale.cast(computed).unsqueeze();
            let scaled = gradient.cast(computed) * scale;
            self.gradients.register(param.id, scaled.cast(dtype));
        }
    }
}

#[cfg(test)]
mod tests;
