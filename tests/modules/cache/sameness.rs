//! The same numbers with and without a cache.

use burn::tensor::Tensor;
use burn_attn::{
    CrossAttentionConfig, CrossAttentionInput, KvCache, KvCacheConfig, SelfAttention,
    SelfAttentionInput,
};
use burn_attn_tests::{
    compare::{assert_close, assert_same},
    devices,
    numbers::{filled, tensor},
};

use super::{D_MODEL, in_pieces, modules, small};

const TOLERANCE: f64 = 2e-6;

#[test]
fn any_pieces_give_the_whole() {
    for (backend, device) in devices::cpu() {
        let x = tensor([2, 23, D_MODEL], 1, &device);
        for (name, module) in modules(&device) {
            let whole = module.forward(SelfAttentionInput::new(x.clone()));
            for pieces in [vec![23], vec![7, 1, 1, 11, 3], vec![1; 23]] {
                let mut cache = module.cache(2, &small(23));
                let cached = in_pieces(&module, &mut cache, &x, &pieces);
                assert_eq!(cache.lengths(), [23, 23]);
                let what = format!("{backend}, {name}, {pieces:?}");
                assert_close(&what, &cached.into_data(), &whole.to_data(), TOLERANCE);
            }
        }
    }
}

/// Each sequence alone, without padding and without a cache.
fn alone(module: &SelfAttention, x: &Tensor<3>, b: usize, len: usize) -> Tensor<3> {
    let x = x.clone().narrow(0, b, 1).narrow(1, 0, len);
    module.forward(SelfAttentionInput::new(x))
}

#[test]
fn sequences_of_unequal_lengths_do_not_disturb_each_other() {
    // Prompts, then pieces, of each of three sequences.
    let steps = [
        [5, 2, 7],
        [1, 1, 1],
        [3, 1, 0],
        [1, 1, 1],
        [1, 0, 1],
        [0, 1, 1],
        [2, 2, 2],
    ];
    for (backend, device) in devices::cpu() {
        let x = tensor([3, 17, D_MODEL], 1, &device);
        for (name, module) in modules(&device) {
            let mut cache = module.cache(3, &small(40));
            let mut at = [0; 3];
            for counts in steps {
                let longest = counts.into_iter().max().expect("three sequences");
                let rows = (0..3).map(|b| x.clone().narrow(0, b, 1).narrow(1, at[b], longest));
                let input =
                    SelfAttentionInput::new(Tensor::cat(rows.collect(), 0)).lengths(&counts);
                let output = module.forward_cached(input, &mut cache);
                for b in 0..3 {
                    let end = at[b] + counts[b];
                    if counts[b] > 0 {
                        let expected = alone(&module, &x, b, end).narrow(1, at[b], counts[b]);
                        let actual = output.clone().narrow(0, b, 1).narrow(1, 0, counts[b]);
                        let what = format!("{backend}, {name}, sequence {b} at {}", at[b]);
                        assert_close(&what, &actual.into_data(), &expected.into_data(), TOLERANCE);
                    }
                    at[b] = end;
                }
                assert_eq!(cache.lengths(), at);
            }
        }
    }
}

#[test]
fn padding_that_is_nan_is_seen_by_nobody() {
    for (backend, device) in devices::cpu() {
        let x = tensor([3, 7, D_MODEL], 1, &device);
        let nan = Tensor::full([1, 7, D_MODEL], f32::NAN, &device);
        // The longest sequence has no padding; a second prompt is placed evenly only if nothing came before.
        let lengths = [7, 4, 0];
        let rows = lengths.iter().enumerate().map(|(b, &length)| {
            let tokens = x.clone().narrow(0, b, 1);
            match length {
                7 => tokens,
                0 => nan.clone(),
                _ => {
                    let padding = nan.clone().narrow(1, length, 7 - length);
                    Tensor::cat(vec![tokens.narrow(1, 0, length), padding], 1)
                }
            }
        });
        let padded = Tensor::cat(rows.collect(), 0);
        for (name, module) in modules(&device) {
            let mut cache = module.cache(3, &small(40));
            let input = SelfAttentionInput::new(padded.clone()).lengths(&lengths);
            let output = module.forward_cached(input, &mut cache);
            for (b, &length) in lengths
                .iter()
                .enumerate()
                .filter(|(_, length)| **length > 0)
            {
                let actual = output.clone().narrow(0, b, 1).narrow(1, 0, length);
                let expected = alone(&module, &x, b, length);
                let what = format!("{backend}, {name}, sequence {b}");
                assert_close(&what, &actual.into_data(), &expected.into_data(), TOLERANCE);
            }
        }
    }
}

