//! ALiBi: positions as a penalty on distance.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor, TensorData},
};
use burn_attn_derive::Config;
use burn_attn_ops::{AttentionBias, alibi_slopes};

use crate::{
    error::{ConfigError, expect_valid},
    parameter::floats,
};

/// Configuration of [`Alibi`].
#[derive(Config, Debug, PartialEq, Eq)]
pub struct AlibiConfig {
    /// Whether the slopes are learned, starting from those of the paper. The paper's are fixed.
    #[config(default = false)]
    pub learnable: bool,
}

impl AlibiConfig {
    /// Whether a module can be built for `n_heads` heads: an error if there are none.
    pub fn validate(&self, n_heads: usize) -> Result<(), ConfigError> {
        ConfigError::check_positive("AlibiConfig", &[("n_heads", n_heads)])
    }

    /// Builds the module for `n_heads` heads of queries, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, n_heads: usize, device: &Device) -> Alibi {
        expect_valid(self.validate(n_heads));
        let paper = TensorData::new(alibi_slopes(n_heads), [n_heads]);
        let slopes = self
            .learnable
            .then(|| Param::from_data(paper.clone(), device));
        Alibi {
            slopes,
            paper: Tensor::from_data(paper, device),
        }
    }
}

/// ALiBi: lowers the scores of distant keys, with a different slope in every head.
///
/// ```text
/// score[i, j] −= slope[h] · |j − position(i)|,   slope[h] = 2^(−8 · h / n_heads) for h = 1 … n_heads
/// ```
///
/// If `n_heads` is not a power of two, the first heads have the slopes of the next smaller power of two, and the others every
/// second slope of twice as many heads. [`QueryOffset`](super::QueryOffset) says where queries stand.
///
/// # Source
///
/// Press et al., "Train short, test long: attention with linear biases enables input length extrapolation"
/// (arXiv:2108.12409), section 3, and `get_slopes` of the authors' code. PyTorch equivalent for
/// causal attention: a `score_mod` of FlexAttention that adds `slope · (kv_idx − q_idx)`.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{SelfAttentionConfig, SelfAttentionInput, positions::AlibiConfig};
///
/// let device = Device::default();
/// let alibi = AlibiConfig::new().init(4, &device);
/// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
/// let x = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let output = attention.forward(SelfAttentionInput::new(x).bias(alibi.bias()));
/// assert_eq!(output.dims(), [2, 7, 32]);
/// ```
#[derive(Module, Debug)]
pub struct Alibi {
    /// `[n_heads]`, if the slopes are learned.
    pub(super) slopes: Option<Param<Tensor<1>>>,
    /// Not a parameter, so that fixed slopes are neither stored with a model nor unfrozen with it.
    paper: Tensor<1>,
}

impl Alibi {
    /// The slope of every head: `[n_heads]`.
    pub fn slopes(&self) -> Tensor<1> {
        match &self.slopes {
            Some(learned) => floats(learned),
            None => self.paper.clone(),
        }
    }

    /// The bias on the scores. In the attention, it takes memory of `n_heads · (len_q + len_kv)` numbers.
    pub fn bias(&self) -> AttentionBias {
        match &self.slopes {
            Some(learned) => AttentionBias::alibi(floats(learned)),
            None => {
                let [n_heads] = self.paper.dims();
                AttentionBias::paper_alibi(n_heads, &self.paper.device())
            }
        }
    }
}
