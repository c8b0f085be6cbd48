//! The experts of a block.

use burn_attn_derive::Config;

/// The experts of a layer, in place of one feed-forward network: see [`BlockConfig::experts`](crate::BlockConfig::experts).
/// The block sets the other fields of [`MixtureOfExpertsConfig`](crate::MixtureOfExpertsConfig).
#[derive(Config, Debug)]
pub struct ExpertsConfig {
    /// Number of experts.
    pub n_experts: usize,
    /// Number of experts that every position uses.
    pub top_k: usize,
    /// Width between the linear layers of one expert. Default: the layer's `d_ff`.
    pub d_ff: Option<usize>,
    /// See [`MixtureOfExpertsConfig::norm_topk_prob`](crate::MixtureOfExpertsConfig::norm_topk_prob).
    #[config(default = true)]
    pub norm_topk_prob: bool,
    /// Whether the router adds a learned bias.
    #[config(default = false)]
    pub router_bias: bool,
    /// See [`MixtureOfExpertsConfig::router_in_f32`](crate::MixtureOfExpertsConfig::router_in_f32).
    #[config(default = false, missing = false)]
    pub router_in_f32: bool,
    /// See [`MixtureOfExpertsConfig::sigmoid`](crate::MixtureOfExpertsConfig::sigmoid).
    #[config(default = false, missing = false)]
    pub sigmoid: bool,
    /// See [`MixtureOfExpertsConfig::expert_bias`](crate::MixtureOfExpertsConfig::expert_bias).
    #[config(default = false, missing = false)]
    pub expert_bias: bool,
    /// See [`MixtureOfExpertsConfig::routed_scale`](crate::MixtureOfExpertsConfig::routed_scale).
    #[config(default = 1.0, missing = 1.0)]
    pub routed_scale: f64,
    /// See [`MixtureOfExpertsConfig::d_shared`](crate::MixtureOfExpertsConfig::d_shared).
    pub d_shared: Option<usize>,
    /// See [`MixtureOfExpertsConfig::shared_gate`](crate::MixtureOfExpertsConfig::shared_gate).
    #[config(default = false, missing = false)]
    pub shared_gate: bool,
    /// See [`MixtureOfExpertsConfig::n_groups`](crate::MixtureOfExpertsConfig::n_groups).
    #[config(default = 1, missing = 1)]
    pub n_groups: usize,
    /// See [`MixtureOfExpertsConfig::top_k_groups`](crate::MixtureOfExpertsConfig::top_k_groups).
    #[config(default = 1, missing = 1)]
    pub top_k_groups: usize,
}
