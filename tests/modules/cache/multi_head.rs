//! `MultiHeadAttention` with a cache: causal self-attention, also of keys and values from elsewhere.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionMask, KvCache, MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput,
    SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_tests::{
    compare::{assert_close, assert_same},
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::{D_MODEL, modules, one_by_one, small};

const TOLERANCE: f64 = 2e-6;

/// Query, key and value that come in.
type Three = [Tensor<3>; 3];

fn input([query, key, value]: Three) -> MultiHeadAttentionInput {
    MultiHeadAttentionInput::new(query, key, value)
}

/// Feeds `three` in pieces of these lengths.
fn in_pieces(
    module: &MultiHeadAttention,
    cache: &mut KvCache,
    three: &Three,
    pieces: &[usize],
) -> Tensor<3> {
    one_by_one(pieces, |first, len| {
        let piece = three.clone().map(|x| x.narrow(1, first, len));
        module.forward_cached(input(piece), cache)
    })
}

/// Keys and values from places of their own, and grouped heads.
fn wide(device: &Device) -> MultiHeadAttention {
    let config = MultiHeadAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .with_d_key_in(11)
        .with_d_value_in(13)
        .with_n_kv_heads(2)
        .with_d_value_head(7);
    filled(config.init(device), 3)
}

fn three(batch: usize, len: usize, device: &Device) -> Three {
    let mut seed = 0;
    [D_MODEL, 11, 13].map(|width| {
        seed += 1;
        tensor([batch, len, width], seed, device)
    })
}

#[test]
fn it_is_causal_attention_and_that_of_self_attention() {
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, 23, D_MODEL], 1, &device);
        let three = [x.clone(), x.clone(), x];
        for (name, of_self) in modules(&device) {
            let module = of_self.clone().into_multi_head();
            let whole = module.forward(input(three.clone()));
            for pieces in [vec![23], vec![7, 1, 1, 11, 3], vec![1; 23]] {
                let mut cache = module.cache(2, &small(23));
                let cached = in_pieces(&module, &mut cache, &three, &pieces);
                assert_eq!(cache.lengths(), [23, 23]);
                let what = format!("{backend}, {name}, {pieces:?}");
                assert_close(&what, &cached.to_data(), &whole.to_data(), TOLERANCE);

                let mut cache = of_self.cache(2, &small(23));
                let fused = super::in_pieces(&of_self, &mut cache, &three[0], &pieces);
                assert_close(&what, &cached.into_data(), &fused.into_data(), TOLERANCE);
            }
        }
    }
}

#[test]
fn keys_and_values_from_elsewhere() {
    for (backend, device) in devices::cpu() {
        let (module, three) = (wide(&device), three(2, 23, &device));
        let whole = module.forward(input(three.clone()));
        for pieces in [vec![23], vec![7, 1, 1, 11, 3]] {
            let mut cache = module.cache(2, &small(23));
            let cached = in_pieces(&module, &mut cache, &three, &pieces);
            let what = format!("{backend}, {pieces:?}");
            assert_close(&what, &cached.into_data(), &whole.to_data(), TOLERANCE);
        }
    }
}

#[test]
fn prompts_of_unequal_lengths() {
    for (backend, device) in devices::cpu() {
        let (module, three) = (wide(&device), three(2, 17, &device));
        let mut cache = module.cache(2, &small(17));
        let mut at = [0; 2];
        for counts in [[5, 3], [1, 1], [2, 4], [1, 0]] {
            let longest = counts.into_iter().max().expect("two sequences");
            let rows = three.clone().map(|x| {
                let rows = (0..2).map(|b| x.clone().narrow(0, b, 1).narrow(1, at[b], longest));
                Tensor::cat(rows.collect(), 0)
            });
            let output = module.forward_cached(input(rows).lengths(&counts), &mut cache);
            for b in 0..2 {
                let end = at[b] + counts[b];
                if counts[b] > 0 {
                    let alone = three.clone().map(|x| x.narrow(0, b, 1).narrow(1, 0, end));
                    let alone = module.forward(input(alone).mask(AttentionMask::causal()));
                    let expected = alone.narrow(1, at[b], counts[b]).into_data();
                    let actual = output.clone().narrow(0, b, 1).narrow(1, 0, counts[b]);
                    let what = format!("{backend}, sequence {b} at {}", at[b]);
                    assert_close(&what, &actual.into_data(), &expected, TOLERANCE);
                }
                at[b] = end;
            }
            assert_eq!(cache.lengths(), at);
        }
    }
}

