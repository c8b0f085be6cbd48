//! Layers from the formulas of the papers, in plain tensor operations. Attention alone is the module's own, which has
//! tests of its own.

use burn::{
    nn::Linear,
    tensor::{
        Tensor,
        activation::{relu, sigmoid},
    },
};
use burn_attn::{
    BlockConfig, CrossAttentionInput, FeedForward, FeedForwardActivation, Norm, NormConfig,
    NormPlacement, SelfAttentionInput, SublayerConnection, TransformerLayer,
};

/// What `config` says about a norm, with the parameters of `module`.
pub fn norm<const D: usize>(config: &NormConfig, module: &Norm, x: Tensor<D>) -> Tensor<D> {
    assert_eq!(module.config(), *config);
    let factor = |unit_offset| -> Tensor<D> {
        let gamma = module.gamma.val().unsqueeze();
        if unit_offset { gamma + 1.0 } else { gamma }
    };
    match config {
        NormConfig::LayerNorm {
            epsilon,
            bias,
            unit_offset,
            ..
        } => {
            let centred = x.clone() - x.mean_dim(D - 1);
            let variance = centred.clone().powi_scalar(2).mean_dim(D - 1);
            let y = centred / (variance + *epsilon).sqrt() * factor(*unit_offset);
            assert_eq!(module.beta.is_some(), *bias);
            match &module.beta {
                Some(beta) => y + beta.val().unsqueeze(),
                None => y,
            }
        }
        NormConfig::RmsNorm {
            epsilon,
            unit_offset,
            ..
        } => {
            let squares = x.clone().powi_scalar(2).mean_dim(D - 1);
            x / (squares + *epsilon).sqrt() * factor(*unit_offset)
        }
        other => panic!("{other:?} has no formula here"),
    }
}

/// The columns `first .. first + count` of a linear layer.
fn columns(linear: &Linear, first: usize, count: usize, x: Tensor<3>) -> Tensor<3> {
    let weight = linear.weight.val().narrow(1, first, count);
    let y = x.matmul(weight.unsqueeze());
    match &linear.bias {
        Some(bias) => y + bias.val().narrow(0, first, count).unsqueeze(),
        None => y,
    }
}

fn gelu(x: Tensor<3>) -> Tensor<3> {
    x.clone() * ((x / 2f64.sqrt()).erf() + 1.0) / 2.0
}

fn quick_gelu(x: Tensor<3>) -> Tensor<3> {
    x.clone() / ((x * -1.702).exp() + 1.0)
}

fn gelu_tanh(x: Tensor<3>) -> Tensor<3> {
    let cubic = x.clone() + x.clone() * x.clone() * x.clone() * 0.044715;
    let factor = (2.0 / core::f64::consts::PI).sqrt();
    x * ((cubic * factor).tanh() + 1.0) / 2.0
}

/// The feed-forward network, gate and up projection one after the other.
pub fn feed_forward(
    activation: FeedForwardActivation,
    module: &FeedForward,
    x: Tensor<3>,
) -> Tensor<3> {
    let [d_ff, d_model] = module.linear_outer.weight.dims();
    let inner = |part| columns(&module.linear_inner, part * d_ff, d_ff, x.clone());
    let inner = match activation {
        FeedForwardActivation::Relu => relu(inner(0)),
        FeedForwardActivation::Gelu => gelu(inner(0)),
        FeedForwardActivation::GeluTanh => gelu_tanh(inner(0)),
        FeedForwardActivation::SwiGlu => inner(0) * sigmoid(inner(0)) * inner(1),
        FeedForwardActivation::GeGlu => gelu(inner(0)) * inner(1),
        FeedForwardActivation::GeGluTanh => gelu_tanh(inner(0)) * inner(1),
        FeedForwardActivation::QuickGelu => quick_gelu(inner(0)),
        FeedForwardActivation::Silu => inner(0) * sigmoid(inner(0)),
        FeedForwardActivation::ReluSquared => relu(inner(0)) * relu(inner(0)),
        FeedForwardActivation::ReGlu => relu(inner(0)) * inner(1),
        // What is clamped has a test of its own.
        FeedForwardActivation::ClampedSwiGlu => quick_gelu(inner(0)) * (inner(1) + 1.0),
        other => panic!("{other:?} has no formula here"),
    };
    columns(&module.linear_outer, 0, d_model, inner)
}

