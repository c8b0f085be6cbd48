//! The causal stack alone: several tokens at once, guesses that are taken back, rows that change places.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    KvCacheConfig, LayerInput, TransformerCache, TransformerStack, TransformerStackConfig,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
};

use super::{Case, D_MODEL, HEADS, MAX_LEN, cases, small};

const TOLERANCE: f64 = 1e-5;

/// A stack for every position of the heads, mask and grouping.
fn stacks(device: &Device) -> Vec<(String, TransformerStack)> {
    let cases = cases().into_iter();
    // To a stack, what is added to the embedded tokens is part of its input.
    let of_heads = cases.filter(|case| !["sinusoidal", "learned"].contains(&case.position));
    let stack = |Case { name, config, .. }| {
        let config = TransformerStackConfig::causal(D_MODEL, 29, HEADS, 2).with_block(config.block);
        (name, filled(config.init(device), 1))
    };
    of_heads.map(stack).collect()
}

/// Rows of a text that is read in pieces of `counts[b]` tokens of each row `b`, and compared with the whole.
struct Reading<'a> {
    what: String,
    stack: &'a TransformerStack,
    x: Tensor<3>,
    whole: Tensor<3>,
    at: Vec<usize>,
}

impl<'a> Reading<'a> {
    fn new(what: String, stack: &'a TransformerStack, rows: usize, device: &Device) -> Self {
        let x = tensor([rows, MAX_LEN, D_MODEL], 2, device);
        Self {
            what,
            stack,
            whole: stack.forward(LayerInput::new(x.clone())),
            x,
            at: vec![0; rows],
        }
    }

    fn read(&mut self, counts: &[usize], cache: &mut TransformerCache) {
        let longest = counts.iter().copied().max().expect("a row");
        let rows = counts.iter().enumerate().map(|(b, &count)| {
            let new = self.x.clone().narrow(0, b, 1).narrow(1, self.at[b], count);
            let padding = Tensor::ones([1, longest - count, D_MODEL], &self.x.device());
            match longest == count {
                true => new,
                false => Tensor::cat(vec![new, padding], 1),
            }
        });
        let x = Tensor::cat(rows.collect(), 0);
        let states = self
            .stack
            .forward_cached(LayerInput::new(x).lengths(counts), cache);
        for (b, &count) in counts.iter().enumerate() {
            let states = states.clone().narrow(0, b, 1).narrow(1, 0, count);
            let expected = self.whole.clone().narrow(0, b, 1);
            let expected = expected.narrow(1, self.at[b], count);
            let what = format!("{}, row {b} at {}", self.what, self.at[b]);
            assert_close(&what, &states.into_data(), &expected.into_data(), TOLERANCE);
            self.at[b] += count;
        }
        for layer in cache.layers() {
            assert_eq!(layer.tokens.lengths(), self.at);
        }
    }
}

#[test]
fn any_pieces_give_the_whole() {
    for (backend, device) in devices::cpu() {
        for (name, stack) in stacks(&device) {
            for pieces in [
                vec![[13, 13]],
                vec![[4, 4], [1, 1], [3, 3], [5, 5]],
                vec![[3, 5], [4, 2], [1, 1], [2, 4], [3, 1]],
            ] {
                let what = format!("{backend}, {name}, {pieces:?}");
                let mut reading = Reading::new(what, &stack, 2, &device);
                let mut cache = stack.cache(2, &small());
                for counts in pieces {
                    reading.read(&counts, &mut cache);
                }
            }
        }
    }
}

#[test]
fn wrong_guesses_are_taken_back() {
    for (backend, device) in devices::cpu() {
        for (name, stack) in stacks(&device) {
            let what = format!("{backend}, {name}");
            let mut reading = Reading::new(what, &stack, 2, &device);
            // Room for all guesses: of what has left a window, nothing can be taken back.
            let mut cache = stack.cache(2, &KvCacheConfig::new(MAX_LEN));
            reading.read(&[5, 5], &mut cache);
            for (accepted, rest) in [([0, 3], [1, 1]), ([2, 1], [1, 1])] {
                // How many of the four guesses of each row are right.
                let guesses = accepted.iter().enumerate().map(|(b, &right)| {
                    let wrong = tensor([1, 4, D_MODEL], 7, &device);
                    if right == 0 {
                        return wrong;
                    }
                    let text = reading.x.clone().narrow(0, b, 1);
                    let text = text.narrow(1, reading.at[b], right);
                    Tensor::cat(vec![text, wrong.narrow(1, right, 4 - right)], 1)
                });
                let guesses = Tensor::cat(guesses.collect(), 0);
                let whole = [reading.at[0] + 4, reading.at[1] + 4];
                stack.forward_cached(guesses, &mut cache);
                for (at, right) in reading.at.iter_mut().zip(accepted) {
                    *at += right;
                }
                assert_eq!(cache.lengths(), whole);
                cache.truncate(&reading.at);
                reading.read(&rest, &mut cache);
            }
        }
    }
}

#[test]
fn reordered_rows_go_on_as_what_they_were() {
    for (backend, device) in devices::cpu() {
        for (name, stack) in stacks(&device) {
            let what = format!("{backend}, {name}");
            let mut reading = Reading::new(what, &stack, 3, &device);
            let mut cache = stack.cache(3, &small());
            reading.read(&[5, 2, 7], &mut cache);
            reading.read(&[1, 1, 1], &mut cache);
            let rows = [2, 0, 0, 1];
            cache.reorder(&rows);
            let of_rows = |x: &Tensor<3>| {
                let rows = rows.iter().map(|&row| x.clone().narrow(0, row, 1));
                Tensor::cat(rows.collect(), 0)
            };
            reading.x = of_rows(&reading.x);
            reading.whole = of_rows(&reading.whole);
            reading.at = rows.map(|row| reading.at[row]).into();
            reading.read(&[1, 1, 1, 1], &mut cache);
            reading.read(&[2, 3, 1, 4], &mut cache);
        }
    }
}
