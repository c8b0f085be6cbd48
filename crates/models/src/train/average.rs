//! The moving average of a model's parameters.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::Tensor;

use super::shares::Parameters;

/// The exponential moving average of a model's parameters over the last steps, which usually predicts better than the model of the last
/// step. It does for a run what averaging its last checkpoints does (Vaswani et al., 2017, section 6.1); averages of the path of an
/// optimizer go back to Polyak and Juditsky (1992).
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::{nn::LinearConfig, optim::{GradientsParams, SgdConfig}, tensor::{Device, Tensor}};
/// use burn_attn_models::train::MovingAverage;
///
/// let device = Device::default().autodiff();
/// let first = LinearConfig::new(2, 3).init(&device);
/// let loss = first.forward(Tensor::<2>::ones([1, 2], &device)).sum();
/// let gradients = GradientsParams::from_grads(loss.backward(), &first);
/// let second = SgdConfig::new().init().step(0.1, first.clone(), gradients);
///
/// let average = MovingAverage::new(&first).updated(&second, 0.75);
/// let expected = first.weight.val().inner() * 0.75 + second.weight.val().inner() * 0.25;
/// average.model().weight.val().into_data().assert_approx_eq::<f32>(&expected.into_data(), Default::default());
/// # }
/// ```
#[derive(Debug)]
pub struct MovingAverage<M: Module> {
    model: M,
}

/// A clone is a separate average. The clone of a module would share the running statistics of a batch norm with it, and an update of one
/// would change both.
impl<M: Module> Clone for MovingAverage<M> {
    fn clone(&self) -> Self {
        Self {
            // Copies running statistics, and leaves everything else as it is: an average is without autodiff already.
            model: self.model.valid(),
        }
    }
}

impl<M: Module> MovingAverage<M> {
    /// Begins with the parameters of `model`, or resumes with those of an average.
    pub fn new(model: &M) -> Self {
        Self {
            model: model.clone().valid(),
        }
    }

    /// `decay` of the average so far, and the rest of `model`. With a decay of `1 - 1 / n`, it is the average of about the last `n` models.
    ///
    /// The running statistics of a batch norm are averaged as well.
    ///
    /// # Panics
    ///
    /// Unless the decay is from 0 to 1, and when a parameter of the average is not in `model`: parameters are told apart by their ids, which
    /// an optimizer keeps, and which a model that is initialised anew does not have.
    ///
    /// # Cost
    ///
    /// Three passes over the parameters. An update after every few steps is enough.
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
        let newest = self.newest.remove::<D>(average.id);
        let newest = newest.unwrap_or_else(|| {
            panic!(
                "MovingAverage: parameter {} of the average, of shape {:?}, is not in the model",
                average.id.val(),
                average.val().dims()
            )
        });
        average.map(|average| average * self.decay + newest.val().inner() * (1.0 - self.decay))
    }
}
