//! No long block of code stands twice: one piece of code serves where the logic is the same.

use std::{collections::HashMap, fs};

use crate::{command::root, lengths::visit};

/// So many lines in a row, without blank lines, lone brackets, comments and imports, stand in one place only.
const LONGEST: usize = 15;

/// Fails if two places in source files, not in tests, share [`LONGEST`] lines. White space does not count.
pub fn no_long_ones() -> Result<(), String> {
    let mut files = Vec::new();
    for folder in ["crates", "examples"] {
        visit(&root().join(folder), &mut |path| {
            let name = path.strip_prefix(root()).unwrap_or(path).display();
            let name = name.to_string();
            if name.ends_with(".rs") && !name.contains("/tests/") && !name.ends_with("/tests.rs") {
                files.push((name, code(&fs::read_to_string(path)?)));
            }
            Ok(())
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
