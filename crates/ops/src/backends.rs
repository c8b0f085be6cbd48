//! The backends' implementations of the operations: kernels of our own (`fused`) where they support the call, otherwise the
//! bodies made of plain operations.

#[cfg(any(
    feature = "flex",
    feature = "ndarray",
    feature = "tch",
    feature = "cube",
    feature = "remote"
))]
use crate::AttentionOps;
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
use crate::{
    Gradients, Results, ScoreInputs, Upstream, Wanted, blockwise, fused::AttentionKernels,
};
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
use burn::backend::tensor::FloatTensor;

/// Output and logsumexp, by the kernels if they support the call.
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
fn forward<B: AttentionKernels>(inputs: ScoreInputs<B>, value: FloatTensor<B>) -> Results<B> {
    match B::supports(&inputs, &value) {
        true => B::forward(&inputs, &value),
        false => blockwise::forward(inputs, value),
    }
}

/// The gradients, by the kernels if they support the call.
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
fn backward<B: AttentionKernels>(
    inputs: ScoreInputs<B>,
    value: FloatTensor<B>,
    upstream: Upstream<B>,
    wanted: Wanted,
) -> Gradients<B> {
    match B::supports(&inputs, &value) {
        true => B::backward(&inputs, &value, upstream, wanted),
        false => blockwise::backward(inputs, value, upstream, wanted),
    }
}

/// Attention of backends that have kernels for it.
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
macro_rules! attention_by_kernels {
    () => {
        fn attention(inputs: ScoreInputs<Self>, value: FloatTensor<Self>) -> Results<Self> {
            forward(inputs, value)
        }

        fn attention_backward(
            inputs: ScoreInputs<Self>,
            value: FloatTensor<Self>,
            upstream: Upstream<Self>,
            wanted: Wanted,
        ) -> Gradients<Self> {
            backward(inputs, value, upstream, wanted)
        }
    };
}

/// The operations for which backends on the CPU have kernels.
#[cfg(any(feature = "flex", feature = "ndarray"))]
macro_rules! on_the_host {
    () => {
        attention_by_kernels!();

        fn linear(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: crate::OptionalFloat<Self>,
            activation: crate::Activation,
            gated: bool,
        ) -> FloatTensor<Self> {
            crate::fused::linear::<Self>(x, weight, bias, activation, gated)
        }

        fn activate(
            x: FloatTensor<Self>,
            bias: crate::OptionalFloat<Self>,
            activation: crate::Activation,
            gated: bool,
        ) -> FloatTensor<Self> {
            crate::fused::activate::<Self>(x, bias, activation, gated)
        }

        fn activate_backward(
            x: FloatTensor<Self>,
            bias: crate::OptionalFloat<Self>,
            gradient: FloatTensor<Self>,
            activation: crate::Activation,
            gated: bool,
        ) -> FloatTensor<Self> {
            crate::fused::activate_backward::<Self>(x, bias, gradient, activation, gated)
        }

        fn rotate(
            x: FloatTensor<Self>,
            cos: FloatTensor<Self>,
            sin: FloatTensor<Self>,
            rotation: crate::Rotation,
        ) -> FloatTensor<Self> {
            crate::fused::rotate::<Self>(x, cos, sin, rotation)
        }

        // Burn's CPU generator samples number by number; the counter-based one needs a few integer operations per number.
        fn dropout_factors(like: FloatTensor<Self>, dropout: crate::Dropout) -> FloatTensor<Self> {
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
    reason = "deprecated upstream in favour of flex, but supported here as long as Burn has it"
)]
impl AttentionOps for burn_ndarray::NdArray {
    on_the_host!();
}

#[cfg(feature = "tch")]
impl AttentionOps for burn::backend::LibTorch {}

// Without fusion. Burn's `Tensor` comes through fusion, whose implementation is in `fused/fusion.rs`.
#[cfg(feature = "cube")]
impl AttentionOps for burn_cubecl::CubeBackend {
    attention_by_kernels!();
}

// A remote server does not know this crate: it understands the plain operations, recorded one by one.
#[cfg(feature = "remote")]
impl<C: burn_router::RouterChannel> AttentionOps
    for burn_fusion::Fusion<burn_router::BackendRouter<C>>
{
}

#[cfg(feature = "remote")]
impl<C: burn_router::RouterChannel> AttentionOps for burn_router::BackendRouter<C> {}
