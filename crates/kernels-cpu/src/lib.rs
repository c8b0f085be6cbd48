//! Attention on plain slices: the contract that every implementation follows, a naive f64 implementation that decides disputes, and fast CPU
//! kernels.
//!
//! If you use Burn, you want the crate `burn-attn`, which is built on this one. This crate does not depend on Burn, so its masks, dropout and
//! kernels can be tested and fuzzed in seconds.
//!
//! | to | use |
//! | --- | --- |
//! | compute attention fast, in f32, f64, f16 or bf16 | [`tiled::forward`] and [`tiled::backward`] |
//! | compute it slowly and exactly, to check another implementation | [`oracle::forward`] and [`oracle::backward`] |
//! | know what an option means | [the contract](#the-contract-of-attention) |
//!
//! ```
//! use burn_attn_kernels_cpu::{
//!     CausalAlignment, Mask, Options, PositionMask, Problem,
//!     tiled::{Execution, Inputs, RowsMut, forward},
//! };
//!
//! // One head, two tokens, vectors of one number.
//! let problem = Problem { batch: 1, heads_q: 1, heads_kv: 1, len_q: 2, len_kv: 2, dim_qk: 1, dim_v: 1 };
//! let by_position = PositionMask::causal(CausalAlignment::BottomRight);
//! let inputs = Inputs::<f32> {
//!     options: Options { mask: Mask { by_position, ..Mask::default() }, ..Options::default() },
//!     ..Inputs::new(problem, &[0.0, 0.0], &[1.0, 2.0], &[10.0, 30.0])
//! };
//! let (mut output, mut logsumexp) = ([0.0; 2], [0.0; 2]);
//! forward(&inputs, RowsMut::contiguous(&mut output, 1, 2, 1), &mut logsumexp, Execution::available())?;
//! assert_eq!(output, [10.0, 20.0]); // the first token sees itself, the second sees both
//! # Ok::<(), burn_attn_kernels_cpu::InputError>(())
//! ```
//!
//! | item | what it is |
//! | --- | --- |
//! | [`Problem`] | the seven sizes of one call, and where each row is in the flat buffers |
//! | [`Mask`] | which keys a query may see: [`PositionMask`] ([`CausalAlignment`], [`Window`]), key lengths, [`Segments`], [`Blocks`], a bool tensor |
//! | [`Options`] | mask, bias, sinks, softcap, scale and dropout of a call |
//! | [`Broadcast`] | a `[batch, heads, len_q, len_kv]` operand, any of whose sizes may be 1 |
//! | [`RelativeBuckets`], [`alibi_slopes`], [`DistanceAxis`] | biases that depend only on the distance of a key: T5's, ALiBi's, and the operand that kernels get for both |
//! | [`AttentionDropout`] | which weights are dropped, recomputed from their indices and never stored |
//! | [`oracle`] | forward and backward straight from the formula, in f64, never optimised |
//! | [`tiled`] | fast forward and backward, in memory linear in the lengths |
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `std` | yes | vector instructions found at run time, f16 in hardware, elementary functions of `std` instead of `libm` |
//! | `rayon` | yes | threads; implies `std` |
//!
//! Without either, the crate needs only `core` and `alloc` and runs on the calling thread, so it builds for wasm32 and for
//! machines without an operating system. [`tiled::Instructions`] says which instructions it uses there.
//!
//! # The contract of attention
//!
//! Every implementation of attention in burn-attn, on every backend, does what this section says.
//!
//! ## Layout
//!
//! Row-major `[batch, heads, len, dim]`, in and out.
//!
//! | tensor | shape |
//! | --- | --- |
//! | query | `[batch, heads_q, len_q, dim_qk]` |
//! | key | `[batch, heads_kv, len_kv, dim_qk]` |
//! | value | `[batch, heads_kv, len_kv, dim_v]` |
//! | output | `[batch, heads_q, len_q, dim_v]` |
//! | logsumexp | `[batch, heads_q, len_q]` |
//! | bool mask, bias | `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]` |
//! | block table | `[batch or 1, heads_q or 1, ⌈len_q / block⌉ or 1, ⌈len_kv / block⌉ or 1]` |
//! | ALiBi slopes | `[heads_q]` |
//! | relative table | `[buckets, heads_q]` |
//! | query offsets | `[batch]` |
//! | distance bias | `[heads_q, len_q + len_kv - 1]`, with query offsets `[heads_q, 2 * (len_q + len_kv) - 1]`: what kernels get instead of ALiBi slopes and the relative table |
//! | sinks | `[heads_q]` |
//!
//! Query head `h` reads key/value head `h / (heads_q / heads_kv)`; keys and values are never repeated in memory.
//! `batch`, `len_q` and `len_kv` may be zero; heads and dims may not.
//!
//! ## Order of operations
//!
//! For query `i`, over all keys `j` it may see:
//!
//! ```text
//! 1. scale     s[j] = scale * dot(q[i], k[j])                     default scale: 1 / sqrt(dim_qk)
//! 2. softcap   s[j] = softcap * tanh(s[j] / softcap)              if given
//! 3. mask      hidden keys leave the sums below altogether
//! 4. bias      s[j] = s[j] + bias[i, j]                           if given; the parts below add up
//!                - slope * |j - position(i)|                      ALiBi
//!                + table[bucket(j - position(i)), head]           relative
//! 5. softmax   logsumexp[i] = log(sum_j exp(s[j]) + exp(sink))    the sink, if given, only here
//!              w[j] = exp(s[j] - logsumexp[i])
//! 6. dropout   w'[j] = w[j] / (1 - p) where kept, else 0          reported weights are w, before dropout
//! 7. output    o[i] = sum_j w'[j] * v[j]
//! ```
//!
//! `position(i)` is the key at which query `i` stands: the diagonal of the causal alignment, or of the query offsets, both below.
//! ALiBi and the relative bias depend on `position(i) - j` alone, so a kernel sees both as one distance bias `t`:
//! `s[j] = s[j] + t[head, i - j + len_kv - 1]`, with query offsets `t[head, query_offsets[b] + i - j + len_q + len_kv - 1]` (see
//! [`DistanceAxis`]). It is empty if `len_q` or `len_kv` is 0.
//!
//! A sink is one more score per query head, the same in every row, without a key or a value: the weights of a row with a
//! sink add up to less than one. It is not scaled, capped, masked, biased or dropped. A sink of −∞ has no effect.
//!
//! Statistics (the maximum, the sum, the logsumexp) are kept in f32 or wider, whatever the type of the tensors.
//!
//! ## Two words about masks
//!
//! **masked**: `true` hides. **visible**: `true` shows. Every bool has one of the two words in its name.
//! All parts of a mask apply together: a key is visible if no part hides it.
//!
//! A block table says *visible*: one bool for each block of queries and keys, counted from the first query and the first key
//! (see [`Blocks`]). It means the same as a bool tensor in which every entry is repeated over its block.
//!
//! ## Causal alignment
//!
//! When `len_q != len_kv` the diagonal must be pinned to one corner. `#` is visible, `.` is hidden; rows are queries,
//! columns are keys.
//!
//! ```text
//! BottomRight (default)                          TopLeft
//! the last query sees every key:                 the first query sees the first key:
//! j <= i + len_kv - len_q                        j <= i
//!
//! len_q 2, len_kv 5     len_q 5, len_kv 2        len_q 2, len_kv 5     len_q 5, len_kv 2
//!   # # # # .             . .                      # . . . .             # .
//!   # # # # #             . .                      # # . . .             # #
//!                         . .                                            # #
//!                         # .                                            # #
//!                         # #                                            # #
//! ```
//!
//! Bottom-right is what decoding against a cache needs: the queries are the newest tokens. A window is centred on the
//! same diagonal as the causal mask, on the bottom-right one if there is none, and so is the distance of ALiBi and the
//! relative bias. All use the `len_kv` of the problem, not the key lengths of the batch item.
//!
//! ## Query offsets
//!
//! With `query_offsets`, one number per batch item, query `i` of batch item `b` stands at position `query_offsets[b] + i` on the
//! axis of the keys, instead of the position that the alignment gives. The causal mask, the window and all distances are
//! counted from there; a causal mask of either alignment becomes `j <= query_offsets[b] + i`. Offsets by themselves hide nothing.
//! Each is in `-len_q ..= len_kv`.
//!
//! So a batch of unequal sequences in one padded cache is one call: with `key_lengths[b]` keys in the cache, the newest
//! `len_q` tokens among them, the offset is `key_lengths[b] - len_q`.
//!
//! ```text
//! causal, len_q 2, len_kv 5
//!
//! key length 3, offset 1      key length 5, offset 3      key length 1, offset -1
//!   # # . . .                   # # # # .                   . . . . .
//!   # # # . .                   # # # # #                   # . . . .
//! ```
//!
//! ## What hidden means
//!
//! - A masked key never wins, whatever its score, its bias or the other scores: −∞ is not replaced by a number such as −1e4.
//!   A bias (the sum of its parts) of −∞ hides exactly as the mask does.
//! - A row with no visible key: output 0, logsumexp −∞, gradients 0. With a sink, the formula still holds: the
//!   logsumexp of such a row is the sink, its output is 0, and only the sink receives a gradient (that of the logsumexp).
//!   NaN or infinity in the query of such a row, or in the gradient of its output, does not spread. Without a sink, neither does
//!   NaN or infinity in the gradient of its logsumexp.
//! - Padding does not spread: NaN or infinity in a key or a value never reaches an output or a gradient if the key is hidden from all
//!   queries that read it (those of the same batch item, in the heads of its group). Implementations select; they do not multiply
//!   by zero. If some of these queries see the key, the NaN is the caller's responsibility.
//! - A NaN that a query sees is not lost: a NaN in the query itself or in a key makes its output and logsumexp NaN, a NaN in a value makes
//!   its output NaN.
//!
//! ## Numbers at the ends of the range
//!
//! Finite input never gives NaN, as long as every sum over what is visible stays in the range of the precision of the
//! computation (f32 for half precision). What is hidden may be any finite number, and may overflow in any way: its weight is exactly 0, and
//! so is the gradient of its score. In detail, for sums over visible pairs:
//!
//! | sum | beyond the range |
//! | --- | --- |
//! | a score, from `scale * q[i]` (times log2 e, in kernels) on | in one direction only, it counts as the largest number (+∞) or as hidden (−∞); in both, ∞ − ∞ or 0 · ∞, the row is NaN |
//! | the values of a row, by weights relative to the largest | ±∞ or NaN; cannot happen to values below the largest number / `len_kv` |
//! | backward: `dot(do / (1 - p), v[j])` from `do / (1 - p)` on, `dot(do, o)`, and the gradients themselves | ±∞ or NaN in every gradient it is summed into |
//!
//! The first row holds for the kernels; in the composed body and in the oracle a score of +∞ makes its row NaN as well.
//!
//! A sink, the softcap and the scale may have any finite value, even one that the precision does not hold, such as a softcap of
//! `f64::MAX` in f32: only the sums count.
//!
//! Kernels compute the weights of the backward pass from the logsumexp, which gives them a relative error of about
//! `|logsumexp|` times the rounding of the type: if all scores of a row are near −1e9 in f32, they no longer add up to 1.
//!
//! ## Randomness and reproducibility
//!
//! Dropout is counter-based: whether a weight is kept is a pure function of (seed, batch item, query head, query, key).
//! The backward pass recomputes it, and all backends agree. See [`AttentionDropout`] for the function.
//!
//! ## Cost
//!
//! `2 · batch · heads_q · len_q · len_kv · (dim_qk + dim_v)` operations forward, 2.5 times as many backward, over
//! visible pairs. Beyond inputs and outputs, kernels use O(`len_q` + `len_kv`) memory. Only the [`oracle`] may use more.
//!
//! # Source
//!
//! Vaswani et al., *Attention Is All You Need* (2017), equation 1; Ainslie et al., *GQA* (2023) for grouped heads; Gemma
//! Team, *Gemma 2* (2024) for the softcap; Xiao et al., *Efficient Streaming Language Models with Attention Sinks*
//! (2023) and Agarwal et al., *gpt-oss* (2025) for a learned sink in the denominator; Press et al., *Train Short, Test
//! Long* (2022) for ALiBi; Raffel et al., *T5* (2020) for the relative bias. The bottom-right diagonal is
//! FlashAttention's since 2.1.
//! PyTorch: `torch.nn.functional.scaled_dot_product_attention`, which aligns top-left, reads a bool mask as *visible*
//! and has neither softcap, ALiBi, relative bias nor sinks.

// Unit tests always have `std`.
#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod attention;
mod bias;
mod broadcast;
mod compiled;
mod dropout;
mod extent;
mod linear;
mod mask;
mod math;
mod options;
pub mod oracle;
mod problem;
mod simd;
mod threads;
pub mod tiled;
mod view;

pub use bias::{DistanceAxis, RelativeBuckets, RelativeBucketsError, alibi_slopes};
pub use broadcast::{Broadcast, BroadcastError};
pub use dropout::{AttentionDropout, AttentionDropoutRow, DropoutError};
pub use mask::{
    BlockSize, Blocks, CausalAlignment, Mask, MaskError, PositionMask, Segments, Window,
};
pub use options::{InputError, Options};
pub use problem::{Problem, ProblemError};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
