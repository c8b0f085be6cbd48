//! Who implements the operation. Every backend takes the composed bodies; one that gets kernels of its own moves to a
//! file of its own.

use crate::AttentionOps;

/// Burn's CPU generator samples one number after the other; the counting one needs a few integer operations each.
#[cfg(any(feature = "flex", feature = "ndarray"))]
macro_rules! dropout_on_the_host {
    () => {
        fn dropout_factors(
            like: burn::backend::tensor::FloatTensor<Self>,
            dropout: crate::Dropout,
        ) -> burn::backend::tensor::FloatTensor<Self> {
            crate::composed::factors_of_host::<Self>(like, dropout)
        }
    };
}

#[cfg(feature = "flex")]
impl AttentionOps for burn_flex::Flex {
    dropout_on_the_host!();
}

#[cfg(feature = "ndarray")]
#[allow(
    deprecated,
    reason = "deprecated upstream in favour of flex, a backend of ours as long as Burn has it"
)]
impl AttentionOps for burn_ndarray::NdArray {
    dropout_on_the_host!();
}

#[cfg(feature = "tch")]
impl AttentionOps for burn::backend::LibTorch {}

#[cfg(feature = "cube")]
impl AttentionOps for burn_cubecl::CubeBackend {}

// Plain operations, recorded one by one, are what fusion and a remote server understand without knowing this crate.
#[cfg(any(feature = "cube", feature = "remote"))]
impl<B: burn_fusion::FusionBackend> AttentionOps for burn_fusion::Fusion<B> {}

#[cfg(feature = "remote")]
impl<C: burn_router::RouterChannel> AttentionOps for burn_router::BackendRouter<C> {}

// Burn differentiates the composed body operation by operation.
#[cfg(feature = "autodiff")]
impl<B, C> AttentionOps for burn_autodiff::Autodiff<B, C>
where
    B: burn::backend::Backend + AttentionOps,
    C: burn_autodiff::checkpoint::strategy::CheckpointStrategy,
{
}
