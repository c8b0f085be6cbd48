//! Who implements the operation: with kernels of its own (`fused`), or by the bodies made of plain operations.

#[cfg(any(
    feature = "flex",
    feature = "ndarray",
    feature = "tch",
    feature = "cube",
    feature = "remote"
))]
use crate::AttentionOps;

/// What backends on the CPU do themselves.
#[cfg(any(feature = "flex", feature = "ndarray"))]
macro_rules! on_the_host {
    () => {
        fn attention(
            inputs: crate::ScoreInputs<Self>,
            value: burn::backend::tensor::FloatTensor<Self>,
        ) -> (
            burn::backend::tensor::FloatTensor<Self>,
            burn::backend::tensor::FloatTensor<Self>,
        ) {
            crate::fused::forward::<Self>(inputs, value)
        }

        fn attention_backward(
            inputs: crate::ScoreInputs<Self>,
            value: burn::backend::tensor::FloatTensor<Self>,
            upstream: crate::Upstream<Self>,
            wanted: crate::Wanted,
        ) -> crate::Gradients<Self> {
            crate::fused::backward::<Self>(inputs, value, upstream, wanted)
        }

        fn product(
            x: burn::backend::tensor::FloatTensor<Self>,
            weight: burn::backend::tensor::FloatTensor<Self>,
        ) -> burn::backend::tensor::FloatTensor<Self> {
            crate::fused::product::<Self>(x, weight)
        }

        fn rotate(
            x: burn::backend::tensor::FloatTensor<Self>,
            cos: burn::backend::tensor::FloatTensor<Self>,
            sin: burn::backend::tensor::FloatTensor<Self>,
            rotation: crate::Rotation,
        ) -> burn::backend::tensor::FloatTensor<Self> {
            crate::fused::rotate::<Self>(x, cos, sin, rotation)
        }

        // Burn's CPU generator samples one number after the other; the counting one needs a few integer operations each.
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
    on_the_host!();
}

#[cfg(feature = "ndarray")]
#[allow(
    deprecated,
    reason = "deprecated upstream in favour of flex, a backend of ours as long as Burn has it"
)]
impl AttentionOps for burn_ndarray::NdArray {
    on_the_host!();
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
