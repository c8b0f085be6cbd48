//! Decoding by stacks with such layers.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, BlockConfig, CacheStorage, KvCacheConfig, LayerInput, TransformerStack,
};
use burn_attn_tests::{
    compare::{assert_close, error},
    devices,
    numbers::tensor,
};

use super::{D_MODEL, LEN, TOLERANCE, block, encodings, stack};
use crate::cache::one_by_one;

const PIECES: [&[usize]; 3] = [&[LEN], &[1; LEN], &[4, 1, 1, 3, 2]];

/// Windows in turn, each with keys of its own once.
fn alternating(far: BlockConfig, device: &Device) -> TransformerStack {
    let near = far.clone().with_window(3);
    let sharing = |block: &BlockConfig| block.clone().with_shared_key_value(true);
    let last = [sharing(&near), sharing(&far), sharing(&near)];
    stack(true, [near, far].into_iter().chain(last).collect(), device)
}

/// What the stack says to `x` in pieces of these lengths, whose tokens are at `positions`, if they are given.
fn in_pieces(
    stack: &TransformerStack,
    config: &KvCacheConfig,
    (x, positions): (&Tensor<3>, Option<&[Vec<usize>]>),
    pieces: &[usize],
) -> TensorData {
    let [batch, _, _] = x.dims();
    let mut cache = stack.cache(batch, config);
    let outputs = one_by_one(pieces, |first, len| {
        let piece = LayerInput::new(x.clone().narrow(1, first, len));
        let piece = match positions {
            Some(positions) => {
                let at = |list: &Vec<usize>| list[first..first + len].to_vec();
                piece.positions(positions.iter().map(at).collect::<Vec<_>>())
            }
            None => piece,
        };
        stack.forward_cached(piece, &mut cache)
    });
    outputs.into_data()
}

fn small() -> KvCacheConfig {
    KvCacheConfig::new(LEN).with_initial_capacity(2)
}

#[test]
fn any_pieces_give_the_whole() {
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        for (name, encoding) in encodings() {
            let far = block(&encoding);
            for (kind, far) in [
                ("plain", far.clone()),
                ("gate", far.clone().with_gate(true)),
                ("parallel", far.with_parallel(true)),
            ] {
                let stack = alternating(far, &device);
                assert_eq!(stack.cache(2, &small()).layers().len(), 2);
                let expected = stack.forward(x.clone()).into_data();
                for pieces in PIECES {
                    let what = format!("{backend}, {name}, {kind}, {pieces:?}");
                    let actual = in_pieces(&stack, &small(), (&x, None), pieces);
                    assert_close(&what, &actual, &expected, TOLERANCE);
                    let in_8_bits = small().with_storage(CacheStorage::Int8);
                    let actual = in_pieces(&stack, &in_8_bits, (&x, None), pieces);
                    let error = error(&actual, &expected);
                    assert!((1e-5..1e-2).contains(&error), "{what}: {error:.1e}");
                }
            }
        }
    }
}

/// Tokens with gaps between them are what they are among tokens that nobody sees.
#[test]
fn tokens_at_given_positions() {
    const AT: [[usize; 5]; 2] = [[0, 1, 3, 6, 10], [1, 2, 4, 5, 9]];
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        let there = |x: &Tensor<3>| {
            let rows = AT.iter().enumerate().map(|(b, at)| {
                let at = Tensor::<1, Int>::from_data(at.map(|at| at as i64), &device);
                x.clone().narrow(0, b, 1).select(1, at)
            });
            Tensor::cat(rows.collect(), 0)
        };
        let gaps = AT
            .iter()
            .flat_map(|at| (0..LEN).map(|key| !at.contains(&key)));
        let gaps = TensorData::new(gaps.collect::<Vec<_>>(), [2, 1, 1, LEN]);
        let gaps = AttentionMask::masked(Tensor::<4, Bool>::from_data(gaps, &device));
        let positions = AT.map(Vec::from).to_vec();
        for (name, encoding) in encodings() {
            let stack = alternating(block(&encoding), &device);
            let whole = stack.forward(LayerInput::new(x.clone()).mask(gaps.clone()));
            let expected = there(&whole).into_data();
            let input = LayerInput::new(there(&x)).positions(positions.clone());
            let actual = stack.forward(input).into_data();
            assert_close(&format!("{backend}, {name}"), &actual, &expected, TOLERANCE);
            for pieces in [&[5][..], &[2, 1, 1, 1]] {
                let what = format!("{backend}, {name}, {pieces:?}");
                let tokens = (&there(&x), Some(positions.as_slice()));
                let actual = in_pieces(&stack, &small(), tokens, pieces);
                assert_close(&what, &actual, &expected, TOLERANCE);
            }
        }
    }
}

