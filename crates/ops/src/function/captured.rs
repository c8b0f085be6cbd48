//! Tensors that a function reads beside the scores.

use burn::tensor::{Float, Int, Tensor, kind::Basic};

/// A tensor that a [`ScoreFunction`](crate::ScoreFunction) or a [`MaskFunction`](crate::MaskFunction) reads, by what its entries belong to.
///
/// A function gets the entries of its block, in a shape that broadcasts to that of the scores, `[batch, heads_q, queries, keys]`, with every
/// dimension of size 1 as it was given. A score function gets its floats, which may have gradients, expanded to that shape, in
/// the precision of the scores: one number for each pair. What is computed from a tensor alone costs less before it is captured. In a call without
/// scores, tracked floats have no gradient. The call of attention panics, with one sentence, for a tensor that does not fit the scores.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::Captured;
///
/// let device = Device::default();
/// let slopes = Captured::per_head(Tensor::<1>::from_data([0.5, 0.25], &device));
/// let documents = Captured::per_key(Tensor::<2, burn::tensor::Int>::from_data([[0, 0, 1]], &device));
/// ```
///
/// PyTorch equivalent: a tensor that a `score_mod` of `flex_attention` closes over and indexes.
#[derive(Clone, Debug)]
pub struct Captured {
    pub(crate) tensor: Numbers,
    pub(crate) entries: Entries,
    /// The dimension of the scores to which the tensor is not broadcast, and what it counts.
    pub(crate) each: Option<(usize, &'static str)>,
}

/// Floats or integers, with four dimensions.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    Float(Tensor<4>),
    Int(Tensor<4, Int>),
}

/// What the entries of a captured tensor belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Pairs of a query and a key, `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`.
    Pairs,
    /// Distances, `[1, heads_q, 1, distances]`.
    Distances,
    /// Nothing: every block reads all of them.
    Whole,
}

/// What a function reads, and how it counts.
#[derive(Clone, Debug)]
pub(crate) struct Captures {
    pub(crate) tensors: Vec<Captured>,
    pub(crate) frame: Frame,
}

/// How a function is called, and how it counts.
#[derive(Clone, Debug)]
pub struct Frame {
    /// For messages.
    pub(crate) name: String,
    /// The index of each sequence's first key, for a call with some of the keys that the function counts. Empty: all are 0.
    pub(crate) first_keys: Vec<i64>,
    /// How many tokens each sequence's first query stands after the offset that the call has for it. Empty: none.
    pub(crate) beyond: Vec<i64>,
}

impl Frame {
    /// Whether indices and positions are those of the call.
    pub(crate) fn is_of_call(&self) -> bool {
        self.first_keys.is_empty() && self.beyond.is_empty()
    }
}

impl Captures {
    pub(super) fn none(name: String) -> Self {
        Self {
            tensors: Vec::new(),
            frame: Frame {
                name,
                first_keys: Vec::new(),
                beyond: Vec::new(),
            },
        }
    }

    /// Whether a tensor has numbers by distance.
    pub(crate) fn has_distances(&self) -> bool {
        let mut captured = self.tensors.iter();
        captured.any(|captured| captured.entries == Entries::Distances)
    }

    pub(crate) fn floats(&self) -> impl Iterator<Item = (&Tensor<4>, Entries)> {
        let floats = self.tensors.iter();
        floats.filter_map(|captured| match &captured.tensor {
            Numbers::Float(tensor) => Some((tensor, captured.entries)),
            Numbers::Int(_) => None,
        })
    }

    pub(crate) fn ints(&self) -> impl Iterator<Item = (&Tensor<4, Int>, Entries)> {
        let ints = self.tensors.iter();
        ints.filter_map(|captured| match &captured.tensor {
            Numbers::Int(tensor) => Some((tensor, captured.entries)),
            Numbers::Float(_) => None,
        })
    }
}

/// The kinds of numbers that a function reads: floats, which may have a gradient, and integers.
pub trait CapturedKind: IntoCaptured {}

impl<K: IntoCaptured> CapturedKind for K {}

pub trait IntoCaptured: Basic + Sized {
    fn captured(tensor: Tensor<4, Self>, entries: Entries) -> Captured;
}

impl IntoCaptured for Float {
    fn captured(tensor: Tensor<4>, entries: Entries) -> Captured {
        Captured::new(Numbers::Float(tensor), entries)
    }
}

impl IntoCaptured for Int {
    fn captured(tensor: Tensor<4, Int>, entries: Entries) -> Captured {
        Captured::new(Numbers::Int(tensor.without_autodiff()), entries)
    }
}

impl Captured {
    fn new(tensor: Numbers, entries: Entries) -> Self {
        let each = None;
        Self {
            tensor,
            entries,
            each,
        }
    }

    fn of_each(mut self, dim: usize, what: &'static str) -> Self {
        self.each = Some((dim, what));
        self
    }

    /// One number per query head, `[heads_q]`. A function gets `[1, heads_q, 1, 1]`, or one for each pair.
    pub fn per_head<K: CapturedKind>(numbers: Tensor<1, K>) -> Self {
        let [heads] = numbers.dims();
        K::captured(numbers.reshape([1, heads, 1, 1]), Entries::Pairs).of_each(1, "query heads")
    }

    /// One number per query, `[batch or 1, len_q]`. A function gets `[batch or 1, 1, queries, 1]`, or one for each pair.
    pub fn per_query<K: CapturedKind>(numbers: Tensor<2, K>) -> Self {
        let numbers = with_ones_behind(numbers).permute([0, 2, 1, 3]);
        K::captured(numbers, Entries::Pairs).of_each(2, "queries")
    }

    /// One number per key, `[batch or 1, len_kv]`. A function gets `[batch or 1, 1, 1, keys]`, or one for each pair.
    pub fn per_key<K: CapturedKind>(numbers: Tensor<2, K>) -> Self {
        let numbers = with_ones_behind(numbers).permute([0, 2, 3, 1]);
        K::captured(numbers, Entries::Pairs).of_each(3, "keys")
    }

    /// Numbers of any dimensions of the scores, `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`, of which a function gets the queries
    /// and keys of its block.
    pub fn per_pair<K: CapturedKind>(numbers: Tensor<4, K>) -> Self {
        K::captured(numbers, Entries::Pairs)
    }

    /// One number per head and distance, in the shapes of [`AttentionBias::distances`](crate::AttentionBias::distances), for a score function. It gets
    /// that of every pair.
    pub fn by_distance(numbers: Tensor<2>) -> Self {
        let numbers = numbers.unsqueeze_dims(&[0, 2]);
        Float::captured(numbers, Entries::Distances)
    }

    /// Numbers of any meaning, at most four dimensions, which every block gets as they are, with dimensions of size 1 before them where there are fewer. More dimensions
    /// do not compile.
    pub fn whole<const D: usize, K: CapturedKind>(numbers: Tensor<D, K>) -> Self {
        const { assert!(D <= 4, "a captured tensor has at most four dimensions") };
        K::captured(numbers.unsqueeze(), Entries::Whole)
    }
}

/// `[batch, len]` as `[batch, len, 1, 1]`.
///
/// In Burn 0.22.1 only the dimensions that keep their place may be empty in a reshape.
pub(crate) fn with_ones_behind<K: Basic>(x: Tensor<2, K>) -> Tensor<4, K> {
    let [batch, len] = x.dims();
    x.reshape([batch, len, 1, 1])
}
