//! The new tokens of one generation step, as a causal stack reads them.

use burn::tensor::{Device, Int, Tensor};
use burn_attn::positions::Positions;

use crate::tokens::padded_tokens;

/// One or more new tokens for every row, checked.
pub(crate) struct NewTokens<'a> {
    rows: &'a [&'a [u32]],
    /// The number of new tokens of each row.
    pub(crate) lengths: Vec<usize>,
}

impl<'a> NewTokens<'a> {
    /// # Panics
    ///
    /// In the name of `model`, unless there are `count` rows of at least one token each, all within the vocabulary.
    pub(crate) fn new(model: &str, rows: &'a [&'a [u32]], count: usize, vocab_size: usize) -> Self {
        assert!(
            rows.len() == count,
            "{model}: tokens of {} rows for a state of {count}",
            rows.len()
        );
        for (row, tokens) in rows.iter().enumerate() {
            assert!(!tokens.is_empty(), "{model}: row {row} has no new token");
            if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocab_size) {
                panic!(
                    "{model}: token {token} of row {row} is outside the vocabulary of {vocab_size} tokens"
                );
            }
        }
        let lengths = rows.iter().map(|row| row.len()).collect();
        Self { rows, lengths }
    }

    /// The tokens as `[rows, longest]`. Any token can fill up a row, because what reads them is causal.
    pub(crate) fn padded(&self, device: &Device) -> Tensor<2, Int> {
        padded_tokens(self.rows, device)
    }

    /// The positions of the new tokens in rows that have `so_far` tokens already.
    pub(crate) fn positions(&self, so_far: Vec<usize>) -> Positions {
        match self.lengths.windows(2).all(|pair| pair[0] == pair[1]) {
            true => so_far.into(),
            false => Positions::padded(so_far, self.lengths.clone()),
        }
    }

    /// The states of each row's last token, `[rows, d_model]`, out of `[rows, longest, d_model]`.
    pub(crate) fn last(&self, states: Tensor<3>) -> Tensor<2> {
        let [rows, longest, d_model] = states.dims();
        if longest == 1 {
            return states.reshape([rows, d_model]);
        }
        self.last_of_each(states, &vec![1; rows])
    }

    /// The states of the last `counts[r]` tokens of each row `r`, `[Σ counts, d_model]`, out of `[rows, longest, d_model]`.
    pub(crate) fn last_of_each(&self, states: Tensor<3>, counts: &[usize]) -> Tensor<2> {
        let [rows, longest, d_model] = states.dims();
        let states = states.reshape([rows * longest, d_model]);
        let rows = self.lengths.iter().zip(counts).enumerate();
        let last: Vec<i32> = rows
            .flat_map(|(row, (&length, &count))| {
                let end = row * longest + length;
                (end - count..end).map(|at| at as i32)
            })
            .collect();
        let last = Tensor::<1, Int>::from_data(last.as_slice(), &states.device());
        states.select(0, last)
    }
}
