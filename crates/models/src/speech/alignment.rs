//! At which frame each token begins: the path through cross-attention on which the attention is greatest.

use burn::tensor::Tensor;

/// The frames of a median.
const MEDIAN: usize = 7;

/// The first frame of each token.
///
/// Attention of every head is normalised for each frame, over the tokens, and smoothed along the frames by a median. Dynamic time
/// warping finds the path through the mean of the heads, on which no token is before an earlier one.
///
/// # Shapes
///
/// - `weights`: `[heads, tokens, frames]`, none of them 0
pub(super) fn first_frames(weights: Tensor<3>) -> Vec<usize> {
    let [heads, tokens, frames] = weights.dims();
    let weights: Vec<f32> = weights.into_data().iter::<f32>().collect();
    let mut mean = vec![0.0; tokens * frames];
    for head in weights.chunks_exact(tokens * frames) {
        let normalised = normalised(head, frames);
        let rows = normalised.chunks_exact(frames);
        for (row, sums) in rows.zip(mean.chunks_exact_mut(frames)) {
            for (frame, sum) in sums.iter_mut().enumerate() {
                *sum += median(row, frame) / heads as f64;
            }
        }
    }
    path(&mean, frames)
}

/// Minus the mean, over the standard deviation, of each column; a column of equal numbers is zero.
fn normalised(weights: &[f32], columns: usize) -> Vec<f64> {
    let rows = (weights.len() / columns) as f64;
    let mut numbers: Vec<f64> = weights.iter().copied().map(f64::from).collect();
    for column in 0..columns {
        let of_column = || numbers[column..].iter().step_by(columns);
        let mean = of_column().sum::<f64>() / rows;
        let squares = of_column().map(|number| (number - mean).powi(2));
        let deviation = (squares.sum::<f64>() / rows).sqrt();
        for number in numbers[column..].iter_mut().step_by(columns) {
            *number = match deviation > 0.0 {
                true => (*number - mean) / deviation,
                false => 0.0,
            };
        }
    }
    numbers
}

/// The median of the numbers around `at`; beyond the ends, the row is repeated backwards.
fn median(row: &[f64], at: usize) -> f64 {
    let reach = MEDIAN / 2;
    if row.len() <= reach {
        return row[at];
    }
    let last = row.len() - 1;
    let mut around: Vec<f64> = (0..MEDIAN)
        .map(|step| {
            let index = (at + step).abs_diff(reach);
            row[index.min(2 * last - index)]
        })
        .collect();
    around.sort_unstable_by(f64::total_cmp);
    around[reach]
}

/// The column at which a path from the first row and column to the last enters each row, on which the sum of `numbers` is greatest.
/// A step goes to the next column, the next row, or both. Sums are in f64; in `transformers` they are in f32, so that equally good paths may differ.
fn path(numbers: &[f64], columns: usize) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum Step {
        Both,
        Row,
        Column,
    }
    let rows = numbers.len() / columns;
    // The costs of the row before, from the column before the first on.
    let mut before = vec![f64::INFINITY; columns + 1];
    before[0] = 0.0;
    let mut from = Vec::with_capacity(numbers.len());
    for row in numbers.chunks_exact(columns) {
        let mut costs = vec![f64::INFINITY; columns + 1];
        for column in 0..columns {
            let (both, of_row, of_column) = (before[column], before[column + 1], costs[column]);
            let (cost, step) = if both < of_row && both < of_column {
                (both, Step::Both)
            } else if of_row < both && of_row < of_column {
                (of_row, Step::Row)
            } else {
                (of_column, Step::Column)
            };
            costs[column + 1] = cost - row[column];
            from.push(step);
        }
        before = costs;
    }
    let mut firsts = vec![0; rows];
    let (mut row, mut column) = (rows - 1, columns - 1);
    loop {
        firsts[row] = column;
        let step = match (row, column) {
            (0, 0) => break,
            (0, _) => Step::Column,
            (_, 0) => Step::Row,
            _ => from[row * columns + column],
        };
        row -= usize::from(step != Step::Column);
        column -= usize::from(step != Step::Row);
    }
    firsts
}
