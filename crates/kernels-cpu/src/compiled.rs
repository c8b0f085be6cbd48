//! The code that is compiled for every instruction set, once for f32 and once for f64.

use crate::{
    attention::kernel::{backward::TileBackward, decode::Decode, forward::TileForward},
    linear::{rotary_rows::RotaryRows, split_k::SplitK},
    simd::real::Real,
    threads::parallel::Execution,
};

/// Runs the vectorised parts.
///
/// Generic code is compiled again by every crate that uses it, and without optimisation in a debug build. These
/// methods have one implementation per precision, which is compiled here, with the optimisation that `Cargo.toml` asks for.
pub trait Compiled: Real {
    /// One tile of queries, forward.
    fn forward_tile(execution: Execution, tile: TileForward<'_, Self>);
    /// One tile of queries, backward.
    fn backward_tile(execution: Execution, tile: TileBackward<'_, Self>);
    /// A single query and one split of the keys.
    fn decode(execution: Execution, query: Decode<'_, Self>);
    /// One slice of the depth of a skinny GEMM.
    fn skinny_gemm(execution: Execution, slice: SplitK<'_, Self>);
    /// Some rows with rotary positions.
    fn rotate(execution: Execution, rows: RotaryRows<'_, Self>);
}

macro_rules! compiled {
    ($real:ident) => {
        impl Compiled for $real {
            fn forward_tile(execution: Execution, tile: TileForward<'_, Self>) {
                execution.dispatch(tile);
            }
            fn backward_tile(execution: Execution, tile: TileBackward<'_, Self>) {
                execution.dispatch(tile);
            }
            fn decode(execution: Execution, query: Decode<'_, Self>) {
                execution.dispatch(query);
            }
            fn skinny_gemm(execution: Execution, slice: SplitK<'_, Self>) {
                execution.dispatch(slice);
            }
            fn rotate(execution: Execution, rows: RotaryRows<'_, Self>) {
                execution.dispatch(rows);
            }
        }
    };
}
compiled!(f32);
compiled!(f64);
