//! Gradients: only the required ones, and in half precision.

use burn_attn_kernels_cpu::AttentionDropout;
use half::{bf16, f16};

use crate::{
    case::{Case, coarse, tensor},
    number::Number,
    options::everything,
    paths,
    run::{How, USUAL, bits, run},
};

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn what_else_is_asked_for_changes_no_bit() {
    for (name, sizes) in [
        paths::GROUPED,
        paths::MANY_HEADS,
        paths::SPLIT,
        paths::ONE_QUERY,
    ] {
        let mut case = Case::new(name, sizes);
        everything(&mut case);
        let all = bits(&run::<f32>(&case, USUAL));
        for subset in 0..64 {
            let required = std::array::from_fn(|index| subset >> index & 1 == 1);
            let some = bits(&run::<f32>(&case, How { required, ..USUAL }));
            assert_eq!(some.len(), 2 + (subset as u32).count_ones() as usize);
            for tensor in some {
                assert!(all.contains(&tensor), "{name}, {required:?}: {}", tensor.0);
            }
        }
    }
}

/// Gradients of a row's scores add up to 0 only with an output that is not rounded, and slopes have the distances as factors.
#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn slopes_in_half_precision() {
    fn error<T: Number>(case: &Case) -> f64 {
        let found = case.of_parameters(run::<T>(case, USUAL));
        let oracle = case.oracle();
        let [found, oracle] = [&found, &oracle].map(|all| tensor(all, "slopes gradient"));
        let pairs = found.iter().zip(oracle);
        let apart = pairs.fold(0.0, |most: f64, (x, y)| most.max((x - y).abs()));
        apart / oracle.iter().fold(0.0, |most: f64, y| most.max(y.abs()))
    }
    for len_q in [1, 70] {
        for seed in 0..4 {
            let mut case = Case::new("slopes", [2, 4, 2, len_q, 90, 16, 24]);
            case.alibi = Some(coarse(seed, 4));
            case.dropout = Some(AttentionDropout {
                probability: 0.3,
                seed,
            });
            let errors = [error::<f16>(&case), error::<bf16>(&case)];
            assert!(errors.iter().all(|&error| error < 1e-4), "{errors:?}");
        }
    }
}
