//! What an attention reads apart from its sequences.

use burn_attn_ops::{AttentionBias, AttentionMask, ScoreFunction};

use crate::positions::{Position, Positions, QueryOffset};

/// What an attention reads apart from its sequences: masks, biases, a score function, lengths, and where the tokens stand.
///
/// The inputs of the attention modules and of layers have the same builders, and take a whole context by `context`. A value that does
/// not fit makes `forward` panic, with one sentence that names it. Masks that cannot be combined panic at once
/// ([`AttentionMask::and`]). Beside a cache, mask and bias are for all tokens: [`KvCache`](crate::KvCache#masks-and-biases).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn::{AttentionContext, AttentionMask, SelfAttentionConfig, SelfAttentionInput};
///
/// let device = Device::default();
/// let attention = SelfAttentionConfig::new(32, 4).init(&device);
/// let context = AttentionContext::new().lengths(&[7, 4]).mask(AttentionMask::window(2, 2));
/// let x = Tensor::zeros([2, 7, 32], &device);
/// assert_eq!(attention.forward(SelfAttentionInput::new(x).context(context)).dims(), [2, 7, 32]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct AttentionContext {
    pub(crate) mask: AttentionMask,
    pub(crate) bias: AttentionBias,
    pub(crate) score_function: Option<ScoreFunction>,
    pub(crate) lengths: Option<Vec<usize>>,
    pub(crate) offset: Option<QueryOffset>,
    pub(crate) positions: Option<Positions>,
    pub(crate) key_positions: Option<Positions>,
    pub(crate) position: Option<Position>,
    /// All that the self-attention of a stack's layer hides, if the stack has made it.
    pub(crate) made_mask: Option<AttentionMask>,
    /// Whether this is what a stack gives its layers, so that those that are alike share a mask: what changes a mask clears it.
    pub(crate) is_of_stack: bool,
}

