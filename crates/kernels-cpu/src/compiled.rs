//! The code that is compiled for every instruction set, once for f32 and once for f64.

use crate::{
    attention::{
        function::{ScoreForms, ScoreLoops, VisibleForms, VisibleLoops},
        kernel::{backward::TileBackward, decode::Decode, forward::TileForward},
    },
    linear::{rotary_rows::RotaryRows, split_k::SplitK},
    simd::real::Real,
    threads::parallel::Execution,
};

/// The kernels that are compiled here.
pub enum Kernel<'a, R: Real> {
    /// One tile of queries, forward.
    Forward(TileForward<'a, R>),
    /// One tile of queries, backward.
    Backward(TileBackward<'a, R>),
    /// A single query and one split of the keys.
    Decode(Decode<'a, R>),
    /// One slice of the depth of a skinny GEMM.
    SkinnyGemm(SplitK<'a, R>),
    /// Some rows with rotary positions.
    Rotate(RotaryRows<'a, R>),
}

/// Runs the vectorised parts.
///
/// Generic code is compiled again by every crate that uses it, and without optimisation in a debug build. This method has one
/// implementation per precision, which is compiled here, with the optimisation that `Cargo.toml` asks for.
pub trait Compiled: Real {
    /// The loops around a score function in this precision.
    fn score_loops(forms: &dyn ScoreForms) -> &dyn ScoreLoops<Self>;
    /// The loop around a visible function, for scores in this precision.
    fn visible_loops(forms: &dyn VisibleForms) -> &dyn VisibleLoops<Self>;
    /// Runs a kernel with the vectors of an execution.
    fn run(kernel: Kernel<'_, Self>, execution: Execution);
}

macro_rules! compiled {
    ($real:ident) => {
        impl Compiled for $real {
            fn score_loops(forms: &dyn ScoreForms) -> &dyn ScoreLoops<Self> {
                forms
            }

            fn visible_loops(forms: &dyn VisibleForms) -> &dyn VisibleLoops<Self> {
                forms
            }

            fn run(kernel: Kernel<'_, Self>, execution: Execution) {
                match kernel {
                    Kernel::Forward(tile) => execution.dispatch(tile),
                    Kernel::Backward(tile) => execution.dispatch(tile),
                    Kernel::Decode(query) => execution.dispatch(query),
                    Kernel::SkinnyGemm(slice) => execution.dispatch(slice),
                    Kernel::Rotate(rows) => execution.dispatch(rows),
                }
            }
        }
    };
}
compiled!(f32);
compiled!(f64);
