//! burn-nn's multi-head attention as this crate's, without going through a file.

use burn::nn::attention::MultiHeadAttention as BurnNnAttention;
use burn_attn::{ConfigError, MultiHeadAttention, MultiHeadAttentionConfig, ProjectionBias};

/// Turns burn-nn's multi-head attention into [`MultiHeadAttention`], with the same parameters, number of heads and dropout.
///
/// `quiet_softmax` becomes sinks at 0 that are not trained. `min_float` is not needed here: a masked key never wins,
/// whatever the scores, and a query that sees nothing gets zeros.
///
/// # Errors
///
/// When the configuration contradicts itself, which burn-nn notices only in `forward`.
///
/// # Cost
///
/// The parameters are moved, not copied.
///
/// # Example
///
/// ```
/// use burn::{nn::attention::MultiHeadAttentionConfig, tensor::Device};
/// use burn_attn_models::import;
///
/// let source = MultiHeadAttentionConfig::new(32, 4).init(&Device::default());
/// let attention = import::multi_head_attention(source)?.into_self_attention();
/// # Ok::<(), burn_attn::ConfigError>(())
/// ```
pub fn multi_head_attention(source: BurnNnAttention) -> Result<MultiHeadAttention, ConfigError> {
    let config = MultiHeadAttentionConfig::new(source.d_model, source.n_heads)
        .with_dropout(source.dropout.prob)
        .with_bias(ProjectionBias {
            query: source.query.bias.is_some(),
            key: source.key.bias.is_some(),
            value: source.value.bias.is_some(),
            output: source.output.bias.is_some(),
        })
        .with_sinks(source.quiet_softmax);
    config.validate()?;
    let device = source.query.weight.lazy_device();
    let mut heads = config.init(&device).heads;
    heads.sinks = heads.sinks.map(|sinks| sinks.set_require_grad(false));
    Ok(MultiHeadAttention {
        query: source.query,
        key: source.key,
        value: source.value,
        output: source.output,
        gate: None,
        heads,
        causal: false,
        window: None,
    })
}
