//! What a corpus has.

/// A sentence and its translation, as written text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The English sentence.
    pub source: String,
    /// The Spanish sentence.
    pub target: String,
}

/// The three parts of a corpus. No English sentence is in two of them, and no Spanish sentence of `train` is in another.
///
/// The same seed gives the same corpus on every machine, as long as the tables of words and the grammar stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToyCorpus {
    /// What a model learns from: 14,000 pairs.
    pub train: Vec<Pair>,
    /// 400 sentences that are not in `train`, of words that are.
    pub held_out: Vec<Pair>,
    /// 300 sentences in which an adjective describes a noun that is never in the same sentence in `train`,
    /// in any number or form, although each of the two occurs there with others.
    pub combinations: Vec<Pair>,
}
