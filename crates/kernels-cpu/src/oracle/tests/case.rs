//! One problem with all its buffers, reproducibly random.

use crate::oracle::{Forward, Gradients, Inputs, backward, forward};
use crate::{AttentionDropout, Broadcast, Mask, Options, Problem, RelativeBuckets};

/// Every size is different, so that a swapped axis fails; two query heads share each key/value head.
pub const PRIMES: Problem = Problem {
    batch: 2,
    heads_q: 6,
    heads_kv: 3,
    len_q: 5,
    len_kv: 7,
    dim_qk: 11,
    dim_v: 13,
};

/// More queries than keys.
pub const TALL: Problem = Problem {
    len_q: 7,
    len_kv: 5,
    ..PRIMES
};

/// Small enough that the lengths above reach its shared buckets.
pub const BUCKETS: RelativeBuckets = RelativeBuckets {
    buckets: 8,
    max_distance: 5,
    bidirectional: true,
};

/// Owned inputs and incoming gradients.
#[derive(Clone)]
pub struct Case<'a> {
    pub problem: Problem,
    pub q: Vec<f64>,
    pub k: Vec<f64>,
    pub v: Vec<f64>,
    pub mask: Mask<'a>,
    pub bias: Option<(Vec<f64>, [usize; 4])>,
    pub alibi: Option<Vec<f64>>,
    pub relative: Option<(Vec<f64>, RelativeBuckets)>,
    pub sinks: Option<Vec<f64>>,
    pub softcap: Option<f64>,
    pub scale: Option<f64>,
    pub dropout: Option<AttentionDropout>,
    pub output_gradient: Vec<f64>,
    pub logsumexp_gradient: Option<Vec<f64>>,
}

impl<'a> Case<'a> {
    pub fn new(problem: Problem) -> Self {
        Self {
            problem,
            q: numbers(1, problem.query_elements()),
            k: numbers(2, problem.key_elements()),
            v: numbers(3, problem.value_elements()),
            mask: Mask::default(),
            bias: None,
            alibi: None,
            relative: None,
            sinks: None,
            softcap: None,
            scale: None,
            dropout: None,
            output_gradient: numbers(4, problem.output_elements()),
            logsumexp_gradient: None,
        }
    }

    /// Plain attention but for the mask.
    pub fn masked_by(problem: Problem, set: impl FnOnce(&mut Mask<'a>)) -> Self {
        let mut case = Self::new(problem);
        set(&mut case.mask);
        case
    }

    /// All options together, without a mask.
    pub fn with_all_options(problem: Problem) -> Self {
        let bias_shape = [1, problem.heads_q, problem.len_q, problem.len_kv];
        Self {
            bias: Some((numbers(5, bias_shape.iter().product()), bias_shape)),
            alibi: Some(numbers(9, problem.heads_q)),
            relative: Some((numbers(10, 8 * problem.heads_q), BUCKETS)),
            sinks: Some(numbers(6, problem.heads_q)),
            softcap: Some(1.7),
            scale: Some(0.6),
            dropout: Some(AttentionDropout {
                probability: 0.3,
                seed: 23,
            }),
            logsumexp_gradient: Some(numbers(7, problem.query_rows())),
            ..Self::new(problem)
        }
    }

    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            q: &self.q,
            k: &self.k,
            v: &self.v,
            options: Options {
                mask: self.mask,
                bias: self
                    .bias
                    .as_ref()
                    .map(|(data, shape)| Broadcast::new(data, *shape).unwrap()),
                sinks: self.sinks.as_deref(),
                softcap: self.softcap,
                scale: self.scale,
                dropout: self.dropout,
            },
            alibi: self.alibi.as_deref(),
            relative: self
                .relative
                .as_ref()
                .map(|(table, buckets)| (table.as_slice(), *buckets)),
        }
    }

    pub fn forward(&self) -> Forward {
        forward(&self.problem, &self.inputs()).unwrap()
    }

    pub fn backward(&self) -> Gradients {
        let logsumexp_gradient = self.logsumexp_gradient.as_deref();
        backward(
            &self.problem,
            &self.inputs(),
            &self.output_gradient,
            logsumexp_gradient,
        )
        .unwrap()
    }
}

/// `count` numbers in (-1, 1), the same on every run: splitmix64.
pub fn numbers(stream: u64, count: usize) -> Vec<f64> {
    let mut state = stream << 32;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..count)
        .map(|_| (next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0)
        .collect()
}

/// Fails unless all elements agree to `tolerance`, relative for numbers above 1.
#[track_caller]
pub fn assert_close(name: &str, actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{name}: lengths differ");
    for (index, (&a, &e)) in actual.iter().zip(expected).enumerate() {
        // Equality first, because the difference of two infinities is not a number.
        let close = a == e || (a - e).abs() <= tolerance * e.abs().max(1.0);
        assert!(close, "{name}[{index}]: {a} instead of {e}");
    }
}
