//! Rewrites what minijinja does not parse, or parses otherwise than Python.

/// The function that stands for the operator `%`.
pub const PERCENT: &str = "python_percent";

/// Operators and words that bind less tightly than `%`, and what separates expressions.
const LOOSER: [&str; 26] = [
    "+", "-", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "not", "in", "if", "else",
    "elif", ",", ":", "=", "set", "for", "with", "do", "print", "call", "filter",
];
const AS_TIGHT: [&str; 4] = ["*", "/", "//", "%"];

/// The most operators `%` of a tag that are rewritten: looking for their operands takes the square of their number.
const MOST_PERCENT: usize = 100;

/// A template without `{% generation %}`, which transformers has for training and Jinja has not, and with a function in place of `%`, which formats texts
/// in Python.
pub fn for_minijinja(source: &str) -> String {
    let mut written = String::new();
    let mut rest = source;
    while let Some(start) = rest.find('{').filter(|&start| rest.len() > start + 1) {
        written.push_str(&rest[..start]);
        rest = &rest[start..];
        let len = match rest.as_bytes()[1] {
            b'#' => rest.find("#}").map(|end| end + 2),
            b'{' | b'%' => tag_len(rest),
            _ => Some(1),
        };
        // The parser reports a tag without an end.
        let Some(len) = len else { break };
        let (mut tag, after) = rest.split_at(len);
        rest = after;
        let is_tag = tag.ends_with("%}");
        let inner = || tag[2..len - 2].trim_matches(['-', '+']).trim();
        match tag.as_bytes().get(1) {
            // `with` begins a scope as `generation` does, and `endwith` ends it.
            Some(b'%') if is_tag && ["generation", "endgeneration"].contains(&inner()) => {
                written.push_str(&tag.replace("generation", "with"));
            }
            Some(b'%') if is_tag && inner() == "raw" => {
                let end = after.find("endraw").unwrap_or(after.len());
                written.push_str(tag);
                (tag, rest) = after.split_at(end);
                // The raw text is copied up to the tag that ends it.
                let end = rest.find("%}").map_or(rest.len(), |end| end + 2);
                written.push_str(tag);
                written.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            Some(b'{' | b'%') => {
                // The signs of whitespace control are no part of the code.
                let start = 2 + usize::from(tag[2..].starts_with(['-', '+']));
                let end = tag.len() - 2;
                let end = end - usize::from(tag[start..end].ends_with(['-', '+']));
                written.push_str(&tag[..start]);
                written.push_str(&without_percent(&tag[start..end]));
                written.push_str(&tag[end..]);
            }
            _ => written.push_str(tag),
        }
    }
    written + rest
}

/// The length of a tag at the beginning of `text`: its end is neither in a text nor in brackets.
fn tag_len(text: &str) -> Option<usize> {
    let end = if text.starts_with("{{") { "}}" } else { "%}" };
    let mut depth = 0;
    let mut at = 2;
    while at < text.len() {
        let rest = &text[at..];
        if depth == 0 && rest.starts_with(end) {
            return Some(at + 2);
        }
        match rest.as_bytes()[0] {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            _ => {}
        }
        at += token(rest).len();
    }
    None
}

fn token(text: &str) -> &str {
    let while_true = |is: fn(char) -> bool| text.find(|c: char| !is(c)).unwrap_or(text.len());
    let first = text.chars().next().unwrap_or(' ');
    let len = match first {
        '"' | '\'' => {
            let mut escaped = false;
            let mut inside = text.char_indices().skip(1);
            let end = inside.find(|&(_, c)| {
                let is_end = c == first && !escaped;
                escaped = c == '\\' && !escaped;
                is_end
            });
            end.map_or(text.len(), |(end, _)| end + 1)
        }
        c if c.is_whitespace() => while_true(char::is_whitespace),
        c if c.is_alphanumeric() || c == '_' => while_true(|c| c.is_alphanumeric() || c == '_'),
        _ if ["//", "**", "==", "!=", "<=", ">="].contains(&text.get(..2).unwrap_or("")) => 2,
        c => c.len_utf8(),
    };
    &text[..len]
}

/// An expression or statement with `a % b` as a call of a function.
fn without_percent(code: &str) -> String {
    let mut tokens = Vec::new();
    let mut rest = code;
    while !rest.is_empty() {
        let next = token(rest);
        tokens.push(next);
        rest = &rest[next.len()..];
    }
    let operators = tokens.iter().filter(|token| **token == "%").count();
    if operators > MOST_PERCENT {
        return code.into();
    }
    // How many calls begin before each token, and end behind it.
    let (mut begin, mut end) = (vec![0; tokens.len()], vec![0; tokens.len()]);
    for at in 0..tokens.len() {
        if tokens[at] == "%" {
            begin[left(&tokens, at)] += 1;
            end[right(&tokens, at)] += 1;
        }
    }
    let mut written = String::new();
    for (at, token) in tokens.into_iter().enumerate() {
        written += &format!(" {PERCENT}(").repeat(begin[at]);
        written += if token == "%" { " , " } else { token };
        written += &") ".repeat(end[at]);
    }
    written
}

/// The first token of what is to the left of the operator at `at`.
fn left(tokens: &[&str], at: usize) -> usize {
    let (mut depth, mut first) = (0, at);
    for place in (0..at).rev() {
        match tokens[place] {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth == 0 => break,
            "(" | "[" | "{" => depth -= 1,
            name if depth == 0 && LOOSER.contains(&name) && !is_sign(tokens, place) => break,
            name if name.trim().is_empty() => continue,
            _ => {}
        }
        first = place;
    }
    first
}

/// The last token of what is to the right of the operator at `at`.
fn right(tokens: &[&str], at: usize) -> usize {
    let (mut depth, mut last) = (0, at);
    for (place, &name) in tokens.iter().enumerate().skip(at + 1) {
        match name {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => break,
            ")" | "]" | "}" => depth -= 1,
            _ if depth == 0 && AS_TIGHT.contains(&name) => break,
            _ if depth == 0 && LOOSER.contains(&name) && !is_sign(tokens, place) => break,
            _ if name.trim().is_empty() => continue,
            _ => {}
        }
        last = place;
    }
    last
}

/// Whether this is the sign of a number, or the `not` of `is not`.
fn is_sign(tokens: &[&str], place: usize) -> bool {
    let mut before = tokens[..place].iter().rev().map(|token| token.trim());
    let before = before.find(|token| !token.is_empty()).unwrap_or("(");
    match tokens[place] {
        "-" => {
            let opens = ["(", "[", "{", "**", "return"];
            LOOSER.contains(&before) || AS_TIGHT.contains(&before) || opens.contains(&before)
        }
        "not" => before == "is",
        _ => false,
    }
}
