//! The families, a row each.

use burn_attn::{FeedForwardActivation, NormConfig, NormPlacement, ProjectionBias, QkNormConfig};

use crate::families::files::GATED;

/// What distinguishes a family, for the reader of `config.json` and for the table of tensors.
#[derive(Debug)]
pub(crate) struct FamilySpec {
    pub(crate) model_type: &'static str,
    /// Fields, with spaces between them, without which a file is refused: transformers has another default for them in each family, which is seldom right here.
    pub(super) needed: &'static str,
    /// Fields that may be missing, and otherwise have this value, in JSON.
    pub(super) only: &'static [(&'static str, &'static str)],
    /// Fields that affect nothing that is computed here.
    pub(super) ignored: &'static str,
    pub(super) placement: NormPlacement,
    /// Whether the norms multiply by `1 + weight`.
    pub(super) unit_offset: bool,
    /// The norm of queries and keys with this epsilon, if there is one.
    pub(super) qk_norm: Option<fn(f64) -> QkNormConfig>,
    /// The field of the activation, the one supported value, and its meaning.
    pub(super) activation: (&'static str, &'static str, FeedForwardActivation),
    /// `None` if `attention_bias` decides.
    pub(super) projection_bias: Option<ProjectionBias>,
    /// `None` if `mlp_bias` decides.
    pub(super) feed_forward_bias: Option<bool>,
    pub(super) sinks: bool,
    /// Whether embedded tokens are scaled, and the head is the embedding unless the file says otherwise.
    pub(super) scaled_embedding: bool,
    /// Whether `query_pre_attn_scalar` scales the scores.
    pub(super) query_scalar: bool,
    /// Whether `attn_logit_softcapping` caps the scores.
    pub(super) score_softcap: bool,
    /// Whether `final_logit_softcapping` caps the logits.
    pub(super) logit_softcap: bool,
    pub(super) windows: Windows,
    /// The rotary base of a file without `rope_theta`.
    pub(super) rope_theta: f64,
    /// The rotary base of the layers with a window in a file without `rope_local_base_freq`, if these layers have another base.
    pub(super) local_base: Option<f64>,
    /// Whether the file has to say how the rotary positions are scaled.
    pub(super) needs_scaling: bool,
    pub(super) experts: Option<Experts>,
    /// Whether llama.cpp's converter puts the numbers of a rotary pair beside each other.
    pub(super) gguf_rotary_pairs: bool,
}

/// Which layers have a window if `layer_types` does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Windows {
    /// No layer. `layer_types` and `sliding_window` are not read.
    None,
    /// All layers, if there is a `sliding_window`. `layer_types` is not read.
    All,
    /// All layers, if `use_sliding_window`. `layer_types` is not read.
    AllIfUsed,
    /// The layers from `max_window_layers` on, if `use_sliding_window`.
    LastIfUsed,
    /// Every other layer, the first among them.
    Alternating,
    /// All layers but every `sliding_window_pattern`-th.
    Pattern,
}

#[derive(Debug)]
pub(super) struct Experts {
    pub(super) router: &'static str,
    pub(super) router_bias: bool,
    /// Whether some layers may have no experts, and fields say the width of the experts and whether their shares are normalised.
    pub(super) sparse: bool,
    /// The module of the experts and the names of gate, up and down in each, or `None` if tensors hold all experts of a layer, as in gpt-oss.
    pub(super) apart: Option<(&'static str, [&'static str; 3])>,
}

const NO_BIAS: ProjectionBias = ProjectionBias {
    query: false,
    key: false,
    value: false,
    output: false,
};

/// What most families share.
const PLAIN: FamilySpec = FamilySpec {
    model_type: "",
    needed: "",
    only: &[],
    ignored: "",
    placement: NormPlacement::Pre,
    unit_offset: false,
    qk_norm: None,
    activation: ("hidden_act", "silu", FeedForwardActivation::SwiGlu),
    projection_bias: None,
    feed_forward_bias: Some(false),
    sinks: false,
    scaled_embedding: false,
    query_scalar: false,
    score_softcap: false,
    logit_softcap: false,
    windows: Windows::None,
    rope_theta: 10_000.0,
    local_base: None,
    needs_scaling: false,
    experts: None,
    gguf_rotary_pairs: false,
};

const LLAMA: FamilySpec = FamilySpec {
    model_type: "llama",
    only: &[("rope_interleaved", "false")],
    ignored: "is_llama_config",
    feed_forward_bias: None,
    gguf_rotary_pairs: true,
    ..PLAIN
};

const MISTRAL: FamilySpec = FamilySpec {
    model_type: "mistral",
    needed: "num_key_value_heads sliding_window",
    ignored: "attention_bias",
    projection_bias: Some(NO_BIAS),
    windows: Windows::All,
    ..PLAIN
};

