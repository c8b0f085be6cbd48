//! What is too large to draw, and how a picture says so.

use crate::AttentionMap;

/// The most queries or keys of a map for which a browser can still update squares and lines as the pointer moves.
pub(crate) const MOST_TOKENS: usize = 1024;

/// What the reader can do if a map has too many tokens.
pub(crate) const SLICE: &str = "pass a slice of the tokens";

/// The sentence in place of `heads` heads of a map, which `name` names: `limit` says how much is drawn at most, and what to do.
pub(crate) fn left_out(name: &str, map: &AttentionMap, heads: usize, limit: &str) -> String {
    let (queries, keys) = (map.queries().len(), map.keys().len());
    let heads = counted(heads, "head", "heads");
    let queries = counted(queries, "query", "queries");
    let keys = counted(keys, "key", "keys");
    format!("Left out: {name} ({heads} × {queries} × {keys}): {limit}.")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
