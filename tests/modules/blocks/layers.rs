//! A layer by itself, and all that it can be told.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionBias, AttentionContext, AttentionMask, BlockConfig, CrossAttentionConfig,
    CrossAttentionInput, KvCacheConfig, LayerInput, MaskFunction, Norm, ScoreFunction,
    SelfAttentionConfig, SelfAttentionInput, SublayerConnection, TransformerLayer,
    TransformerLayerConfig, alibi_slopes,
};
use burn_attn_tests::{
    compare::{assert_close, assert_same, differs},
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::{D_FF, D_MODEL, N_HEADS, by_hand, every_block};

const TOLERANCE: f64 = 5e-6;
const D_MEMORY: usize = 11;

fn quiet() -> BlockConfig {
    BlockConfig::new().with_dropout(0.0)
}

fn norm_of(residual: &SublayerConnection) -> &Norm {
    residual.norm.as_ref().expect("a norm")
}

/// What a post-norm layer with cross-attention makes of its input and of what each attention makes of what it reads.
fn after_attentions(
    layer: &TransformerLayer,
    x: Tensor<3>,
    attend: impl Fn(Tensor<3>) -> Tensor<3>,
    look_over: impl Fn(Tensor<3>) -> Tensor<3>,
) -> Tensor<3> {
    let [around_cross, around_network] = [
        &layer.cross_attention_residual,
        &layer.feed_forward_residual,
    ]
    .map(|residual| norm_of(residual.as_ref().expect("one")));
    let x = norm_of(&layer.self_attention_residual).forward(x.clone() + attend(x));
    let x = around_cross.forward(x.clone() + look_over(x));
    around_network.forward(x.clone() + by_hand::think(layer, x))
}

fn layer(config: TransformerLayerConfig, device: &Device) -> TransformerLayer {
    filled(config.init(device), 1)
}

#[test]
fn a_layer_alone_is_its_formula() {
    for (name, device) in devices::cpu() {
        for block in every_block() {
            let config =
                TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_block(block.clone());
            let encoder = layer(config.clone(), &device);
            let x = tensor([2, 7, D_MODEL], 2, &device);
            let expected = by_hand::layer(&block, &encoder, x.clone());
            let output = encoder.forward(x.clone());
            let close = |actual: Tensor<3>, expected: Tensor<3>| {
                let (actual, expected) = (actual.into_data(), expected.into_data());
                assert_close(&format!("{block} on {name}"), &actual, &expected, TOLERANCE);
            };
            close(output.states, expected);
            assert!(output.self_weights.is_none() && output.cross_weights.is_none());
            if block.parallel {
                continue;
            }
            let decoder = layer(config.with_d_memory(D_MEMORY), &device);
            let memory = tensor([2, 5, D_MEMORY], 3, &device);
            let expected = by_hand::decoder_layer(&block, &decoder, x.clone(), &memory);
            let output = decoder.forward(LayerInput::new(x).memory(memory));
            close(output.states, expected);
        }
    }
}

#[test]
fn weights_change_nothing() {
    let device = devices::any();
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_d_memory(D_MEMORY);
    let layer = layer(config.with_block(quiet()), &device);
    let x = tensor([2, 7, D_MODEL], 2, &device);
    let input = LayerInput::new(x)
        .memory(tensor([2, 5, D_MEMORY], 3, &device))
        .lengths(&[7, 4]);
    let plain = layer.forward(input.clone());
    let output = layer.forward(input.weights(true));
    assert_same(&output.states, &plain.states);
    let weights = output.self_weights.expect("weights");
    assert_eq!(weights.dims(), [2, N_HEADS, 7, 7]);
    // Padding is seen by nobody.
    let padding = weights.slice([1..2, 0..N_HEADS, 0..7, 4..7]);
    assert_eq!(padding.abs().max().into_scalar::<f32>(), 0.0);
    let cross = output.cross_weights.expect("weights");
    assert_eq!(cross.dims(), [2, N_HEADS, 7, 5]);
}

/// What the input of a layer holds reaches the attention as if it were told itself.
#[test]
fn a_context_reaches_the_attention() {
    let device = devices::any();
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS)
        .with_block(quiet().with_norm_placement(burn_attn::NormPlacement::Pre));
    let layer = layer(config, &device);
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
    let slopes =
        || AttentionBias::alibi(Tensor::from_data(alibi_slopes(N_HEADS).as_slice(), &device));
    let dense = || AttentionBias::dense(tensor([1, N_HEADS, 7, 7], 5, &device));
    let mask = || {
        AttentionMask::causal().and(AttentionMask::key_lengths(Tensor::from_data(
            [7, 5],
            &device,
        )))
    };
    let of_layer = LayerInput::new(x.clone())
        .mask(mask())
        .bias(slopes())
        .bias(dense());
    let input = |x| {
        SelfAttentionInput::new(x)
            .mask(mask())
            .bias(slopes().and(dense()))
    };
    let expected = |attended: Tensor<3>| {
        let x = x.clone() + attended;
        let residual = layer.feed_forward_residual.as_ref().expect("one");
        x.clone() + by_hand::think(&layer, norm_of(residual).forward(x))
    };
    let normed = || norm_of(&layer.self_attention_residual).forward(x.clone());
    let attended = layer.self_attention.forward(input(normed()));
    assert_same(&layer.forward(of_layer).states, &expected(attended));
}

