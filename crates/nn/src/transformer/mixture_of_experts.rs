//! A mixture of experts: several feed-forward networks, of which every position uses a few.

use burn::{
    module::{Module, Param},
    nn::{Initializer, Linear},
    tensor::{
        Bool, DType, Device, IndexingUpdateOp, Tensor,
        activation::{sigmoid, softmax},
        assert_shape,
    },
};
use burn_attn_derive::Config;
use burn_attn_ops::backend::in_host_memory;

use super::{
    FeedForward, FeedForwardActivation, FeedForwardConfig,
    choice::{chosen, within_groups},
};
use crate::{
    error::{ConfigError, expect_valid},
    linear::{apply_to_rows, kaiming_uniform, side_by_side},
    parameter::{floats, wide},
    positions::indices,
};

/// Configuration of [`MixtureOfExperts`]; the defaults are those of Mixtral.
#[derive(Config, Debug)]
pub struct MixtureOfExpertsConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Width between the linear layers of one expert.
    pub d_ff: usize,
    /// Number of experts.
    pub n_experts: usize,
    /// Number of experts that every position uses.
    pub top_k: usize,
    /// Whether the weights of the experts that a position uses are divided by their sum (then a softmax over the chosen logits, as in
    /// Mixtral, gpt-oss and Qwen 3) or are those among all experts (a softmax over all logits, as in Qwen 1.5).
    #[config(default = true)]
    pub norm_topk_prob: bool,
    /// Whether the router adds a learned bias.
    #[config(default = false)]
    pub router_bias: bool,
    /// Whether the router computes in f32 in a model of a narrower dtype, and the experts' outputs are weighted in f32 (DeepSeek-V2).
    #[config(default = false, missing = false)]
    pub router_in_f32: bool,
    /// Whether an expert's weight is the sigmoid of its own logit instead of a softmax over the experts (DeepSeek-V3,
    /// arXiv:2412.19437, section 2.1.2).
    #[config(default = false, missing = false)]
    pub sigmoid: bool,
    /// Whether [`MixtureOfExperts::expert_bias`], which no loss trains, takes part in the choice of experts, but not in their weights:
    /// load balancing without a loss (arXiv:2408.15664).
    #[config(default = false, missing = false)]
    pub expert_bias: bool,
    /// Factor on the weights of the chosen experts (DeepSeek-V3: 2.5).
    #[config(default = 1.0, missing = 1.0)]
    pub routed_scale: f64,
    /// How many groups the experts are divided into, `n_experts / n_groups` in a row each, of which every position uses a few (DeepSeek-V2,
    /// arXiv:2405.04434, section 2.2.2).
    #[config(default = 1, missing = 1)]
    pub n_groups: usize,
    /// Number of groups that every position uses: those whose best expert has the largest score.
    #[config(default = 1, missing = 1)]
    pub top_k_groups: usize,
    /// Width between the linear layers of a network that every position uses in addition (DeepSeekMoE, arXiv:2401.06066; Qwen 1.5):
    /// `n` shared experts are one that is `n` times as wide. Default: none.
    pub d_shared: Option<usize>,
    /// Whether the output of the shared network is multiplied by the sigmoid of a learned projection to one number (Qwen 1.5).
    #[config(default = false, missing = false)]
    pub shared_gate: bool,
    /// The activation inside an expert, with or without a gate.
    #[config(default = "FeedForwardActivation::SwiGlu")]
    pub activation: FeedForwardActivation,
    /// Probability of dropping an activation between the linear layers of an expert in training.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether the linear layers of the experts add a learned bias.
    #[config(default = false)]
    pub bias: bool,
    /// How the router and the linear layers of the experts are initialised. Default: as Burn's `Linear`.
    #[config(default = "kaiming_uniform()")]
    pub initializer: Initializer,
}

/// Added to the sum by which the chosen sigmoids are divided, because all of them may be 0: that of DeepSeek-V3.
const LEAST_SUM: f64 = 1e-20;

