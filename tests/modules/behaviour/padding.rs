//! Padding changes nothing, even when it is NaN.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn::{
    AttentionMask, BlockConfig, CrossAttentionConfig, CrossAttentionInput, LayerInput,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, TransformerConfig, TransformerInput,
    TransformerStackConfig,
};
use burn_attn_tests::{
    compare::{assert_same, differs, numbers},
    devices,
    numbers::{filled, tensor},
    parameters,
};

const LEN: usize = 11;
const LENGTHS: [i32; 2] = [11, 8];

/// A memory whose padding is full of `padding`.
fn memory(padding: f32, device: &Device) -> Tensor<3> {
    let memory: Tensor<3> = tensor([2, LEN, 15], 4, device);
    let first = LENGTHS[1] as usize;
    memory.slice_assign(
        [1..2, first..LEN],
        Tensor::full([1, LEN - first, 15], padding, device),
    )
}

fn mask(device: &Device) -> AttentionMask {
    AttentionMask::key_lengths(Tensor::from_data(LENGTHS, device))
}

/// What a module makes of a memory, and the gradients.
struct Run {
    context: Tensor<3>,
    of_inputs: [Tensor<3>; 2],
    of_parameters: parameters::Named,
}

/// How a module reads `x`, a memory and its mask.
type Forward<M> = fn(&M, Tensor<3>, Tensor<3>, AttentionMask) -> Tensor<3>;

fn run<M: Module>(module: &M, forward: Forward<M>, padding: f32, device: &Device) -> Run {
    let x: Tensor<3> = tensor([2, 7, 15], 3, device).require_grad();
    let memory = memory(padding, device).require_grad();
    let context = forward(module, x.clone(), memory.clone(), mask(device));
    let gradients = context.clone().square().sum().backward();
    Run {
        context,
        of_inputs: [x, memory]
            .map(|input| input.grad(&gradients).expect("the gradient of an input")),
        of_parameters: parameters::gradients(module, &gradients),
    }
}

/// The context for each padding has the same bits, and so have the gradients.
fn check<M: Module>(init: fn(&Device) -> M, forward: Forward<M>) {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let module = filled(init(&device), 1);
        let expected = run(&module, forward, 0.0, &device);
        for padding in [1e30, f32::INFINITY, f32::NAN] {
            let run = run(&module, forward, padding, &device);
            assert_same(&run.context, &expected.context);
            for (gradient, expected) in run.of_inputs.iter().zip(&expected.of_inputs) {
                assert_same(gradient, expected);
            }
            // The projections multiply padding with gradients of zero, as in PyTorch: only finite padding vanishes.
            if padding.is_finite() {
                assert_eq!(run.of_parameters, expected.of_parameters);
            }
        }
        // The mask is what hides it.
        let x = tensor([2, 7, 15], 3, &device);
        let seen = forward(&module, x, memory(1.0, &device), AttentionMask::none());
        assert!(differs(&seen, &expected.context));
    }
}

#[test]
fn of_cross_attention() {
    check(
        |device| {
            CrossAttentionConfig::new(15, 3)
                .with_dropout(0.0)
                .init(device)
        },
        |module, x, memory, mask| module.forward(CrossAttentionInput::new(x, memory).mask(mask)),
    );
}

#[test]
fn of_multi_head_attention() {
    check(
        |device| {
            MultiHeadAttentionConfig::new(15, 3)
                .with_dropout(0.0)
                .init(device)
        },
        |module, x, memory, mask| {
            module.forward(MultiHeadAttentionInput::cross_attention(x, memory).mask(mask))
        },
    );
}

#[test]
fn of_a_decoders_memory() {
    check(
        |device| {
            TransformerStackConfig::decoder(15, 29, 3, 2)
                .with_block(BlockConfig::new().with_dropout(0.0))
                .init(device)
        },
        |module, x, memory, mask| {
            module.forward(LayerInput::new(x).memory(memory).memory_mask(mask))
        },
    );
}

#[test]
fn of_a_transformers_source() {
    // Padded positions of the source are queries too, so NaN stays in their own rows and in what the encoder's
    // parameters get from them: here only the output is promised.
    for (_, device) in devices::cpu() {
        let module = filled(TransformerConfig::new(15, 29, 3, 2, 2).init(&device), 1);
        let run = |padding| {
            let input =
                TransformerInput::new(memory(padding, &device), tensor([2, 7, 15], 3, &device));
            module.forward(input.source_mask(mask(&device)))
        };
        let expected = run(0.0);
        for padding in [1e30, f32::INFINITY, f32::NAN] {
            assert_same(&run(padding), &expected);
        }
    }
}

#[test]
fn more_padding_changes_nothing() {
    for (_, device) in devices::cpu() {
        let module = filled(CrossAttentionConfig::new(15, 3).init(&device), 1);
        let x: Tensor<3> = tensor([2, 7, 15], 3, &device);
        let short = memory(0.0, &device);
        let long = Tensor::cat(vec![short.clone(), tensor([2, 6, 15], 9, &device)], 1);
        let run = |memory| {
            module.forward(CrossAttentionInput::new(x.clone(), memory).mask(mask(&device)))
        };
        let pairs = numbers(&run(short)).into_iter().zip(numbers(&run(long)));
        // Another length may sum in another order.
        for (short, long) in pairs {
            assert!((short - long).abs() < 1e-6);
        }
    }
}
