//! The positions of the rows of a tensor.

/// The positions, in their sequences, of the rows of a `[batch, …, len, …]` tensor: row `i` of sequence `b` is token
/// `offset + i`, unless every token is given a position.
///
/// Queries that follow the tokens in a cache start where the cache ends, which may differ from sequence to sequence, as may
/// their number. Where several texts are packed into one row, each starts again at 0.
///
/// ```
/// use burn_attn::positions::Positions;
///
/// assert_eq!(Positions::default(), Positions::Offset(0));
/// assert_eq!(Positions::from(7), Positions::Offset(7));
/// assert_eq!(Positions::from(vec![7, 3]), Positions::Offsets(vec![7, 3]));
/// let padded = Positions::Padded { offsets: vec![7, 3], lengths: vec![1, 5] };
/// assert_eq!(Positions::padded(vec![7, 3], vec![1, 5]), padded);
/// // A row of two texts, the first of three tokens.
/// assert_eq!(Positions::from(vec![vec![0, 1, 2, 0, 1]]), Positions::PerToken(vec![vec![0, 1, 2, 0, 1]]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Positions {
    /// Every sequence starts at this position (tokens).
    Offset(usize),
    /// Sequence `b` starts at position `offsets[b]` (tokens).
    Offsets(Vec<usize>),
    /// Sequence `b` starts at position `offsets[b]`, and only its first `lengths[b]` rows are tokens. The others are padding,
    /// which needs no positions.
    Padded {
        /// Where each sequence starts (tokens).
        offsets: Vec<usize>,
        /// How many rows of each sequence are tokens.
        lengths: Vec<usize>,
    },
    /// Row `i` of sequence `b` is at position `positions[b][i]` (tokens): for several texts in one row, each from 0 on, which
    /// [`AttentionMask::segments`](crate::AttentionMask::segments) keeps apart.
    PerToken(Vec<Vec<usize>>),
    /// Row `i` of sequence `b` is at position `positions[a][b][i]` on axis `a`: rows and columns of an image, for a [`Rotary`] of
    /// [several axes](super::RotaryAxes). They have no distances: a window, ALiBi and a relative bias panic.
    ///
    /// [`Rotary`]: super::Rotary
    PerAxis(Vec<Vec<Vec<usize>>>),
}

/// As many positions as there can be.
const ANY: usize = isize::MAX as usize;

impl Positions {
    /// [`Padded`](Self::Padded): sequence `b` has `lengths[b]` tokens from position `offsets[b]` on, then padding.
    pub fn padded(offsets: Vec<usize>, lengths: Vec<usize>) -> Self {
        Self::Padded { offsets, lengths }
    }

    /// Panics, in the name of `module`, unless these positions fit `batch` sequences of `len` tokens.
    pub(crate) fn check(&self, module: &str, sizes: [usize; 2]) {
        match self {
            Self::PerAxis(axes) => axes
                .iter()
                .for_each(|axis| check_each(module, axis, sizes, ANY)),
            Self::PerToken(positions) => check_each(module, positions, sizes, ANY),
            _ => drop(self.table_rows(module, sizes, ANY)),
        }
    }

    /// The positions of `batch` sequences of `len` tokens, between which distances are counted. Panics, in the name of `module`, when they do
    /// not fit the sequences or have several axes.
    pub(crate) fn listed(&self, module: &str, [batch, len]: [usize; 2]) -> Vec<Vec<usize>> {
        if let Self::PerAxis(axes) = self {
            panic!(
                "{module}: positions on {} axes have no distances, which a window, ALiBi or a relative bias counts",
                axes.len()
            );
        }
        let rows = self.table_rows(module, [batch, len], ANY).listed(len);
        rows.chunks(len.max(1)).map(<[usize]>::to_vec).collect()
    }

