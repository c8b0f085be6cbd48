//! Unions of masks in stacks, which make them once for all layers.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, BlockConfig, CausalAlignment, LayerInput, LayerPattern, NormPlacement,
    TransformerStackConfig, positions::PositionEncoding,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::{D_FF, D_MODEL, N_HEADS};

const LEN: usize = 9;

fn is_first(count: usize, along: usize, device: &Device) -> Tensor<4, Bool> {
    let first: Vec<bool> = (0..LEN).map(|token| token < count).collect();
    let mut shape = [1; 4];
    shape[along] = LEN;
    Tensor::from_data(TensorData::new(first, shape), device)
}

fn masks(device: &Device) -> Vec<(&'static str, AttentionMask)> {
    let first = || AttentionMask::key_lengths(Tensor::<1, Int>::from_data([3, 5], device));
    let [queries, keys] = [2, 3].map(|along| AttentionMask::visible(is_first(2, along, device)));
    let ids = TensorData::new([0_i32, 0, 0, 1, 1, 2, 2, 2, 2].repeat(2), [2, LEN]);
    let ids = Tensor::<2, Int>::from_data(ids, device);
    let texts = AttentionMask::segments(ids.clone(), ids);
    let top_left = AttentionMask::causal_aligned(CausalAlignment::TopLeft);
    vec![
        ("a prefix", AttentionMask::causal().or(first())),
        (
            "global tokens",
            AttentionMask::window(1, 1)
                .or(queries.clone())
                .or(keys.clone()),
        ),
        ("texts and a window", texts.or(AttentionMask::window(0, 2))),
        ("a name", top_left.or(queries).and(keys.or(first()))),
    ]
}

#[test]
fn a_stack_is_its_layers_one_by_one() {
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        let block = BlockConfig::new()
            .with_norm_placement(NormPlacement::Post)
            .with_position(PositionEncoding::alibi());
        let blocks = vec![block.clone(), block.with_window(3)];
        let stack = TransformerStackConfig::encoder(D_MODEL, D_FF, N_HEADS, 4);
        let stack = stack.with_pattern(LayerPattern::Cycle(blocks));
        let stack = filled(stack.init(&device), 1);
        let places = vec![(0..LEN).collect::<Vec<_>>(); 2];
        for (name, mask) in masks(&device) {
            let expected = stack.layers.iter().fold(x.clone(), |x, layer| {
                layer.forward(LayerInput::new(x).mask(mask.clone())).states
            });
            let expected = expected.into_data();
            let what = format!("{backend}, {name}");
            let input = || LayerInput::new(x.clone()).mask(mask.clone());
            let actual = stack.forward(input()).into_data();
            assert_close(&what, &actual, &expected, 1e-5);
            let actual = stack.forward_with_hidden_states(input()).states;
            assert_close(&what, &actual.into_data(), &expected, 1e-5);
            let actual = stack.forward(input().positions(places.clone()));
            assert_close(&what, &actual.into_data(), &expected, 1e-5);
            let gaps = |x| {
                let positions = vec![vec![0, 1, 2, 5, 6, 7, 7, 8, 12], (3..3 + LEN).collect()];
                let input = LayerInput::new(x).mask(mask.clone());
                input.positions(positions).lengths(&[LEN, 6])
            };
            let layers = stack.layers.iter();
            let expected = layers.fold(x.clone(), |x, layer| layer.forward(gaps(x)).states);
            let (actual, expected) = (stack.forward(gaps(x.clone())), expected.into_data());
            assert_close(&what, &actual.into_data(), &expected, 1e-5);
        }
        // A stack whose layers were changed one by one, and in which two windows differ.
        let blocks = [2, 4].map(|window| BlockConfig::new().with_window(window));
        let config = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, 4);
        let config = config.with_pattern(LayerPattern::Cycle(blocks.into()));
        let mut mixed = filled(config.init(&device), 2);
        mixed.layers[2].self_attention.causal = false;
        let gaps = |x| {
            let positions = vec![vec![0, 1, 2, 5, 6, 7, 7, 8, 12]; 2];
            LayerInput::new(x).positions(positions)
        };
        let layers = mixed.layers.iter();
        let expected = layers.fold(x.clone(), |x, layer| layer.forward(gaps(x)).states);
        let expected = mixed
            .norm
            .as_ref()
            .map_or(expected.clone(), |norm| norm.forward(expected));
        let actual = mixed.forward(gaps(x.clone())).into_data();
        assert_close(backend, &actual, &expected.into_data(), 1e-5);
        let narrow = Tensor::<4, Bool>::from_data([[[[true, false]]]], &device);
        let mask = AttentionMask::masked(narrow).or(AttentionMask::causal());
        assert_eq!(
            sentence(|| stack.forward(LayerInput::new(x.clone()).mask(mask))),
            format!(
                "attention: mask [1, 1, 1, 2] does not broadcast to the scores [2, {N_HEADS}, 9, 9] [batch, heads, len_q, len_kv]"
            )
        );
    }
}
