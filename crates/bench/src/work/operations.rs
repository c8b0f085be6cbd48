//! How many floating-point operations a work is: two for each multiply-add of its matrix products, and nothing else.
//!
//! Everybody's are counted alike, whatever a library computes: what the mask hides does not count, nor does a prefix that is
//! computed again. So the rate is that at which the task is done.

use super::{Decoding, FMA_OPERATIONS, Module, ModuleKind, Op, Pass, Translation, Work};

impl Work {
    /// Operations of one iteration's matrix products, where they are counted.
    pub fn operations(&self) -> Option<f64> {
        match self {
            Self::Op(op) => Some(op.operations()),
            Self::Module(module) => Some(module.operations()),
            Self::Translation(step) => Some(step.operations()),
            Self::Decoding(decoding) => Some(decoding.operations()),
            Self::Matmul(product) => Some(2.0 * (product.size as f64).powi(3)),
            Self::Fma(threads) => Some(*threads as f64 * FMA_OPERATIONS),
            Self::Pretrained(_) => None,
        }
    }
}

impl Op {
    /// Pairs of a query and a key that it sees, in all batch items and heads.
    pub fn visible_pairs(&self) -> usize {
        let item = |length: usize| -> usize {
            let seen = (0..self.len_q).map(|query| {
                // As masks by position count: the last query is at the last key.
                let behind = self.len_q - 1 - query;
                let end = match self.causal || self.window.is_some() {
                    true => self.len_kv.saturating_sub(behind),
                    false => self.len_kv,
                };
                let first = self.window.map_or(0, |left| end.saturating_sub(left + 1));
                end.min(length).saturating_sub(first)
            });
            seen.sum()
        };
        let pairs: usize = match &self.key_lengths {
            Some(lengths) => lengths.iter().map(|&length| item(length)).sum(),
            None => self.batch * item(self.len_kv),
        };
        pairs * self.heads
    }

    /// Operations of the matrix products: of what is visible, two for each multiply-add. Forward there are two products,
    /// backward five, because the scores are computed again; a library that keeps them needs four, and is counted the same.
    fn operations(&self) -> f64 {
        let forward = (4 * self.visible_pairs() * self.dim) as f64;
        match self.pass {
            Pass::Forward => forward,
            Pass::Backward => 2.5 * forward,
            Pass::Training => 3.5 * forward,
        }
    }
}

/// Operations of a training step of linear layers with so many weights on so many rows: forward, and the gradients of input
/// and weights.
fn linear_training(rows: usize, weights: usize) -> f64 {
    (6 * rows * weights) as f64
}

impl Module {
    fn operations(&self) -> f64 {
        let attention = Op {
            len_q: self.len_q,
            dim: self.d_model / self.heads,
            causal: self.kind == ModuleKind::CausalSelf,
            ..Op::new(Pass::Training, self.len_kv).sized(self.batch, self.heads)
        };
        // Query and output of every query, key and value of every key.
        let rows = 2 * self.batch * (self.len_q + self.len_kv);
        attention.operations() + linear_training(rows, self.d_model * self.d_model)
    }
}

impl Decoding {
    fn operations(&self) -> f64 {
        // Projections, and the feed-forward network.
        let weights = 12 * self.d_model * self.d_model;
        let tokens = (self.context + 1)..=(self.context + self.tokens);
        let seen = tokens.map(|keys| self.window.map_or(keys, |earlier| keys.min(earlier + 1)));
        let attention = 4 * seen.sum::<usize>() * self.d_model;
        (self.batch * self.layers * (2 * weights * self.tokens + attention)) as f64
    }
}

impl Translation {
    fn operations(&self) -> f64 {
        let attention = |causal| Op {
            dim: self.d_model / self.heads,
            causal,
            // The decoder's self-attention has no mask of padding: the causal mask hides it from the tokens before it.
            key_lengths: (!causal).then(|| self.lengths()),
            ..Op::new(Pass::Training, self.len).sized(self.batch, self.heads)
        };
        // Once in the encoder, once across.
        let attention = 2.0 * attention(false).operations() + attention(true).operations();
        // An encoder layer has 4 projections and a feed-forward network of 8, a decoder layer has 4 more.
        let weights =
            self.layers * 28 * self.d_model * self.d_model + self.vocabulary * self.d_model;
        self.layers as f64 * attention + linear_training(self.batch * self.len, weights)
    }
}

#[cfg(test)]
mod tests;