    /// The rows, in a table of `max_len` positions, of `batch` sequences of `len` tokens. Panics, in the name of `module`, when a token is
    /// beyond the table, or these positions do not fit the sequences.
    pub(super) fn table_rows(
        &self,
        module: &str,
        [batch, len]: [usize; 2],
        max_len: usize,
    ) -> TableRows<'_> {
        let offsets = match self {
            Self::Offset(offset) => {
                check_len(module, *offset, len, max_len);
                return TableRows::Together(*offset);
            }
            Self::PerAxis(axes) => panic!(
                "{module}: positions on {} axes were given to an encoding with one",
                axes.len()
            ),
            Self::Offsets(offsets) | Self::Padded { offsets, .. } => offsets,
            Self::PerToken(positions) => {
                check_each(module, positions, [batch, len], max_len);
                return TableRows::OneByOne(positions.concat());
            }
        };
        assert!(
            offsets.len() == batch,
            "{module}: {} offsets for {batch} sequences",
            offsets.len()
        );
        let lengths = match self {
            Self::Padded { lengths, .. } => lengths.clone(),
            _ => vec![len; batch],
        };
        check_lengths(module, &lengths, "", [batch, len]);
        for (&offset, length) in offsets.iter().zip(lengths) {
            check_len(module, offset, length, max_len);
        }
        // Padding may reach beyond the table.
        if offsets.iter().any(|offset| offset + len > max_len) {
            let rows = offsets.iter().flat_map(|&offset| offset..offset + len);
            return TableRows::OneByOne(rows.map(|row| row.min(max_len - 1)).collect());
        }
        match offsets.as_slice() {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => {
                TableRows::Together(*first)
            }
            _ => TableRows::Apart(offsets),
        }
    }
}

impl Default for Positions {
    /// Sequences from their start.
    fn default() -> Self {
        Self::Offset(0)
    }
}

impl From<usize> for Positions {
    fn from(offset: usize) -> Self {
        Self::Offset(offset)
    }
}

impl From<Vec<Vec<usize>>> for Positions {
    fn from(positions: Vec<Vec<usize>>) -> Self {
        Self::PerToken(positions)
    }
}

impl From<Vec<Vec<Vec<usize>>>> for Positions {
    fn from(positions: Vec<Vec<Vec<usize>>>) -> Self {
        Self::PerAxis(positions)
    }
}

impl From<Vec<usize>> for Positions {
    fn from(offsets: Vec<usize>) -> Self {
        Self::Offsets(offsets)
    }
}

/// Rows of a table of positions.
pub(super) enum TableRows<'a> {
    /// Every sequence takes the rows from this one on.
    Together(usize),
    /// Sequence `b` takes the rows from element `b` on.
    Apart(&'a [usize]),
    /// The rows of all tokens, sequence after sequence. Padding beyond the table takes its last row.
    OneByOne(Vec<usize>),
}

impl TableRows<'_> {
    /// The rows of all tokens, sequence after sequence; of one sequence of `len` tokens if all have the same rows.
    pub(super) fn listed(self, len: usize) -> Vec<usize> {
        match self {
            Self::Together(offset) => (offset..offset + len).collect(),
            Self::Apart(offsets) => {
                let rows = offsets.iter().flat_map(|&offset| offset..offset + len);
                rows.collect()
            }
            Self::OneByOne(rows) => rows,
        }
    }
}

/// Panics, in the name of `module`, unless each of `batch` sequences of `len` tokens has a length. `of` says what they are, if not inputs.
pub(crate) fn check_lengths(module: &str, lengths: &[usize], of: &str, [batch, len]: [usize; 2]) {
    assert!(
        lengths.len() == batch && lengths.iter().all(|&length| length <= len),
        "{module}: lengths {lengths:?} do not fit {of}{batch} sequences of {len} tokens"
    );
}

fn check_len(module: &str, offset: usize, len: usize, max_len: usize) {
    let needed = offset.saturating_add(len);
    assert!(
        len == 0 || needed <= max_len,
        "{module}: {len} tokens from position {offset} on need {needed} positions, but there are {max_len}"
    );
}

fn check_each(module: &str, positions: &[Vec<usize>], [batch, len]: [usize; 2], max_len: usize) {
    assert!(
        positions.len() == batch,
        "{module}: positions of {} sequences for {batch}",
        positions.len()
    );
    for (b, positions) in positions.iter().enumerate() {
        assert!(
            positions.len() == len,
            "{module}: {} positions for the {len} tokens of sequence {b}",
            positions.len()
        );
        if let Some(position) = positions.iter().find(|&&position| position >= max_len) {
            panic!(
                "{module}: sequence {b} has a token at position {position}, but there are {max_len} positions"
            );
        }
    }
}
