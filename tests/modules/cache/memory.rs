//! What a cache holds.

use burn_attn::{CacheStorage, KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
use burn_attn_tests::{devices, numbers::tensor};

use super::{D_MODEL, small};

#[test]
fn it_holds_key_value_heads_only_and_doubles_up_to_its_limit() {
    let device = devices::any();
    let module = SelfAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .with_n_kv_heads(2)
        .init(&device);
    let mut cache = module.cache(3, &small(13));
    let mut capacities = Vec::new();
    for token in 0..13 {
        let x = tensor([3, 1, D_MODEL], token, &device);
        module.forward_cached(SelfAttentionInput::new(x), &mut cache);
        capacities.push(cache.capacity());
    }
    assert_eq!(capacities, [2, 2, 4, 4, 8, 8, 8, 8, 13, 13, 13, 13, 13]);
    // Batch, key and value, heads, capacity, width, bytes of f32.
    assert_eq!(cache.bytes(), 3 * 2 * 2 * 13 * 5 * 4);
}

#[test]
fn a_window_bounds_it() {
    let device = devices::any();
    let module = SelfAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .with_window(5)
        .init(&device);
    let mut cache = module.cache(1, &small(1000));
    for token in 0..100 {
        let x = tensor([1, 1, D_MODEL], token, &device);
        module.forward_cached(SelfAttentionInput::new(x), &mut cache);
        assert!(cache.capacity() <= 10, "{}", cache.capacity());
    }
    // A long prompt needs room for itself, which goes when the window moves on.
    let x = tensor([1, 50, D_MODEL], 7, &device);
    module.forward_cached(SelfAttentionInput::new(x), &mut cache);
    assert_eq!(cache.capacity(), 55);
    let x = tensor([1, 1, D_MODEL], 8, &device);
    module.forward_cached(SelfAttentionInput::new(x), &mut cache);
    assert_eq!(cache.capacity(), 10);
    assert_eq!(cache.lengths(), [151]);
}

#[test]
fn eight_bits_take_about_a_quarter() {
    let device = devices::any();
    let module = SelfAttentionConfig::new(512, 8)
        .with_causal(true)
        .init(&device);
    let config = KvCacheConfig::new(64);
    let exact = module.cache(1, &config).bytes();
    let quantized = module
        .cache(1, &config.with_storage(CacheStorage::Int8))
        .bytes();
    // 64 bytes of codes and 4 of a scale against 256.
    assert_eq!(exact * 68, quantized * 256);
}
