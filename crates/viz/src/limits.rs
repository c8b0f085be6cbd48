//! What is too large to draw, and how a picture says so.

use crate::AttentionMap;

/// The most queries or keys of a map for which a browser can still update squares and lines as the pointer moves.
pub(crate) const MOST_TOKENS: usize = 1024;

/// The sentence in place of `heads` heads of a map, which `name` names: `limit` says how much is drawn at most.
pub(crate) fn left_out(name: &str, map: &AttentionMap, heads: usize, limit: &str) -> String {
    let (queries, keys) = (map.queries().len(), map.keys().len());
    format!("Left out: {name} ({heads} × {queries} × {keys} heads, queries and keys): {limit}.")
}
