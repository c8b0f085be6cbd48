//! Which columns of ours are which of theirs.

use super::{Arrangement, Run};

/// The most groups of outputs accepted: published models have a few thousand, and each takes memory before any tensor is read.
const MOST_GROUPS: usize = (1 << 16) - 1;

/// How many columns each tensor of theirs has.
pub(super) fn divided(columns: usize, arrangement: &Arrangement) -> Result<Vec<usize>, String> {
    let (tensors, shares) = (arrangement.tensors, arrangement.shares);
    let shares = match shares {
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

/// Columns that are contiguous in ours and in theirs, counted through all parameters and tensors: first of ours, first of theirs, how many.
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

/// The same where, in the tensors of theirs with heads of a width, the two halves of each head alternate.
pub(super) fn pairs(theirs: &[usize], d_heads: &[usize]) -> Result<Vec<[usize; 3]>, String> {
    let fits = |(columns, d_head): (&usize, &usize)| {
        *d_head == 0 || (d_head.is_multiple_of(2) && columns.is_multiple_of(*d_head))
    };
    if theirs.len() != d_heads.len() || !theirs.iter().zip(d_heads).all(fits) {
        return Err(format!(
            "{theirs:?} outputs cannot be divided into heads of {d_heads:?} with pairs of numbers"
        ));
    }
    let columns: usize = theirs.iter().sum();
    if columns > MOST_GROUPS {
        return Err(format!(
            "{columns} outputs are more than {MOST_GROUPS} numbers of rotary pairs"
        ));
    }
    let mut runs = Vec::with_capacity(columns);
    let mut first = 0;
    for (&columns, &d_head) in theirs.iter().zip(d_heads) {
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

/// Cuts groups wherever one of ours or one of theirs ends.
pub(super) fn runs(ours: &[usize], theirs: &[usize], groups: &[[usize; 3]]) -> Vec<Run> {
    let starts = |widths: &[usize]| -> Vec<usize> {
        let ends = widths.iter().scan(0, |end, width| {
            *end += width;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    };
    let [our_starts, their_starts] = [starts(ours), starts(theirs)];
    // The one that contains a column; it is not empty.
    let find = |starts: &[usize], column| starts.partition_point(|&start| start <= column) - 1;
    let mut runs = Vec::new();
    for &[our_first, their_first, len] in groups {
        let mut done = 0;
        while done < len {
            let [our, their] = [our_first + done, their_first + done];
            let [a, b] = [find(&our_starts, our), find(&their_starts, their)];
            let len = (len - done)
                .min(our_starts[a + 1] - our)
                .min(their_starts[b + 1] - their);
            runs.push(Run {
                ours: a,
                our_column: our - our_starts[a],
                theirs: b,
                their_column: their - their_starts[b],
                len,
            });
            done += len;
        }
    }
    runs
}
