use super::missing_file;

#[test]
fn a_package_names_only_files_that_it_holds() {
    let files = ["README.md", "src/page.css", "doc/stacks.pt"];
    let files = files.map(Into::into).into_iter().collect();
    let missing = |text: &str| missing_file("src/page/mod.rs".as_ref(), text, &files);
    assert_eq!(missing("include_str!(\"../page.css\")"), None);
    assert_eq!(missing("#![doc = include_str!(\"../../README.md\")]"), None);
    let example = "concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/doc/stacks.pt\")";
    assert_eq!(missing(example), None);
    for outside in ["../../../README.md", "../../../../README.md", "page.css"] {
        let text = format!("include_str!(\"../page.css\") + include_str!(\"{outside}\")");
        assert_eq!(missing(&text).as_deref(), Some(outside));
    }
    let example = "env!(\"CARGO_MANIFEST_DIR\"), \"/../../tests/golden/stacks.pt\"";
    assert!(missing(example).is_some());
}