impl MixtureOfExpertsConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "MixtureOfExpertsConfig";
        let (n_experts, top_k) = (self.n_experts, self.top_k);
        let sizes = [
            ("d_model", self.d_model),
            ("d_ff", self.d_ff),
            ("n_experts", n_experts),
            ("top_k", top_k),
        ];
        ConfigError::check_positive(NAME, &sizes)?;
        ConfigError::check(NAME, top_k <= n_experts, || {
            format!("top_k {top_k} is more than n_experts {n_experts}")
        })?;
        self.check_groups(NAME)?;
        let routed_scale = [("routed_scale", Some(self.routed_scale))];
        ConfigError::check_finite_positive(NAME, &routed_scale)?;
        if let Some(d_shared) = self.d_shared {
            ConfigError::check_positive(NAME, &[("d_shared", d_shared)])?;
        }
        ConfigError::check(NAME, self.d_shared.is_some() || !self.shared_gate, || {
            "shared_gate is true, but d_shared is not set: there is no shared network".into()
        })?;
        ConfigError::check_dropout(NAME, self.dropout)
    }

    fn check_groups(&self, config: &'static str) -> Result<(), ConfigError> {
        let (n_groups, groups) = (self.n_groups, self.top_k_groups);
        let sizes = [("n_groups", n_groups), ("top_k_groups", groups)];
        ConfigError::check_positive(config, &sizes)?;
        let experts = ("n_experts", self.n_experts);
        ConfigError::check_divisible(config, experts, ("n_groups", n_groups))?;
        ConfigError::check(config, groups <= n_groups, || {
            format!("top_k_groups {groups} is more than n_groups {n_groups}")
        })?;
        let (top_k, most) = (self.top_k, groups * (self.n_experts / n_groups));
        ConfigError::check(config, top_k <= most, || {
            format!(
                "top_k {top_k} is more than the {most} experts that top_k_groups {groups} leaves"
            )
        })?;
        let is_softmax = !self.sigmoid && !self.expert_bias;
        ConfigError::check(config, n_groups == 1 || is_softmax, || {
            format!(
                "n_groups is {n_groups}, but groups are for routers without sigmoid and expert_bias"
            )
        })
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> MixtureOfExperts {
        expect_valid(self.validate());
        let network = |d_ff| {
            FeedForwardConfig::new(self.d_model, d_ff)
                .with_activation(self.activation)
                .with_dropout(self.dropout)
                .with_bias(self.bias)
                .with_initializer(self.initializer.clone())
                .init(device)
        };
        let linear =
            |width, bias| side_by_side(self.d_model, &[width], bias, &self.initializer, device);
        let init_bias = || {
            let bias: Param<Tensor<1>> = Initializer::Zeros.init([self.n_experts], device);
            bias.set_require_grad(false)
        };
        MixtureOfExperts {
            router: linear(self.n_experts, self.router_bias),
            expert_bias: self.expert_bias.then(init_bias),
            experts: (0..self.n_experts).map(|_| network(self.d_ff)).collect(),
            shared: self.d_shared.map(network),
            shared_gate: self.shared_gate.then(|| linear(1, false)),
            router_in_f32: self.router_in_f32,
            top_k: self.top_k,
            norm_topk_prob: self.norm_topk_prob,
            sigmoid: self.sigmoid,
            routed_scale: self.routed_scale,
            n_groups: self.n_groups,
            top_k_groups: self.top_k_groups,
        }
    }
}

/// Several feed-forward networks, the experts, of which a router chooses a few for every position.
///
/// ```text
/// logits = x · W_router
/// score  = softmax(logits)                                 or sigmoid(logits)
/// chosen = the top_k experts with the largest score + expert_bias, in the top_k_groups groups with the best
/// weight = routed_scale · score / Σ score of the chosen    or, not renormalised, routed_scale · score
/// y      = Σ over the chosen: weight[e] · expert[e](x)     + sigmoid(x · W_shared_gate) · shared(x)
/// ```
///
/// The terms of an absent `expert_bias`, shared network or gate are left out.
///
/// # Source
///
/// "Mixtral of experts" (arXiv:2401.04088), section 2.1; "Outrageously large neural networks" (arXiv:1701.06538). PyTorch equivalent:
/// `MixtralSparseMoeBlock`, `Qwen2MoeSparseMoeBlock`, `Qwen3MoeSparseMoeBlock`, `GptOssMLP`, `DeepseekV2Moe` and, with one group,
/// `DeepseekV3MoE` of Hugging Face's `transformers`. [`BlockConfig::experts`](crate::BlockConfig::experts) puts one into every layer. Not included: noise
/// on the logits, a capacity that drops tokens, and DeepSeek-V3's choice of groups by their two best.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{MixtureOfExpertsConfig, load_balancing_loss};
///
/// let device = Device::default();
/// let mixture = MixtureOfExpertsConfig::new(32, 64, 8, 2).init(&device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// assert_eq!(mixture.forward(x.clone()).dims(), [2, 7, 32]);
///
/// // In training, with the loss that balances the load of the experts.
/// let output = mixture.forward_with_logits(x);
/// let loss = load_balancing_loss(&[output.router_logits], 2, None) * 0.02;
/// assert_eq!(loss.dims(), [1]);
/// ```
#[derive(Module, Debug)]
pub struct MixtureOfExperts {
    /// Scores the experts for each position: `[d_model, n_experts]`.
    pub router: Linear,
    /// Added to the scores for the choice of experts only: `[n_experts]`. It starts at 0 and has no gradient. In training, raise the entries
    /// of experts that too few positions choose, and lower the others.
    pub expert_bias: Option<Param<Tensor<1>>>,
    /// The experts.
    pub experts: Vec<FeedForward>,
    /// The network that every position uses, if there is one.
    pub shared: Option<FeedForward>,
    /// The gate on the output of the shared network: `[d_model, 1]`.
    pub shared_gate: Option<Linear>,
    router_in_f32: bool,
    top_k: usize,
    norm_topk_prob: bool,
    sigmoid: bool,
    routed_scale: f64,
    n_groups: usize,
    top_k_groups: usize,
}

