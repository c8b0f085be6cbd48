//! Decoding with weights in 8 bits, through both kinds of caches.

use burn::{
    module::{Lora, Module, Param, Reparameterization, Reparameterizer},
    tensor::{DType, Tensor},
};
use burn_attn::{
    CacheStorage, KvCacheConfig, MultiHeadAttentionConfig, MultiHeadAttentionInput, SelfAttention,
    SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_tests::{
    compare::{assert_close, error},
    devices::cpu,
    numbers::{alone, filled, tensor},
    sentence,
};

use super::{D_MODEL, HEADS, devices, heads, packed, schemes};
use crate::cache::in_pieces;

const LEN: usize = 11;

/// The tokens one prompt and then one by one, or the like.
fn decode(module: &SelfAttention, x: &Tensor<3>, config: &KvCacheConfig) -> Tensor<3> {
    let [batch, _, _] = x.dims();
    let mut cache = module.cache(batch, config);
    let output = in_pieces(module, &mut cache, x, &[5, 1, 1, 3, 1]);
    assert_eq!(output.dims()[1], LEN);
    output
}

fn config() -> KvCacheConfig {
    KvCacheConfig::new(LEN).with_initial_capacity(2)
}

#[test]
fn weights_in_8_bits_decode_what_they_compute() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        for (name, heads) in heads() {
            let config_of_module = SelfAttentionConfig::new(D_MODEL, HEADS)
                .with_heads(heads)
                .with_causal(true)
                .with_dropout(0.0);
            let module = filled(config_of_module.init(&device), 3);
            for (scheme_name, scheme) in schemes() {
                let module = packed(module.clone(), scheme);
                let whole = module
                    .forward(SelfAttentionInput::new(x.clone()))
                    .into_data();
                let what = format!("{backend}, {name}, {scheme_name}");
                let exact = decode(&module, &x, &config()).into_data();
                assert_close(&what, &exact, &whole, 1e-5);
                let bytes =
                    decode(&module, &x, &config().with_storage(CacheStorage::Int8)).into_data();
                // As for weights in floats: see `cache::eight_bits`.
                let error = error(&bytes, &whole);
                assert!((1e-5..6e-3).contains(&error), "{what}: {error:.1e}");
            }
        }
    }
}

#[test]
fn separate_projections_in_8_bits_decode_what_they_compute() {
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        let config_of_module = MultiHeadAttentionConfig::new(D_MODEL, HEADS)
            .with_causal(true)
            .with_dropout(0.0);
        let module = filled(config_of_module.init(&device), 3);
        for (name, scheme) in schemes() {
            let module = packed(module.clone(), scheme);
            let causal = burn_attn::AttentionMask::causal();
            let input = |x| MultiHeadAttentionInput::self_attention(x);
            let whole = module.forward(input(x.clone()).mask(causal));
            let mut cache = module.cache(2, &config());
            let first = module.forward_cached(input(x.clone().narrow(1, 0, 7)), &mut cache);
            let rest = module.forward_cached(input(x.clone().narrow(1, 7, 4)), &mut cache);
            let cached = Tensor::cat(vec![first, rest], 1);
            let what = format!("{backend}, {name}");
            assert_close(&what, &cached.into_data(), &whole.into_data(), 1e-5);
        }
    }
}

/// Packed weights have no dtype to compute in: it is that of what comes in.
#[test]
fn the_cache_of_packed_weights_takes_the_dtype_of_its_keys() {
    for (backend, device) in cpu() {
        let x = tensor::<3>([2, LEN, D_MODEL], 1, &device).cast(DType::F64);
        let config_of_module = SelfAttentionConfig::new(D_MODEL, HEADS).with_causal(true);
        let module = filled(config_of_module.init(&device), 3);
        let [(_, scheme), _] = schemes();
        let module = packed(module, scheme);
        let whole = module.forward(SelfAttentionInput::new(x.clone()));
        assert_eq!(whole.dtype(), DType::F64);
        let mut cache = module.cache(2, &config());
        // Before the first keys, too.
        cache.reorder(&[1, 0]);
        let first = SelfAttentionInput::new(x.clone().narrow(1, 0, LEN - 1));
        module.forward_cached(first, &mut cache);
        let last = SelfAttentionInput::new(x.clone().narrow(1, LEN - 1, 1));
        let last = module.forward_cached(last, &mut cache);
        assert_eq!(last.dtype(), DType::F64);
        let expected = whole.narrow(1, LEN - 1, 1);
        assert_close(backend, &last.into_data(), &expected.into_data(), 1e-12);

        // Tokens that are refused decide nothing.
        let mut cache = module.cache(2, &config());
        cache.reserve(LEN);
        let in_f32 = cache.bytes();
        let many = Tensor::cat(vec![x.clone(), x.clone()], 1);
        let refused = sentence(|| module.forward_cached(many, &mut cache));
        assert!(refused.contains("cannot take 22 more"), "{refused}");
        assert_eq!(cache.bytes(), in_f32);
        module.forward_cached(x, &mut cache);
        assert_eq!(cache.bytes(), 2 * in_f32);
    }
}

/// A stand-in for an adapter whose product is expensive.
#[derive(Module, Debug)]
struct Expensive {}

impl Reparameterization for Expensive {
    const NAME: &'static str = "expensive";

    fn apply<const D: usize>(&self, _: Tensor<D>) -> Tensor<D> {
        panic!("the effective weight was computed")
    }
}

struct MakeExpensive;

impl Reparameterizer for MakeExpensive {
    type Reparam = Expensive;

    fn reparameterize<const D: usize>(
        &mut self,
        _: &str,
        parameter: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<Expensive>) {
        (parameter, Some(Expensive {}))
    }
}

#[test]
fn an_empty_cache_needs_no_effective_weight() {
    for (_, device) in devices() {
        let fused = SelfAttentionConfig::new(D_MODEL, HEADS).with_causal(true);
        let fused = filled(fused.init(&device), 1).apply_reparameterization(MakeExpensive);
        assert_eq!(fused.cache(2, &config()).lengths(), [0, 0]);
        let separate = MultiHeadAttentionConfig::new(D_MODEL, HEADS).with_causal(true);
        let separate = filled(separate.init(&device), 1);
        let separate = separate.apply_reparameterization(MakeExpensive);
        assert_eq!(separate.cache(2, &config()).lengths(), [0, 0]);
    }
}

/// An adapter computes in the dtype of its factors, whatever the weight is stored in.
#[test]
fn the_cache_of_an_adapter_has_the_dtype_of_its_factors() {
    let _alone = alone();
    for (backend, device) in cpu() {
        let config_of_module = SelfAttentionConfig::new(D_MODEL, HEADS)
            .with_causal(true)
            .with_bias(burn_attn::ProjectionBias::none());
        let module = filled(config_of_module.init(&device), 3);
        let lora = Lora::new(2, 4.0).set_dtype(burn::tensor::FloatDType::F64);
        let module = module.apply_lora(lora);
        assert_eq!(module.query_key_value.weight.base().dtype(), DType::F32);
        let x = tensor::<3>([2, LEN, D_MODEL], 1, &device).cast(DType::F64);
        let whole = module.forward(SelfAttentionInput::new(x.clone()));
        let cached = decode(&module, &x, &config());
        assert_close(backend, &cached.into_data(), &whole.into_data(), 1e-12);
    }
}
