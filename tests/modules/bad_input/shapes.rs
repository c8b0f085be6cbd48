//! Inputs that do not fit the module or each other.

use burn::tensor::{Device, Int, Tensor};
use burn_attn::{
    BlockConfig, CrossAttention, CrossAttentionConfig, CrossAttentionInput, FeedForwardConfig,
    LayerInput, MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput, NormConfig,
    NormPlacement, SelfAttention, SelfAttentionConfig, SelfAttentionInput, TiedEmbeddingConfig,
    TransformerConfig, TransformerInput, TransformerStackConfig,
    positions::{LearnedConfig, SinusoidalConfig},
};
use burn_attn_models::seq2seq::Seq2SeqConfig;
use burn_attn_tests::{devices, numbers::filled, sentence};

fn zeros(dims: [usize; 3]) -> Tensor<3> {
    Tensor::zeros(dims, &devices::any())
}

fn of_self(device: &Device) -> SelfAttention {
    filled(SelfAttentionConfig::new(15, 3).init(device), 1)
}

fn of_memory(device: &Device) -> CrossAttention {
    filled(CrossAttentionConfig::new(15, 3).init(device), 1)
}

fn general(device: &Device) -> MultiHeadAttention {
    filled(MultiHeadAttentionConfig::new(15, 3).init(device), 1)
}

#[test]
fn a_width_that_is_not_the_modules() {
    let device = devices::any();
    let module = of_self(&device);
    assert_eq!(
        sentence(|| module.forward(SelfAttentionInput::new(zeros([2, 7, 16])))),
        "assert_shape!(x, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])"
    );
    assert_eq!(
        sentence(|| module.forward_with_weights(SelfAttentionInput::new(zeros([2, 7, 16])))),
        "assert_shape!(x, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])"
    );
    let module = of_memory(&device);
    assert_eq!(
        sentence(|| module.forward(CrossAttentionInput::new(
            zeros([2, 7, 16]),
            zeros([2, 11, 15])
        ))),
        "assert_shape!(query, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])"
    );
    assert_eq!(
        sentence(|| module.forward(CrossAttentionInput::new(
            zeros([2, 7, 15]),
            zeros([2, 11, 16])
        ))),
        "assert_shape!(memory, [batch, _, d_memory]): axis 2 expected 15, got 16 (dims [2, 11, 16])"
    );
    let module = general(&device);
    let call = |query, key, value| {
        sentence(|| {
            module.forward(MultiHeadAttentionInput::new(
                zeros([2, 7, query]),
                zeros([2, 11, key]),
                zeros([2, 11, value]),
            ))
        })
    };
    assert_eq!(
        call(16, 15, 15),
        "assert_shape!(query, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])"
    );
    assert_eq!(
        call(15, 16, 15),
        "assert_shape!(key, [batch, _, d_key_in]): axis 2 expected 15, got 16 (dims [2, 11, 16])"
    );
    assert_eq!(
        call(15, 15, 16),
        "assert_shape!(value, [batch, len_kv, d_value_in]): axis 2 expected 15, got 16 (dims [2, 11, 16])"
    );
}

#[test]
fn batches_that_differ() {
    let device = devices::any();
    let module = of_memory(&device);
    assert_eq!(
        sentence(|| module.forward(CrossAttentionInput::new(
            zeros([2, 7, 15]),
            zeros([3, 11, 15])
        ))),
        "assert_shape!(memory, [batch, _, d_memory]): axis 0 expected 2, got 3 (dims [3, 11, 15])"
    );
    // A batch of one is not stretched over the other.
    assert_eq!(
        sentence(|| module.forward(CrossAttentionInput::new(
            zeros([2, 7, 15]),
            zeros([1, 11, 15])
        ))),
        "assert_shape!(memory, [batch, _, d_memory]): axis 0 expected 2, got 1 (dims [1, 11, 15])"
    );
    let module = general(&device);
    let call = |key, value| {
        sentence(|| {
            module.forward(MultiHeadAttentionInput::new(
                zeros([2, 7, 15]),
                zeros([key, 11, 15]),
                zeros([value, 11, 15]),
            ))
        })
    };
    assert_eq!(
        call(3, 2),
        "assert_shape!(key, [batch, _, d_key_in]): axis 0 expected 2, got 3 (dims [3, 11, 15])"
    );
    assert_eq!(
        call(2, 3),
        "assert_shape!(value, [batch, len_kv, d_value_in]): axis 0 expected 2, got 3 (dims [3, 11, 15])"
    );
}

#[test]
fn keys_and_values_of_different_lengths() {
    let module = general(&devices::any());
    let input =
        MultiHeadAttentionInput::new(zeros([2, 7, 15]), zeros([2, 11, 15]), zeros([2, 13, 15]));
    assert_eq!(
        sentence(|| module.forward(input)),
        "assert_shape!(value, [batch, len_kv, d_value_in]): axis 1 expected 11, got 13 (dims [2, 13, 15])"
    );
}

