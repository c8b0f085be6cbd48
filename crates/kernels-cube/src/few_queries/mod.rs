//! Output and logsumexp of a few queries, such as in a step of generation.
//!
//! With a tile of queries per cube, most of the cube and most of the device would be idle. Here a cube has all queries of some heads that share
//! keys, and [`KEYS`](shape::KEYS) of those keys. The kernel of [`split`](crate::split) merges the partial results of a head.
//!
//! Source: Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference" (2023).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `shape.rs` | how many heads, keys and units a cube has |
//! | `products.rs` | the products with the rows of keys and values |
//! | `kernels.rs` | the kernel |
//! | `launch.rs` | which calls have few queries, and their launches |

mod kernels;
mod launch;
mod products;
pub(crate) mod shape;
