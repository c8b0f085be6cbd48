//! A piece of the scores, and the operands that belong to it.

use core::ops::Range;

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor, IntTensor},
    },
    tensor::Slice,
};

use crate::{AttentionScalars, MaskInputs, OptionalBool, OptionalFloat, OptionalInt, ScoreInputs};

/// Some queries and some keys of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) queries: Range<usize>,
    pub(crate) keys: Range<usize>,
    /// Of the whole call.
    pub(crate) len_q: usize,
    /// Of the whole call.
    pub(crate) len_kv: usize,
}

/// Which keys causal mask and window show, counted from a query's place on the axis of the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach {
    /// The place of the first query.
    pub(crate) first: i64,
    pub(crate) left: Option<i64>,
    pub(crate) right: Option<i64>,
}

impl Part {
    pub(crate) fn whole(len_q: usize, len_kv: usize) -> Self {
        Self {
            queries: 0..len_q,
            keys: 0..len_kv,
            len_q,
            len_kv,
        }
    }

    /// The reach of its own queries on the axis of its own keys; bounds that hide none of them are left out.
    pub(crate) fn reach(&self, scalars: &AttentionScalars) -> Reach {
        let whole = Reach::new(scalars, self.len_q, self.len_kv);
        let first = whole.first + self.queries.start as i64 - self.keys.start as i64;
        let (queries, keys) = (self.queries.len() as i64, self.keys.len() as i64);
        Reach {
            first,
            left: whole.left.filter(|left| first + queries - 1 - left > 0),
            right: whole.right.filter(|right| first + right < keys - 1),
        }
    }

    /// The operands of its queries and keys. Nothing is copied where it is all of them.
    pub(crate) fn of<B: Backend>(&self, inputs: &ScoreInputs<B>) -> ScoreInputs<B> {
        let ScoreInputs {
            query,
            key,
            bias,
            distance_bias,
            sinks,
            mask,
            scalars,
        } = inputs.clone();
        // Entry `i − j + len_kv − 1` of the call is entry `i − j + len_kv − 1` of the part, in its own numbers.
        let first = self.queries.start + self.len_kv - self.keys.end;
        let distances = first..first + self.queries.len() + self.keys.len() - 1;
        let distance_bias = distance_bias.into_option();
        let query_segments = mask.query_segments.into_option();
        let key_segments = mask.key_segments.into_option();
        ScoreInputs {
            query: narrow::<B>(query, 2, &self.queries),
            key: narrow::<B>(key, 2, &self.keys),
            bias: OptionalFloat::from_option(bias.into_option().map(|bias| {
                let bias = narrow::<B>(bias, 2, &self.queries);
                narrow::<B>(bias, 3, &self.keys)
            })),
            distance_bias: OptionalFloat::from_option(
                distance_bias.map(|bias| narrow::<B>(bias, 1, &distances)),
            ),
            sinks,
            mask: MaskInputs {
                visible_blocks: OptionalBool::from_option(mask.visible_blocks.into_option().map(
                    |table| {
                        let size = scalars.block_size.expect("a table of blocks has a size");
                        let table =
                            narrow_bool::<B>(table, 2, &entries(&self.queries, size.queries));
                        narrow_bool::<B>(table, 3, &entries(&self.keys, size.keys))
                    },
                )),
                masked: OptionalBool::from_option(mask.masked.into_option().map(|masked| {
                    let masked = narrow_bool::<B>(masked, 2, &self.queries);
                    narrow_bool::<B>(masked, 3, &self.keys)
                })),
                key_lengths: mask.key_lengths,
                query_segments: OptionalInt::from_option(
                    query_segments.map(|ids| narrow_int::<B>(ids, 1, &self.queries)),
                ),
                key_segments: OptionalInt::from_option(
                    key_segments.map(|ids| narrow_int::<B>(ids, 1, &self.keys)),
                ),
            },
            scalars,
        }
    }
}

impl Reach {
    pub(crate) fn new(scalars: &AttentionScalars, len_q: usize, len_kv: usize) -> Self {
        let window = scalars.window.unwrap_or_default();
        // Longer than both sequences is as good as endless, and does not overflow.
        let tokens = |tokens: usize| {
            i64::try_from(tokens)
                .unwrap_or(i64::MAX)
                .min((len_q + len_kv) as i64)
        };
        Self {
            first: scalars.causal.unwrap_or_default().offset(len_q, len_kv) as i64,
            left: window.left.map(tokens),
            // A causal mask is a window that reaches no key to the right.
            right: match scalars.causal {
                Some(_) => Some(0),
                None => window.right.map(tokens),
            },
        }
    }

    /// The keys that some of the queries see, out of `len_kv`.
    pub(crate) fn keys(&self, queries: &Range<usize>, len_kv: usize) -> Range<usize> {
        let key = |place: i64| place.clamp(0, len_kv as i64) as usize;
        let start = self
            .left
            .map_or(0, |left| key(self.first + queries.start as i64 - left));
        let end = self
            .right
            .map_or(len_kv, |right| key(self.first + queries.end as i64 + right));
        start..end.max(start)
    }

    /// Whether some key out of `len_kv` is seen by none of `len_q` queries.
    pub(crate) fn leaves_unseen(&self, len_q: usize, len_kv: usize) -> bool {
        self.keys(&(0..len_q), len_kv) != (0..len_kv)
    }

    /// Whether some of `len_q` queries sees none of `len_kv` keys.
    pub(crate) fn leaves_blind(&self, len_q: usize, len_kv: usize) -> bool {
        self.keys(&(0..1), len_kv).is_empty() || self.keys(&(len_q - 1..len_q), len_kv).is_empty()
    }
}

/// The entries of a table of blocks that blocks of `size` with some of `tokens` have.
fn entries(tokens: &Range<usize>, size: usize) -> Range<usize> {
    tokens.start / size..tokens.end.div_ceil(size)
}

macro_rules! narrow {
    ($name:ident, $tensor:ident, $slice:ident) => {
        /// Some of the entries of a dimension. A single one stands for all and stays.
        pub(crate) fn $name<B: Backend>(
            tensor: $tensor<B>,
            dim: usize,
            range: &Range<usize>,
        ) -> $tensor<B> {
            let shape = tensor.shape();
            if shape[dim] == 1 || shape[dim] == range.len() {
                return tensor;
            }
            let mut slices = vec![Slice::full(); shape.num_dims()];
            slices[dim] = Slice::from(range.clone());
            B::$slice(tensor, &slices)
        }
    };
}

narrow!(narrow, FloatTensor, float_slice);
narrow!(narrow_bool, BoolTensor, bool_slice);
narrow!(narrow_int, IntTensor, int_slice);
