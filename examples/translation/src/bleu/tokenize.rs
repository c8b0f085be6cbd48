//! The tokenizer `13a`: `mteval-v13a.pl` as sacreBLEU restates it, one substitution rule per function.

/// Splits a segment into the tokens that BLEU compares.
///
/// # Source
/// `sacrebleu/tokenizers/tokenizer_13a.py` and `tokenizer_re.py` of sacreBLEU 2.6. The four regular expressions are
/// walked by hand, each with the same leftmost, non-overlapping matches as Python's `re.sub`.
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
    let mut chars: Vec<char> = format!(" {line} ").chars().collect();
    chars = surround_symbols(&chars);
    chars = substitute_pairs(
        &chars,
        |first, second| !first.is_ascii_digit() && is_stop(second),
        |first, second| [first, ' ', second, ' '],
    );
    chars = substitute_pairs(
        &chars,
        |first, second| is_stop(first) && !second.is_ascii_digit(),
        |first, second| [' ', first, ' ', second],
    );
    chars = substitute_pairs(
        &chars,
        |first, second| first.is_ascii_digit() && second == '-',
        |first, second| [first, ' ', second, ' '],
    );
    let spaced: String = chars.into_iter().collect();
    spaced
        .split(is_space)
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What Python's `str.split()` splits at: Unicode white space and the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// A full stop or a comma, which stay inside a number.
fn is_stop(c: char) -> bool {
    matches!(c, '.' | ',')
}

/// ``([\{-\~\[-\` -\&\(-\+\:-\@\/])`` → `` \1 ``: ASCII symbols but for the apostrophe, comma, hyphen and full stop.
fn surround_symbols(chars: &[char]) -> Vec<char> {
    let mut out = Vec::with_capacity(chars.len() * 2);
    for &c in chars {
        if matches!(c, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/') {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

/// One regular expression over two neighbouring characters; a character matched once is not matched again.
fn substitute_pairs(
    chars: &[char],
    matches: impl Fn(char, char) -> bool,
    replacement: impl Fn(char, char) -> [char; 4],
) -> Vec<char> {
    let mut out = Vec::with_capacity(chars.len() * 2);
    let mut rest = chars;
    while let Some((&first, after_first)) = rest.split_first() {
        match after_first.split_first() {
            Some((&second, after_second)) if matches(first, second) => {
                out.extend(replacement(first, second));
                rest = after_second;
            }
            _ => {
                out.push(first);
                rest = after_first;
            }
        }
    }
    out
}