/// A bias reaches cross-attention as if it were told itself, of whole sequences and token by token.
#[test]
fn a_context_reaches_the_cross_attention() {
    let device = devices::any();
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS)
        .with_causal(true)
        .with_d_memory(D_MEMORY);
    let layer = layer(config.with_block(quiet()), &device);
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
    let memory: Tensor<3> = tensor([2, 5, D_MEMORY], 3, &device);
    let bias: Tensor<4> = tensor([1, N_HEADS, 7, 5], 5, &device);
    // Of `len` queries from `from` on.
    let context = |from, len| {
        let bias = AttentionBias::dense(bias.clone().narrow(2, from, len));
        AttentionContext::new().bias(bias).lengths(&[5, 3])
    };
    let input = LayerInput::new(x.clone()).memory(memory.clone());
    let actual = layer.forward(input.clone().memory_context(context(0, 7)));
    let without = layer.forward(input.memory_lengths(&[5, 3]));
    assert!(differs(&actual.states, &without.states));

    let attention = layer.cross_attention.as_ref().expect("one");
    let attend = |x| layer.self_attention.forward(SelfAttentionInput::new(x));
    let look_over = |x| {
        let input = CrossAttentionInput::new(x, memory.clone());
        attention.forward(input.context(context(0, 7)))
    };
    let expected = after_attentions(&layer, x.clone(), attend, look_over);
    assert_same(&actual.states, &expected);

    let mut cache = layer.cache(2, &KvCacheConfig::new(7));
    cache.memory = Some(attention.project_memory(memory.clone()));
    let token = |at| LayerInput::new(x.clone().narrow(1, at, 1));
    for at in 0..7 {
        let input = token(at).memory_context(context(at, 1));
        let states = layer.forward_cached(input, &mut cache).states;
        let expected = actual.states.clone().narrow(1, at, 1);
        let (actual, expected) = (states.into_data(), expected.into_data());
        assert_close("cached", &actual, &expected, TOLERANCE);
    }
    let empty = AttentionContext::new;
    for (placed, what) in [
        (empty().offset(3), "an offset into the memory was"),
        (empty().positions(vec![3, 3]), "positions were"),
    ] {
        let placed = token(0).memory_context(placed);
        assert_eq!(
            sentence(|| layer.forward_cached(placed, &mut cache)),
            format!(
                "TransformerLayer: {what} given beside a cache, which knows how many tokens came before"
            )
        );
    }
    let embedded = token(0).memory_position_embedding(memory.clone());
    assert_eq!(
        sentence(|| layer.forward_cached(embedded, &mut cache)),
        "TransformerLayer: a position embedding cannot join the memory of a cache, which is projected already"
    );
    assert_eq!(cache.tokens.lengths(), [7, 7]);
    assert_eq!(
        sentence(|| layer.forward_cached(token(0).memory(memory), &mut cache)),
        "TransformerLayer: a memory was given beside a cache; give it once, by cache_memory of the stack or as the memory of the layer's cache"
    );
}

