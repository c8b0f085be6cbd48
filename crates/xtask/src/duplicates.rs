//! No long block of code stands twice: one piece of code serves where the logic is the same.

use std::collections::HashMap;

use crate::lengths::{is_rust, is_test, visit};

/// This many lines in a row, without blank lines, lone brackets, comments and imports, stand in one place only.
const LONGEST: usize = 15;

/// Fails if two places in source files, not in tests, share [`LONGEST`] lines. White space does not count.
pub fn no_long_ones() -> Result<(), String> {
    let mut files = Vec::new();
    for folder in ["crates", "examples"] {
        visit(folder.as_ref(), &mut |path, text| {
            if is_rust(path) && !is_test(path) {
                files.push((path.display().to_string(), code(text)));
            }
        })?;
    }
    files.sort();
    let mut seen = HashMap::new();
    for (name, lines) in &files {
        for block in lines.windows(LONGEST) {
            let text: Vec<&str> = block.iter().map(|(_, line)| line.as_str()).collect();
            let place = (name, block[0].0);
            let earlier = seen.entry(text).or_insert(place);
            if *earlier != place {
                let ((other, there), (_, here)) = (*earlier, place);
                return Err(format!(
                    "{LONGEST} lines from {name}:{here} stand at {other}:{there} as well"
                ));
            }
        }
    }
    Ok(())
}

/// The lines of code, each with its number and single spaces.
fn code(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate().map(|(index, line)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (index + 1, words.join(" "))
    });
    let left_out = |line: &str| {
        ["//", "use ", "pub use "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    lines
        .filter(|(_, line)| line.contains(char::is_alphanumeric) && !left_out(line))
        .collect()
}
