//! Packed sequences, and integers of different types.

#[cfg(test)]
mod tests;

use burn::tensor::{Bool, DType, Int, Tensor};

use crate::{
    blocks::of_nothing,
    combined::{are_one, broadcast_dims},
    function::captured::with_ones_behind,
};

/// Sequences packed into one row: a query sees only the keys of its segment.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    pub(crate) query: Tensor<2, Int>,
    pub(crate) key: Tensor<2, Int>,
}

impl Segments {
    /// `[batch, len_q]` and `[batch, len_kv]`
    pub(crate) fn dims(&self) -> [[usize; 2]; 2] {
        [self.query.dims(), self.key.dims()]
    }

    /// As a dense mask, `[batch, 1, len_q, len_kv]`.
    pub(crate) fn masked(self) -> Tensor<4, Bool> {
        are_one(&self.query.device(), &self.key.device());
        let Self { query, key } = self.of_one_type();
        let query = with_ones_behind(query).permute([0, 2, 1, 3]);
        let key = with_ones_behind(key).permute([0, 2, 3, 1]);
        let dims = broadcast_dims(query.dims(), key.dims());
        match dims.contains(&0) {
            true => of_nothing(dims, &query.device()),
            false => query.expand(dims).not_equal(key.expand(dims)),
        }
    }

    /// With one integer type on both sides, so that the numbers can be compared.
    pub(crate) fn of_one_type(self) -> Self {
        let dtype = common_type(self.query.dtype(), self.key.dtype());
        Self {
            query: self.query.cast(dtype),
            key: self.key.cast(dtype),
        }
    }
}

/// The integer type in which two types are compared. A signed and an unsigned type become i32, or i64 if one has 64 bits: GPUs
/// have few types in between, and no length or segment comes near 2³¹.
pub(crate) fn common_type(first: DType, second: DType) -> DType {
    use DType::{I8, I16, I32, I64};

    let is_signed = |dtype| matches!(dtype, I8 | I16 | I32 | I64);
    let size = first.size().max(second.size());
    match is_signed(first) == is_signed(second) {
        true if first.size() == size => first,
        true => second,
        false if size < I64.size() => I32,
        false => I64,
    }
}
