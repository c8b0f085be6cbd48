//! Offsets of the caller, from before the first key to behind the last.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionMask, CausalAlignment, CrossAttentionInput, MultiHeadAttentionInput,
    ScoreFunction,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_tests::{
    compare::{assert_close, differs, numbers},
    devices, parameters,
};

use super::{LEN, LENGTHS, Mask, batch, cases, close, cross, encodings, multi_head, one};

#[test]
fn the_caller_wins_over_a_name_and_a_name_over_the_default() {
    let top_left = || AttentionMask::causal_aligned(CausalAlignment::TopLeft);
    let bottom_right = || AttentionMask::causal_aligned(CausalAlignment::BottomRight);
    for (backend, device) in devices::cpu() {
        for (encoding_name, encoding) in encodings() {
            let name = format!("{encoding_name}, {backend}");
            let (queries, keys) = (batch(3, 1, &device), batch(LEN, 2, &device));
            let module = multi_head(encoding.clone(), &device);
            let of = |mask: AttentionMask, offset: Option<i64>| {
                let input = MultiHeadAttentionInput::cross_attention(queries.clone(), keys.clone());
                let input = input.mask(mask);
                module.forward(match offset {
                    Some(offset) => input.offset(offset),
                    None => input,
                })
            };
            let causal = AttentionMask::causal;
            // A name in a union is a name.
            let or_last = |mask: AttentionMask| {
                let is_last: Vec<bool> = (0..LEN).map(|key| key + 1 == LEN).collect();
                let is_last = TensorData::new(is_last, [1, 1, 1, LEN]);
                mask.or(AttentionMask::visible(Tensor::from_data(is_last, &device)))
            };
            let united = |mask, offset| of(or_last(mask), offset);
            for (mask, given, meant) in [
                (top_left(), None, 0),
                (top_left(), Some(2), 2),
                (bottom_right(), None, 4),
            ] {
                close(
                    &name,
                    united(mask.clone(), given),
                    united(causal(), Some(meant)),
                );
                close(&name, of(mask, given), of(causal(), Some(meant)));
            }
            close(&name, of(causal(), None), of(causal(), Some(4)));
            assert!(differs(&of(causal(), Some(0)), &of(causal(), Some(2))));

            let module = cross(encoding, &device);
            let of = |mask: AttentionMask, offset: Option<i64>| {
                let input = CrossAttentionInput::new(queries.clone(), keys.clone()).mask(mask);
                module.forward(match offset {
                    Some(offset) => input.offset(offset),
                    None => input,
                })
            };
            for (mask, given, meant) in [
                (causal(), None, 0),
                (bottom_right(), None, 4),
                (top_left(), None, 0),
                (bottom_right(), Some(2), 2),
            ] {
                close(&name, of(mask, given), of(causal(), Some(meant)));
            }
            let united = |mask, offset| of(or_last(mask), offset);
            let of_causal = |offset| united(causal(), Some(offset));
            close(&name, united(bottom_right(), None), of_causal(4));
            close(&name, united(causal(), None), of_causal(0));
        }
    }
}

/// A causal mask counts from the ends of the sequences, a window and a bias between the positions.
#[test]
fn a_name_beside_equal_positions() {
    const SLOPES: [f32; 3] = [0.5, 0.375, 0.25];
    for (backend, device) in devices::cpu() {
        let module = cross(PositionEncoding::None, &device);
        let input = || {
            let input = CrossAttentionInput::new(batch(LEN, 1, &device), batch(LEN, 2, &device));
            let bottom_right = AttentionMask::causal_aligned(CausalAlignment::BottomRight);
            input.mask(bottom_right).lengths(&LENGTHS)
        };
        let slopes = || Tensor::<1>::from_data(SLOPES, &device);
        let by_distance = || {
            let input = input().mask(AttentionMask::window(5, 0));
            input.bias(AttentionBias::alibi(slopes()))
        };
        let places = vec![(0..LEN).collect::<Vec<_>>(); 3];
        let input_at = by_distance()
            .positions(places.clone())
            .key_positions(places);
        let actual = module.forward(input_at);

        let distances = (0..LEN).flat_map(|query| (0..LEN).map(move |key| query.abs_diff(key)));
        let distances: Vec<f32> = distances.map(|distance| distance as f32).collect();
        let distances = TensorData::new(distances, [1, 1, LEN, LEN]);
        let distances = Tensor::<4>::from_data(distances, &device);
        let beyond = AttentionMask::masked(distances.clone().greater_elem(5));
        let bias = AttentionBias::dense(distances * -slopes().reshape([1, 3, 1, 1]));
        let expected = module.forward(input().mask(beyond).bias(bias));
        assert!(differs(&module.forward(by_distance()), &actual));
        close(backend, actual, expected);
    }
}

