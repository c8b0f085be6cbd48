//! Numbers of a tensor as those of another dtype.

use burn::tensor::{DType, TensorData};

use super::{
    Reason,
    source::{Stored, count},
};

/// More than any head is wide.
const SMALL: usize = 1 << 16;

/// The numbers plus the summand, as `dtype`.
pub(super) fn converted(
    data: TensorData,
    dtype: DType,
    summand: f64,
) -> Result<TensorData, Reason> {
    if summand == 0.0 {
        return match data.dtype() == dtype {
            true => Ok(data),
            false => Ok(data.try_cast(dtype)?),
        };
    }
    let sums: Vec<f64> = data.iter::<f64>().map(|number| number + summand).collect();
    let count = sums.len();
    Ok(TensorData::new(sums, [count]).try_cast(dtype)?)
}

/// The numbers of a tensor of at most [`SMALL`] numbers.
pub(super) fn of_small(stored: &Stored) -> Result<Vec<f64>, Reason> {
    let (dtype, read) = stored.open()?;
    let count = count(&stored.shape).filter(|&count| count <= SMALL);
    let count = count.ok_or_else(|| format!("its shape is {:?}", stored.shape))?;
    let data = TensorData::from_bytes_vec(read(0..count)?, [count], dtype);
    Ok(data.iter().collect())
}
