//! Moves the numbers of a job, block by block.

use burn::tensor::{DType, TensorData};

use super::{
    Reason, WeightsError,
    fit::Named,
    layout::copy,
    plan::{Job, Plan},
    source::{Stored, count},
};

/// More than any head is wide.
const SMALL: usize = 1 << 16;

/// The numbers of the job's parameter `target`, as `dtype`.
pub(super) fn import(
    job: &Job,
    target: usize,
    dtype: DType,
    tensors: &Named,
) -> Result<Vec<u8>, WeightsError> {
    let layout = &job.layout;
    let width = dtype.size();
    let mut numbers = vec![0; layout.len(target) * width];
    let summand = if job.plus_one { 1.0 } else { 0.0 };
    for (source, names) in job.source.iter().enumerate() {
        if !layout.shares(target, source) {
            continue;
        }
        for (file, name) in names.iter().flatten().enumerate() {
            let mut read = || -> Result<(), Reason> {
                let found = tensors.get(name).ok_or("it is not there")?;
                let (found, read) = found.stored.open()?;
                for block in layout.blocks([target, source], file) {
                    let count = block.range.len();
                    let data =
                        TensorData::from_bytes_vec(read(block.range.clone())?, [count], found);
                    let data = converted(data, dtype, summand)?;
                    layout.each([target, source], &block, |at, source_at, step, len| {
                        let from = &data.as_bytes()[source_at * width..];
                        copy(from, step, &mut numbers[at * width..], 1, [len, width]);
                    });
                }
                Ok(())
            };
            read().map_err(|reason| WeightsError::numbers(name, reason))?;
        }
    }
    Ok(numbers)
}

/// The numbers of tensor `source` of the job, the one of `file`, as `dtype`.
pub(super) fn export(
    plan: &Plan,
    job: &Job,
    source: usize,
    file: usize,
    dtype: DType,
) -> Result<Vec<u8>, Reason> {
    let layout = &job.layout;
    let count: usize = layout.shape(source).iter().product();
    let width = dtype.size();
    let mut numbers = vec![0; count * width];
    let summand = if job.plus_one { -1.0 } else { 0.0 };
    for (target, &at) in job.target.iter().enumerate() {
        if !layout.shares(target, source) {
            continue;
        }
        let data = converted((plan.parameters[at].numbers)(), dtype, summand)?;
        for block in layout.blocks([target, source], file) {
            let range = block.range.start * width..block.range.end * width;
            let (data, numbers) = (data.as_bytes(), &mut numbers[range]);
            layout.each([target, source], &block, |at, source_at, step, len| {
                let (from, to) = (&data[at * width..], &mut numbers[source_at * width..]);
                copy(from, 1, to, step, [len, width]);
            });
        }
    }
    Ok(numbers)
}

fn converted(data: TensorData, dtype: DType, summand: f64) -> Result<TensorData, Reason> {
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

pub(super) fn are_zeros(bytes: Vec<u8>, dtype: DType) -> bool {
    let count = bytes.len() / dtype.size();
    let data = TensorData::from_bytes_vec(bytes, [count], dtype);
    data.iter::<f64>().all(|number| number == 0.0)
}