const QWEN2: FamilySpec = FamilySpec {
    model_type: "qwen2",
    only: &[("use_mrope", "false")],
    ignored: "attention_bias",
    projection_bias: Some(ProjectionBias {
        query: true,
        key: true,
        value: true,
        output: false,
    }),
    windows: Windows::LastIfUsed,
    ..PLAIN
};

const QWEN3: FamilySpec = FamilySpec {
    model_type: "qwen3",
    needed: "num_key_value_heads head_dim",
    qk_norm: Some(|epsilon| QkNormConfig::Rms { epsilon }),
    windows: Windows::LastIfUsed,
    ..PLAIN
};

/// What Gemma 2 and 3 share.
const GEMMA: FamilySpec = FamilySpec {
    only: &[("use_bidirectional_attention", "false")],
    placement: NormPlacement::Sandwich,
    unit_offset: true,
    activation: (
        "hidden_activation",
        "gelu_pytorch_tanh",
        FeedForwardActivation::GeGluTanh,
    ),
    scaled_embedding: true,
    query_scalar: true,
    logit_softcap: true,
    ..PLAIN
};

const GEMMA2: FamilySpec = FamilySpec {
    model_type: "gemma2",
    needed: "num_key_value_heads head_dim sliding_window attn_logit_softcapping final_logit_softcapping",
    // `hidden_act` may stand beside the newer `hidden_activation`, and is not read. `cache_implementation` is how transformers makes its caches.
    ignored: "hidden_act cache_implementation sliding_window_size",
    score_softcap: true,
    windows: Windows::Alternating,
    ..GEMMA
};

const GEMMA3: FamilySpec = FamilySpec {
    model_type: "gemma3_text",
    needed: "num_key_value_heads head_dim sliding_window",
    // The attention of Gemma 3 does not read `attn_logit_softcapping`. Version 5 of transformers writes `_sliding_window_pattern` beside the list of
    // layer types, and does not read it.
    ignored: "hidden_act cache_implementation attn_logit_softcapping _sliding_window_pattern",
    qk_norm: Some(|epsilon| {
        let norm = NormConfig::rms_norm().with_epsilon(epsilon);
        QkNormConfig::PerHead(norm.with_unit_offset())
    }),
    windows: Windows::Pattern,
    rope_theta: 1_000_000.0,
    local_base: Some(10_000.0),
    ..GEMMA
};

const OLMO2: FamilySpec = FamilySpec {
    model_type: "olmo2",
    placement: NormPlacement::PostSublayer,
    qk_norm: Some(|epsilon| QkNormConfig::RmsAcrossHeads { epsilon }),
    ..PLAIN
};

const MIXTRAL: FamilySpec = FamilySpec {
    model_type: "mixtral",
    needed: "num_key_value_heads",
    // The fields of the router are for training.
    ignored: "attention_bias router_aux_loss_coef output_router_logits router_jitter_noise",
    projection_bias: Some(NO_BIAS),
    windows: Windows::All,
    rope_theta: 1_000_000.0,
    experts: Some(Experts {
        router: "block_sparse_moe.gate",
        router_bias: false,
        sparse: false,
        apart: Some(("block_sparse_moe.experts", ["w1", "w3", "w2"])),
    }),
    ..PLAIN
};

const QWEN3_MOE: FamilySpec = FamilySpec {
    model_type: "qwen3_moe",
    needed: "num_key_value_heads",
    only: &[
        ("qkv_bias", "false"),
        ("shared_expert_intermediate_size", "0"),
        ("use_qk_norm", "true"),
    ],
    // `max_window_layers` is a field of Qwen 3.
    ignored: "router_aux_loss_coef output_router_logits max_window_layers",
    qk_norm: Some(|epsilon| QkNormConfig::Rms { epsilon }),
    windows: Windows::AllIfUsed,
    experts: Some(Experts {
        router: "mlp.gate",
        router_bias: false,
        sparse: true,
        apart: Some(("mlp.experts", GATED)),
    }),
    ..PLAIN
};

const GPT_OSS: FamilySpec = FamilySpec {
    model_type: "gpt_oss",
    needed: "num_key_value_heads head_dim sliding_window attention_bias",
    only: &[("swiglu_alpha", "1.702"), ("swiglu_limit", "7")],
    // The last two are older names of the numbers of experts and of positions, which transformers does not read.
    ignored: "router_aux_loss_coef output_router_logits experts_per_token initial_context_length",
    activation: ("hidden_act", "silu", FeedForwardActivation::ClampedSwiGlu),
    feed_forward_bias: Some(true),
    sinks: true,
    windows: Windows::Alternating,
    rope_theta: 150_000.0,
    needs_scaling: true,
    experts: Some(Experts {
        router: "mlp.router",
        router_bias: true,
        sparse: false,
        apart: None,
    }),
    ..PLAIN
};

pub(crate) const FAMILIES: [&FamilySpec; 10] = [
    &LLAMA, &MISTRAL, &QWEN2, &QWEN3, &GEMMA2, &GEMMA3, &OLMO2, &MIXTRAL, &QWEN3_MOE, &GPT_OSS,
];
