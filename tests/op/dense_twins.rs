//! Masks in other words: every mask gives the same bits as its dense twin.

use burn::tensor::{Bool, BoolDType, DType, Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, AttentionOptions, BlockSize, CausalAlignment, MaskFunction,
    ops::backend::blockwise_attention,
};
use burn_attn_kernels_cpu::Window;
use burn_attn_tests::{devices, numbers::uniform_f64};
use proptest::prelude::*;

use crate::{
    case::{Case, bools},
    properties::{bits, output, output_with},
};

#[test]
fn visible_is_the_opposite_of_masked() {
    let device = &devices::any();
    let hidden: Vec<bool> = uniform_f64(4, 22).iter().map(|&x| x > 0.0).collect();
    let shown = hidden.iter().map(|x| !x).collect();
    let tensor = |data| bools(data, [2, 1, 1, 11], device);
    let case = Case::usual("dense mask");
    let run = |mask| {
        let options = AttentionOptions::default().mask(mask);
        bits(output_with(&case, device, options))
    };
    assert_eq!(
        run(AttentionMask::masked(tensor(hidden))),
        run(AttentionMask::visible(tensor(shown)))
    );
}

/// A mask may come from elsewhere, with another type of bools than the device makes.
#[test]
fn masks_of_two_types_of_bools_combine() {
    let device = &devices::any();
    let hidden = |seed| {
        let numbers = uniform_f64(seed, 22);
        let hidden: Vec<bool> = numbers.iter().map(|&x| x > 0.3).collect();
        TensorData::new(hidden, [2, 1, 1, 11])
    };
    let masked = |seed, bools| {
        let tensor = Tensor::<4, Bool>::from_data(hidden(seed), (device, DType::Bool(bools)));
        AttentionMask::masked(tensor)
    };
    let case = Case::usual("types of bools");
    let table = |seed, bools| {
        let visible = Tensor::<4, Bool>::from_data(hidden(seed), (device, DType::Bool(bools)));
        AttentionMask::visible_blocks(visible, [7, 1])
    };
    let function = |bools: BoolDType| {
        AttentionMask::function(MaskFunction::new("of another type", move |pairs| {
            let visible = pairs.distances().greater_equal_elem(-1);
            let device = visible.device();
            Tensor::from_data(visible.into_data(), (&device, DType::Bool(bools)))
        }))
    };
    let outputs = |mask: AttentionMask| {
        let options = AttentionOptions::default().mask(mask);
        let [q, k, v] = case.operands(device, DType::F32);
        let (blockwise, _) = blockwise_attention(q, k, v, options.clone().causal(), None);
        [bits(output_with(&case, device, options)), bits(blockwise)]
    };
    let run = |second| {
        let dense = masked(1, BoolDType::Native).and(masked(2, second));
        let tables = table(3, BoolDType::Native).and(table(4, second));
        let functions = function(BoolDType::Native).and(function(second));
        [dense, tables, functions].map(outputs)
    };
    assert_eq!(run(BoolDType::U8), run(BoolDType::Native));
}

#[test]
fn padding_tokens_are_hidden_wherever_they_stand() {
    let device = &devices::any();
    let tokens = [
        [7, 0, 3, 0, 5, 5, 1, 1, 1, 0, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0],
    ];
    let hidden = tokens
        .as_flattened()
        .iter()
        .map(|&token| token == 0)
        .collect();
    let case = Case {
        masked: Some(([2, 1, 1, 11], hidden)),
        ..Case::usual("padding")
    };
    let options = AttentionOptions::default().mask(AttentionMask::padding(
        Tensor::<2, Int>::from_data(tokens, device),
        0,
    ));
    let padded = output_with(&case, device, options);
    assert_eq!(bits(padded), bits(output(&case, device)));
}

#[test]
fn lengths_hide_what_lies_behind_them() {
    let device = &devices::any();
    let case = Case::usual("key lengths");
    let hidden = (0..22).map(|at| at % 11 >= [11, 4][at / 11]).collect();
    let dense = Case {
        masked: Some(([2, 1, 1, 11], hidden)),
        ..case.clone()
    };
    let lengths = Tensor::<1, Int>::from_data([11, 4], device);
    let options = AttentionOptions::default().mask(AttentionMask::key_lengths(lengths));
    let padded = output_with(&case, device, options);
    assert_eq!(bits(padded), bits(output(&dense, device)));
}