/// All keys are those of the first layer, so that what has been dropped has left no trace.
#[test]
fn a_full_cache_with_sink_tokens() {
    const MAX_LEN: usize = 5;
    const SINKS: usize = 2;
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        for (name, encoding) in encodings() {
            let own = block(&encoding);
            let sharing = own.clone().with_shared_key_value(true);
            let stack = stack(true, vec![own, sharing.clone(), sharing], &device);
            let mut cache = stack.cache(2, &KvCacheConfig::new(MAX_LEN).with_sink_tokens(SINKS));
            let mut read = 0;
            for new in [3, 1, 1, 2, 3, 1] {
                let piece = x.clone().narrow(1, read, new);
                read += new;
                let actual = stack.forward_cached(piece, &mut cache).into_data();
                let dropped = read.saturating_sub(MAX_LEN);
                let newest = x.clone().narrow(1, SINKS + dropped, read - SINKS - dropped);
                let left = Tensor::cat(vec![x.clone().narrow(1, 0, SINKS), newest], 1);
                let expected = stack.forward(left);
                let [_, len, _] = expected.dims();
                let expected = expected.narrow(1, len - new, new).into_data();
                let what = format!("{backend}, {name}, after {read}");
                assert_close(&what, &actual, &expected, TOLERANCE);
            }
        }
    }
}

/// Sequences of different lengths, masks, positions, drafts that are taken back, and one prompt for several sequences.
#[test]
fn caches_change_as_they_do_without() {
    let device = devices::any();
    let x: Tensor<3> = tensor([3, LEN, D_MODEL], 1, &device);
    let alone =
        |b: usize, first: usize, len: usize| x.clone().narrow(0, b, 1).narrow(1, first, len);
    for (name, encoding) in encodings() {
        let stack = alternating(block(&encoding), &device);
        let last = |tokens: Tensor<3>| {
            let [_, len, _] = tokens.dims();
            stack.forward(tokens).narrow(1, len - 1, 1).into_data()
        };
        let config = KvCacheConfig::new(2 * LEN).with_initial_capacity(2);
        let mut cache = stack.cache(2, &config);
        let prompts = LayerInput::new(x.clone().narrow(0, 0, 2).narrow(1, 0, 6)).lengths(&[6, 2]);
        stack.forward_cached(prompts, &mut cache);
        cache.reserve(3);
        stack.forward_cached(tensor::<3>([2, 3, D_MODEL], 7, &device), &mut cache);
        cache.truncate(&[6, 2]);
        let next = Tensor::cat(vec![alone(0, 6, 1), alone(1, 2, 1)], 0);
        let actual = stack.forward_cached(next, &mut cache);
        for (b, len) in [(0, 7), (1, 3)] {
            let actual = actual.clone().narrow(0, b, 1).into_data();
            assert_close(name, &actual, &last(alone(b, 0, len)), TOLERANCE);
        }
        // A mask that hides what the cache does not hold.
        let mut masked = cache.clone();
        let hidden = Tensor::<4>::zeros([2, 1, 1, 8], &device).bool();
        let token = || LayerInput::new(x.clone().narrow(0, 0, 2).narrow(1, 7, 1));
        let with_mask = token().mask(AttentionMask::masked(hidden));
        let actual = stack.forward_cached(with_mask, &mut masked).into_data();
        let expected = stack.forward_cached(token(), &mut cache).into_data();
        assert_close(name, &actual, &expected, TOLERANCE);

        let mut shared = stack.cache(1, &config);
        stack.forward_cached(alone(2, 0, 5), &mut shared);
        shared.fork(2);
        let next = Tensor::cat(vec![alone(0, 5, 1), alone(1, 5, 1)], 0);
        let actual = stack.forward_cached(next, &mut shared);
        for b in 0..2 {
            let actual = actual.clone().narrow(0, b, 1).into_data();
            let tokens = Tensor::cat(vec![alone(2, 0, 5), alone(b, 5, 1)], 1);
            assert_close(name, &actual, &last(tokens), TOLERANCE);
        }
    }
}
