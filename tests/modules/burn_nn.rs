//! A user who replaces burn-nn's modules by ours: with burn-nn's weights, they give the same numbers.

use burn::{
    module::{Module, Param},
    nn::{
        RotaryEncodingConfig,
        activation::ActivationConfig,
        attention::{MhaInput, generate_autoregressive_mask},
    },
    tensor::{Bool, Device, Tensor},
};
use burn_attn::{
    AttentionMask, BlockConfig, FeedForwardActivation, LayerInput, MultiHeadAttention,
    MultiHeadAttentionInput, NormConfig, NormPlacement,
    positions::{Positions, RotaryConfig, RotaryLayout},
};
use burn_attn_models::import::{self, Import};
use burn_attn_tests::{
    compare::{assert_close, differs, error},
    devices,
    numbers::{filled, tensor},
};

mod theirs {
    pub use burn::nn::{attention::*, transformer::*};
}
mod ours {
    pub use burn_attn::*;
}

/// The same arguments before the replacement and after.
macro_rules! both {
    ($theirs:ident::new as $ours:ident::$constructor:ident $arguments:tt) => {
        (
            theirs::$theirs::new $arguments,
            ours::$ours::$constructor $arguments,
        )
    };
}

fn encoder_inputs(device: &Device) -> (theirs::TransformerEncoderInput, LayerInput) {
    both!(TransformerEncoderInput::new as LayerInput::new(x(device)))
}

fn decoder_inputs(device: &Device) -> (theirs::TransformerDecoderInput, LayerInput) {
    (
        theirs::TransformerDecoderInput::new(x(device), memory(device)),
        LayerInput::new(x(device)).memory(memory(device)),
    )
}

/// About five times the worst that was seen on flex and ndarray.
const TOLERANCE: f64 = 2e-6;

fn feed_forward(layer: &ours::TransformerLayer) -> &ours::FeedForward {
    layer.feed_forward.as_ref().expect("no experts")
}

fn on_every_device(check: impl Fn(&Device)) {
    for (name, device) in devices::cpu() {
        println!("on {name}");
        check(&device);
    }
}

/// `ours` with the weights of `theirs`.
fn moved<T: Module, O: Import>(theirs: &T, ours: O) -> O {
    moved_with(theirs, ours, false)
}

/// The same, where the record does not say that `theirs` has a quiet softmax.
fn moved_with<T: Module, O: Import>(theirs: &T, mut ours: O, quiet_softmax: bool) -> O {
    let record = theirs.clone().into_record();
    let weights = import::burn_nn_record(record).expect("a record");
    let mut weights = weights.sinks_at_zero(quiet_softmax);
    weights.load("", &mut ours).expect("loaded");
    weights.finish().expect("everything is taken");
    ours
}

#[track_caller]
fn assert_equal<const D: usize>(what: &str, ours: &Tensor<D>, theirs: &Tensor<D>) {
    assert_close(what, &ours.to_data(), &theirs.to_data(), TOLERANCE);
}

/// The gradient of a parameter for a loss that every number of `output` has its own part in.
fn gradient<const D: usize>(output: Tensor<3>, parameter: &Param<Tensor<D>>) -> Tensor<D> {
    let weight = tensor(output.dims(), 9, &output.device());
    let gradients = (output * weight).sum().backward();
    parameter.val().grad(&gradients).expect("a gradient")
}

/// Two sequences of up to 7 positions, the second shorter: burn-nn's mask (`true` hides) and ours.
fn padding(device: &Device) -> (Tensor<2, Bool>, AttentionMask) {
    let hidden = [[false; 7], [false, false, false, false, false, true, true]];
    let lengths = Tensor::from_data([7, 5], device);
    (
        Tensor::from_data(hidden, device),
        AttentionMask::key_lengths(lengths),
    )
}

fn future(device: &Device) -> Tensor<3, Bool> {
    generate_autoregressive_mask(2, 7, device)
}

fn x(device: &Device) -> Tensor<3> {
    tensor([2, 7, 15], 3, device)
}

fn memory(device: &Device) -> Tensor<3> {
    tensor([2, 7, 15], 4, device)
}