impl AttentionContext {
    /// A context that hides and adds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hides what `mask` hides, in addition to causality and earlier masks. Panics when [`AttentionMask::and`] cannot combine them.
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = self.mask.and(mask);
        self.is_of_stack = false;
        self
    }

    /// Adds `bias` to the scores, on top of position biases and earlier biases; see [`AttentionBias::and`].
    pub fn bias(mut self, bias: AttentionBias) -> Self {
        self.bias = self.bias.and(bias);
        self
    }

    /// Changes the scaled scores by `function`, in place of one given before: see [`AttentionOptions::score_function`](burn_attn_ops::AttentionOptions::score_function).
    ///
    /// It counts tokens, as a mask function does, and as causality: a function that is to count between given [`positions`](Self::positions)
    /// captures them.
    pub fn score_function(mut self, function: ScoreFunction) -> Self {
        self.score_function = Some(function);
        self
    }

    /// Sequence `b` has `lengths[b]` keys. What follows is padding, which no query sees and no cache keeps.
    pub fn lengths(mut self, lengths: &[usize]) -> Self {
        self.lengths = Some(lengths.to_vec());
        self.is_of_stack = false;
        self
    }

    /// The position of each sequence's first query among its keys: one number, or one for each sequence. Masks by position and
    /// position encodings count from it. [`QueryOffset`] has the defaults.
    ///
    /// In self-attention, where queries and keys are the same tokens, an offset makes `forward` panic; so it does with a cache, which
    /// knows the positions.
    ///
    /// # Cost
    ///
    /// With a causal mask, a window, ALiBi or a relative bias, offsets beyond `len_kv` or below `−len_q` take
    /// `batch · n_heads · len_q · len_kv` numbers of memory.
    pub fn offset(mut self, offset: impl Into<QueryOffset>) -> Self {
        self.offset = Some(offset.into());
        self
    }

    /// The positions of the tokens, or, with another sequence as keys, of the queries: see
    /// [`positions`](crate::positions). Default: a token's place in its sequence, after the tokens of a cache if there is one. The default
    /// is not the position after the last: where the tokens of a cache were given other positions than their places, as with padding on the
    /// left, give the new tokens positions too. A list of numbers is where each sequence starts; a list for each sequence has the position of
    /// each of its tokens.
    ///
    /// [`MultiHeadAttention`](crate::MultiHeadAttention) takes them for its keys too if it has as many keys as queries and no
    /// [`key_positions`](Self::key_positions). An [`offset`](Self::offset) beside them makes `forward` panic. So does a window, ALiBi or a
    /// relative bias, of the module or of this context, beside positions on several axes, which have no distances.
    ///
    /// # Cost
    ///
    /// Unless each token is one position after the token before it, ALiBi or a relative bias takes `n_heads · len_q · len_kv` numbers in
    /// every layer, and a window `len_q · len_kv` bools, once for all layers with the same window; times the batch if the sequences differ.
    /// All three take this memory in every layer, even of such tokens, beside a cache with tokens that are not at their places, and in causal
    /// [`MultiHeadAttention`](crate::MultiHeadAttention) of queries and keys at different positions. A cache with a window panics when the window of a
    /// new token reaches tokens that it has dropped: [`KvCache::reserve`](crate::KvCache::reserve).
    pub fn positions(mut self, positions: impl Into<Positions>) -> Self {
        self.positions = Some(positions.into());
        self.is_of_stack = false;
        self
    }

    /// The positions of the keys, where they are another sequence than the queries, whose [`positions`](Self::positions) must be given too.
    pub fn key_positions(mut self, positions: impl Into<Positions>) -> Self {
        self.key_positions = Some(positions.into());
        self
    }

    /// A position encoding that several modules share. It replaces the encoding of the module, ALiBi included.
    ///
    /// A stack whose layers share a rotary or relative encoding refuses it. So does cross-attention with a projected memory, whose
    /// keys already have the encoding of the module.
    pub fn position(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    /// What a caller can have given, for [`refuse`], and whether it was.
    pub(crate) fn given(&self) -> [(&'static str, bool); 8] {
        // By name, so that a new field is not forgotten.
        let Self {
            mask,
            bias,
            score_function,
            lengths,
            offset,
            positions,
            key_positions,
            position,
            made_mask: _,
            is_of_stack: _,
        } = self;
        [
            ("a mask was", !mask.is_none()),
            ("a bias was", !bias.is_none()),
            ("a score function was", score_function.is_some()),
            ("lengths were", lengths.is_some()),
            ("an offset was", offset.is_some()),
            ("positions were", positions.is_some()),
            ("key positions were", key_positions.is_some()),
            ("a position encoding was", position.is_some()),
        ]
    }

    /// Panics, in the name of `module`, on what says where queries stand among the keys of another sequence.
    pub(super) fn check_one_sequence(&self, module: &str) {
        assert!(
            self.offset.is_none(),
            "{module}: an offset was given, but the queries are the keys"
        );
        assert!(self.key_positions.is_none(), "{module}: {KEYS_ARE_QUERIES}");
    }

    /// The positions of keys, which may be those of the queries. Panics, in the name of `module`, when the queries have none, or have an
    /// offset too.
    pub(super) fn positions_of_keys(&self, module: &str, may_be_queries: bool) -> Positions {
        assert!(
            self.positions.is_some() || self.key_positions.is_none(),
            "{module}: positions of the keys were given without those of the queries"
        );
        assert!(
            self.positions.is_none() || self.offset.is_none(),
            "{module}: an offset was given beside the positions of the queries"
        );
        let of_queries = self.positions.as_ref().filter(|_| may_be_queries);
        let positions = self.key_positions.as_ref().or(of_queries);
        positions.cloned().unwrap_or_default()
    }
}

/// Panics with the `sentence` about the first of these that is given.
pub(crate) fn refuse(
    given: impl IntoIterator<Item = (&'static str, bool)>,
    sentence: impl FnOnce(&str) -> String,
) {
    if let Some((what, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        panic!("{}", sentence(what));
    }
}

pub(super) const KEYS_ARE_QUERIES: &str =
    "key positions were given, but the keys are those of the queries";

/// Builders of an [`AttentionContext`] on an input that has one as its field `context`: the named ones, or those that every input has.
/// [`AttentionContext`] must be in scope.
macro_rules! context_builders {
    ($input:ty) => {
        context_builders! { $input:
            mask: burn_attn_ops::AttentionMask,
            bias: burn_attn_ops::AttentionBias,
            score_function: burn_attn_ops::ScoreFunction,
            lengths: &[usize],
            positions: impl Into<crate::positions::Positions>,
            position: crate::positions::Position
        }

        impl $input {
            /// Replaces the whole context.
            pub fn context(mut self, context: AttentionContext) -> Self {
                self.context = context;
                self
            }
        }
    };
    ($input:ty: $($part:ident: $kind:ty),*) => {
        impl $input {$(
            #[doc = concat!("As [`AttentionContext::", stringify!($part), "`].")]
            pub fn $part(mut self, $part: $kind) -> Self {
                self.context = self.context.$part($part);
                self
            }
        )*}
    };
}
pub(crate) use context_builders;
