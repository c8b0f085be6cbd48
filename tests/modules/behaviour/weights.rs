//! Asking for weights never changes the context, and the weights are weights.

use burn::tensor::{Bool, Device, Tensor};
use burn_attn::{
    AttentionMask, AttentionOutput, BlockConfig, CrossAttentionConfig, CrossAttentionInput,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, SelfAttentionConfig, SelfAttentionInput,
    TransformerConfig, TransformerInput,
};
use burn_attn_tests::{
    compare::{assert_same, differs, numbers},
    devices,
    numbers::{alone, filled, tensor},
};

/// One module of each kind: its context alone, and with weights.
struct Asked {
    context: Tensor<3>,
    output: AttentionOutput,
}

/// Runs every attention module twice from the same seed.
fn ask(device: &Device, dropout: f64) -> Vec<Asked> {
    let x = || tensor([2, 7, 15], 3, device);
    let memory = || tensor([2, 11, 15], 4, device);
    let lengths = || AttentionMask::key_lengths(Tensor::from_data([11, 8], device));
    let twice = |context: &dyn Fn() -> Tensor<3>, output: &dyn Fn() -> AttentionOutput| {
        let seeded = || burn_attn::seed(device, 5);
        seeded();
        let context = context();
        seeded();
        let output = output();
        Asked { context, output }
    };

    let of_self = SelfAttentionConfig::new(15, 3)
        .with_causal(true)
        .with_dropout(dropout);
    let of_self = filled(of_self.init(device), 1);
    let of_memory = CrossAttentionConfig::new(15, 3).with_dropout(dropout);
    let of_memory = filled(of_memory.init(device), 1);
    let general = MultiHeadAttentionConfig::new(15, 3).with_dropout(dropout);
    let general = filled(general.init(device), 1);

    let self_input = || SelfAttentionInput::new(x());
    let memory_input = || CrossAttentionInput::new(x(), memory()).mask(lengths());
    let general_input = || MultiHeadAttentionInput::new(x(), memory(), memory()).mask(lengths());
    vec![
        twice(&|| of_self.forward(self_input()), &|| {
            of_self.forward_with_weights(self_input())
        }),
        twice(&|| of_memory.forward(memory_input()), &|| {
            of_memory.forward_with_weights(memory_input())
        }),
        twice(&|| general.forward(general_input()), &|| {
            general.forward_with_weights(general_input())
        }),
    ]
}

#[test]
fn asking_for_weights_never_changes_the_output() {
    let _alone = alone();
    for (_, device) in devices::with_and_without_autodiff() {
        for dropout in [0.0, 0.5] {
            for asked in ask(&device, dropout) {
                assert_same(&asked.output.states, &asked.context);
            }
        }
    }
}

#[test]
fn weights_are_those_before_dropout() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        for (with, without) in ask(&device, 0.5).iter().zip(&ask(&device, 0.0)) {
            assert_same(&with.output.weights, &without.output.weights);
            assert!(differs(&with.context, &without.context));
        }
    }
}

#[test]
fn the_weights_of_a_query_sum_to_one() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        for asked in ask(&device, 0.0) {
            let weights = numbers(&asked.output.weights);
            assert!(weights.iter().all(|&weight| (0.0..=1.0).contains(&weight)));
            for sum in numbers(&asked.output.weights.sum_dim(3)) {
                assert!((sum - 1.0).abs() < 1e-6, "{sum}");
            }
        }
    }
}

#[test]
fn a_hidden_key_has_weight_zero_and_a_query_that_sees_none_has_only_zeros() {
    for (_, device) in devices::cpu() {
        let module = filled(MultiHeadAttentionConfig::new(15, 3).init(&device), 1);
        let visible =
            Tensor::<2, Bool>::from_data([[true, false, true], [false, false, false]], &device);
        let input = MultiHeadAttentionInput::cross_attention(
            tensor([2, 2, 15], 3, &device),
            tensor([2, 3, 15], 4, &device),
        )
        .mask(AttentionMask::visible(visible.unsqueeze()));
        let output = module.forward_with_weights(input);
        for query in numbers(&output.weights).chunks(6) {
            assert!(query[0] > 0.0 && query[2] > 0.0);
            assert_eq!(query[1], 0.0);
            assert_eq!(query[3..], [0.0; 3]);
        }
        // The heads of such a query are zeros, which leaves the bias of the output projection.
        let bias = module
            .output
            .bias
            .as_ref()
            .expect("a bias by default")
            .val();
        let second = output.states.slice([0..2, 1..2]);
        assert_same(&second, &bias.unsqueeze::<3>().expand([2, 1, 15]));
    }
}

#[test]
fn the_weights_of_a_transformer_cover_every_layer_and_change_nothing() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let module = TransformerConfig::new(15, 29, 3, 2, 4)
            .with_block(BlockConfig::new().with_dropout(0.5));
        let module = filled(module.init(&device), 1);
        let input = || {
            TransformerInput::new(
                tensor([2, 11, 15], 4, &device),
                tensor([2, 7, 15], 3, &device),
            )
            .source_mask(AttentionMask::key_lengths(Tensor::from_data(
                [11, 8],
                &device,
            )))
        };
        // Sums and feed-forward drop numbers too, from Burn's own generator.
        burn_attn::seed(&device, 5);
        let states = module.forward(input());
        burn_attn::seed(&device, 5);
        let output = module.forward_with_weights(input());
        assert_same(&output.states, &states);

        let dims = |weights: &[Tensor<4>]| {
            weights
                .iter()
                .map(|weights| weights.dims())
                .collect::<Vec<_>>()
        };
        assert_eq!(dims(&output.encoder_weights), [[2, 3, 11, 11]; 2]);
        assert_eq!(dims(&output.decoder_weights), [[2, 3, 7, 7]; 4]);
        assert_eq!(dims(&output.cross_weights), [[2, 3, 7, 11]; 4]);
    }
}
