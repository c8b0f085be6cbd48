//! Tensors in the caller's memory, as kernels read and write them.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `element.rs` | the element types: f32, f64, f16 and bf16 |
//! | `rows.rs`, `rows_mut.rs` | rows of any strides, to read and to write |
//! | `head_rows.rs` | the rows of one head in the precision of the computation |

pub(crate) mod element;
pub(crate) mod head_rows;
pub(crate) mod rows;
pub(crate) mod rows_mut;
