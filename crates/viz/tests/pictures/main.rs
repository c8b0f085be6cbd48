//! What a reader of the pictures relies on: they parse, they line up, and they show the numbers that were put in.

mod json;
mod map;
mod markup;
mod page;
mod svg;
mod text;

use burn_attn_viz::{AttentionMap, MapError};

/// Tokens that try to break out of every language a picture is written in.
const HOSTILE: [&str; 5] = ["</script>", "a&b", "\"'<!--", "\u{2028}\n", "\u{1b}[31m"];

/// Tokens that print nothing, and their labels: white space, and what Unicode calls default-ignorable.
const INVISIBLE: [(&str, &str); 13] = [
    ("", "∅"),
    (" ", "␠"),
    ("\u{a0}", "␠"),
    ("\u{ad}", "\u{fffd}"),
    ("\u{200d}", "\u{fffd}"),
    ("\u{2062}", "\u{fffd}"),
    ("\u{180e}", "\u{fffd}"),
    ("\u{206a}", "\u{fffd}"),
    ("\u{e0041}", "\u{fffd}"),
    ("\u{fff9}", "\u{fffd}"),
    ("\u{3164}", "\u{fffd}"),
    ("\u{115f}", "\u{fffd}"),
    ("\u{301}", "◌\u{301}"),
];

fn tokens(tokens: &[&str]) -> Vec<String> {
    tokens.iter().map(ToString::to_string).collect()
}

/// A map of a few tokens.
fn map_of(queries: &[&str], keys: &[&str], weights: &[f32]) -> Result<AttentionMap, MapError> {
    AttentionMap::new("m", tokens(queries), tokens(keys), weights.to_vec())
}

/// Two heads of three queries by five keys (all different), with rows that sum to 1 and no two weights alike by chance.
fn sample() -> AttentionMap {
    let weights = vec![
        0.1, 0.2, 0.3, 0.4, 0.0, //
        0.5, 0.125, 0.125, 0.25, 0.0, //
        0.0, 0.01, 0.04, 0.05, 0.9, //
        1.0, 0.0, 0.0, 0.0, 0.0, //
        0.2, 0.2, 0.2, 0.2, 0.2, //
        0.123456, 0.376544, 0.25, 0.15, 0.1,
    ];
    let (queries, keys) = (
        tokens(&["je", "dors", "."]),
        tokens(&["I", "am", "fast", "asleep", "."]),
    );
    AttentionMap::new("layer 1", queries, keys, weights).expect("the sample is a valid map")
}

/// A map whose tokens all print nothing, with equal weights.
fn invisible() -> AttentionMap {
    let labels = tokens(&INVISIBLE.map(|(token, _)| token));
    let weights = vec![1.0 / 13.0; 13 * 13];
    AttentionMap::new("m", labels.clone(), labels, weights).expect("the map is valid")
}

/// A map whose tokens and title are all hostile, with equal weights.
fn hostile() -> AttentionMap {
    let (queries, keys) = (tokens(&HOSTILE), tokens(&HOSTILE));
    AttentionMap::new("</title><b>&", queries, keys, vec![0.2; 25]).expect("the map is valid")
}
