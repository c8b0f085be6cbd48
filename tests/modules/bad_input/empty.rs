//! Nothing in, nothing out: a batch of none is not a mistake.

use burn::tensor::{Bool, DType, Int, Tensor};
use burn_attn::{
    AttentionMask, CrossAttentionConfig, CrossAttentionInput, MultiHeadAttentionConfig,
    MultiHeadAttentionInput, SelfAttentionConfig, SelfAttentionInput, TiedEmbeddingConfig,
    TransformerConfig, TransformerInput,
    positions::{AlibiConfig, PositionEncoding, RelativeBiasConfig},
};
use burn_attn_tests::{
    devices,
    numbers::{filled, tensor},
    parameters::wide,
};

#[test]
fn a_batch_of_none() {
    for (_, device) in devices::cpu() {
        let x = || Tensor::<3>::zeros([0, 7, 15], &device);
        let memory = || Tensor::<3>::zeros([0, 11, 15], &device);
        let mask = || AttentionMask::key_lengths(Tensor::<1, Int>::zeros([0], &device));

        let config = SelfAttentionConfig::new(15, 3).with_causal(true);
        let module = filled(config.init(&device), 1);
        let output = module.forward_with_weights(SelfAttentionInput::new(x()).mask(mask()));
        assert_eq!(output.states.dims(), [0, 7, 15]);
        assert_eq!(output.weights.dims(), [0, 3, 7, 7]);

        let module = filled(CrossAttentionConfig::new(15, 3).init(&device), 1);
        let output =
            module.forward_with_weights(CrossAttentionInput::new(x(), memory()).mask(mask()));
        assert_eq!(output.states.dims(), [0, 7, 15]);
        assert_eq!(output.weights.dims(), [0, 3, 7, 11]);

        let module = filled(MultiHeadAttentionConfig::new(15, 3).init(&device), 1);
        let input = MultiHeadAttentionInput::cross_attention(x(), memory()).mask(mask());
        assert_eq!(module.forward(input).dims(), [0, 7, 15]);

        let module = filled(TransformerConfig::new(15, 29, 3, 1, 1).init(&device), 1);
        assert_eq!(
            module.forward(TransformerInput::new(memory(), x())).dims(),
            [0, 7, 15]
        );
    }
}

#[test]
fn a_sequence_of_none() {
    for (_, device) in devices::cpu() {
        let config = SelfAttentionConfig::new(15, 3).with_causal(true);
        let module = filled(config.init(&device), 1);
        let input = SelfAttentionInput::new(Tensor::zeros([2, 0, 15], &device));
        assert_eq!(module.forward(input).dims(), [2, 0, 15]);

        // A query that sees no key gets zeros, which leaves the bias of the output projection.
        let module = filled(CrossAttentionConfig::new(15, 3).init(&device), 1);
        let input = CrossAttentionInput::new(
            tensor([2, 7, 15], 3, &device),
            Tensor::zeros([2, 0, 15], &device),
        );
        let bias = module.output.bias.as_ref().expect("a bias").val();
        let expected = bias.unsqueeze::<3>().expand([2, 7, 15]);
        burn_attn_tests::compare::assert_same(&module.forward(input), &expected);
    }
}

#[test]
fn positions_of_none() {
    let position = [
        PositionEncoding::None,
        PositionEncoding::Alibi(AlibiConfig::new()),
        PositionEncoding::Relative(RelativeBiasConfig::new()),
    ];
    for (_, device) in devices::cpu() {
        for position in position.clone() {
            let cross = CrossAttentionConfig::new(15, 3).with_position(position.clone());
            let cross = filled(cross.init(&device), 1);
            let multi = MultiHeadAttentionConfig::new(15, 3).with_position(position.clone());
            let multi = filled(multi.init(&device), 1);
            let own = SelfAttentionConfig::new(15, 3).with_position(position.clone());
            let own = filled(own.init(&device), 1);
            for [batch, len_q, len_kv] in [[2, 0, 11], [2, 7, 0], [2, 0, 0], [0, 7, 11]] {
                let x = || Tensor::<3>::zeros([batch, len_q, 15], &device);
                let memory = || Tensor::<3>::zeros([batch, len_kv, 15], &device);
                let positions = || vec![(2..2 + len_q).collect::<Vec<_>>(); batch];
                let mask = || AttentionMask::window(3, 3);

                let input = CrossAttentionInput::new(x(), memory()).mask(mask());
                let output = cross.forward_with_weights(input.positions(positions()));
                assert_eq!(output.states.dims(), [batch, len_q, 15]);
                assert_eq!(output.weights.dims(), [batch, 3, len_q, len_kv]);

                let input = MultiHeadAttentionInput::cross_attention(x(), memory()).mask(mask());
                let output = multi.forward(input.positions(positions()));
                assert_eq!(output.dims(), [batch, len_q, 15]);

                if len_q == 0 || batch == 0 {
                    let input = SelfAttentionInput::new(x()).mask(mask());
                    let output = own.forward(input.positions(positions()));
                    assert_eq!(output.dims(), [batch, len_q, 15]);
                }
            }
        }
    }
}

#[test]
fn nothing_keeps_its_dtype() {
    for (_, device) in devices::cpu() {
        let x = Tensor::<3>::zeros([0, 7, 15], (&device, DType::F64));
        let module = wide(SelfAttentionConfig::new(15, 3).init(&device));
        let output = module.forward(SelfAttentionInput::new(x.clone()));
        assert_eq!(output.dtype(), DType::F64);

        let embedding = wide(TiedEmbeddingConfig::new(23, 15).init(&device));
        assert_eq!(embedding.logits(x).dtype(), DType::F64);
        let tokens = Tensor::<2, Int>::zeros([0, 7], &device);
        assert_eq!(embedding.forward(tokens).dtype(), DType::F64);
    }
}

#[test]
fn masks_of_nothing() {
    for (_, device) in devices::cpu() {
        let module = filled(SelfAttentionConfig::new(15, 3).init(&device), 1);
        for [batch, len] in [[0, 7], [2, 0]] {
            let tokens = || Tensor::<2, Int>::zeros([batch, len], &device);
            let padding = || AttentionMask::padding(tokens(), 0);
            let segments = || AttentionMask::segments(tokens(), tokens());
            let dense =
                || AttentionMask::masked(Tensor::<4, Bool>::full([1, 1, len, len], true, &device));
            let blocks = |batch, size| {
                let table = Tensor::<4, Bool>::full([batch, 1, 1, 1], true, &device);
                AttentionMask::visible_blocks(table, size)
            };
            for mask in [
                padding(),
                padding().and(dense()),
                AttentionMask::mask_attn(Tensor::<3, Bool>::full([1, len, len], true, &device)),
                segments().and(segments()),
                blocks(batch, 7).and(blocks(1, 14)),
                padding().and(segments()).and(segments()),
            ] {
                let x = Tensor::zeros([batch, len, 15], &device);
                let output = module.forward_with_weights(SelfAttentionInput::new(x).mask(mask));
                assert_eq!(output.states.dims(), [batch, len, 15]);
                assert_eq!(output.weights.dims(), [batch, 3, len, len]);
            }
        }
    }
}
