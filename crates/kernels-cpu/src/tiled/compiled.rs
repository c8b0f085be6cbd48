//! The code that is compiled for every instruction set, once for f32 and once for f64.

use super::{
    kernel::{
        backward::TileBackward, few_rows::Part, forward::TileForward, one_query::OneQuery,
        real::Real, rotation::Piece,
    },
    parallel::Execution,
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
    /// One query.
    fn one_query(execution: Execution, query: OneQuery<'_, Self>);
    /// Some terms of a product of few rows.
    fn few_rows(execution: Execution, part: Part<'_, Self>);
    /// Some rows with rotary positions.
    fn rotate(execution: Execution, piece: Piece<'_, Self>);
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
            fn one_query(execution: Execution, query: OneQuery<'_, Self>) {
                execution.dispatch(query);
            }
            fn few_rows(execution: Execution, part: Part<'_, Self>) {
                execution.dispatch(part);
            }
            fn rotate(execution: Execution, piece: Piece<'_, Self>) {
                execution.dispatch(piece);
            }
        }
    };
}
compiled!(f32);
compiled!(f64);
