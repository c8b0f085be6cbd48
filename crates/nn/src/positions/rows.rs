//! Where the rows of a tensor stand.

/// At which positions of their sequences the rows of a `[batch, …, len, …]` tensor stand: row `i` of sequence `b` is token
/// `offset + i`.
///
/// Queries that follow what is in a cache start where the cache ends, which may differ from sequence to sequence.
///
/// ```
/// use burn_attn::positions::Positions;
///
/// assert_eq!(Positions::default(), Positions::Offset(0));
/// assert_eq!(Positions::from(7), Positions::Offset(7));
/// assert_eq!(Positions::from(vec![7, 3]), Positions::Offsets(vec![7, 3]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Positions {
    /// Every sequence starts at this position (tokens).
    Offset(usize),
    /// Sequence `b` starts at position `offsets[b]` (tokens).
    Offsets(Vec<usize>),
}

impl Default for Positions {
    /// Sequences from their beginning.
    fn default() -> Self {
        Self::Offset(0)
    }
}

impl From<usize> for Positions {
    fn from(offset: usize) -> Self {
        Self::Offset(offset)
    }
}

impl From<Vec<usize>> for Positions {
    fn from(offsets: Vec<usize>) -> Self {
        Self::Offsets(offsets)
    }
}