/// What a layer has between the last norm and the last sum.
pub fn think(module: &TransformerLayer, x: Tensor<3>) -> Tensor<3> {
    match (&module.feed_forward, &module.mixture_of_experts) {
        (Some(feed_forward), None) => feed_forward.forward(x),
        (None, Some(experts)) => experts.forward(x),
        _ => panic!("a layer has a feed-forward network or experts"),
    }
}

/// The same, a feed-forward network from its formula.
fn think_as(block: &BlockConfig, module: &TransformerLayer, x: Tensor<3>) -> Tensor<3> {
    match &module.feed_forward {
        Some(network) => feed_forward(block.activation, network, x),
        None => think(module, x),
    }
}

fn residual(
    block: &BlockConfig,
    module: &SublayerConnection,
    x: Tensor<3>,
    sublayer: impl Fn(Tensor<3>) -> Tensor<3>,
) -> Tensor<3> {
    let of_input = module.norm.as_ref().expect("a norm");
    let first = |x| norm(&block.norm, of_input, x);
    let second = module.output_norm.as_ref();
    match block.norm_placement {
        NormPlacement::Pre => x.clone() + sublayer(first(x)),
        NormPlacement::Post => first(x.clone() + sublayer(x)),
        NormPlacement::Sandwich => {
            let second = second.expect("a norm behind the sublayer");
            x.clone() + norm(&block.norm, second, sublayer(first(x)))
        }
        NormPlacement::PostSublayer => x.clone() + first(sublayer(x)),
        other => panic!("{other:?} has no formula here"),
    }
}

/// A layer of encoder or causal stack.
pub fn layer(block: &BlockConfig, module: &TransformerLayer, x: Tensor<3>) -> Tensor<3> {
    let attend = |x| module.self_attention.forward(SelfAttentionInput::new(x));
    let think = |x| think_as(block, module, x);
    let around = &module.self_attention_residual;
    match &module.feed_forward_residual {
        Some(beside) if block.parallel => {
            assert_eq!(block.norm_placement, NormPlacement::Pre);
            assert_eq!(block.separate_norms, beside.norm.is_some());
            let read =
                |of: &Option<Norm>| norm(&block.norm, of.as_ref().expect("a norm"), x.clone());
            let first = read(&around.norm);
            let second = match block.separate_norms {
                true => read(&beside.norm),
                false => first.clone(),
            };
            x.clone() + attend(first) + think(second)
        }
        Some(behind) => {
            let x = residual(block, around, x, attend);
            residual(block, behind, x, think)
        }
        None => {
            assert!(block.parallel);
            residual(block, around, x, |x| attend(x.clone()) + think(x))
        }
    }
}

/// A layer of the encoder–decoder's decoder.
pub fn decoder_layer(
    block: &BlockConfig,
    module: &TransformerLayer,
    x: Tensor<3>,
    memory: &Tensor<3>,
) -> Tensor<3> {
    let attend = |x| module.self_attention.forward(SelfAttentionInput::new(x));
    let look_over = |x| {
        let input = CrossAttentionInput::new(x, memory.clone());
        module.cross_attention.as_ref().expect("one").forward(input)
    };
    let [around_cross, around_feed_forward] = [
        &module.cross_attention_residual,
        &module.feed_forward_residual,
    ]
    .map(|residual| residual.as_ref().expect("one"));
    let think = |x| think_as(block, module, x);
    let x = residual(block, &module.self_attention_residual, x, attend);
    let x = residual(block, around_cross, x, look_over);
    residual(block, around_feed_forward, x, think)
}
