//! Moves the numbers of a job, block by block.

use std::io::Read;

use burn::tensor::{DType, TensorData};

use super::{
    WeightsError,
    fit::Named,
    layout::copy,
    plan::{Job, Plan},
    source::Stored,
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
    for (source, tensor) in job.source.iter().enumerate() {
        let Some(names) = tensor else {
            continue;
        };
        if !layout.shares(target, source) {
            continue;
        }
        for (file, name) in names.iter().enumerate() {
            let mut read = || -> Result<(), String> {
                let stored = tensors.get(name).map(|found| found.stored);
                let found = stored.and_then(|stored| Some((stored, stored.dtype?)));
                let (stored, found) = found.ok_or("it is not there")?;
                let mut blocks = layout.blocks([target, source], file).peekable();
                let first = blocks.peek().map_or(0, |block| block.range.start);
                let mut reader = stored.read_from(first * found.size())?;
                for block in blocks {
                    let mut bytes = vec![0; block.range.len() * found.size()];
                    let read = reader.read_exact(&mut bytes);
                    read.map_err(|error| error.to_string())?;
                    let data = TensorData::from_bytes_vec(bytes, [block.range.len()], found);
                    let data = converted(data, dtype, summand)?;
                    layout.each([target, source], &block, |at, source_at, step, len| {
                        let from = &data.as_bytes()[source_at * width..];
                        copy(from, step, &mut numbers[at * width..], 1, [len, width]);
                    });
                }
                Ok(())
            };
            read().map_err(|reason| WeightsError::Numbers {
                name: name.clone(),
                reason,
            })?;
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
) -> Result<Vec<u8>, String> {
    let layout = &job.layout;
    let count: usize = layout.shape(source).iter().product();
    let width = dtype.size();
    let mut numbers = vec![0; count * width];
    let summand = if job.plus_one { -1.0 } else { 0.0 };
    for (target, &at) in job.target.iter().enumerate() {
        if !layout.shares(target, source) {
            continue;
        }
        let data = converted(plan.parameters[at].numbers(), dtype, summand)?;
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

/// Numbers plus `summand`, as `dtype`.
fn converted(data: TensorData, dtype: DType, summand: f64) -> Result<TensorData, String> {
    let data = match summand {
        0.0 if data.dtype() == dtype => return Ok(data),
        0.0 => data,
        _ => {
            let sums: Vec<f64> = data.iter::<f64>().map(|number| number + summand).collect();
            let count = sums.len();
            TensorData::new(sums, [count])
        }
    };
    data.try_cast(dtype).map_err(|error| error.to_string())
}

/// The numbers of a tensor of at most [`SMALL`] numbers.
pub(super) fn of_small(stored: &Stored) -> Result<Vec<f64>, String> {
    let wrong = || format!("it holds {}", stored.dtype_name);
    let dtype = stored.dtype.ok_or_else(wrong)?;
    let mut sizes = stored.shape.iter();
    let count = sizes.try_fold(1usize, |count, &size| count.checked_mul(size));
    let count = count.filter(|&count| count <= SMALL);
    let count = count.ok_or_else(|| format!("its shape is {:?}", stored.shape))?;
    let mut bytes = vec![0; count * dtype.size()];
    let read = stored.read_from(0)?.read_exact(&mut bytes);
    read.map_err(|error| error.to_string())?;
    Ok(TensorData::from_bytes_vec(bytes, [count], dtype)
        .iter::<f64>()
        .collect())
}

/// Whether all numbers are 0.
pub(super) fn are_zeros(bytes: Vec<u8>, dtype: DType) -> bool {
    let count = bytes.len() / dtype.size();
    let data = TensorData::from_bytes_vec(bytes, [count], dtype);
    data.iter::<f64>().all(|number| number == 0.0)
}