#[test]
fn stacks_refuse_what_their_attention_refuses() {
    let device = devices::any();
    // With the norm last, the attention is the first to see the input.
    let encoder = TransformerStackConfig::encoder(15, 29, 3, 1)
        .with_block(BlockConfig::new().with_norm_placement(NormPlacement::Post));
    let encoder = filled(encoder.init(&device), 1);
    assert_eq!(
        sentence(|| encoder.forward(LayerInput::new(zeros([2, 7, 16])))),
        "assert_shape!(x, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])"
    );
    let decoder = filled(
        TransformerStackConfig::decoder(15, 29, 3, 1).init(&device),
        1,
    );
    assert_eq!(
        sentence(|| decoder.forward(LayerInput::new(zeros([2, 7, 15])).memory(zeros([3, 11, 15])))),
        "assert_shape!(memory, [batch, _, d_memory]): axis 0 expected 2, got 3 (dims [3, 11, 15])"
    );
    let transformer = filled(TransformerConfig::new(15, 29, 3, 1, 1).init(&device), 1);
    assert_eq!(
        sentence(
            || transformer.forward(TransformerInput::new(zeros([3, 11, 15]), zeros([2, 7, 15])))
        ),
        "assert_shape!(memory, [batch, _, d_memory]): axis 0 expected 2, got 3 (dims [3, 11, 15])"
    );
}

#[test]
fn stacks_with_norm_first_name_the_width_too() {
    let device = devices::any();
    let encoder = TransformerStackConfig::encoder(15, 29, 3, 1)
        .with_block(BlockConfig::new().with_norm_placement(NormPlacement::Pre));
    let encoder = filled(encoder.init(&device), 1);
    let sentence = sentence(|| encoder.forward(LayerInput::new(zeros([2, 7, 16]))));
    assert!(
        sentence.contains("15") && sentence.contains("16"),
        "{sentence}"
    );
}

#[test]
fn parts_of_blocks_name_the_width() {
    let device = devices::any();
    let network = filled(FeedForwardConfig::new(15, 29).init(&device), 1);
    assert_eq!(
        sentence(|| network.forward(zeros([2, 7, 16]))),
        "assert_shape!(x, [.., d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])"
    );
    let embedding = filled(TiedEmbeddingConfig::new(23, 15).init(&device), 1);
    assert_eq!(
        sentence(|| embedding.logits(zeros([2, 7, 16]))),
        "assert_shape!(states, [.., d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])"
    );
    for norm in [NormConfig::layer_norm(), NormConfig::rms_norm()] {
        let norm = filled(norm.init(15, &device), 1);
        let sentence = sentence(|| norm.forward(zeros([2, 7, 16])));
        assert!(sentence.contains("expected 15, got 16"), "{sentence}");
    }
}

#[test]
fn more_tokens_than_positions() {
    let device = devices::any();
    let sinusoidal = SinusoidalConfig::new(15).with_max_len(10).init(&device);
    let learned = filled(LearnedConfig::new(15, 10).init(&device), 1);
    assert_eq!(
        sentence(|| sinusoidal.forward(zeros([2, 11, 15]))),
        "Sinusoidal: 11 tokens from position 0 on need 11 positions, but there are 10"
    );
    assert_eq!(
        sentence(|| sinusoidal.forward_from(zeros([2, 4, 15]), 7)),
        "Sinusoidal: 4 tokens from position 7 on need 11 positions, but there are 10"
    );
    assert_eq!(
        sentence(|| learned.forward(zeros([2, 11, 15]))),
        "Learned: 11 tokens from position 0 on need 11 positions, but there are 10"
    );
    assert_eq!(
        sentence(|| learned.forward_from(zeros([2, 4, 15]), usize::MAX)),
        format!(
            "Learned: 4 tokens from position {max} on need {max} positions, but there are 10",
            max = usize::MAX
        )
    );
}

#[test]
fn positions_of_another_width() {
    let device = devices::any();
    let sinusoidal = SinusoidalConfig::new(15).with_max_len(10).init(&device);
    let learned = filled(LearnedConfig::new(15, 10).init(&device), 1);
    let expected =
        "assert_shape!(x, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])";
    assert_eq!(sentence(|| sinusoidal.forward(zeros([2, 7, 16]))), expected);
    assert_eq!(sentence(|| learned.forward(zeros([2, 7, 16]))), expected);
}

#[test]
fn sources_and_targets_longer_than_the_model() {
    let device = devices::any();
    let config = Seq2SeqConfig::new(23)
        .with_d_model(15)
        .with_n_heads(3)
        .with_max_len(10);
    let model = filled(config.init(&device), 1);
    let tokens = |len| Tensor::<2, Int>::zeros([2, len], &device);
    assert_eq!(
        sentence(|| model.forward(tokens(11), &[3, 2], tokens(3))),
        "Sinusoidal: 11 tokens from position 0 on need 11 positions, but there are 10"
    );
    assert_eq!(
        sentence(|| model.forward(tokens(3), &[3, 2], tokens(11))),
        "Sinusoidal: 11 tokens from position 0 on need 11 positions, but there are 10"
    );
    model.forward(tokens(10), &[3, 2], tokens(10));
}
