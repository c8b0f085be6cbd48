//! The layer of encoder and causal stack: self-attention and feed-forward.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{FeedForward, Norm, Residual, block::LayerParts};
use crate::{KvCache, KvCacheConfig, SelfAttention};

/// One layer of a [`TransformerEncoder`](crate::TransformerEncoder) or
/// [`CausalTransformer`](crate::CausalTransformer): self-attention and feed-forward, each in a residual sum, or
/// ([`parallel`](crate::BlockConfig::parallel)) both in one.
///
/// The two differ by the causal mask of the attention alone.
#[derive(Module, Debug)]
pub struct TransformerLayer {
    /// Every position looks at all positions, or (causal) at itself and what came before.
    pub attention: SelfAttention,
    /// The sum and norm around the attention, in parallel layers around both.
    pub attention_residual: Residual,
    /// Every position thinks on its own.
    pub feed_forward: FeedForward,
    /// The sum and norm around the feed-forward network; parallel layers have none.
    pub feed_forward_residual: Option<Residual>,
}

impl TransformerLayer {
    pub(super) fn new(parts: &LayerParts, causal: bool, device: &Device) -> Self {
        Self {
            attention: parts.self_attention(causal, device),
            attention_residual: parts.residual(device),
            feed_forward: parts.feed_forward(device),
            feed_forward_residual: (!parts.block.parallel).then(|| parts.residual(device)),
        }
    }

    /// Runs the layer; `attend` runs its attention, and what it returns besides is handed out.
    fn forward<T>(
        &self,
        x: Tensor<3>,
        attend: impl FnOnce(&SelfAttention, Tensor<3>) -> (Tensor<3>, T),
    ) -> (Tensor<3>, T) {
        let Some(feed_forward_residual) = &self.feed_forward_residual else {
            return self.attention_residual.forward(x, |x| {
                let (attended, extra) = attend(&self.attention, x.clone());
                (attended + self.feed_forward.forward(x), extra)
            });
        };
        let (x, extra) = self
            .attention_residual
            .forward(x, |x| attend(&self.attention, x));
        let (x, ()) = feed_forward_residual.forward(x, |x| (self.feed_forward.forward(x), ()));
        (x, extra)
    }
}

/// Runs layers one after the other, then the last norm; `attend` runs the attention of each, in order.
pub(super) fn forward<T>(
    layers: &[TransformerLayer],
    norm: Option<&Norm>,
    mut x: Tensor<3>,
    mut attend: impl FnMut(&SelfAttention, Tensor<3>) -> (Tensor<3>, T),
) -> (Tensor<3>, Vec<T>) {
    let mut extras = Vec::with_capacity(layers.len());
    for layer in layers {
        let extra;
        (x, extra) = layer.forward(x, &mut attend);
        extras.push(extra);
    }
    (finish(norm, x), extras)
}

/// The last norm of a stack, if it has one.
pub(super) fn finish(norm: Option<&Norm>, states: Tensor<3>) -> Tensor<3> {
    match norm {
        Some(norm) => norm.forward(states),
        None => states,
    }
}

/// Panics if the caches of this attention would take more tokens than it has positions for.
///
/// A layer by itself finds out with the token that has none; in a stack, layers may have taken it by then.
pub(super) fn check_room(stack: &str, attention: &SelfAttention, config: &KvCacheConfig) {
    let Some(rotary) = &attention.heads.position.rotary else {
        return;
    };
    let (max_len, positions) = (config.max_len, rotary.max_len());
    assert!(
        max_len <= positions,
        "{stack}: a cache of max_len {max_len} is longer than the {positions} positions of the rotary table"
    );
}

/// Panics unless there is a cache for every layer, and all of them have the same tokens.
pub(super) fn check_caches<'a>(
    stack: &str,
    layers: usize,
    mut caches: impl ExactSizeIterator<Item = &'a KvCache>,
) {
    assert!(
        caches.len() == layers,
        "{stack}: a cache of {} layers does not fit a stack of {layers}",
        caches.len()
    );
    let Some(first) = caches.next() else { return };
    for (layer, cache) in (1..).zip(caches) {
        assert!(
            cache.agrees_with(first),
            "{stack}: the cache of layer {layer} has {:?} tokens, that of layer 0 has {:?}",
            cache.lengths(),
            first.lengths()
        );
    }
}
