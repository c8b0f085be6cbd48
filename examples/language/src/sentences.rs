//! The vectors of many texts, and the cosine between two of them.

use std::ops::ControlFlow;

use burn_attn_models::sentences::SentenceEncoder;

use crate::batches::in_batches;

/// Texts that are encoded together.
const BATCH: usize = 32;

/// A vector for each row of tokens, in the same order. `done` is called with the number of rows just encoded. If it breaks, the vectors of
/// the rows that are left are empty.
///
/// # Shapes
/// `[rows][width]`
pub fn vectors<R: AsRef<[u32]>>(
    encoder: &SentenceEncoder,
    rows: &[R],
    mut done: impl FnMut(usize) -> ControlFlow<()>,
) -> Vec<Vec<f32>> {
    let mut flow = ControlFlow::Continue(());
    let of_batch = |batch: &[&R]| {
        if flow.is_break() {
            return Vec::new();
        }
        let found = encoder.vectors(batch).into_data();
        let found: Vec<f32> = found.iter::<f32>().collect();
        flow = done(batch.len());
        let vectors = found.chunks(encoder.width());
        vectors.map(<[f32]>::to_vec).collect()
    };
    in_batches(rows, |row| row.as_ref().len(), BATCH, of_batch)
}

/// The vector of one row of tokens.
pub fn vector(encoder: &SentenceEncoder, row: &[u32]) -> Vec<f32> {
    vectors(encoder, &[row], |_| ControlFlow::Continue(())).remove(0)
}

/// The cosine of the angle between two vectors; 0 if one of them is zero.
///
/// # Panics
/// If they are not of one width.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "two vectors of one model");
    let product = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
        products.sum()
    };
    let lengths = (product(a, a) * product(b, b)).sqrt();
    match lengths > 0.0 {
        true => (product(a, b) / lengths) as f32,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests;
