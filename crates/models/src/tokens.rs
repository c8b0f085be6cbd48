//! Rows of tokens as tensors.

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Rows of tokens as one tensor, and how many tokens each has.
///
/// # Shapes
///
/// - `rows`: any number of tokens each; the shorter ones are filled up with 0
/// - output: `[rows, longest]`, and one length for each row
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, TensorData};
/// use burn_attn_models::tokens::padded;
///
/// let (tokens, lengths) = padded(&[vec![5, 6, 7], vec![8]], &Device::default());
/// tokens.to_data().assert_eq(&TensorData::from([[5, 6, 7], [8, 0, 0]]), false);
/// assert_eq!(lengths, [3, 1]);
/// # }
/// ```
pub fn padded<R: AsRef<[u32]>>(rows: &[R], device: &Device) -> (Tensor<2, Int>, Vec<usize>) {
    let lengths = rows.iter().map(|row| row.as_ref().len());
    (padded_tokens(rows, device), lengths.collect())
}

/// [`padded`] without the lengths.
pub(crate) fn padded_tokens<R: AsRef<[u32]>>(rows: &[R], device: &Device) -> Tensor<2, Int> {
    let (tokens, shape) = filled_up(rows, 0, |&token| token as i32);
    Tensor::from_data(TensorData::new(tokens, shape), device)
}

/// Rows one after the other, the shorter ones filled up with `padding`, and their shape.
pub(crate) fn filled_up<T, N: Copy>(
    rows: &[impl AsRef<[T]>],
    padding: N,
    number: impl Fn(&T) -> N,
) -> (Vec<N>, [usize; 2]) {
    let longest = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let mut numbers = vec![padding; rows.len() * longest];
    for (row, place) in rows.iter().zip(numbers.chunks_mut(longest.max(1))) {
        for (place, from) in place.iter_mut().zip(row.as_ref()) {
            *place = number(from);
        }
    }
    (numbers, [rows.len(), longest])
}
