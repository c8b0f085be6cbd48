//! Attention on GPUs: fused CubeCL kernels, forward and backward, linear in memory.
//!
//! If you use Burn, you want the crate `burn-attn`, which is built on this one. This crate does not depend on Burn: it takes a
//! CubeCL [`Client`](cubecl::client::Client) and memory of its device. It has every mask, bias and option of `burn-attn` except user-defined functions,
//! for heads of up to 256 numbers in f32, f16 and bf16. A device needs 8,576 bytes of shared memory, 256 units per cube and 6
//! storage buffers beside CubeCL's for scalars, and one more for every optional tensor but the sinks; [`supports`] asks. The contract (layout,
//! order of operations, hidden rows, NaN, dropout) is that of [`burn_attn_kernels_cpu`].
//!
//! | to | call |
//! | --- | --- |
//! | know whether a device and a call are for these kernels | [`supports`], [`supports_scalars`] |
//! | compute output and logsumexp | [`forward`] |
//! | compute gradients from them | [`backward`] |
//!
//! Scores are computed tile by tile, and never leave the cube. No two cubes add to the same number, so the same call gives the same bits every time
//! (except that a result may be NaN or not where one of several heads that share keys sees a NaN or infinite value). Statistics and sums are f32,
//! whatever the type of the tensors. Kernels that are not on matrix units need shared memory and barriers, but neither plane operations nor atomics,
//! which a device may lack.
//!
//! Output and logsumexp of up to four queries take the kernels of `few_queries`, if the device has 4 KiB of shared memory per query and memory for
//! all partial results. Otherwise output, logsumexp and gradients are computed on matrix units, where a device lists
//! products of the type, or of f32, with f32 sums, of 16 x 16 or 8 x 8 numbers that are sums of 16 or 8 products, and has planes of one size, a power
//! of two, and shared memory and units for a tile; through WGSL none does, and in f32 only Metal, on which nothing of this has run yet. Weights and gradients of
//! scores are then rounded to the type that is multiplied, where they multiply rows. The scale is applied to the dot products, which in bf16 and f32 may overflow where scaled
//! queries would not. A few queries of heads that share keys go to matrix units, even four or fewer, once they can share a cube and leave enough
//! cubes, which depends on the batch and the length of the keys: 64 heads on 8 and one query do so from 4,224 keys on, in a batch of one.
//!
//! The environment variable `BURN_ATTN_MATRIX_UNITS=off`, in lower case, turns matrix units off for a process. With `BURN_ATTN_MATRIX_UNITS=tf32`,
//! CUDA multiplies f32 on matrix units, too: each number as the sum of two in TF32, by three products, which keep about 21 of 24 binary digits. In
//! these sums infinity becomes NaN. Their speed was never measured.
//!
//! # Files
//!
//! | file | what it holds |
//! | --- | --- |
//! | `operands` | what a call reads and writes |
//! | `supports`, `call`, `check`, `launch`, `refusal` | the host's side |
//! | `tile`, `chunks`, `products` | tiles, their operands in shared memory, and their products |
//! | `scoring`, `score`, `visible`, `dropout` | the options, the scores, which pairs are hidden, which weights are dropped |
//! | `tile_kinds` | which tiles segments, mask and table hide or leave visible as a whole |
//! | `weights` | weights and score gradients in the backward pass |
//! | `few_queries` | the kernels for a step of generation |
//! | `site` | which tile a cube has |
//! | `cubes` | how many cubes a call should have, and which heads share one |
//! | `share`, `split` | which part of a tile a cube has, and how the parts' results are merged |
//! | `bias_part` | which tiles of scores a part of a bias was added to, and how their gradients are summed |
//! | `store` | what the kernels write |
//! | `matrix` | the kernels on matrix units |
//! | `forward`, `query_gradient`, `key_gradient`, `bias_gradient`, `row_statistics` | all other kernels |

mod bias_gradient;
mod bias_part;
mod call;
mod check;
mod chunks;
mod cubes;
mod dropout;
mod few_queries;
mod forward;
mod key_gradient;
mod launch;
mod matrix;
mod operands;
mod products;
mod query_gradient;
mod refusal;
mod row_statistics;
mod score;
mod scoring;
mod share;
mod site;
mod split;
mod store;
mod supports;
#[cfg(all(test, feature = "wgpu"))]
mod tests;
mod tile;
mod tile_kinds;
mod visible;
mod weights;

pub use launch::{backward, forward};
pub use operands::{Gradients, Inputs, Operand, Upstream};
pub use refusal::Refusal;
pub use supports::{supports, supports_scalars};
