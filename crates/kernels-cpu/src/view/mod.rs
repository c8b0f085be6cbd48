//! Tensors in the caller's memory, as kernels read and write them.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `element.rs` | the element types: f32, f64, f16 and bf16, and the rows of a head in the precision of the computation |
//! | `rows.rs`, `rows_mut.rs` | rows of any strides, to read and to write |

pub(crate) mod element;
pub(crate) mod rows;
pub(crate) mod rows_mut;
