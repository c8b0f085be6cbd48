use super::{program, with_dependencies};

const README: &str = "# A crate\n\n```sh\ncargo new x\n```\n\n```toml\n[dependencies]\n\
    burn-attn = { path = \"../burn-attn/crates/nn\" }\nburn = \"=0.22.1\"\n```\n\n\
    ```rust\nprintln!(\"1\");\n```\n\n```rust\nprintln!(\"2\");\n```\n";

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
    assert_eq!(
        program(README).unwrap(),
        "fn main() {\nprintln!(\"1\");\n}\n"
    );
    let whole = "```rust\nfn main() {}\n```\n";
    assert_eq!(program(whole).unwrap(), "fn main() {}\n");
}

#[test]
fn a_readme_without_them_is_refused() {
    assert!(
        program("```sh\nls\n```\n")
            .unwrap_err()
            .ends_with("no block of rust")
    );
    let published = README.replace("{ path = \"../burn-attn/crates/nn\" }", "\"0.1\"");
    let error = with_dependencies("", &published).unwrap_err();
    assert!(error.contains("path = "), "{error}");
}