/// Output of [`MixtureOfExperts::forward_with_logits`].
#[derive(Clone, Debug)]
pub struct MixtureOfExpertsOutput<const D: usize> {
    /// `[.., d_model]`, the result of [`MixtureOfExperts::forward`].
    pub states: Tensor<D>,
    /// `[positions, n_experts]`: the logit of each expert for each position, for
    /// [`load_balancing_loss`](crate::load_balancing_loss), which is not for all routers.
    pub router_logits: Tensor<2>,
}

impl MixtureOfExperts {
    /// The weighted sum of the chosen experts' outputs, for every position, `[.., d_model]`. Panics when the last axis is not `d_model`.
    ///
    /// # Cost
    ///
    /// On backends whose tensors are plain memory (flex and ndarray), every expert runs on the positions that chose it:
    /// `4 · positions · top_k · d_model · d_ff` operations, with a gate 6 instead of 4; an expert that no position chose gets
    /// no gradient. A shared network costs what [`FeedForward::forward`] does. Elsewhere the choice stays on the device, without waiting for
    /// it, and every expert runs on all positions: `n_experts / top_k` times as many operations, with the activations of one expert in memory
    /// at a time in inference, and those of all experts in training.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.forward_with_logits(x).states
    }

    /// [`forward`](Self::forward), and the logits of the router.
    pub fn forward_with_logits<const D: usize>(&self, x: Tensor<D>) -> MixtureOfExpertsOutput<D> {
        let [d_model, n_experts] = self.router.weight.dims();
        assert_shape!(x, [.., d_model]);
        let shape = x.shape();
        // Empty products: see `linear::apply`.
        if shape.num_elements() == 0 {
            let place = (&x.device(), self.router_dtype(x.dtype()));
            let router_logits = Tensor::zeros([0, n_experts], place);
            return MixtureOfExpertsOutput {
                states: x,
                router_logits,
            };
        }
        let rows: Tensor<2> = x.reshape([shape.num_elements() / d_model, d_model]);
        let router_logits = self.logits(rows.clone());
        let (weights, chosen) = self.weights(router_logits.clone());
        let shared = self.of_shared(&rows);
        let routed = match in_host_memory(&rows.device()) {
            true => self.of_chosen(rows, weights, chosen),
            false => self.of_all(rows, weights, chosen),
        };
        let states = match shared {
            Some(shared) => routed + shared,
            None => routed,
        };
        MixtureOfExpertsOutput {
            states: states.reshape(shape),
            router_logits,
        }
    }

    /// The dtype in which the router computes in a model of this `dtype`.
    fn router_dtype(&self, dtype: DType) -> DType {
        match self.router_in_f32 {
            true => wide(dtype),
            false => dtype,
        }
    }

    fn logits(&self, rows: Tensor<2>) -> Tensor<2> {
        let dtype = self.router_dtype(rows.dtype());
        if dtype == rows.dtype() {
            return apply_to_rows(&self.router, rows);
        }
        let Linear { weight, bias } = &self.router;
        let bias = bias.as_ref().map(|bias| floats(bias).cast(dtype));
        burn_attn_ops::linear(rows.cast(dtype), floats(weight).cast(dtype), bias)
    }

    /// The weight of each expert's output, 0 where it is not chosen, and whether it is chosen: `[positions, n_experts]` each.
    fn weights(&self, logits: Tensor<2>) -> (Tensor<2>, Tensor<2, Bool>) {
        let dtype = logits.dtype();
        let logits = logits.cast(wide(dtype));
        // Scores have the order of their logits.
        let chosen = match &self.expert_bias {
            Some(bias) => {
                let bias = floats(bias).cast(wide(dtype)).unsqueeze::<2>();
                chosen(self.scores(logits.clone()).detach() + bias, self.top_k)
            }
            None if self.n_groups > 1 => {
                let logits = within_groups(logits.clone(), self.n_groups, self.top_k_groups);
                chosen(logits, self.top_k)
            }
            None => chosen(logits.clone(), self.top_k),
        };
        let others = chosen.clone().bool_not();
        let weights = match (self.sigmoid, self.norm_topk_prob) {
            // The sum of the chosen may be too small to divide by.
            (false, true) => softmax(logits.mask_fill(others, f64::NEG_INFINITY), 1),
            (true, true) => {
                let scores = self.scores(logits).mask_fill(others, 0.0);
                let sum = scores.clone().sum_dim(1);
                scores / (sum + LEAST_SUM)
            }
            (_, false) => self.scores(logits).mask_fill(others, 0.0),
        };
        let weights = match self.routed_scale {
            1.0 => weights,
            scale => weights * scale,
        };
        (weights.cast(dtype), chosen)
    }

    /// How much each expert suits each position.
    fn scores(&self, logits: Tensor<2>) -> Tensor<2> {
        match self.sigmoid {
            true => sigmoid(logits),
            false => softmax(logits, 1),
        }
    }

    fn of_shared(&self, rows: &Tensor<2>) -> Option<Tensor<2>> {
        let output = self.shared.as_ref()?.forward(rows.clone());
        Some(match &self.shared_gate {
            Some(gate) => output * sigmoid(apply_to_rows(gate, rows.clone())),
            None => output,
        })
    }

    fn of_all(&self, rows: Tensor<2>, weights: Tensor<2>, chosen: Tensor<2, Bool>) -> Tensor<2> {
        let mut sum = rows.zeros_like();
        for (index, expert) in self.experts.iter().enumerate() {
            let weight = weights.clone().narrow(1, index, 1);
            let others = chosen.clone().narrow(1, index, 1).bool_not();
            // Masked, not multiplied by 0: infinity at a position that did not choose the expert must not reach the sum.
            let output = expert.forward(rows.clone());
            let output = output.mask_fill(others.expand(rows.dims()), 0.0);
            sum = sum + weighted(output, weight);
        }
        sum
    }

    /// Every expert on the positions that chose it. The choice is read from the device.
    fn of_chosen(&self, rows: Tensor<2>, weights: Tensor<2>, chosen: Tensor<2, Bool>) -> Tensor<2> {
        let [n_rows, n_experts] = weights.dims();
        let device = rows.device();
        let chosen: Vec<bool> = chosen.into_data().iter().collect();
        let (mut outputs, mut places, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        for (index, expert) in self.experts.iter().enumerate() {
            let its_rows = (0..n_rows).filter(|row| chosen[row * n_experts + index]);
            let its_rows: Vec<usize> = its_rows.collect();
            if its_rows.is_empty() {
                continue;
            }
            let selected = indices(its_rows.iter().copied(), &device);
            outputs.push(expert.forward(rows.clone().select(0, selected)));
            pairs.extend(its_rows.iter().map(|row| row * n_experts + index));
            places.extend(its_rows);
        }
        let weights: Tensor<1> = weights.reshape([n_rows * n_experts]);
        let weights = weights
            .select(0, indices(pairs, &device))
            .unsqueeze_dim::<2>(1);
        let outputs = weighted(Tensor::cat(outputs, 0), weights);
        let places = indices(places, &device);
        rows.zeros_like()
            .select_assign(0, places, outputs, IndexingUpdateOp::Add)
    }
}

/// The product, in the dtype of the weights, and rounded to that of the output.
fn weighted(output: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    let dtype = output.dtype();
    (output.cast(weight.dtype()) * weight).cast(dtype)
}

#[cfg(all(test, feature = "autodiff"))]
mod tests;