#[test]
fn steps_without_new_tokens() {
    for (_, device) in devices::cpu() {
        let module = wide(&device);
        let mut cache = module.cache(2, &small(17));
        let output = module.forward_cached(input(three(2, 0, &device)), &mut cache);
        assert_eq!(output.dims(), [2, 0, D_MODEL]);
        assert_eq!(cache.lengths(), [0, 0]);
        let output = module.forward_cached(
            input(three(0, 3, &device)),
            &mut module.cache(0, &small(17)),
        );
        assert_eq!(output.dims(), [0, 3, D_MODEL]);
    }
}

#[test]
fn lengths_without_a_cache_are_a_mask() {
    let device = devices::any();
    let (module, three) = (wide(&device), three(2, 5, &device));
    let lengths = Tensor::from_data([5, 3], &device);
    let masked = input(three.clone()).mask(AttentionMask::key_lengths(lengths));
    let expected = module.forward(masked);
    let actual = module.forward(input(three.clone()).lengths(&[5, 3]));
    assert_same(&actual, &expected);
    assert_eq!(
        sentence(|| module.forward(input(three.clone()).lengths(&[5, 6]))),
        "MultiHeadAttention: lengths [5, 6] do not fit 2 sequences of 5 tokens"
    );
    assert_eq!(
        sentence(|| module.forward_with_weights(input(three).lengths(&[5]))),
        "MultiHeadAttention: lengths [5] do not fit 2 sequences of 5 tokens"
    );
}

#[test]
fn calls_that_do_not_fit_the_cache_are_refused() {
    let device = devices::any();
    let module = wide(&device);
    let [query, key, value] = three(2, 3, &device);
    let new = || input([query.clone(), key.clone(), value.clone()]);
    let refused = |input: MultiHeadAttentionInput, cache: &mut KvCache| {
        let before = cache.lengths();
        let said = sentence(|| module.forward_cached(input, cache));
        assert_eq!(cache.lengths(), before);
        said
    };
    let cache = || module.cache(2, &small(5));
    let both_ways = MultiHeadAttentionConfig::new(D_MODEL, 6).init(&device);
    assert_eq!(
        sentence(|| both_ways.cache(2, &small(5))),
        "MultiHeadAttention: a cache needs a causal module; with_causal(true) makes one"
    );
    assert_eq!(
        refused(new().key_positions(7), &mut cache()),
        "MultiHeadAttention: key positions were given, but the keys are those of the queries"
    );
    let long = |x: &Tensor<3>| Tensor::cat(vec![x.clone(), x.clone()], 1);
    assert_eq!(
        refused(
            input([query.clone(), long(&key), long(&value)]),
            &mut cache()
        ),
        "MultiHeadAttention: with a cache, queries and keys are those of the new tokens, but there are 3 queries and 6 keys"
    );
    assert_eq!(
        refused(new().lengths(&[3, 4]), &mut cache()),
        "KvCache: sequence 1 has 4 new tokens among 3"
    );
    assert_eq!(
        refused(new(), &mut module.cache(3, &small(5))),
        "KvCache: keys of 2 sequences do not fit a cache of 3"
    );
    let windowed = SelfAttentionConfig::new(D_MODEL, 6)
        .with_causal(true)
        .with_window(4)
        .with_n_kv_heads(2)
        .with_d_value_head(7)
        .init(&device);
    assert_eq!(
        refused(new(), &mut windowed.cache(2, &small(5))),
        "KvCache: a cache for a window of 4 does not fit a layer with no window: it was made for another layer"
    );
    let x = tensor([2, 3, D_MODEL], 1, &device);
    assert_eq!(
        sentence(|| windowed.forward_cached(SelfAttentionInput::new(x), &mut cache())),
        "KvCache: a cache for no window does not fit a layer with a window of 4: it was made for another layer"
    );
}
