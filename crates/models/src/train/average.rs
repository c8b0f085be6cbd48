//! The moving average of a model's parameters.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::Tensor;

use super::shares::Parameters;

/// The exponential moving average of a model's parameters over the last steps, which usually predicts better than the model of the last
/// step (Polyak and Juditsky, 1992). It does for a run what averaging its last checkpoints does (Vaswani et al., 2017, section 6.1).
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::{nn::LinearConfig, tensor::Device};
/// use burn_attn_models::train::MovingAverage;
///
/// let device = Device::default().autodiff();
/// let [first, second] = [(); 2].map(|()| LinearConfig::new(2, 3).init(&device));
/// let average = MovingAverage::new(&first).updated(&second, 0.75);
/// let expected = first.weight.val().inner() * 0.75 + second.weight.val().inner() * 0.25;
/// average.model().weight.val().into_data().assert_approx_eq::<f32>(&expected.into_data(), Default::default());
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MovingAverage<M: Module> {
    model: M,
}

impl<M: Module> MovingAverage<M> {
    /// Begins with the parameters of `model`, or resumes with those of an average.
    pub fn new(model: &M) -> Self {
        Self {
            model: model.clone().valid(),
        }
    }

    /// `decay` of the average so far, and the rest of `model`. With a decay of `1 - 1 / n`, it is that of about the last `n` models.
    ///
    /// Other things than parameters, such as the running statistics of a batch norm, stay those of the first model.
    ///
    /// # Panics
    ///
    /// Unless the decay is from 0 to 1.
    ///
    /// # Cost
    ///
    /// Three passes over the parameters, which need not follow every step.
    pub fn updated(self, model: &M, decay: f64) -> Self {
        assert!(
            (0.0..=1.0).contains(&decay),
            "MovingAverage: decay must be from 0 to 1, got {decay}"
        );
        let mut step = Step {
            newest: Parameters::of(model),
            decay,
        };
        Self {
            model: self.model.map(&mut step),
        }
    }

    /// The average, without autodiff.
    pub fn model(&self) -> &M {
        &self.model
    }
}

struct Step {
    newest: Parameters,
    decay: f64,
}

impl ModuleMapper for Step {
    fn map_float<const D: usize>(&mut self, average: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(newest) = self.newest.remove::<D>(average.id) else {
            return average;
        };
        average.map(|average| average * self.decay + newest.val().inner() * (1.0 - self.decay))
    }
}
