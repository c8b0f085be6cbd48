use super::{blocks, program, with_dependencies};
use crate::command::{read, root};

const README: &str = "# A crate\n\n```sh\ncargo new x\n```\n\n```toml\n[dependencies]\n\
    burn-attn = { path = \"../burn-attn/crates/nn\" }\nburn = \"=0.22.1\"\n```\n\n\
    ```rust\nlet x = 1;\n```\n\n```rust\nfn main() {}\n```\n";

#[test]
fn the_first_blocks_become_a_project() {
    let new = "[package]\nname = \"newcomer\"\n\n[dependencies]\n";
    assert_eq!(
        with_dependencies(new, README).unwrap(),
        "[package]\nname = \"newcomer\"\n\n[dependencies]\n\
         burn-attn = { path = \"../burn-attn/crates/nn\" }\nburn = \"=0.22.1\"\n"
    );
    assert_eq!(
        with_dependencies(new, &README.replacen("[dependencies]\n", "", 1)),
        with_dependencies(new, README)
    );
    assert_eq!(program(README).unwrap(), "fn main() {}\n");
}

#[test]
fn a_readme_without_them_is_refused() {
    assert!(
        program("```sh\nls\n```\n")
            .unwrap_err()
            .ends_with("no program in Rust")
    );
    let published = README.replace("{ path = \"../burn-attn/crates/nn\" }", "\"0.1\"");
    let error = with_dependencies("", &published).unwrap_err();
    assert!(error.contains("path = "), "{error}");
}

#[test]
fn the_readmes_self_attention_is_that_of_by_hand() {
    let readme = read(&root().join("README.md")).unwrap();
    let example = read(&root().join("crates/nn/examples/by_hand.rs")).unwrap();
    let known: Vec<&str> = example.lines().map(str::trim).collect();
    for line in blocks(&readme, "rust,ignore")[0].lines() {
        assert!(known.contains(&line.trim()), "{line}");
    }
}