#[test]
fn padding_behind_all_sequences_needs_no_room() {
    let device = devices::any();
    let x = tensor([2, 8, D_MODEL], 1, &device);
    for (name, module) in modules(&device) {
        let whole = module.forward(SelfAttentionInput::new(x.clone()));
        let mut cache = module.cache(2, &small(8));
        let first = SelfAttentionInput::new(x.clone().narrow(1, 0, 7)).lengths(&[7, 6]);
        module.forward_cached(first, &mut cache);
        // The last position of the first sequence, the one before it of the second, and more padding than any needs: in
        // a window of 6, both have as many tokens left.
        let of_both = |x: &Tensor<3>| {
            let of_one = |b, at| x.clone().narrow(0, b, 1).narrow(1, at, 1);
            Tensor::cat(vec![of_one(0, 7), of_one(1, 6)], 0)
        };
        let padding = Tensor::ones([2, 2, D_MODEL], &device);
        let next = SelfAttentionInput::new(Tensor::cat(vec![of_both(&x), padding], 1));
        let output = module.forward_cached(next.lengths(&[1, 1]), &mut cache);
        assert_eq!(cache.lengths(), [8, 7]);
        let (actual, expected) = (
            output.narrow(1, 0, 1).into_data(),
            of_both(&whole).into_data(),
        );
        assert_close(name, &actual, &expected, TOLERANCE);
    }
}

#[test]
fn reordered_sequences_go_on_as_what_they_were() {
    let device = devices::any();
    let x = tensor([3, 9, D_MODEL], 1, &device);
    for (name, module) in modules(&device) {
        let whole = module.forward(SelfAttentionInput::new(x.clone()));
        let mut cache = module.cache(3, &small(9));
        in_pieces(&module, &mut cache, &x.clone().narrow(1, 0, 7), &[7]);
        let rows = [2, 0, 0, 1];
        cache.reorder(&rows);
        let of_rows = |x: &Tensor<3>| {
            let rows = rows
                .iter()
                .map(|&row| x.clone().narrow(0, row, 1).narrow(1, 7, 2));
            Tensor::cat(rows.collect(), 0)
        };
        let output = module.forward_cached(SelfAttentionInput::new(of_rows(&x)), &mut cache);
        let (actual, expected) = (output.into_data(), of_rows(&whole).into_data());
        assert_close(name, &actual, &expected, TOLERANCE);
    }
}

#[test]
fn truncated_sequences_go_on_where_they_were_cut() {
    let device = devices::any();
    let x = tensor([2, 13, D_MODEL], 1, &device);
    let wrong = tensor([2, 5, D_MODEL], 2, &device);
    for (name, module) in modules(&device) {
        let whole = module.forward(SelfAttentionInput::new(x.clone()));
        let mut cache = module.cache(2, &KvCacheConfig::new(13));
        in_pieces(&module, &mut cache, &x, &[8]);
        in_pieces(&module, &mut cache, &wrong, &[5]);
        cache.truncate(&[8, 8]);
        let rest = in_pieces(&module, &mut cache, &x.clone().narrow(1, 8, 5), &[1, 4]);
        let expected = whole.narrow(1, 8, 5);
        assert_close(name, &rest.into_data(), &expected.into_data(), TOLERANCE);
    }
}

#[test]
fn sequences_cut_to_nothing_begin_anew() {
    let device = devices::any();
    let x = tensor([2, 13, D_MODEL], 1, &device);
    let wrong = tensor([2, 13, D_MODEL], 2, &device);
    for (name, module) in modules(&device) {
        let whole = module.forward(SelfAttentionInput::new(x.clone()));
        let mut cache = module.cache(2, &small(26));
        in_pieces(&module, &mut cache, &wrong, &[11, 1, 1]);
        // Also where a window has dropped tokens: none of them is needed.
        cache.truncate(&[0, 0]);
        assert_eq!(cache.lengths(), [0, 0]);
        let again = in_pieces(&module, &mut cache, &x, &[3, 1, 9]);
        assert_close(name, &again.into_data(), &whole.into_data(), TOLERANCE);
    }
}

