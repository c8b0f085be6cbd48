//! The numbers in Python, with PyTorch:
//!
//! ```sh
//! OMP_NUM_THREADS=1 python3 -c '
//! import sys; sys.path.append("crates/bench/src"); import peers
//! print(peers.scrambled(7, 3).tolist(), peers.scrambled(325, 1000003)[-2:].tolist())
//! print(peers.numbers(7, (3,)).tolist(), peers.numbers(325, (1000003,), 4.0)[-2:].tolist())
//! print(peers.tokens(7, (5,), 37).tolist(), peers.tokens(325, (1000003,), 8192)[-2:].tolist())
//! digest = peers.digest("", peers.numbers(7, (1310,)))
//! print(digest["mean"], digest["largest"], digest["root_mean_square"], digest["count"], len(digest["samples"]), digest["samples"][-1])
//! ' 1 1 1 1
//! ```

use super::*;

#[test]
fn the_same_hash_as_in_python() {
    let hashes = |seed, indices: core::ops::Range<u32>| -> Vec<_> {
        indices.map(|index| hash(seed, index)).collect()
    };
    assert_eq!(hashes(7, 0..3), [682_914_019, 3_984_869_370, 1_144_724_957]);
    assert_eq!(
        hashes(325, 1_000_001..1_000_003),
        [625_828_487, 1_112_434_967]
    );
}

#[test]
fn the_same_numbers_as_in_python() {
    // As f64, in which Python prints f32: every digit counts.
    let numbers = |seed, count, scale| -> Vec<f64> {
        let numbers = super::numbers(seed, count, scale);
        numbers.into_iter().map(f64::from).collect()
    };
    assert_eq!(
        numbers(7, 3, 1.0),
        [
            -0.681_993_484_497_070_3,
            0.855_599_284_172_058_1,
            -0.466_946_005_821_228
        ]
    );
    assert_eq!(
        numbers(325, 1_000_003, 4.0)[1_000_001..],
        [-2.834_303_855_895_996, -1.927_928_447_723_388_7]
    );
}

#[test]
fn the_same_tokens_as_in_python() {
    assert_eq!(tokens(7, 5, 37), [32, 31, 18, 28, 33]);
    assert_eq!(tokens(325, 1_000_003, 8192)[1_000_001..], [3324, 7067]);
}

#[test]
fn no_token_is_padding_or_beyond_the_vocabulary() {
    let tokens = tokens(1, 1000, 7);
    assert!((1..7).all(|token| tokens.contains(&token)));
    assert!(tokens.iter().all(|token| (1..7).contains(token)));
}
