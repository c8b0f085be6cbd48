//! The data that every picture is drawn from.

use crate::label::printable;
use crate::{MapError, MapWeight};

/// How far above 1 a weight may be: the rounding of a softmax computed in bfloat16.
const TOLERANCE: f32 = 1e-2;

/// The attention weights of one layer: for every head, how much each query token looks at each key token.
///
/// A row, the weights of one query, is the result of a softmax: it sums to 1, or to 0 if the query may not see any key (to less
/// than 1 with attention sinks).
///
/// # Hidden keys
/// Pictures tell a key that a mask hides from one that merely gets little weight. A weight of exactly 0 counts as hidden. A softmax gives
/// it to a visible key only by underflow, where the score lies more than about 100 below the largest of its row (17 in f16); ALiBi does
/// so on long texts. If that may be, [`with_hidden`](Self::with_hidden) says what the mask was.
///
/// # Example
/// ```
/// use burn_attn_viz::AttentionMap;
///
/// let map = AttentionMap::new(
///     "decoder, layer 1",
///     vec!["je".into(), "dors".into()],
///     vec!["I".into(), "sleep".into(), ".".into()],
///     // Two heads of two queries by three keys.
///     vec![0.75, 0.25, 0.0, 0.0, 1.0, 0.0, 0.5, 0.5, 0.0, 0.25, 0.25, 0.5],
/// )?;
/// assert_eq!(map.heads(), 2);
/// assert_eq!(map.row(1, 0), [0.5, 0.5, 0.0]);
/// assert_eq!(map.keys()[map.strongest_key(0, 1)], "sleep");
/// assert_eq!(map.row_entropy(1, 0), 1.0); // one bit: as undecided as between two keys
/// # Ok::<(), burn_attn_viz::MapError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMap {
    title: String,
    queries: Vec<String>,
    keys: Vec<String>,
    heads: usize,
    weights: Vec<f32>,
    hidden: Option<Vec<bool>>,
}

impl AttentionMap {
    /// A map of the tokens of a layer and its weights.
    ///
    /// # Shapes
    /// `weights`: `[heads, queries, keys]`, row-major; the number of heads follows from the length.
    ///
    /// # Errors
    /// A [`MapError`] if there are no queries or no keys, if the number of weights is not a positive multiple of queries
    /// × keys, or if a weight is not finite or not between 0 and 1 (up to the rounding of bfloat16).
    pub fn new(
        title: impl Into<String>,
        queries: Vec<String>,
        keys: Vec<String>,
        weights: Vec<f32>,
    ) -> Result<Self, MapError> {
        if queries.is_empty() {
            return Err(MapError::NoQueries);
        }
        if keys.is_empty() {
            return Err(MapError::NoKeys);
        }
        let cells = queries.len() * keys.len();
        if weights.is_empty() || !weights.len().is_multiple_of(cells) {
            return Err(MapError::WeightCount {
                weights: weights.len(),
                queries: queries.len(),
                keys: keys.len(),
            });
        }
        let map = Self {
            title: title.into(),
            heads: weights.len() / cells,
            queries,
            keys,
            weights,
            hidden: None,
        };
        for (index, weight) in map.weights.iter().enumerate() {
            if !weight.is_finite() {
                return Err(MapError::NotFinite(map.at(index)));
            }
            if !(0.0..=1.0 + TOLERANCE).contains(weight) {
                return Err(MapError::OutOfRange(map.at(index)));
            }
        }
        Ok(map)
    }

    /// The weight at this index of all.
    fn at(&self, index: usize) -> MapWeight {
        let (queries, keys) = (self.queries.len(), self.keys.len());
        MapWeight {
            head: index / (queries * keys),
            query: index / keys % queries,
            key: index % keys,
            weight: self.weights[index],
        }
    }

    /// Says what the mask hides, true where a query may not see a key: then a weight of 0 elsewhere is visible.
    ///
    /// # Shapes
    /// `hidden`: `[queries, keys]`, row-major, the same for every head.
    ///
    /// # Errors
    /// A [`MapError`] if `hidden` has another length, or a hidden key has a weight other than 0.
    pub fn with_hidden(mut self, hidden: Vec<bool>) -> Result<Self, MapError> {
        let (queries, keys) = (self.queries.len(), self.keys.len());
        if hidden.len() != queries * keys {
            return Err(MapError::HiddenCount {
                hidden: hidden.len(),
                queries,
                keys,
            });
        }
        let mut cells = self.weights.iter().zip(hidden.iter().cycle());
        if let Some(index) = cells.position(|(&weight, &hides)| hides && weight != 0.0) {
            return Err(MapError::HiddenWeight(self.at(index)));
        }
        self.hidden = Some(hidden);
        Ok(self)
    }

    /// The same map under another title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// The title, such as `layer 1`.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The tokens that look: one per row.
    pub fn queries(&self) -> &[String] {
        &self.queries
    }

