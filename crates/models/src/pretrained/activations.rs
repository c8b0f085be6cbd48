//! Names in a `config.json`.

use burn_attn::FeedForwardActivation;

/// The activations of feed-forward networks, by their names in `transformers`.
pub(super) const ACTIVATIONS: [(&str, FeedForwardActivation); 12] = {
    use FeedForwardActivation::{Gelu, GeluTanh, QuickGelu, Relu, ReluSquared, Silu};
    [
        ("gelu", Gelu),
        ("gelu_python", Gelu),
        ("gelu_new", GeluTanh),
        ("gelu_fast", GeluTanh),
        ("gelu_accurate", GeluTanh),
        ("gelu_pytorch_tanh", GeluTanh),
        ("gelu_python_tanh", GeluTanh),
        ("quick_gelu", QuickGelu),
        ("relu", Relu),
        ("relu2", ReluSquared),
        ("silu", Silu),
        ("swish", Silu),
    ]
};