/// Functions of the memory count from queries that stand far behind it, whole and token by token.
#[test]
fn functions_of_the_memory_reach_queries_behind_it() {
    let device = devices::any();
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS)
        .with_causal(true)
        .with_d_memory(D_MEMORY);
    let layer = layer(config.with_block(quiet()), &device);
    let x: Tensor<3> = tensor([2, 9, D_MODEL], 2, &device);
    let memory: Tensor<3> = tensor([2, 4, D_MEMORY], 3, &device);
    let falling = ScoreFunction::new("falling", |scores, pairs| {
        scores - pairs.distances().float().powi_scalar(2) * 0.02
    });
    let even = MaskFunction::new("even", |pairs| {
        let sums = pairs.positions() + pairs.keys();
        sums.remainder_scalar(3).greater_elem(0)
    });
    let context = || {
        let context = AttentionContext::new().score_function(falling.clone());
        context.mask(AttentionMask::function(even.clone()))
    };
    let input = LayerInput::new(x.clone()).memory(memory.clone());
    let whole = layer.forward(input.memory_context(context())).states;
    let attention = layer.cross_attention.as_ref().expect("one");
    let mut cache = layer.cache(2, &KvCacheConfig::new(9));
    cache.memory = Some(attention.project_memory(memory));
    for at in 0..9 {
        let input = LayerInput::new(x.clone().narrow(1, at, 1)).memory_context(context());
        let states = layer.forward_cached(input, &mut cache).states.into_data();
        let expected = whole.clone().narrow(1, at, 1).into_data();
        assert_close("cached", &states, &expected, TOLERANCE);
    }
}

/// Queries and keys of `x + embedding`, values of `x`: by three projections, each of its own input.
#[test]
fn embeddings_join_queries_and_keys_only() {
    for (name, device) in devices::cpu() {
        let device = device.autodiff();
        let attention = SelfAttentionConfig::new(D_MODEL, N_HEADS).with_dropout(0.0);
        let attention = filled(attention.init(&device), 1);
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
        for batch in [1, 2] {
            let embedding = tensor([batch, 7, D_MODEL], 3, &device).require_grad();
            let input =
                SelfAttentionInput::new(x.clone()).query_key_position_embedding(embedding.clone());
            let actual = attention.forward(input);
            let separate = attention.clone().into_multi_head();
            let with = x.clone() + embedding.clone();
            let input = burn_attn::MultiHeadAttentionInput::new(with.clone(), with, x.clone());
            let expected = separate.forward(input);
            let what = format!("{name}, {batch}");
            assert_close(&what, &actual.to_data(), &expected.to_data(), TOLERANCE);
            let gradient = |output: Tensor<3>| {
                let loss = (output * tensor([2, 7, D_MODEL], 4, &device)).sum();
                embedding
                    .grad(&loss.backward())
                    .expect("tracked")
                    .into_data()
            };
            assert_close(&what, &gradient(actual), &gradient(expected), 2e-5);
        }

        let attention = CrossAttentionConfig::new(D_MODEL, N_HEADS)
            .with_d_memory(D_MEMORY)
            .with_dropout(0.0);
        let attention = filled(attention.init(&device), 1);
        let memory: Tensor<3> = tensor([2, 5, D_MEMORY], 5, &device);
        let of_query = tensor([1, 7, D_MODEL], 3, &device);
        let of_key = tensor([2, 5, D_MEMORY], 6, &device);
        let input = CrossAttentionInput::new(x.clone(), memory.clone())
            .query_position_embedding(of_query.clone())
            .key_position_embedding(of_key.clone());
        let actual = attention.forward(input);
        let input = burn_attn::MultiHeadAttentionInput::new(
            x.clone() + of_query,
            memory.clone() + of_key,
            memory,
        );
        let expected = attention.clone().into_multi_head().forward(input);
        assert_close(name, &actual.into_data(), &expected.into_data(), TOLERANCE);
    }
}

