//! Which columns of the target are which of the source.

use crate::weights::Source;

/// The most groups of outputs accepted: published models have a few thousand, and each takes memory before any tensor is read.
const MOST_GROUPS: usize = (1 << 16) - 1;

/// Columns that are contiguous both in a target and in a source tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) target: usize,
    pub(super) target_column: usize,
    pub(super) source: usize,
    pub(super) source_column: usize,
    pub(super) len: usize,
}

/// How many columns each source tensor has.
pub(super) fn divided(columns: usize, source: &Source) -> Result<Vec<usize>, String> {
    let tensors = source.names.0.len();
    let shares = match source.shares.as_slice() {
        [] => vec![1; tensors],
        shares => shares.to_vec(),
    };
    let whole: usize = shares.iter().sum();
    if shares.len() != tensors || whole == 0 || !columns.is_multiple_of(whole) {
        return Err(format!(
            "{columns} outputs cannot be divided among {tensors} tensors as {shares:?}"
        ));
    }
    let one = columns / whole;
    Ok(shares.into_iter().map(|share| share * one).collect())
}

/// Columns that are contiguous in target and source, counted through all parameters and tensors: first target column, first source column, how many.
pub(super) fn groups(columns: usize, widths: &[usize]) -> Result<Vec<[usize; 3]>, String> {
    if widths.is_empty() {
        return Ok(vec![[0, 0, columns]]);
    }
    let group: usize = widths.iter().sum();
    if group == 0 || !columns.is_multiple_of(group) {
        return Err(format!(
            "{columns} outputs cannot be divided into groups of {widths:?}"
        ));
    }
    let count = columns / group;
    if count > MOST_GROUPS {
        return Err(format!(
            "{columns} outputs are more than {MOST_GROUPS} groups of {widths:?}"
        ));
    }
    let mut runs = Vec::with_capacity(count * widths.len());
    let mut before = 0;
    for &width in widths {
        runs.extend((0..count).map(|index| {
            [
                count * before + index * width,
                index * group + before,
                width,
            ]
        }));
        before += width;
    }
    Ok(runs)
}

/// The same where, in the source tensors with heads of a width, the two halves of each head alternate.
pub(super) fn pairs(source: &[usize], d_heads: &[usize]) -> Result<Vec<[usize; 3]>, String> {
    let fits = |(columns, d_head): (&usize, &usize)| {
        *d_head == 0 || (d_head.is_multiple_of(2) && columns.is_multiple_of(*d_head))
    };
    if source.len() != d_heads.len() || !source.iter().zip(d_heads).all(fits) {
        return Err(format!(
            "{source:?} outputs cannot be divided into heads of {d_heads:?} with pairs of numbers"
        ));
    }
    let columns: usize = source.iter().sum();
    if columns > MOST_GROUPS {
        return Err(format!(
            "{columns} outputs are more than {MOST_GROUPS} numbers of rotary pairs"
        ));
    }
    let mut runs = Vec::with_capacity(columns);
    let mut first = 0;
    for (&columns, &d_head) in source.iter().zip(d_heads) {
        if d_head == 0 {
            runs.push([first, first, columns]);
        } else {
            runs.extend((0..columns).map(|column| {
                let (head, within) = (column - column % d_head, column % d_head);
                let (half, pair) = (within / (d_head / 2), within % (d_head / 2));
                [first + column, first + head + 2 * pair + half, 1]
            }));
        }
        first += columns;
    }
    Ok(runs)
}

/// Cuts groups wherever a target or a source tensor ends.
pub(super) fn runs(target: &[usize], source: &[usize], groups: &[[usize; 3]]) -> Vec<Run> {
    let starts = |widths: &[usize]| -> Vec<usize> {
        let ends = widths.iter().scan(0, |end, width| {
            *end += width;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    };
    let [target_starts, source_starts] = [starts(target), starts(source)];
    // The one that contains a column; it is not empty.
    let find = |starts: &[usize], column| starts.partition_point(|&start| start <= column) - 1;
    let mut runs = Vec::new();
    for &[target_first, source_first, len] in groups {
        let mut done = 0;
        while done < len {
            let [target_at, source_at] = [target_first + done, source_first + done];
            let [a, b] = [
                find(&target_starts, target_at),
                find(&source_starts, source_at),
            ];
            let len = (len - done)
                .min(target_starts[a + 1] - target_at)
                .min(source_starts[b + 1] - source_at);
            runs.push(Run {
                target: a,
                target_column: target_at - target_starts[a],
                source: b,
                source_column: source_at - source_starts[b],
                len,
            });
            done += len;
        }
    }
    runs
}
