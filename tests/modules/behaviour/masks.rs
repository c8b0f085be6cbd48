//! Masks given one after the other all hide, in every input that takes one.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionMask, CrossAttentionConfig, CrossAttentionInput, LayerInput, MultiHeadAttentionConfig,
    MultiHeadAttentionInput, SelfAttentionConfig, SelfAttentionInput, TransformerConfig,
    TransformerInput, TransformerStackConfig,
};
use burn_attn_tests::{
    compare::{assert_same, differs},
    devices,
    numbers::{filled, tensor},
};

const LEN: usize = 7;

fn lengths(device: &Device) -> AttentionMask {
    AttentionMask::key_lengths(Tensor::from_data([7, 4], device))
}

fn window() -> AttentionMask {
    AttentionMask::window(2, 2)
}

/// What `run` makes of two masks, whichever comes first, is what it makes of their conjunction, and more than one of them hides.
fn both_hide(device: &Device, run: impl Fn(&[AttentionMask]) -> Tensor<3>) {
    let expected = run(&[lengths(device).and(window())]);
    assert_same(&run(&[lengths(device), window()]), &expected);
    assert_same(&run(&[window(), lengths(device)]), &expected);
    assert!(differs(&run(&[window()]), &expected));
    assert!(differs(&run(&[lengths(device)]), &expected));
}

/// The input with all of these masks, given one after the other.
fn masked<I>(input: I, masks: &[AttentionMask], mask: fn(I, AttentionMask) -> I) -> I {
    masks.iter().cloned().fold(input, mask)
}

#[test]
fn several_masks_of_one_input_all_hide() {
    for (name, device) in devices::cpu() {
        println!("on {name}");
        let device = &device;
        let x = || tensor([2, LEN, 15], 3, device);

        let module = filled(SelfAttentionConfig::new(15, 3).init(device), 1);
        both_hide(device, |masks| {
            let input = SelfAttentionInput::new(x());
            module.forward(masked(input, masks, SelfAttentionInput::mask))
        });

        let module = filled(CrossAttentionConfig::new(15, 3).init(device), 1);
        both_hide(device, |masks| {
            let input = CrossAttentionInput::new(x(), x());
            module.forward(masked(input, masks, CrossAttentionInput::mask))
        });

        let module = filled(MultiHeadAttentionConfig::new(15, 3).init(device), 1);
        both_hide(device, |masks| {
            let input = MultiHeadAttentionInput::self_attention(x());
            module.forward(masked(input, masks, MultiHeadAttentionInput::mask))
        });

        for stack in [
            TransformerStackConfig::encoder(15, 29, 3, 2),
            TransformerStackConfig::causal(15, 29, 3, 2),
        ] {
            let module = filled(stack.init(device), 1);
            both_hide(device, |masks| {
                let input = LayerInput::new(x());
                module.forward(masked(input, masks, LayerInput::mask))
            });
        }

        let decoder = TransformerStackConfig::decoder(15, 29, 3, 2);
        let module = filled(decoder.init(device), 1);
        for mask in [LayerInput::mask, LayerInput::memory_mask] {
            both_hide(device, |masks| {
                let input = LayerInput::new(x()).memory(x());
                module.forward(masked(input, masks, mask))
            });
        }

        let module = filled(TransformerConfig::new(15, 29, 3, 2, 2).init(device), 1);
        for mask in [TransformerInput::target_mask, TransformerInput::source_mask] {
            both_hide(device, |masks| {
                let input = TransformerInput::new(x(), x());
                module.forward(masked(input, masks, mask))
            });
        }
    }
}
