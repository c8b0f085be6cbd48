//! Inputs that do not fit the module or each other.

use burn::tensor::{Int, Tensor};
use burn_attn::{
    BlockConfig, CrossAttentionConfig, CrossAttentionInput, FeedForwardConfig, LayerInput,
    MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput, NormConfig,
    NormPlacement, SelfAttentionConfig, SelfAttentionInput, TiedEmbeddingConfig, TransformerConfig,
    TransformerInput, TransformerStackConfig,
    positions::{LearnedConfig, SinusoidalConfig},
};
use burn_attn_models::seq2seq::Seq2SeqConfig;
use burn_attn_tests::{devices, numbers::filled, sentence};

fn zeros(dims: [usize; 3]) -> Tensor<3> {
    Tensor::zeros(dims, &devices::any())
}

fn general() -> MultiHeadAttention {
    filled(
        MultiHeadAttentionConfig::new(15, 3).init(&devices::any()),
        1,
    )
}

/// What cross-attention says to a query and a memory of these shapes.
fn to_memory(query: [usize; 3], memory: [usize; 3]) -> String {
    let module = CrossAttentionConfig::new(15, 3).init(&devices::any());
    let module = filled(module, 1);
    let input = CrossAttentionInput::new(zeros(query), zeros(memory));
    sentence(|| module.forward(input))
}

/// What multi-head attention says to 7 queries and 11 keys and values, whose batches and widths these are.
fn to_three([query, key, value]: [[usize; 2]; 3]) -> String {
    let of = |[batch, width]: [usize; 2], len| zeros([batch, len, width]);
    let input = MultiHeadAttentionInput::new(of(query, 7), of(key, 11), of(value, 11));
    let module = general();
    sentence(|| module.forward(input))
}

#[test]
fn a_width_that_is_not_the_modules() {
    let module = SelfAttentionConfig::new(15, 3).init(&devices::any());
    let module = filled(module, 1);
    let wide = || SelfAttentionInput::new(zeros([2, 7, 16]));
    let of_x = "assert_shape!(x, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])";
    assert_eq!(sentence(|| module.forward(wide())), of_x);
    assert_eq!(sentence(|| module.forward_with_weights(wide())), of_x);
    let of_query =
        "assert_shape!(query, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])";
    assert_eq!(to_memory([2, 7, 16], [2, 11, 15]), of_query);
    assert_eq!(
        to_memory([2, 7, 15], [2, 11, 16]),
        "assert_shape!(memory, [batch, _, d_memory]): axis 2 expected 15, got 16 (dims [2, 11, 16])"
    );
    let (fits, wide) = ([2, 15], [2, 16]);
    assert_eq!(to_three([wide, fits, fits]), of_query);
    assert_eq!(
        to_three([fits, wide, fits]),
        "assert_shape!(key, [batch, _, d_key_in]): axis 2 expected 15, got 16 (dims [2, 11, 16])"
    );
    assert_eq!(
        to_three([fits, fits, wide]),
        "assert_shape!(value, [batch, len_kv, d_value_in]): axis 2 expected 15, got 16 (dims [2, 11, 16])"
    );
}

#[test]
fn batches_that_differ() {
    // A batch of one is not stretched over the other.
    for batch in [3, 1] {
        assert_eq!(
            to_memory([2, 7, 15], [batch, 11, 15]),
            format!(
                "assert_shape!(memory, [batch, _, d_memory]): axis 0 expected 2, got {batch} (dims [{batch}, 11, 15])"
            )
        );
    }
    let (two, three) = ([2, 15], [3, 15]);
    assert_eq!(
        to_three([two, three, two]),
        "assert_shape!(key, [batch, _, d_key_in]): axis 0 expected 2, got 3 (dims [3, 11, 15])"
    );
    assert_eq!(
        to_three([two, two, three]),
        "assert_shape!(value, [batch, len_kv, d_value_in]): axis 0 expected 2, got 3 (dims [3, 11, 15])"
    );
}

#[test]
fn keys_and_values_of_different_lengths() {
    let module = general();
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
    let said_by_encoder = |placement| {
        let block = BlockConfig::new().with_norm_placement(placement);
        let encoder = TransformerStackConfig::encoder(15, 29, 3, 1).with_block(block);
        let encoder = filled(encoder.init(&device), 1);
        sentence(|| encoder.forward(LayerInput::new(zeros([2, 7, 16]))))
    };
    // With the norm last, the attention is the first to see the input.
    assert_eq!(
        said_by_encoder(NormPlacement::Post),
        "assert_shape!(x, [_, _, d_model]): axis 2 expected 15, got 16 (dims [2, 7, 16])"
    );
    let said = said_by_encoder(NormPlacement::Pre);
    assert!(said.contains("15") && said.contains("16"), "{said}");

    let of_memory =
        "assert_shape!(memory, [batch, _, d_memory]): axis 0 expected 2, got 3 (dims [3, 11, 15])";
    let decoder = TransformerStackConfig::decoder(15, 29, 3, 1);
    let decoder = filled(decoder.init(&device), 1);
    let input = LayerInput::new(zeros([2, 7, 15])).memory(zeros([3, 11, 15]));
    assert_eq!(sentence(|| decoder.forward(input)), of_memory);
    let transformer = filled(TransformerConfig::new(15, 29, 3, 1, 1).init(&device), 1);
    let input = TransformerInput::new(zeros([3, 11, 15]), zeros([2, 7, 15]));
    assert_eq!(sentence(|| transformer.forward(input)), of_memory);
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
    let expected = "Sinusoidal: 11 tokens from position 0 on need 11 positions, but there are 10";
    for (source, target) in [(11, 3), (3, 11)] {
        let said = sentence(|| model.forward(tokens(source), &[3, 2], tokens(target)));
        assert_eq!(said, expected);
    }
    model.forward(tokens(10), &[3, 2], tokens(10));
}
