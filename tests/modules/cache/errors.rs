//! Every misuse has its sentence.

use burn::tensor::{DType, Tensor};
use burn_attn::{
    AttentionMask, KvCacheConfig, SelfAttention, SelfAttentionConfig, SelfAttentionInput,
};

use super::D_MODEL;
use crate::{
    bad_input::sentence,
    devices,
    numbers::{filled, tensor},
};

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

/// The module in f64.
fn wide(module: SelfAttention) -> SelfAttention {
    struct Wide;
    impl burn::module::ModuleMapper for Wide {
        fn map_float<const D: usize>(
            &mut self,
            parameter: burn::module::Param<Tensor<D>>,
        ) -> burn::module::Param<Tensor<D>> {
            parameter.map(|tensor| tensor.cast(DType::F64))
        }
    }
    burn::module::Module::map(module, &mut Wide)
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
    assert_eq!(
        sentence(
            || module.forward_cached(tokens(2, 3).mask(AttentionMask::window(1, 1)), &mut cache)
        ),
        "SelfAttention: a mask or a bias cannot go with a cache; lengths can"
    );
    let encoder = SelfAttentionConfig::new(D_MODEL, 6).init(&devices::any());
    assert_eq!(
        sentence(|| encoder.forward_cached(tokens(2, 3), &mut cache)),
        "SelfAttention: a cache needs a causal module; with_causal(true) makes one"
    );
}

#[test]
fn sequences_and_lengths_that_are_not_there() {
    let module = module();
    let mut cache = module.cache(2, &KvCacheConfig::new(9));
    module.forward_cached(tokens(2, 3), &mut cache);
    assert_eq!(
        sentence(|| cache.clone().reorder(&[0, 2])),
        "KvCache: there is no sequence 2 among 2 to reorder to"
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
        .with_window(Some(2))
        .init(&devices::any());
    let mut cache = windowed.cache(1, &KvCacheConfig::new(99).with_initial_len(1));
    for _ in 0..9 {
        windowed.forward_cached(tokens(1, 1), &mut cache);
    }
    assert_eq!(
        sentence(|| cache.truncate(&[3])),
        "KvCache: sequence 0 cannot be truncated to 3 tokens: its window would need tokens from 1 on, but those before 6 \
         have been dropped"
    );
    assert_eq!(
        sentence(|| module.cache(2, &KvCacheConfig::new(0))),
        "KvCacheConfig: max_len must be at least 1, got 0"
    );
}
