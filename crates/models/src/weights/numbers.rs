//! Numbers as bytes: converts and copies them.

use burn::tensor::{DType, TensorData};

use super::Reason;

/// The numbers plus the summand, as `dtype`.
pub(super) fn converted(
    data: TensorData,
    dtype: DType,
    summand: f64,
) -> Result<TensorData, Reason> {
    if summand == 0.0 {
        return Ok(data.try_cast(dtype)?);
    }
    let sums: Vec<f64> = data.iter::<f64>().map(|number| number + summand).collect();
    let count = sums.len();
    Ok(TensorData::new(sums, [count]).try_cast(dtype)?)
}

/// Copies `len` numbers of `width` bytes, every `from_step`-th number of one slice to every `to_step`-th of the other.
pub(super) fn copy(
    from: &[u8],
    from_step: usize,
    to: &mut [u8],
    to_step: usize,
    [len, width]: [usize; 2],
) {
    match width {
        _ if from_step == 1 && to_step == 1 => {
            to[..len * width].copy_from_slice(&from[..len * width]);
        }
        2 => copy_each::<2>(from, from_step, to, to_step, len),
        4 => copy_each::<4>(from, from_step, to, to_step, len),
        8 => copy_each::<8>(from, from_step, to, to_step, len),
        _ => unreachable!("floating-point numbers of {width} bytes"),
    }
}

/// [`copy`] for a width that the compiler knows, so that a number is moved by one instruction.
fn copy_each<const W: usize>(
    from: &[u8],
    from_step: usize,
    to: &mut [u8],
    to_step: usize,
    len: usize,
) {
    let from = from.as_chunks::<W>().0.iter().step_by(from_step);
    let to = to.as_chunks_mut::<W>().0.iter_mut().step_by(to_step);
    to.zip(from).take(len).for_each(|(to, from)| *to = *from);
}
