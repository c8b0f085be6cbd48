//! Masks by position: causality and sliding windows.

use core::ops::Range;

use serde::{Deserialize, Serialize};

/// The corner to which the causal diagonal is pinned when `len_q != len_kv`.
///
/// Query `i` stands at position `i + offset`, and sees keys `j <= i + offset`:
///
/// ```text
/// BottomRight: offset len_kv - len_q             TopLeft: offset 0
///
/// len_q 2, len_kv 5     len_q 5, len_kv 2        len_q 2, len_kv 5     len_q 5, len_kv 2
///   # # # # .             . .                      # . . . .             # .
///   # # # # #             . .                      # # . . .             # #
///                         . .                                            # #
///                         # .                                            # #
///                         # #                                            # #
/// ```
///
/// `#` is visible, `.` is hidden; rows are queries, columns are keys. With more queries than keys, bottom-right hides
/// the first `len_q - len_kv` rows altogether: their output is 0.
///
/// # Source
/// FlashAttention 2.1 (bottom-right). PyTorch: `torch.nn.attention.bias.causal_lower_right` and `causal_upper_left`;
/// the flag `is_causal=True` is top-left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CausalAlignment {
    /// The last query sees every key: the queries are the newest tokens, as in decoding against a cache.
    #[default]
    BottomRight,
    /// The first query sees the first key: both sequences start at the same time.
    TopLeft,
}

impl CausalAlignment {
    /// What to add to the index of a query to get its position among the keys, in tokens.
    ///
    /// ```
    /// use burn_attn_kernels_cpu::CausalAlignment::{BottomRight, TopLeft};
    ///
    /// assert_eq!(BottomRight.offset(2, 5), 3);
    /// assert_eq!(BottomRight.offset(5, 2), -3);
    /// assert_eq!(TopLeft.offset(2, 5), 0);
    /// ```
    #[must_use]
    pub fn offset(self, len_q: usize, len_kv: usize) -> isize {
        match self {
            Self::BottomRight => len_kv as isize - len_q as isize,
            Self::TopLeft => 0,
        }
    }
}

/// A sliding window around the position of the query: `position - left <= key <= position + right`.
///
/// The position of query `i` is `i + len_kv - len_q`; or `i` if the mask is causal with
/// [`TopLeft`](CausalAlignment::TopLeft); or as given by [`query_offsets`](crate::Mask::query_offsets). The window always contains the
/// position itself; `None` is unbounded.
///
/// ```text
/// left Some(2), right Some(0)      left Some(1), right None       left Some(1), right Some(1)
///   len_q 4, len_kv 4                len_q 4, len_kv 4              len_q 2, len_kv 5
///   # . . .                          # # # #                        . . # # #
///   # # . .                          # # # #                        . . . # #
///   # # # .                          . # # #
///   . # # #                          . . # #
/// ```
///
/// # Source
/// Beltagy et al., *Longformer* (2020), figure 2b. FlashAttention: `window_size=(left, right)`, where −1 is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window {
    /// How many tokens before its position a query sees.
    pub left: Option<usize>,
    /// How many tokens after its position a query sees.
    pub right: Option<usize>,
}

impl Window {
    /// The keys in the window around a position, as far as they exist.
    #[must_use]
    pub fn key_range(self, position: isize, len_kv: usize) -> Range<usize> {
        // ANCHOR: window-key-range
        // A range ends one past its last key. Saturation is exact here: nothing beyond `len_kv` exists.
        let end = match self.right {
            Some(right) => position.saturating_add_unsigned(right).saturating_add(1),
            None => isize::MAX,
        };
        let start = match self.left {
            Some(left) => position.saturating_sub_unsigned(left),
            None => 0,
        };
        let end = (end.max(0) as usize).min(len_kv);
        (start.max(0) as usize).min(end)..end
        // ANCHOR_END: window-key-range
    }
}

/// Which keys around its position a query may see: always one range. Its ends never decrease from one position to the next.
///
/// The default hides nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PositionMask {
    /// Hides the keys after the position of the query.
    pub causal: Option<CausalAlignment>,
    /// Hides the keys outside a window around the position of the query.
    pub window: Option<Window>,
}

impl PositionMask {
    /// A causal mask, a window, both, or neither.
    #[must_use]
    pub fn new(causal: Option<CausalAlignment>, window: Option<Window>) -> Self {
        Self { causal, window }
    }

    /// A causal mask only.
    #[must_use]
    pub fn causal(alignment: CausalAlignment) -> Self {
        Self::new(Some(alignment), None)
    }

    /// A window only.
    #[must_use]
    pub fn window(window: Window) -> Self {
        Self::new(None, Some(window))
    }

    /// The position of the first query among the keys, if there are no query offsets (tokens).
    #[must_use]
    pub fn offset(self, len_q: usize, len_kv: usize) -> isize {
        self.causal.unwrap_or_default().offset(len_q, len_kv)
    }

    /// How many keys before and after its position a query may see; `None` is unbounded.
    #[must_use]
    pub fn reach(self) -> Window {
        let Window { left, right } = self.window.unwrap_or_default();
        Window {
            left,
            // A causal mask is a window that reaches no key to the right.
            right: match self.causal {
                Some(_) => Some(0),
                None => right,
            },
        }
    }

    /// The keys that a query at a position may see, as far as they exist.
    #[must_use]
    pub fn key_range(self, position: isize, len_kv: usize) -> Range<usize> {
        self.reach().key_range(position, len_kv)
    }
}
