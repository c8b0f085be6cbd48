//! Caches whose tokens have positions of their own: what a window drops, what is kept, and positions on several axes.

use burn::tensor::Tensor;
use burn_attn::{
    AttentionBias, BlockConfig, KvCache, LayerInput, LayerPattern, SelfAttention,
    SelfAttentionConfig, SelfAttentionInput, TransformerStackConfig,
    positions::{PositionEncoding, Positions, RotaryAxes, RotaryConfig},
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::{D_MODEL, small};

const TOLERANCE: f64 = 2e-6;

fn config() -> SelfAttentionConfig {
    SelfAttentionConfig::new(D_MODEL, 6).with_causal(true)
}

/// Adds tokens at these positions, one by one.
fn add(module: &SelfAttention, cache: &mut KvCache, positions: &[usize]) -> Tensor<3> {
    let device = devices::any();
    let outputs = positions.iter().map(|&position| {
        let token = SelfAttentionInput::new(tensor([1, 1, D_MODEL], position as u64, &device));
        module.forward_cached(token.positions(vec![vec![position]]), cache)
    });
    Tensor::cat(outputs.collect(), 1)
}

#[test]
fn a_window_that_reaches_dropped_tokens_is_refused() {
    let module = filled(config().with_window(4).init(&devices::any()), 1);
    for skips in [false, true] {
        let mut cache = module.cache(1, &small(30));
        let at = |position: usize| if skips { 2 * position } else { position };
        let first: Vec<usize> = (0..14).map(at).collect();
        add(&module, &mut cache, &first);
        let before = cache.lengths();
        assert_eq!(
            sentence(|| add(&module, &mut cache, &[at(0)])),
            match skips {
                false =>
                    "KvCache: sequence 0 has a new token at position 0, whose window of 4 reaches tokens before position 8, which have been dropped",
                true =>
                    "KvCache: sequence 0 has a new token at position 0, whose window of 4 reaches tokens before position 15, which have been dropped",
            }
        );
        assert_eq!(cache.lengths(), before);
        // One that goes back less far.
        let mut whole = module.cache(1, &small(30).with_initial_capacity(30));
        add(&module, &mut whole, &first);
        let [expected, actual] = [&mut whole, &mut cache].map(|cache| {
            let token = add(&module, cache, &[at(12)]);
            token.into_data()
        });
        assert_close("a token that goes back", &actual, &expected, TOLERANCE);
    }
}

#[test]
fn what_a_window_has_dropped_cannot_be_kept() {
    let device = devices::any();
    let module = filled(config().with_window(3).init(&device), 1);
    let mut cache = module.cache(1, &small(20));
    for _ in 0..9 {
        let token = SelfAttentionInput::new(tensor([1, 1, D_MODEL], 1, &device));
        module.forward_cached(token, &mut cache);
    }
    assert_eq!(
        sentence(|| cache.keep(&[0], &[&[7, 8]])),
        "KvCache: sequence 0 cannot keep the first 0 tokens and [7, 8]: the first 4 have been dropped"
    );
    assert_eq!(cache.lengths(), [9]);
    cache.keep(&[7], &[&[8]]);
    assert_eq!(cache.lengths(), [8]);
    cache.keep(&[0], &[&[]]);
    assert_eq!(cache.lengths(), [0]);
}

/// The layer with a window refuses; the one without, which comes first, keeps its tokens.
#[test]
fn a_stack_that_refuses_changes_no_layer() {
    let device = devices::any();
    let block = BlockConfig::new();
    let blocks = vec![block.clone(), block.with_window(2)];
    let stack = TransformerStackConfig::causal(D_MODEL, 19, 6, 2);
    let stack = stack
        .with_pattern(LayerPattern::Cycle(blocks))
        .init(&device);
    let mut cache = stack.cache(1, &small(20));
    for _ in 0..9 {
        let token = LayerInput::new(tensor([1, 1, D_MODEL], 1, &device));
        stack.forward_cached(token, &mut cache);
    }
    let refused = [
        sentence(|| cache.truncate(&[2])),
        sentence(|| cache.keep(&[0], &[&[7]])),
    ];
    for (refused, reason) in refused.iter().zip(["truncated to 2", "keep the first 0"]) {
        assert!(refused.contains(reason), "{refused}");
    }
    for layer in cache.layers() {
        assert_eq!(layer.tokens.lengths(), [9]);
    }
}

/// Positions on axes have no distances; the tokens stand at their places for calls that count distances.
#[test]
fn positions_on_axes_beside_others() {
    let device = devices::any();
    let rotary = RotaryConfig::new()
        .with_max_len(50)
        .with_axes(RotaryAxes::Equal(2));
    let rotary = config()
        .with_d_head(8)
        .with_position(PositionEncoding::Rotary(rotary));
    let module = filled(rotary.init(&device), 1);
    let x: Tensor<3> = tensor([1, 8, D_MODEL], 1, &device);
    let at = |positions: Vec<usize>| Positions::from(vec![positions]);
    let on_axes = |positions: &[usize]| {
        let axis = |step: usize| vec![positions.iter().map(|at| at / step).collect::<Vec<_>>()];
        Positions::from(vec![axis(1), axis(2)])
    };
    // With an image in the middle, which nothing but its rotation places.
    let pieces = [
        (0, at(vec![0, 1, 5])),
        (3, on_axes(&[6, 7, 8])),
        (6, at(vec![6, 9])),
    ];
    let mut cache = module.cache(1, &small(20));
    for (from, positions) in &pieces {
        let len = if *from == 6 { 2 } else { 3 };
        let piece = x.clone().narrow(1, *from, len);
        module.forward_cached(
            SelfAttentionInput::new(piece).positions(positions.clone()),
            &mut cache,
        );
    }
    cache.keep(&[4], &[&[5, 7]]);
    // Keys at 0, 1, 5, 3, 5 and 9, and the token at its place, 6.
    let slopes = || Tensor::from_data([0.5, 0.4, 0.3, 0.2, 0.1, 0.6], &device);
    let next = || SelfAttentionInput::new(tensor([1, 1, D_MODEL], 9, &device));
    let mut other = cache.clone();
    let actual = module.forward_cached(next().bias(AttentionBias::alibi(slopes())), &mut cache);
    let distances = [6, 5, 1, 3, 1, 3, 0].map(|distance| -(distance as f32));
    let distances = Tensor::<1>::from_data(distances, &device).reshape([1, 1, 1, 7]);
    let dense = distances * slopes().reshape([1, 6, 1, 1]);
    let expected = module.forward_cached(next().bias(AttentionBias::dense(dense)), &mut other);
    let (actual, expected) = (actual.into_data(), expected.into_data());
    assert_close("ALiBi after an image", &actual, &expected, TOLERANCE);
}

/// A cache that is empty again has forgotten them.
#[test]
fn an_empty_cache_has_no_positions() {
    let device = devices::any();
    let module = filled(config().with_window(4).init(&device), 1);
    let mut cache = module.cache(1, &small(30));
    add(&module, &mut cache, &[0, 3, 9, 11, 20, 30]);
    cache.truncate(&[0]);
    let x: Tensor<3> = tensor([1, 7, D_MODEL], 1, &device);
    let cached = super::in_pieces(&module, &mut cache, &x, &[3, 1, 1, 2]);
    let whole = module.forward(x);
    assert_close("whole", &cached.into_data(), &whole.into_data(), TOLERANCE);
}

/// Tokens that are at their places cost what they cost without positions.
#[test]
fn places_are_no_positions() {
    let device = devices::any();
    let module = filled(config().init(&device), 1);
    let input = |len| SelfAttentionInput::new(tensor([2, len, D_MODEL], 1, &device));
    let has_positions = |cache: &KvCache| !format!("{cache:?}").contains("positions: None");
    let mut cache = module.cache(2, &small(20));
    // What is padding has no position.
    let padded = input(3).positions(vec![vec![0, 1, 2], vec![0, 1, 0]]);
    module.forward_cached(padded.lengths(&[3, 2]), &mut cache);
    assert!(!has_positions(&cache));
    // Two drafts of the next token, of which the second is accepted.
    let drafts = input(2).positions(vec![vec![3, 3], vec![2, 2]]);
    module.forward_cached(drafts, &mut cache);
    assert!(has_positions(&cache));
    let mut one = cache.clone();
    cache.keep(&[3, 2], &[&[4], &[3]]);
    assert!(!has_positions(&cache));
    // A sequence that has none goes on alone.
    one.truncate(&[5, 2]);
    assert!(has_positions(&one));
    one.reorder(&[1]);
    assert!(!has_positions(&one));
}

/// Also where nothing counts them.
#[test]
fn positions_of_other_sequences_are_refused() {
    let device = devices::any();
    let module = filled(config().init(&device), 1);
    let x = SelfAttentionInput::new(tensor([2, 3, D_MODEL], 1, &device));
    assert_eq!(
        sentence(|| module.forward(x.positions(vec![0, 1, 2]))),
        "SelfAttention: 3 offsets for 2 sequences"
    );
}
