//! Rows of tables of tensors that several families have: those of a layer.

use crate::weights::Table;

/// The query, key, value and output projections of a self-attention.
pub(super) fn self_attention([query, key, value, output]: [&str; 4]) -> Table {
    Table::new()
        .linear("query_key_value", [query, key, value])
        .linear("output", output)
}

/// The query, key, value and output projections of a cross-attention.
pub(super) fn cross_attention([query, key, value, output]: [&str; 4]) -> Table {
    Table::new()
        .linear("query", query)
        .linear("key_value", [key, value])
        .linear("output", output)
}

/// The two linear layers of a feed-forward network.
pub(super) fn feed_forward([inner, outer]: [&str; 2]) -> Table {
    Table::new()
        .linear("linear_inner", inner)
        .linear("linear_outer", outer)
}
