//! A step on several replicas of the model, each with a part of the batch and threads of its own.
//!
//! Most of a step is not in products of matrices, and what is not runs on one thread. Replicas run it side by side. Their
//! gradients are added up in their order, so a run repeats exactly.

use std::thread;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::batches::Sample;

/// Threads for each replica.
pub struct Replicas {
    pools: Vec<ThreadPool>,
}

impl Replicas {
    /// So many replicas, among which rayon's threads are divided.
    pub fn new(count: usize) -> Self {
        let threads = rayon::current_num_threads();
        let pool = |_| {
            ThreadPoolBuilder::new()
                .num_threads(threads.div_ceil(count))
                .build()
                .expect("the system has threads")
        };
        // A single one has all threads anyway.
        let pools = if count > 1 { count } else { 0 };
        Self {
            pools: (0..pools).map(pool).collect(),
        }
    }

    /// The results of `work` for each input, in their order, each on a replica's threads. There are at most as many inputs as replicas.
    pub fn map<I: Send, T: Send>(
        &self,
        inputs: Vec<I>,
        work: impl Fn(usize, I) -> T + Sync,
    ) -> Vec<T> {
        if self.pools.is_empty() {
            return inputs
                .into_iter()
                .enumerate()
                .map(|(number, input)| work(number, input))
                .collect();
        }
        thread::scope(|scope| {
            let numbered = inputs.into_iter().zip(&self.pools).enumerate();
            let threads: Vec<_> = numbered
                .map(|(number, (input, pool))| {
                    let work = &work;
                    scope.spawn(move || pool.install(|| work(number, input)))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| match thread.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect()
        })
    }
}

/// Divides a batch into at most `count` parts of about as many tokens.
pub fn parts<'a>(samples: &'a [&'a Sample], count: usize) -> Vec<&'a [&'a Sample]> {
    let total: usize = samples.iter().map(|sample| sample.tokens()).sum();
    let mut parts = Vec::new();
    let (mut rest, mut tokens) = (samples, 0);
    for part in 1..=count {
        let end = rest
            .iter()
            .take_while(|sample| {
                let before = tokens;
                tokens += sample.tokens();
                // The sample whose middle is beyond the part's end belongs to the next.
                let is_in = (before + tokens) * count <= 2 * total * part;
                if !is_in {
                    tokens = before;
                }
                is_in
            })
            .count();
        let end = if part == count { rest.len() } else { end };
        let (head, tail) = rest.split_at(end);
        if !head.is_empty() {
            parts.push(head);
        }
        rest = tail;
    }
    parts
}

/// Adds up the gradients of the parameters of `model`, in the order of the replicas.
pub fn sum<M: Module>(model: &M, gradients: Vec<GradientsParams>) -> GradientsParams {
    let mut gradients = gradients.into_iter();
    let mut sum = Sum {
        sum: gradients.next().unwrap_or_default(),
        of_one: GradientsParams::new(),
    };
    for of_one in gradients {
        sum.of_one = of_one;
        model.visit(&mut sum);
    }
    sum.sum
}

struct Sum {
    sum: GradientsParams,
    of_one: GradientsParams,
}

impl ModuleVisitor for Sum {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(of_one) = self.of_one.remove::<D>(param.id) {
            let sum = match self.sum.remove::<D>(param.id) {
                Some(sum) => sum + of_one,
                None => of_one,
            };
            self.sum.register(param.id, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_about_as_many_tokens() {
        let samples: Vec<Sample> = [3, 3, 3, 9, 9, 1]
            .map(|len| Sample {
                source: vec![0; len],
                target: vec![0; len],
            })
            .into();
        let samples: Vec<&Sample> = samples.iter().collect();
        let lens = |count| -> Vec<usize> {
            let parts = parts(&samples, count);
            parts.iter().map(|part| part.len()).collect()
        };
        assert_eq!(lens(1), [6]);
        assert_eq!(lens(2), [4, 2]);
        assert_eq!(lens(3), [3, 1, 2]);
        // Never an empty one.
        assert_eq!(lens(60), [1; 6]);
    }
}
