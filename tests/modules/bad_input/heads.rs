//! Heads that contradict themselves, in every configuration that has some, and what does not go with them.

use burn::tensor::Tensor;
use burn_attn::{
    AttentionBias, AttentionContext, AttentionMask, BlockConfig, CrossAttention,
    CrossAttentionConfig, CrossAttentionInput, HeadsConfig, KvCacheConfig, LayerInput,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, NormConfig, QkNormConfig,
    SelfAttentionConfig, SelfAttentionInput, TransformerLayerConfig,
    positions::{PositionEncoding, RelativeBiasConfig, RotaryConfig},
};
use burn_attn_tests::{
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::refused_by_stacks;

/// Sees that every configuration refuses these heads, in its own name.
#[track_caller]
fn refused_everywhere(heads: HeadsConfig, reason: &str) {
    refused_by_stacks(&BlockConfig::new().with_heads(heads.clone()), reason);
    refused!(
        SelfAttentionConfig::new(15, 3).with_heads(heads.clone()),
        reason
    );
    refused!(
        CrossAttentionConfig::new(15, 3).with_heads(heads.clone()),
        reason
    );
    refused!(
        MultiHeadAttentionConfig::new(15, 3).with_heads(heads),
        reason
    );
}

#[test]
fn numbers_and_widths() {
    let heads = HeadsConfig::new;
    refused_everywhere(
        heads().with_n_kv_heads(0),
        "n_kv_heads must be at least 1, got 0",
    );
    for n_kv_heads in [2, 4, 6] {
        refused_everywhere(
            heads().with_n_kv_heads(n_kv_heads),
            &format!("n_heads 3 is not divisible by n_kv_heads {n_kv_heads}"),
        );
    }
    refused_everywhere(heads().with_d_head(0), "d_head must be at least 1, got 0");
    refused_everywhere(
        heads().with_d_value_head(0),
        "d_value_head must be at least 1, got 0",
    );
}

#[test]
fn factors_out_of_range_are_refused() {
    let heads = HeadsConfig::new;
    for (number, shown) in [
        (0.0, "0"),
        (-0.5, "-0.5"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
    ] {
        refused_everywhere(
            heads().with_scale(number),
            &format!("scale must be positive and finite, got {shown}"),
        );
        refused_everywhere(
            heads().with_softcap(number),
            &format!("softcap must be positive and finite, got {shown}"),
        );
        let l2 = |factor, epsilon| QkNormConfig::L2 { factor, epsilon };
        for (norm, named) in [
            (QkNormConfig::Rms { epsilon: number }, "Rms: epsilon"),
            (
                QkNormConfig::RmsAcrossHeads { epsilon: number },
                "RmsAcrossHeads: epsilon",
            ),
            (l2(10.0, number), "L2: epsilon"),
            (l2(number, 1e-6), "L2: factor"),
        ] {
            refused_everywhere(
                heads().with_qk_norm(norm),
                &format!("qk_norm {named} must be positive and finite, got {shown}"),
            );
        }
        refused_everywhere(
            heads().with_qk_norm(QkNormConfig::PerHead(
                NormConfig::rms_norm().with_epsilon(number),
            )),
            &format!("qk_norm PerHead: epsilon must be positive and finite, got {shown}"),
        );
    }
    refused_everywhere(
        heads().with_norm_after_rotary(true),
        "norm_after_rotary is true, but qk_norm is not set: there is no norm",
    );
}

#[test]
fn position_encodings() {
    let heads = HeadsConfig::new;
    refused_everywhere(
        heads().with_position(PositionEncoding::rotary()),
        "position: RotaryConfig: d_head 5 is odd, but numbers are rotated in pairs",
    );
    let wide = RotaryConfig::new().with_rotary_dim(6);
    refused_everywhere(
        heads().with_position(PositionEncoding::Rotary(wide)),
        "position: RotaryConfig: rotary_dim 6 is more than d_head 5",
    );
    let few = RelativeBiasConfig::new()
        .with_buckets(3)
        .with_bidirectional(true);
    refused_everywhere(
        heads().with_position(PositionEncoding::Relative(few)),
        "position: RelativeBiasConfig: relative buckets need at least 4 buckets (2 for each direction), but have 3",
    );
}

/// Cross-attention with 3 heads of width 5.
fn cross(n_kv_heads: usize, d_value_head: usize) -> CrossAttention {
    let config = CrossAttentionConfig::new(15, 3)
        .with_n_kv_heads(n_kv_heads)
        .with_d_value_head(d_value_head);
    filled(config.init(&devices::any()), 1)
}

#[test]
fn memories_that_another_module_projected() {
    let device = devices::any();
    let module = cross(3, 5);
    let query: Tensor<3> = tensor([2, 7, 15], 1, &device);
    let of = |other: CrossAttention, batch| {
        let memory = other.project_memory(tensor([batch, 11, 15], 2, &device));
        sentence(|| module.forward(CrossAttentionInput::new(query.clone(), memory)))
    };
    // Three heads of queries could share one of keys.
    assert_eq!(
        of(cross(1, 5), 2),
        "CrossAttention: a memory with keys of 1 heads of width 5 does not fit a module with 3 heads of width 5: another \
         module projected it"
    );
    assert_eq!(
        of(cross(3, 7), 2),
        "CrossAttention: a memory with values of 3 heads of width 7 does not fit a module with 3 heads of width 5: another \
         module projected it"
    );
    assert_eq!(
        of(cross(3, 5), 1),
        "CrossAttention: a memory of 1 sequences does not fit queries of 2"
    );
}

#[test]
fn offsets_that_do_not_fit() {
    let device = devices::any();
    let queries = || tensor([2, 7, 15], 1, &device);
    let memory = || tensor::<3>([2, 11, 15], 2, &device);
    let module = cross(3, 5);
    let input = || CrossAttentionInput::new(queries(), memory());
    assert_eq!(
        sentence(|| module.forward(input().offset([4, 5, 6]))),
        "CrossAttention: 3 offsets for 2 sequences"
    );
    let lengths = AttentionMask::key_lengths(Tensor::from_data([4, 5, 6], &device));
    assert_eq!(
        sentence(|| module.forward(input().mask(lengths))),
        "attention: 3 key lengths were given for a batch of 2"
    );
    let distances = AttentionBias::distances(tensor([3, 35], 3, &device));
    module.forward(input().bias(distances.clone()).offset(11));
    assert_eq!(
        sentence(|| module.forward(input().bias(distances).offset(12))),
        "attention: what is given by distance has no entries for queries from [12] on: it has those for offsets from -7 to 11, for 7 queries \
         and 11 keys"
    );
    let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_max_len(11));
    let config = CrossAttentionConfig::new(15, 3).with_d_head(6);
    let module = config.with_position(rotary).init(&device);
    module.forward(input().offset(-10));
    assert_eq!(
        sentence(|| module.forward(input().offset(-11))),
        "Rotary: 7 tokens from position -11 on reach a distance of 11 from position 0, but there are 11 positions"
    );
    let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_max_len(5));
    let config = MultiHeadAttentionConfig::new(15, 3).with_d_head(6);
    let module = config.with_position(rotary).init(&device);
    let of_device = |len_q| {
        let [x, memory] = [len_q, 3].map(|len| tensor([2, len, 15], 4, &device));
        let lengths = AttentionMask::key_lengths(Tensor::from_data([1, 3], &device));
        let input = MultiHeadAttentionInput::cross_attention(x, memory).mask(lengths);
        module.forward(input)
    };
    of_device(5);
    assert_eq!(
        sentence(|| of_device(7)),
        "Rotary: 7 tokens from positions that only the device knows may reach a distance of 6 from position 0, but there are 5 positions"
    );
    let module = MultiHeadAttentionConfig::new(15, 3)
        .with_causal(true)
        .init(&device);
    let mut cache = module.cache(2, &KvCacheConfig::new(11));
    let input = MultiHeadAttentionInput::self_attention(queries()).offset(1);
    assert_eq!(
        sentence(|| module.forward_cached(input, &mut cache)),
        "MultiHeadAttention: an offset cannot be combined with a cache, which knows the positions"
    );
    // Inputs without a builder of offsets take one in a context.
    let with_offset = || AttentionContext::new().offset(0);
    let of_itself = "SelfAttention: an offset was given, but the queries are the keys";
    let module = SelfAttentionConfig::new(15, 3).init(&device);
    let input = SelfAttentionInput::new(queries()).context(with_offset());
    assert_eq!(sentence(|| module.forward(input)), of_itself);
    let layer = TransformerLayerConfig::new(15, 21, 3).init(&device);
    let input = LayerInput::new(queries()).context(with_offset());
    assert_eq!(sentence(|| layer.forward(input).states), of_itself);
}