#[test]
fn configurations_start_alike() {
    let (encoder, ours) =
        both!(TransformerEncoderConfig::new as TransformerStackConfig::encoder(15, 29, 3, 2));
    let (decoder, of_decoder) =
        both!(TransformerDecoderConfig::new as TransformerStackConfig::decoder(15, 29, 3, 2));
    let (attention, of_attention) =
        both!(MultiHeadAttentionConfig::new as MultiHeadAttentionConfig::new(15, 3));
    for block in [&ours.block, &of_decoder.block] {
        assert_eq!(block.dropout, encoder.dropout);
        assert_eq!(
            format!("{:?}", block.initializer),
            format!("{:?}", encoder.initializer)
        );
        assert_eq!(
            block.norm,
            NormConfig::layer_norm().with_epsilon(encoder.layer_norm_eps)
        );
        assert_eq!(block.heads.sinks, encoder.quiet_softmax);
        assert!(!encoder.norm_first && block.norm_placement == NormPlacement::Post);
        assert!(matches!(encoder.activation, ActivationConfig::Gelu));
        assert_eq!(block.activation, FeedForwardActivation::Gelu);
    }
    assert_eq!(decoder.dropout, encoder.dropout);
    assert_eq!(of_attention.dropout, attention.dropout);
    assert_eq!(
        format!("{:?}", of_attention.initializer),
        format!("{:?}", attention.initializer)
    );
}

#[test]
fn multi_head_attention() {
    on_every_device(|device| {
        let (theirs, ours) =
            both!(MultiHeadAttentionConfig::new as MultiHeadAttentionConfig::new(15, 3));
        let theirs = filled(theirs.init(device), 1);
        let ours: MultiHeadAttention = moved(&theirs, ours.init(device));
        let (x, memory) = (x(device), memory(device));
        let (hidden, lengths) = padding(device);

        let before = theirs.forward(MhaInput::new(x.clone(), memory.clone(), memory.clone()));
        let input = MultiHeadAttentionInput::new(x.clone(), memory.clone(), memory);
        assert_equal("cross", &ours.forward(input), &before.context);

        let input = MhaInput::self_attn(x.clone()).mask_pad(hidden);
        let before = theirs.forward(input.mask_attn(future(device)));
        let input = MultiHeadAttentionInput::self_attention(x);
        let mask = lengths.and(AttentionMask::causal());
        let after = ours.forward_with_weights(input.mask(mask));
        assert_equal("masked", &after.states, &before.context);
        assert_equal("weights", &after.weights, &before.weights);
    });
}

#[test]
fn encoders() {
    on_every_device(|device| {
        let (theirs, ours) =
            both!(TransformerEncoderConfig::new as TransformerStackConfig::encoder(15, 29, 3, 2));
        let theirs = filled(theirs.init(device), 1);
        let ours = moved(&theirs, ours.init(device));
        let (before, after) = encoder_inputs(device);
        assert_equal("encoder", &ours.forward(after), &theirs.forward(before));

        let (before, after) = encoder_inputs(device);
        let (hidden, lengths) = padding(device);
        let before = theirs.forward(before.mask_pad(hidden.clone()).mask_attn(future(device)));
        let masks = [
            lengths.and(AttentionMask::causal()),
            AttentionMask::mask_pad(hidden).and(AttentionMask::mask_attn(future(device))),
        ];
        for mask in masks {
            let after = ours.forward(after.clone().mask(mask));
            assert_equal("masked", &after, &before);
        }
    });
}

#[test]
fn decoders() {
    on_every_device(|device| {
        let (theirs, ours) =
            both!(TransformerDecoderConfig::new as TransformerStackConfig::decoder(15, 29, 3, 2));
        let theirs = filled(theirs.init(device), 1);
        let causal = moved(&theirs, ours.clone().with_causal(true).init(device));
        let ours = moved(&theirs, ours.init(device));
        let (before, after) = decoder_inputs(device);
        let expected = theirs.forward(before);
        assert_equal("decoder", &ours.forward(after.clone()), &expected);
        // The mask that makes burn-nn's causal is part of the configuration here.
        assert!(differs(&causal.forward(after), &expected));

        let (before, after) = decoder_inputs(device);
        let (hidden, lengths) = padding(device);
        let before = before
            .target_mask_attn(future(device))
            .target_mask_pad(hidden.clone())
            .memory_mask_pad(hidden);
        let expected = theirs.forward(before);
        let after = after.memory_mask(lengths.clone());
        let masked = after
            .clone()
            .mask(lengths.clone().and(AttentionMask::causal()));
        assert_equal("masked", &ours.forward(masked), &expected);
        let output = causal.forward(after.mask(lengths));
        assert_equal("causal", &output, &expected);
    });
}

