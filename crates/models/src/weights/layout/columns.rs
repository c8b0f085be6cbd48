//! Which columns of the target are which of the source.

use crate::weights::{Source, ensure};

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

/// Contiguous columns, counted through all parameters and tensors: first target column, first source column, number.
type Group = [usize; 3];

/// How many columns each source tensor has.
pub(super) fn divided(columns: usize, source: &Source) -> Result<Vec<usize>, String> {
    let tensors = source.names.0.len();
    let shares = match source.shares.as_slice() {
        [] => vec![1; tensors],
        shares => shares.to_vec(),
    };
    let whole: usize = shares.iter().sum();
    ensure!(
        shares.len() == tensors && whole > 0 && columns.is_multiple_of(whole),
        "{columns} outputs cannot be divided among {tensors} tensors as {shares:?}"
    );
    let one = columns / whole;
    Ok(shares.into_iter().map(|share| share * one).collect())
}

/// The groups of [`Source::interleaved`].
pub(super) fn interleaved(columns: usize, widths: &[usize]) -> Result<Vec<Group>, String> {
    if widths.is_empty() {
        return Ok(vec![[0, 0, columns]]);
    }
    let group: usize = widths.iter().sum();
    ensure!(
        group > 0 && columns.is_multiple_of(group),
        "{columns} outputs cannot be divided into groups of {widths:?}"
    );
    ensure!(
        columns / group <= MOST_GROUPS,
        "{columns} outputs are more than {MOST_GROUPS} groups of {widths:?}"
    );
    Ok(parted(0, columns, widths))
}

/// The groups of [`Source::rotary_pairs`], in source tensors of these widths.
pub(super) fn rotary_pairs(source: &[usize], d_heads: &[usize]) -> Result<Vec<Group>, String> {
    let fits = |(columns, d_head): (&usize, &usize)| {
        *d_head == 0 || (d_head.is_multiple_of(2) && columns.is_multiple_of(*d_head))
    };
    ensure!(
        source.len() == d_heads.len() && source.iter().zip(d_heads).all(fits),
        "{source:?} outputs cannot be divided into heads of {d_heads:?} with pairs of numbers"
    );
    let columns: usize = source.iter().sum();
    ensure!(
        columns <= MOST_GROUPS,
        "{columns} outputs are more than {MOST_GROUPS} numbers of rotary pairs"
    );
    let mut groups = Vec::new();
    let mut first = 0;
    for (&columns, &d_head) in source.iter().zip(d_heads) {
        let heads = first..first + columns;
        first = heads.end;
        match d_head {
            0 => groups.push([heads.start, heads.start, columns]),
            _ => groups.extend(
                heads
                    .step_by(d_head)
                    .flat_map(|head| parted(head, d_head, &[1, 1])),
            ),
        }
    }
    Ok(groups)
}

/// The groups of [`Source::gated`], in source tensors of these widths.
pub(super) fn gated(source: &[usize], d_head: usize) -> Result<Vec<Group>, String> {
    let (first, columns) = (source[0], source.iter().sum::<usize>());
    ensure!(
        d_head > 0 && first.is_multiple_of(2 * d_head),
        "{first} outputs cannot be divided into heads of {d_head} with their gates"
    );
    let n_heads = first / (2 * d_head);
    ensure!(
        n_heads <= MOST_GROUPS,
        "{first} outputs are more than {MOST_GROUPS} heads of {d_head} with their gates"
    );
    let mut groups = parted(0, first, &[d_head, d_head]);
    for [target, _, _] in &mut groups[n_heads..] {
        *target += columns - first;
    }
    groups.push([first / 2, first, columns - first]);
    Ok(groups)
}

/// The columns from `first` on, which in the source come in groups with parts of these widths, and in the target have all first parts before all
/// second ones.
fn parted(first: usize, columns: usize, widths: &[usize]) -> Vec<Group> {
    let group: usize = widths.iter().sum();
    let count = columns / group;
    let mut groups = Vec::with_capacity(count * widths.len());
    let mut before = 0;
    for &width in widths {
        groups.extend((0..count).map(|index| {
            let target = count * before + index * width;
            [first + target, first + index * group + before, width]
        }));
        before += width;
    }
    groups
}

/// Cuts groups wherever a target or a source tensor ends.
pub(super) fn runs(targets: &[usize], sources: &[usize], groups: &[Group]) -> Vec<Run> {
    let mut runs = Vec::new();
    for &[target_first, source_first, len] in groups {
        let mut done = 0;
        while done < len {
            let (target, target_column) = place(targets, target_first + done);
            let (source, source_column) = place(sources, source_first + done);
            let len = (len - done)
                .min(targets[target] - target_column)
                .min(sources[source] - source_column);
            runs.push(Run {
                target,
                target_column,
                source,
                source_column,
                len,
            });
            done += len;
        }
    }
    runs
}

/// Which of the tensors with these widths has a column, and its place there.
fn place(widths: &[usize], mut column: usize) -> (usize, usize) {
    let mut tensor = 0;
    while column >= widths[tensor] {
        column -= widths[tensor];
        tensor += 1;
    }
    (tensor, column)
}
