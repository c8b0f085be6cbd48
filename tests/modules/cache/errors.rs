//! Every misuse has its sentence.

use burn::tensor::{DType, Tensor};
use burn_attn::{
    BlockConfig, KvCache, KvCacheConfig, LayerInput, LayerPattern, SelfAttention,
    SelfAttentionConfig, SelfAttentionInput, TransformerStack, TransformerStackConfig,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_tests::{
    devices,
    numbers::{filled, tensor},
    parameters::wide,
    sentence,
};

use super::D_MODEL;

fn module() -> SelfAttention {
    let config = SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
    filled(config.init(&devices::any()), 1)
}

fn tokens(batch: usize, len: usize) -> SelfAttentionInput {
    SelfAttentionInput::new(tensor([batch, len, D_MODEL], 1, &devices::any()))
}

#[test]
fn a_cache_of_something_else() {
    let module = module();
    let config = KvCacheConfig::new(10);
    assert_eq!(
        sentence(|| module.forward_cached(tokens(3, 1), &mut module.cache(2, &config))),
        "KvCache: keys of 3 sequences do not fit a cache of 2"
    );
    let other = SelfAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .with_n_kv_heads(3)
        .init(&devices::any());
    assert_eq!(
        sentence(|| module.forward_cached(tokens(2, 1), &mut other.cache(2, &config))),
        "KvCache: keys of 6 heads of width 5 do not fit a cache of 3 heads of width 5: it was made for another layer"
    );
    let input = SelfAttentionInput::new(Tensor::zeros(
        [2, 1, D_MODEL],
        (&devices::any(), DType::F64),
    ));
    let in_f64 = wide(module.clone());
    assert_eq!(
        sentence(|| in_f64.forward_cached(input, &mut module.cache(2, &config))),
        "KvCache: keys in F64 do not fit a cache in F32"
    );
}

#[test]
fn a_cache_of_something_else_joins() {
    let module = module();
    let config = KvCacheConfig::new(10);
    let join = |other: KvCache| sentence(|| module.cache(2, &config).join(other));
    let grouped = SelfAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .with_n_kv_heads(3);
    assert_eq!(
        join(grouped.init(&devices::any()).cache(1, &config)),
        "KvCache: a cache of (heads, widths of keys and values, window) (3, 5, 5, None) cannot join one of (6, 5, 5, None): they \
         were made for different layers"
    );
    assert_eq!(
        join(module.cache(1, &KvCacheConfig::new(11))),
        "KvCache: a cache of (max_len, storage, sink_tokens) (11, Float, None) cannot join one of (10, Float, None)"
    );
    assert_eq!(
        join(wide(module.clone()).cache(1, &config)),
        "KvCache: a cache in F64 cannot join one in F32"
    );
    let stack =
        |layers| TransformerStackConfig::causal(D_MODEL, 8, 6, layers).init(&devices::any());
    let [one, two] = [stack(1), stack(2)];
    assert_eq!(
        sentence(|| one.cache(2, &config).join(two.cache(1, &config))),
        "TransformerCache: a cache of 2 layers cannot join one of 1"
    );
}

#[test]
fn a_cache_that_is_full() {
    let module = module();
    let mut cache = module.cache(2, &KvCacheConfig::new(5));
    module.forward_cached(tokens(2, 3), &mut cache);
    assert_eq!(
        sentence(|| module.forward_cached(tokens(2, 3), &mut cache.clone())),
        "KvCache: sequence 0 has 3 tokens and cannot take 3 more: its max_len is 5"
    );
    // Nothing is lost.
    assert_eq!(cache.lengths(), [3, 3]);
    module.forward_cached(tokens(2, 2), &mut cache);
    assert_eq!(cache.lengths(), [5, 5]);
}

#[test]
fn lengths_that_do_not_fit() {
    let module = module();
    let mut cache = module.cache(2, &KvCacheConfig::new(5));
    assert_eq!(
        sentence(|| module.forward_cached(tokens(2, 3).lengths(&[3, 4]), &mut cache)),
        "KvCache: sequence 1 has 4 new tokens among 3"
    );
    assert_eq!(
        sentence(|| module.forward_cached(tokens(2, 3).lengths(&[3]), &mut cache)),
        "KvCache: 1 counts of new tokens for 2 sequences"
    );
    assert_eq!(
        sentence(|| module.forward(tokens(2, 3).lengths(&[3, 4]))),
        "SelfAttention: lengths [3, 4] do not fit 2 sequences of 3 tokens"
    );
}

#[test]
fn what_cannot_go_with_a_cache() {
    let module = module();
    let mut cache = module.cache(2, &KvCacheConfig::new(5));
    let encoder = SelfAttentionConfig::new(D_MODEL, 6).init(&devices::any());
    let expected = "SelfAttention: a cache needs a causal module; with_causal(true) makes one";
    let read = sentence(|| encoder.forward_cached(tokens(2, 3), &mut cache));
    let made = sentence(|| encoder.cache(2, &KvCacheConfig::new(5)));
    assert_eq!([read, made], [expected; 2]);
}

#[test]
fn sequences_and_lengths_that_are_not_there() {
    let module = module();
    let mut cache = module.cache(2, &KvCacheConfig::new(9));
    module.forward_cached(tokens(2, 3), &mut cache);
    assert_eq!(
        sentence(|| cache.clone().reorder(&[0, 2])),
        "KvCache: cannot reorder to sequence 2: there are 2 sequences"
    );
    assert_eq!(
        sentence(|| cache.clone().truncate(&[1])),
        "KvCache: 1 lengths for 2 sequences"
    );
    assert_eq!(
        sentence(|| cache.clone().truncate(&[1, 4])),
        "KvCache: sequence 1 has 3 tokens and cannot be truncated to 4"
    );
    let windowed = SelfAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .with_window(2)
        .init(&devices::any());
    let mut cache = windowed.cache(1, &KvCacheConfig::new(99).with_initial_capacity(1));
    for _ in 0..9 {
        windowed.forward_cached(tokens(1, 1), &mut cache);
    }
    assert_eq!(
        sentence(|| cache.truncate(&[3])),
        "KvCache: sequence 0 cannot be truncated to 3 tokens: its window would need tokens from 1 on, but those before 6 \
         have been dropped"
    );
    let possible = [0, 7, 8, 9].map(|length| cache.can_truncate(&[length]));
    assert_eq!(possible, [true, false, true, true]);
    assert_eq!(
        sentence(|| module.cache(2, &KvCacheConfig::new(0))),
        "KvCacheConfig: max_len must be at least 1, got 0"
    );
}

#[test]
fn a_cache_on_another_device() {
    let device = devices::any();
    let module = module();
    let tracked = device.clone().autodiff();
    let mut cache = SelfAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .init(&tracked)
        .cache(2, &KvCacheConfig::new(5));
    assert_eq!(
        sentence(|| module.forward_cached(tokens(2, 3), &mut cache)),
        format!("KvCache: keys on {device:?} do not fit a cache on {tracked:?}")
    );
}

#[test]
fn positions_past_a_table() {
    let device = devices::any();
    let rotary = RotaryConfig::new().with_max_len(4);
    let rotary = PositionEncoding::Rotary(rotary);
    let config = SelfAttentionConfig::new(D_MODEL, 5).with_causal(true);
    let module = config.clone().with_position(rotary.clone()).init(&device);
    assert_eq!(module.cache(2, &KvCacheConfig::new(4)).lengths(), [0, 0]);
    assert_eq!(
        sentence(|| module.cache(2, &KvCacheConfig::new(5))),
        "SelfAttention: a cache of max_len 5 is longer than the 4 positions of the rotary table"
    );
    // A module does not know the table of its calls in advance.
    let module = config.init(&device);
    let position = rotary.init(5, D_MODEL / 5, &device);
    let input = |len| tokens(2, len).position(position.clone());
    let mut cache = module.cache(2, &KvCacheConfig::new(9));
    module.forward_cached(input(3), &mut cache);
    assert_eq!(
        sentence(|| module.forward_cached(input(2), &mut cache.clone())),
        "Rotary: 2 tokens from position 3 on need 5 positions, but there are 4"
    );
    // Nothing is lost.
    assert_eq!(cache.lengths(), [3, 3]);
    module.forward_cached(input(1), &mut cache);
}

#[test]
fn more_tokens_than_positions_in_a_stack() {
    let device = devices::any();
    let rotary = RotaryConfig::new().with_max_len(8);
    let block = BlockConfig::new()
        .with_d_head(4)
        .with_position(PositionEncoding::Rotary(rotary));
    for stack in [
        TransformerStackConfig::causal(D_MODEL, 31, 6, 2),
        TransformerStackConfig::decoder(D_MODEL, 31, 6, 2).with_causal(true),
    ] {
        let stack = stack.with_block(block.clone()).init(&device);
        let cache = |max_len| stack.cache(2, &KvCacheConfig::new(max_len));
        assert_eq!(cache(8).lengths(), [0, 0]);
        assert_eq!(
            sentence(|| cache(9)),
            "TransformerStack: a cache of max_len 9 is longer than the 8 positions of the rotary table"
        );
    }
}

fn stack(n_layers: usize, window: Option<usize>) -> TransformerStack {
    let block = BlockConfig::new().with_window(window);
    let config = TransformerStackConfig::causal(D_MODEL, 31, 6, n_layers).with_block(block);
    filled(config.init(&devices::any()), 1)
}

#[test]
fn a_cache_of_another_stack() {
    let (model, config) = (stack(3, None), KvCacheConfig::new(9));
    let x = |batch, len| tensor::<3>([batch, len, D_MODEL], 1, &devices::any());
    let mut cache = stack(2, None).cache(2, &config);
    assert_eq!(
        sentence(|| model.forward_cached(x(2, 1), &mut cache)),
        "TransformerStack: a cache of 2 layers does not fit a stack with 3 layers that have keys and values of their own"
    );
    let mut cache = stack(3, Some(4)).cache(2, &config);
    assert_eq!(
        sentence(|| model.forward_cached(x(2, 1), &mut cache)),
        "KvCache: a cache for a window of 4 does not fit a layer with no window: it was made for another layer"
    );
    // The first layer is the same in both, and takes the tokens before the second refuses them.
    let windows = |second| {
        let block = |window| BlockConfig::new().with_window(window);
        let pattern = LayerPattern::Cycle(vec![block(None), block(second)]);
        let config = TransformerStackConfig::causal(D_MODEL, 31, 6, 3).with_pattern(pattern);
        filled(config.init(&devices::any()), 1)
    };
    let mut cache = windows(Some(4)).cache(2, &config);
    assert_eq!(
        sentence(|| windows(Some(5))
            .forward_cached(LayerInput::new(x(2, 3)).lengths(&[3, 2]), &mut cache)),
        "KvCache: a cache for a window of 4 does not fit a layer with a window of 5: it was made for another layer"
    );
    assert_eq!(
        sentence(|| windows(Some(4)).forward_cached(x(2, 1), &mut cache)),
        "TransformerStack: the cache of layer 1 has [0, 0] tokens, but that of layer 0 has [3, 2]"
    );
    let mut cache = model.cache(2, &config);
    assert_eq!(
        sentence(|| model.forward_cached(LayerInput::new(x(2, 3)).lengths(&[3, 4]), &mut cache)),
        "KvCache: sequence 1 has 4 new tokens among 3"
    );
    assert_eq!(
        sentence(|| model.forward_cached(x(3, 1), &mut cache)),
        "KvCache: keys of 3 sequences do not fit a cache of 2"
    );
}

fn decoder(n_layers: usize, n_kv_heads: usize) -> TransformerStack {
    let block = BlockConfig::new().with_n_kv_heads(n_kv_heads);
    let config = TransformerStackConfig::decoder(D_MODEL, 31, 6, n_layers)
        .with_block(block)
        .with_causal(true);
    filled(config.init(&devices::any()), 1)
}

#[test]
fn a_decoders_cache_of_something_else() {
    let device = devices::any();
    let (model, config) = (decoder(2, 6), KvCacheConfig::new(9));
    let x = |batch, len| tensor::<3>([batch, len, D_MODEL], 1, &device);
    let cache = |of: &TransformerStack, lengths: &[usize]| {
        let mut cache = of.cache(2, &config);
        of.cache_memory(x(2, 7), lengths, &mut cache);
        cache
    };
    let next = |mut cache| sentence(|| model.forward_cached(x(2, 1), &mut cache));
    assert_eq!(
        next(cache(&decoder(1, 6), &[7, 5])),
        "TransformerStack: a cache of 1 layers does not fit a stack with 2 layers that have keys and values of their own"
    );
    assert_eq!(
        next(cache(&decoder(2, 3), &[7, 5])),
        "KvCache: keys of 6 heads of width 5 do not fit a cache of 3 heads of width 5: it was made for another layer"
    );
    for lengths in [&[7, 8][..], &[7, 5, 3]] {
        assert_eq!(
            sentence(|| cache(&model, lengths)),
            format!(
                "TransformerStack: lengths {lengths:?} do not fit a memory of 2 sequences of 7 tokens"
            )
        );
    }
    let mut of_three = model.cache(3, &config);
    assert_eq!(
        sentence(|| model.cache_memory(x(2, 7), &[7, 7], &mut of_three)),
        "TransformerStack: a memory of 2 sequences does not fit a cache of 3"
    );
    assert_eq!(
        next(model.cache(2, &config)),
        "TransformerLayer: a layer with cross-attention needs a memory"
    );
    assert_eq!(
        sentence(|| cache(&stack(2, None), &[7, 5])),
        "TransformerStack: a memory was given to layers without cross-attention"
    );
    assert_eq!(
        sentence(|| cache(&model, &[7, 5]).reorder(&[0, 2])),
        "KvCache: cannot reorder to sequence 2: there are 2 sequences"
    );
    let mut padded = cache(&model, &[7, 5]);
    assert_eq!(
        sentence(|| {
            let next = LayerInput::new(x(2, 1)).memory_lengths(&[7, 4]);
            model.forward_cached(next, &mut padded)
        }),
        "TransformerStack: memory lengths were given beside those of the cache, [7, 5]"
    );
    let both_ways = TransformerStackConfig::decoder(D_MODEL, 31, 6, 2).init(&device);
    assert_eq!(
        sentence(|| cache(&both_ways, &[7, 5])),
        "SelfAttention: a cache needs a causal module; with_causal(true) makes one"
    );
}

#[test]
fn limits_at_the_ends_of_their_range() {
    let device = devices::any();
    let module = SelfAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .with_window(usize::MAX)
        .init(&device);
    let unlimited = KvCacheConfig::new(usize::MAX).with_initial_capacity(1);
    let mut cache = module.cache(1, &unlimited);
    module.forward_cached(tokens(1, 2), &mut cache);
    module.forward_cached(tokens(1, 3), &mut cache);
    assert_eq!(cache.lengths(), [5]);
    let zero = KvCacheConfig::new(5).with_initial_capacity(0);
    assert_eq!(
        sentence(|| module.cache(1, &zero)),
        "KvCacheConfig: initial_capacity must be at least 1, got 0"
    );
}
