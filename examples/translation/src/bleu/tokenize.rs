//! The tokenizer `13a`: `mteval-v13a.pl` as sacreBLEU restates it.

use std::sync::LazyLock;

use regex::Regex;

/// Substitutions in their order: ASCII symbols except the apostrophe, comma, hyphen and full stop; commas and full stops that are not behind a
/// digit; those that are not before one; a hyphen behind a digit.
static RULES: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
    [
        (r"([{-~\[-` -&(-+:-@/])", " $1 "),
        (r"([^0-9])([.,])", "$1 $2 "),
        (r"([.,])([^0-9])", " $1 $2"),
        (r"([0-9])(-)", "$1 $2 "),
    ]
    .map(|(rule, instead)| (Regex::new(rule).expect("the rule is valid"), instead))
});

/// Splits a segment into the tokens that BLEU compares.
///
/// # Source
/// `sacrebleu/tokenizers/tokenizer_13a.py` and `tokenizer_re.py` of sacreBLEU 2.6.
pub(super) fn tokenize_13a(segment: &str) -> Vec<String> {
    let mut line = segment
        .trim_end_matches(is_space)
        .replace("<skipped>", "")
        .replace("-\n", "")
        .replace('\n', " ");
    if line.contains('&') {
        line = line
            .replace("&quot;", "\"")
            .replace("&amp;", "&")
            .replace("&lt;", "<")
            .replace("&gt;", ">");
    }
    let mut line = format!(" {line} ");
    for (rule, instead) in RULES.iter() {
        line = rule.replace_all(&line, *instead).into_owned();
    }
    line.split(is_space)
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What Python's `str.split()` splits at: Unicode white space and the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