#[test]
fn only_the_distance_of_queries_and_keys_matters() {
    for (name, encoding, mask, device) in cases() {
        let module = cross(encoding, &device);
        let (queries, memory) = (batch(5, 1, &device), batch(LEN, 2, &device));
        // The same memory after three keys that nobody sees.
        let later = Tensor::cat(vec![batch(3, 6, &device), memory.clone()], 1);
        let unseen = Tensor::<2, Int>::ones([3, LEN + 3], &device);
        let unseen = unseen.slice_fill([0..3, 3..LEN + 3], 0).equal_elem(1);
        for offset in [-9, -3, -1, 2, 11] {
            let input = CrossAttentionInput::new(queries.clone(), memory.clone()).mask(mask());
            let states = module.forward(input.offset(offset));
            let input = CrossAttentionInput::new(queries.clone(), later.clone()).mask(mask());
            let input = input.mask(AttentionMask::mask_pad(unseen.clone()));
            let shifted = module.forward(input.offset(offset + 3));
            close(&format!("{name}, from {offset} on"), states, shifted);
        }
    }
}

#[test]
fn queries_before_the_first_key_see_nothing() {
    let causal = |(name, ..): &(String, PositionEncoding, Mask, Device)| name.contains("causal");
    for (name, encoding, mask, device) in cases().into_iter().filter(causal) {
        let module = cross(encoding, &device);
        let bias = module.output.bias.as_ref().expect("a bias").val();
        let (queries, memory) = (batch(5, 1, &device), batch(LEN, 2, &device));
        let input = CrossAttentionInput::new(queries, memory).mask(mask());
        // The last of them in the range of the operation, and beyond it.
        for offsets in [[-3, -5, 0], [-3, -11, 0]] {
            let output = module.forward_with_weights(input.clone().offset(offsets));
            for (b, blind) in [3, 5, 0].into_iter().enumerate() {
                let sums = numbers(&output.weights.clone().narrow(0, b, 1).sum_dim(3));
                for sums in sums.chunks(5) {
                    assert!(sums[..blind].iter().all(|&sum| sum == 0.0), "{name}");
                    assert!(sums[blind..].iter().all(|&sum| (sum - 1.0).abs() < 1e-5));
                }
                if blind > 0 {
                    let states = one(&output.states, b, blind);
                    let of_zeros = bias.clone().unsqueeze::<3>().expand(states.dims());
                    close(&name, states, of_zeros);
                }
            }
        }
    }
}

/// Keys and queries of an f64 model turn by angles of one precision, wherever the offset is known.
#[test]
fn an_f64_model_rotates_by_f64_angles_from_any_offset() {
    let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_max_len(19));
    for (name, device) in devices::cpu() {
        let module = parameters::wide(cross(rotary.clone(), &device));
        let queries = batch(5, 1, &device).cast(DType::F64);
        let memory = batch(LEN, 2, &device).cast(DType::F64);
        let seen = AttentionMask::window(3, 3);
        let input = CrossAttentionInput::new(queries.clone(), memory.clone()).mask(seen.clone());
        let states = module.forward(input.offset(-3));
        let padded = Tensor::cat(
            vec![batch(3, 6, &device).cast(DType::F64), memory.clone()],
            1,
        );
        let hidden = Tensor::<2, Int>::zeros([3, LEN + 3], &device);
        let hidden = hidden.slice_fill([0..3, 0..3], 1).equal_elem(1);
        let input = CrossAttentionInput::new(queries.clone(), padded).mask(seen);
        let shifted = module.forward(input.mask(AttentionMask::mask_pad(hidden)).offset(0));
        assert_close(name, &states.into_data(), &shifted.into_data(), 1e-14);
    }
}

/// Whatever a window counts between given positions, in a run, apart, or far from the keys.
#[test]
fn functions_count_tokens_beside_positions() {
    for (backend, device) in devices::cpu() {
        let (queries, keys) = (batch(3, 1, &device), batch(LEN, 2, &device));
        let module = multi_head(PositionEncoding::None, &device);
        let of = |mask: AttentionMask| {
            let function = ScoreFunction::new("falling", |scores, pairs| {
                scores - pairs.distances().abs().float()
            });
            let input = MultiHeadAttentionInput::cross_attention(queries.clone(), keys.clone());
            input.mask(mask).score_function(function)
        };
        for at in [[2, 3, 4], [1, 2, 5], [100, 101, 102]] {
            // The last token is seen by all.
            let is_last = |key: usize| key + 1 == LEN;
            let last: Vec<bool> = (0..LEN).map(is_last).collect();
            let last = Tensor::from_data(TensorData::new(last, [1, 1, 1, LEN]), &device);
            let near = AttentionMask::window(1, 1).or(AttentionMask::visible(last));
            let visible = at.iter().flat_map(|&at: &usize| {
                (0..LEN).map(move |key| at.abs_diff(key) <= 1 || is_last(key))
            });
            let visible: Vec<bool> = visible.collect();
            let visible = Tensor::from_data(TensorData::new(visible, [1, 1, 3, LEN]), &device);
            let expected = module.forward(of(AttentionMask::visible(visible)));
            let positions = vec![at.to_vec(); queries.dims()[0]];
            close(
                &format!("{backend}, {at:?}"),
                module.forward(of(near).positions(positions)),
                expected,
            );
        }
    }
}
