//! What a call for whole sequences has in use at once.

use burn::tensor::{Distribution, Tensor};
use burn_attn::{
    AttentionMask, BlockConfig, CausalAlignment, LayerInput, LayerPattern, SelfAttentionConfig,
    SelfAttentionInput, StatisticsOptions, TransformerStackConfig,
};
use burn_attn_tests::{devices, numbers::alone};

use super::{D_MODEL, HEADS, peak};

const LEN: usize = 1500;

fn tokens() -> Tensor<3> {
    Tensor::random([1, LEN, D_MODEL], Distribution::Default, &devices::any())
}

/// Between positions that are places, also where the mask names its alignment.
#[test]
fn a_window_is_no_tensor() {
    let _alone = alone();
    let config = SelfAttentionConfig::new(D_MODEL, HEADS).with_causal(true);
    let module = config.with_window(3).init(&devices::any());
    let x = tokens();
    // Parameters are made when they are first used.
    module.forward(x.clone());
    let places = || vec![(0..LEN).collect::<Vec<_>>()];
    let input = || SelfAttentionInput::new(x.clone());
    let aligned = AttentionMask::causal_aligned(CausalAlignment::BottomRight);
    let [without, unnamed, named] = [
        input(),
        input().positions(places()),
        input().positions(places()).mask(aligned),
    ]
    .map(|input| peak(|| drop(module.forward(input))));
    println!(
        "without positions {without} bytes, with them {unnamed}, with a named alignment {named}"
    );
    assert!(unnamed.max(named) < without + LEN * LEN / 4);
}

/// Each pair of layers has a window of its own, and thus keys that no other pair reads.
#[test]
fn keys_and_values_are_held_until_their_last_reader() {
    const PAIRS: usize = 8;
    let _alone = alone();
    for shared_key_value in [false, true] {
        let [one, many] = [1, PAIRS].map(|pairs| {
            let pair = |window| {
                let block = BlockConfig::new().with_window(window);
                let second = block.clone().with_shared_key_value(shared_key_value);
                [block, second]
            };
            let pattern = LayerPattern::Cycle((1..=pairs).flat_map(pair).collect());
            let config = TransformerStackConfig::causal(D_MODEL, D_MODEL, HEADS, 2 * pairs);
            let stack = config.with_pattern(pattern).init(&devices::any());
            let x = tokens();
            stack.forward(x.clone());
            peak(|| drop(stack.forward(x)))
        });
        println!("shared_key_value {shared_key_value}: one pair {one} bytes, {PAIRS} {many}");
        let query_key_value = 3 * LEN * D_MODEL * size_of::<f32>();
        assert!(many < one + 2 * query_key_value);
    }
}

/// Beside windows a union is a tensor, and so is a window between positions with gaps: all layers with a window share it.
#[test]
fn layers_share_their_mask() {
    let _alone = alone();
    let device = devices::any().autodiff();
    let window = BlockConfig::new().with_window(3).with_dropout(0.0);
    let pattern = LayerPattern::Cycle(vec![window, BlockConfig::new().with_dropout(0.0)]);
    let x = Tensor::<3>::random([1, LEN, 8], Distribution::Default, &device);
    let first = AttentionMask::key_lengths(Tensor::from_data([7], &device));
    let input = || LayerInput::new(x.clone());
    let union = || input().mask(AttentionMask::causal().or(first.clone()));
    let gaps = || input().positions(vec![(0..LEN).map(|token| 2 * token).collect::<Vec<_>>()]);
    let inputs: [(&str, &dyn Fn() -> LayerInput); 2] = [("a union", &union), ("gaps", &gaps)];
    for (name, changed) in inputs {
        let [one, many] = [1, 4].map(|pairs| {
            let config = TransformerStackConfig::causal(8, 8, 1, 2 * pairs);
            let stack = config.with_pattern(pattern.clone()).init(&device);
            stack.forward(x.clone());
            // What the gradients need is held until the end.
            let [plain, dense] =
                [input(), changed()].map(|input| peak(|| drop(stack.forward(input))));
            dense - plain
        });
        println!("{name}: two layers take {one} bytes more, eight {many}");
        assert!(many < one + LEN * LEN / 2);
    }
}

/// All weights would be four bytes for each pair and head.
#[test]
fn statistics_take_linear_memory() {
    let _alone = alone();
    let config = SelfAttentionConfig::new(D_MODEL, HEADS).with_causal(true);
    let module = config.init(&devices::any());
    let statistics = |len: usize| {
        let x = Tensor::<3>::random([1, len, D_MODEL], Distribution::Default, &devices::any());
        let options = StatisticsOptions::new().max_distance(7);
        peak(|| drop(module.forward_with_statistics(x, options)))
    };
    statistics(8);
    let [short, long] = [LEN, 2 * LEN].map(statistics);
    println!("{short} bytes, of twice as many tokens {long}");
    assert!(long < 2 * short && long < LEN * LEN * HEADS);
}