#[test]
fn tables_of_blocks_compose_whatever_their_sizes() {
    let table = |seed, shape: [usize; 4]| -> Vec<bool> {
        let numbers = uniform_f64(seed, shape.iter().product());
        numbers.iter().map(|&x| x > -0.4).collect()
    };
    // Blocks of 7 queries and 11 keys: equal sizes, sizes that divide each other, sizes without a common divisor, one block of all keys.
    for sizes in [
        [[3, 4], [3, 4]],
        [[2, 2], [4, 6]],
        [[3, 5], [2, 3]],
        [[6, 4], [4, 20]],
    ] {
        for device in devices::all() {
            let case = Case::usual("two tables");
            let mut hidden = vec![false; 2 * 5 * 7 * 11];
            let mut mask = AttentionMask::none();
            for (index, size) in sizes.into_iter().enumerate() {
                let size = BlockSize::from(size);
                let [rows, columns] = size.table(7, 11);
                let shape = [[2, 1, rows, columns], [1, 5, rows, columns]][index];
                let visible = table(11 + index as u64, shape);
                for (at, hidden) in hidden.iter_mut().enumerate() {
                    let entry = [
                        at / 385 % shape[0],
                        at / 77 % 5 % shape[1],
                        at / 11 % 7 / size.queries,
                        at % 11 / size.keys,
                    ];
                    let entry = entry
                        .iter()
                        .zip(shape)
                        .fold(0, |flat, (at, len)| flat * len + at);
                    *hidden |= !visible[entry];
                }
                let visible = bools(visible, shape, &device);
                mask = mask.and(AttentionMask::visible_blocks(visible, size));
            }
            assert!(hidden.contains(&true) && hidden.contains(&false) && !mask.is_none());
            let dense = Case {
                masked: Some(([2, 5, 7, 11], hidden)),
                ..case.clone()
            };
            let both = output_with(&case, &device, AttentionOptions::default().mask(mask));
            assert_eq!(bits(both), bits(output(&dense, &device)), "{sizes:?}");
        }
    }
}

#[test]
fn a_table_may_be_a_view() {
    for device in devices::all() {
        let case = Case::usual("blocks").with_blocks([3, 4], [false; 4]);
        let (shape, data, size) = case.visible_blocks.clone().unwrap();
        let table = bools(data, shape, &device);
        let turned = table.swap_dims(2, 3).into_data();
        let view = Tensor::<4, Bool>::from_data(turned, &device).swap_dims(2, 3);
        let options = AttentionOptions::default().mask(AttentionMask::visible_blocks(view, size));
        let of_view = output_with(&case, &device, options);
        assert_eq!(bits(of_view), bits(output(&case, &device)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every structural mask, and every conjunction of them, equals its dense twin.
    #[test]
    fn a_structural_mask_equals_its_dense_twin(
        sizes in (1usize..3, 1usize..3, 1usize..3, 1usize..9, 1usize..9),
        causal in prop::option::of(prop::bool::ANY),
        window in prop::option::of((0usize..5, 0usize..5)),
        lengths in prop::option::of(prop::collection::vec(0usize..10, 2)),
        segments in prop::option::of(prop::collection::vec(0i64..3, 36)),
        blocks in prop::option::of((1usize..5, 1usize..5, prop::array::uniform4(prop::bool::ANY))),
    ) {
        let (batch, heads_kv, group, len_q, len_kv) = sizes;
        let structural = Case {
            causal: causal.map(|top| if top { CausalAlignment::TopLeft } else { CausalAlignment::BottomRight }),
            window: window.map(|(left, right)| Window { left: Some(left), right: Some(right) }),
            key_lengths: lengths.map(|lengths| lengths[..batch].iter().map(|&length| length.min(len_kv)).collect()),
            segments: segments.map(|ids| (ids[..batch * len_q].to_vec(), ids[18..18 + batch * len_kv].to_vec())),
            ..Case::new("structural", [batch, heads_kv * group, heads_kv, len_q, len_kv, 3, 2])
        };
        let structural = match blocks {
            Some((queries, keys, ones)) => structural.with_blocks([queries, keys], ones),
            None => structural,
        };
        let weights = structural.oracle().weights;
        let dense = Case {
            causal: None,
            window: None,
            key_lengths: None,
            segments: None,
            visible_blocks: None,
            masked: Some(([batch, heads_kv * group, len_q, len_kv], weights.iter().map(|&w| w == 0.0).collect())),
            ..structural.clone()
        };
        for device in devices::all() {
            if devices::is_sampled(&device) && (len_q + len_kv) % 4 != 0 {
                continue;
            }
            prop_assert_eq!(bits(output(&structural, &device)), bits(output(&dense, &device)));
        }
    }
}
