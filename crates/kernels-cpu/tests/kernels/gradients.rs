//! Gradients: central differences of the kernel's forward pass, and only the required ones.

use burn_attn_kernels_cpu::AttentionDropout;
use half::{bf16, f16};

use crate::{
    case::{Case, coarse, tensor},
    number::Number,
    options::everything,
    paths,
    run::{How, RequiredGrads, USUAL, bits, run},
};

/// `sum(output · output_gradient) + sum(logsumexp · logsumexp_gradient)`, in f64.
fn loss(case: &Case) -> f64 {
    let results = run::<f64>(case, USUAL);
    let dot = |name, gradient: &[f64]| {
        let terms = tensor(&results, name).iter().zip(gradient);
        // Rows that see nothing have a logsumexp of −∞ and no gradient.
        let terms = terms.filter(|(x, _)| x.is_finite());
        terms.map(|(x, gradient)| x * gradient).sum::<f64>()
    };
    let of_logsumexp = case.logsumexp_gradient.as_ref().unwrap();
    dot("output", &case.output_gradient) + dot("logsumexp", of_logsumexp)
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn gradients_are_central_differences_of_the_loss() {
    type Input = fn(&mut Case) -> &mut Vec<f64>;
    let inputs: [(&str, Input); 7] = [
        ("query gradient", |case| &mut case.query),
        ("key gradient", |case| &mut case.key),
        ("value gradient", |case| &mut case.value),
        ("bias gradient", |case| &mut case.bias.as_mut().unwrap().1),
        ("slopes gradient", |case| case.alibi.as_mut().unwrap()),
        ("table gradient", |case| {
            &mut case.relative.as_mut().unwrap().0
        }),
        ("sinks gradient", |case| case.sinks.as_mut().unwrap()),
    ];
    let mut case = Case::new("everything at once", [2, 4, 2, 7, 11, 3, 2]);
    everything(&mut case);
    let gradients = case.of_parameters(run::<f64>(&case, USUAL));
    for (name, input) in inputs {
        let gradient = tensor(&gradients, name);
        let largest = gradient
            .iter()
            .fold(0.0, |largest: f64, x| largest.max(x.abs()));
        assert!(largest > 0.1, "{name} is nothing but {largest}");
        for (index, &gradient) in gradient.iter().enumerate() {
            const STEP: f64 = 1e-4;
            let moved = |by: f64| {
                let mut case = case.clone();
                input(&mut case)[index] += by;
                loss(&case)
            };
            let difference = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let error = (difference - gradient).abs();
            assert!(
                error < 1e-7,
                "{name}[{index}] is {gradient} instead of {difference}"
            );
        }
    }
}

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
            let asked = |index: usize| subset >> index & 1 == 1;
            let required = RequiredGrads {
                q: asked(0),
                k: asked(1),
                v: asked(2),
                bias: asked(3),
                distance_bias: asked(4),
                sinks: asked(5),
            };
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