#[test]
fn one_sequence_cut_to_nothing_begins_anew() {
    let device = devices::any();
    let x = tensor([2, 13, D_MODEL], 1, &device);
    for (name, module) in modules(&device) {
        let mut cache = module.cache(2, &small(26));
        in_pieces(&module, &mut cache, &x, &[11, 1, 1]);
        cache.truncate(&[13, 0]);
        let next = tensor([2, 5, D_MODEL], 3, &device);
        let output = in_pieces(&module, &mut cache, &next, &[3, 1, 1]);
        let of = |b| {
            let row = |x: &Tensor<3>| x.clone().narrow(0, b, 1);
            let sequence = match b {
                0 => Tensor::cat(vec![row(&x), row(&next)], 1),
                _ => row(&next),
            };
            let [_, len, _] = sequence.dims();
            let whole = module.forward(SelfAttentionInput::new(sequence));
            whole.narrow(1, len - 5, 5)
        };
        let expected = Tensor::cat(vec![of(0), of(1)], 0);
        assert_close(name, &output.into_data(), &expected.into_data(), TOLERANCE);
    }
}

#[test]
fn a_reset_cache_is_a_new_one() {
    let device = devices::any();
    let x = tensor([2, 6, D_MODEL], 1, &device);
    for (_, module) in modules(&device) {
        let mut cache = module.cache(2, &small(6));
        let first = in_pieces(&module, &mut cache, &x, &[4, 2]);
        cache.reset();
        assert_same(&in_pieces(&module, &mut cache, &x, &[4, 2]), &first);
    }
}

#[test]
fn a_memory_projected_once_is_the_same() {
    for (_, device) in devices::cpu() {
        let config = CrossAttentionConfig::new(D_MODEL, 6)
            .with_n_kv_heads(2)
            .with_d_memory(11);
        let module = filled(config.init(&device), 1);
        let memory = tensor([2, 7, 11], 2, &device);
        let query = tensor([2, 5, D_MODEL], 3, &device);
        let whole = module.forward(CrossAttentionInput::new(query.clone(), memory.clone()));
        let projected = module.project_memory(memory);
        let again = module.forward(CrossAttentionInput::new(query, projected));
        assert_same(&again, &whole);
    }
}

#[test]
fn sequences_that_join_go_on_as_if_alone() {
    for (backend, device) in devices::cpu() {
        let x = tensor([3, 17, D_MODEL], 1, &device);
        let read = |module: &SelfAttention, cache: &mut KvCache, first, pieces: &[usize]| {
            if !pieces.is_empty() {
                in_pieces(
                    module,
                    cache,
                    &x.clone().narrow(0, first, cache.batch()),
                    pieces,
                );
            }
        };
        for (name, module) in modules(&device) {
            let whole = module.forward(SelfAttentionInput::new(x.clone()));
            // Caches of unequal lengths and capacities, either of which may be the larger; none at all yet; as many as the others.
            for (running, joining) in [(9, 3), (3, 9), (0, 5), (5, 0), (7, 7)] {
                let mut cache = module.cache(2, &small(40));
                read(&module, &mut cache, 0, &vec![1; running]);
                let mut other = module.cache(1, &small(40));
                read(&module, &mut other, 2, &vec![1; joining]);
                cache.join(other);
                let lengths = [running, running, joining];
                assert_eq!(cache.lengths(), lengths);
                let next = |x: &Tensor<3>| {
                    let rows = lengths.iter().enumerate();
                    let rows = rows.map(|(b, &at)| x.clone().narrow(0, b, 1).narrow(1, at, 8));
                    Tensor::cat(rows.collect(), 0)
                };
                let output = in_pieces(&module, &mut cache, &next(&x), &[1, 2, 1, 1, 3]);
                let what = format!("{backend}, {name}, {joining} join {running}");
                let (actual, expected) = (output.into_data(), next(&whole).into_data());
                assert_close(&what, &actual, &expected, TOLERANCE);
            }
        }
    }
}

#[test]
fn nothing_joins_and_is_joined() {
    let device = devices::any();
    let x = tensor([2, 3, D_MODEL], 1, &device);
    let (_, module) = modules(&device).swap_remove(0);
    let mut cache = module.cache(2, &small(9));
    in_pieces(&module, &mut cache, &x, &[3]);
    cache.join(module.cache(0, &small(9)));
    assert_eq!(cache.lengths(), [3, 3]);
    let mut none = module.cache(0, &small(9));
    none.join(cache);
    assert_eq!(none.lengths(), [3, 3]);
}