    /// The tokens that are looked at: one per column.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The number of heads.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// What a picture of `head` is called.
    ///
    /// # Panics
    /// If `head` is out of range.
    pub(crate) fn head_title(&self, head: usize) -> String {
        let (title, heads) = (printable(&self.title), self.heads);
        assert!(
            head < heads,
            "head {head} is outside a map of {heads} heads"
        );
        format!("{title}, head {} of {heads}", head + 1)
    }

    /// The weight that query `i` of `head` gives to key `j`.
    ///
    /// # Panics
    /// If `head`, `i` or `j` is out of range.
    pub fn weight(&self, head: usize, i: usize, j: usize) -> f32 {
        self.row(head, i)[j]
    }

    /// The weights that query `i` of `head` gives to all keys.
    ///
    /// # Panics
    /// If `head` or `i` is out of range.
    pub fn row(&self, head: usize, i: usize) -> &[f32] {
        let queries = self.queries.len();
        assert!(
            head < self.heads && i < queries,
            "head {head}, query {i} is outside a map of {} heads and {queries} queries",
            self.heads
        );
        let start = (head * queries + i) * self.keys.len();
        &self.weights[start..start + self.keys.len()]
    }

    /// Whether key `j` is hidden from query `i` of `head`, by [`with_hidden`](Self::with_hidden) or by its weight of exactly 0.
    ///
    /// # Panics
    /// If `head`, `i` or `j` is out of range.
    pub fn is_hidden(&self, head: usize, i: usize, j: usize) -> bool {
        let weight = self.weight(head, i, j);
        match &self.hidden {
            Some(hidden) => hidden[i * self.keys.len() + j],
            None => weight == 0.0,
        }
    }

    /// The map of one head that averages all heads.
    pub fn mean_over_heads(&self) -> AttentionMap {
        let cells = self.queries.len() * self.keys.len();
        let weights = (0..cells).map(|cell| {
            let heads = self.weights.iter().skip(cell).step_by(cells);
            let sum: f64 = heads.map(|&weight| f64::from(weight)).sum();
            (sum / self.heads as f64) as f32
        });
        AttentionMap {
            title: self.title.clone(),
            queries: self.queries.clone(),
            keys: self.keys.clone(),
            heads: 1,
            weights: weights.collect(),
            hidden: self.hidden.clone(),
        }
    }

    /// The largest weight of `head`.
    ///
    /// # Panics
    /// If `head` is out of range.
    pub fn maximum(&self, head: usize) -> f32 {
        let rows = (0..self.queries.len()).map(|i| self.row(head, i));
        rows.flatten().copied().fold(0.0, f32::max)
    }

    /// The key that query `i` of `head` looks at most; the first of them if several are equal.
    ///
    /// Over all queries of a cross-attention, this is the usual way to read a word alignment from attention.
    ///
    /// # Panics
    /// If `head` or `i` is out of range.
    pub fn strongest_key(&self, head: usize, i: usize) -> usize {
        let row = self.row(head, i);
        (1..row.len()).fold(0, |best, j| if row[j] > row[best] { j } else { best })
    }

    /// The entropy of query `i` of `head` in bits: `−Σⱼ pⱼ log₂ pⱼ` over the row divided by its sum.
    ///
    /// 0 means that one key gets everything; `b` bits mean a choice as wide as one among `2^b` equal keys. A row without a visible
    /// key has entropy 0.
    ///
    /// # Panics
    /// If `head` or `i` is out of range.
    pub fn row_entropy(&self, head: usize, i: usize) -> f32 {
        let row = self.row(head, i);
        let sum: f64 = row.iter().map(|&weight| f64::from(weight)).sum();
        let terms = row.iter().filter(|&&weight| weight > 0.0).map(|&weight| {
            let share = f64::from(weight) / sum;
            -share * share.log2()
        });
        // `-1 · log₂ 1` is -0, which would print as such.
        (terms.sum::<f64>() + 0.0).max(0.0) as f32
    }

    /// The mean of [`row_entropy`](Self::row_entropy) over the queries of `head` that see any key, in bits.
    ///
    /// # Panics
    /// If `head` is out of range.
    pub fn entropy(&self, head: usize) -> f32 {
        let sees = |&i: &usize| self.row(head, i).iter().any(|&weight| weight > 0.0);
        let rows = (0..self.queries.len()).filter(sees);
        let bits: Vec<_> = rows.map(|i| f64::from(self.row_entropy(head, i))).collect();
        // An empty sum is -0, which would print as such.
        ((bits.iter().sum::<f64>() + 0.0) / bits.len().max(1) as f64) as f32
    }

    /// Whether no token may look at a later one: the same tokens on both sides, and every key above the diagonal hidden.
    ///
    /// True for the self-attention of a decoder. False for a single token, which cannot tell.
    pub fn is_causal(&self) -> bool {
        self.queries.len() > 1
            && self.queries == self.keys
            && (0..self.heads).all(|head| {
                (0..self.queries.len())
                    .all(|i| (i + 1..self.keys.len()).all(|j| self.is_hidden(head, i, j)))
            })
    }
}