/// The one thing with another name and another meaning, which `MIGRATING.md` says.
#[test]
fn rotary_positions_rotate_neighbours_there() {
    on_every_device(|device| {
        let theirs = RotaryEncodingConfig::new(31, 6).init(device);
        let x: Tensor<4> = tensor([2, 3, 7, 6], 3, device);
        let expected = theirs.forward(x.clone());
        let rotated = |layout| {
            let rotary = RotaryConfig::new().with_layout(layout).init(6, device);
            rotary.forward(x.clone(), &Positions::default())
        };
        assert_equal("neighbours", &rotated(RotaryLayout::Interleaved), &expected);
        let halves = rotated(RotaryLayout::HalfSplit);
        assert!(error(&halves.to_data(), &expected.to_data()) > 0.1);
    });
}

/// Burn 0.22.1's GELU has the gradient of another function on most backends, so these stand behind the last one.
#[test]
fn gradients_of_the_defaults() {
    on_every_device(|device| {
        let device = &device.clone().autodiff();
        let (theirs, ours) =
            both!(TransformerEncoderConfig::new as TransformerStackConfig::encoder(15, 29, 3, 2));
        let theirs = filled(theirs.with_dropout(0.0).init(device), 1);
        let block = BlockConfig::new().with_dropout(0.0);
        let ours = moved(&theirs, ours.with_block(block.clone()).init(device));
        let (before, after) = encoder_inputs(device);
        let before = gradient(
            theirs.forward(before),
            &theirs.layers[1].pwff.linear_outer.weight,
        );
        let after = gradient(
            ours.forward(after),
            &feed_forward(&ours.layers[1]).linear_outer.weight,
        );
        assert_equal("encoder", &after, &before);

        let (theirs, ours) =
            both!(TransformerDecoderConfig::new as TransformerStackConfig::decoder(15, 29, 3, 2));
        let theirs = filled(theirs.with_dropout(0.0).init(device), 1);
        let ours = moved(&theirs, ours.with_block(block).init(device));
        let (before, after) = decoder_inputs(device);
        let before = gradient(
            theirs.forward(before),
            &theirs.layers[1].pwff.linear_outer.weight,
        );
        let after = gradient(
            ours.forward(after),
            &feed_forward(&ours.layers[1]).linear_outer.weight,
        );
        assert_equal("decoder", &after, &before);
    });
}

/// Every choice of burn-nn's, in our words, and the gradients of the first parameters: through every layer.
#[test]
fn choices_that_have_other_words() {
    on_every_device(|device| {
        let device = &device.clone().autodiff();
        for norm_first in [false, true] {
            for quiet_softmax in [false, true] {
                let block = BlockConfig::new()
                    .with_dropout(0.0)
                    .with_norm(NormConfig::layer_norm().with_epsilon(0.07))
                    .with_norm_placement(match norm_first {
                        true => NormPlacement::Pre,
                        false => NormPlacement::Post,
                    })
                    .with_activation(FeedForwardActivation::Relu)
                    .with_sinks(quiet_softmax);

                let (theirs, ours) = both!(TransformerEncoderConfig::new as TransformerStackConfig::encoder(15, 29, 3, 2));
                let theirs = theirs
                    .with_dropout(0.0)
                    .with_norm_first(norm_first)
                    .with_quiet_softmax(quiet_softmax)
                    .with_activation(ActivationConfig::Relu)
                    .with_layer_norm_eps(0.07);
                let theirs = filled(theirs.init(device), 1);
                let ours = ours
                    .with_block(block.clone())
                    .with_final_norm(false)
                    .init(device);
                let ours = moved_with(&theirs, ours, quiet_softmax);
                let (before, after) = encoder_inputs(device);
                let (before, after) = (theirs.forward(before), ours.forward(after));
                assert_equal("encoder", &after, &before);
                let before = gradient(before, &theirs.layers[0].mha.output.weight);
                let after = gradient(after, &ours.layers[0].self_attention.output.weight);
                assert_equal("gradient of an encoder", &after, &before);

                let (theirs, ours) = both!(TransformerDecoderConfig::new as TransformerStackConfig::decoder(15, 29, 3, 2));
                let theirs = theirs
                    .with_dropout(0.0)
                    .with_norm_first(norm_first)
                    .with_quiet_softmax(quiet_softmax)
                    .with_activation(ActivationConfig::Relu)
                    .with_layer_norm_eps(0.07);
                let theirs = filled(theirs.init(device), 1);
                let ours = ours.with_block(block).with_final_norm(false).init(device);
                let ours = moved_with(&theirs, ours, quiet_softmax);
                let (before, after) = decoder_inputs(device);
                let (before, after) = (theirs.forward(before), ours.forward(after));
                assert_equal("decoder", &after, &before);
                let before = gradient(before, &theirs.layers[0].self_attn.output.weight);
                let after = gradient(after, &ours.layers[0].self_attention.output.weight);
                assert_equal("gradient of a decoder", &after, &before);
            }
        }
    });
}