/// A DETR's layer: positions of the image join its keys, learned queries those of the objects.
#[test]
fn a_layer_hands_embeddings_to_both_attentions() {
    let device = devices::any();
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_d_memory(D_MEMORY);
    let layer = layer(config.with_block(quiet()), &device);
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
    let memory: Tensor<3> = tensor([2, 5, D_MEMORY], 3, &device);
    let objects: Tensor<3> = tensor([1, 7, D_MODEL], 4, &device);
    let image: Tensor<3> = tensor([1, 5, D_MEMORY], 5, &device);
    let input = LayerInput::new(x.clone())
        .memory(memory.clone())
        .query_key_position_embedding(objects.clone())
        .memory_position_embedding(image.clone());
    let actual = layer.forward(input).states;

    let attend = |x| {
        let input = SelfAttentionInput::new(x).query_key_position_embedding(objects.clone());
        layer.self_attention.forward(input)
    };
    let attention = layer.cross_attention.as_ref().expect("one");
    let look_over = |x| {
        let input = CrossAttentionInput::new(x, memory.clone());
        let input = input.query_position_embedding(objects.clone());
        attention.forward(input.key_position_embedding(image.clone()))
    };
    let expected = after_attentions(&layer, x, attend, look_over);
    assert_same(&actual, &expected);
}

#[test]
fn what_a_layer_cannot_be_told() {
    let device = devices::any();
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS);
    let plain = layer(config.clone(), &device);
    let looking = layer(config.with_d_memory(D_MEMORY), &device);
    let x = || tensor([2, 7, D_MODEL], 2, &device);
    let memory = || tensor::<3>([2, 5, D_MEMORY], 2, &device);
    assert_eq!(
        sentence(|| looking.forward(x())),
        "TransformerLayer: a layer with cross-attention needs a memory"
    );
    assert_eq!(
        sentence(|| plain.forward(LayerInput::new(x()).memory(memory()))),
        "TransformerLayer: a memory was given to a layer without cross-attention"
    );
    let lengths = Tensor::from_data([5, 3], &device);
    let input = || LayerInput::new(x());
    for (input, what) in [
        (
            input().memory_mask(AttentionMask::key_lengths(lengths)),
            "a mask was",
        ),
        (input().memory_lengths(&[5, 3]), "lengths were"),
        (
            input().memory_position_embedding(memory()),
            "a position embedding was",
        ),
        (
            input().memory_context(AttentionContext::new().offset(3)),
            "an offset was",
        ),
    ] {
        assert_eq!(
            sentence(|| plain.forward(input)),
            format!(
                "TransformerLayer: {what} given for the memory of a layer without cross-attention"
            )
        );
    }
    let projected = looking
        .cross_attention
        .as_ref()
        .expect("one")
        .project_memory(memory());
    let input = LayerInput::new(x())
        .memory(projected)
        .memory_position_embedding(memory());
    assert_eq!(
        sentence(|| looking.forward(input)),
        "CrossAttention: a key position embedding cannot join a memory that is projected already"
    );
    let block = BlockConfig::new().with_separate_norms(true);
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_block(block);
    assert_eq!(
        config.validate().expect_err("bad").to_string(),
        "TransformerLayerConfig: separate_norms is for parallel layers with norm_placement Pre, but parallel is false and \
         norm_placement Post"
    );
    assert!(differs(&x(), &tensor([2, 7, D_MODEL], 3, &device)));
}
