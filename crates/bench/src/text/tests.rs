use super::*;

#[test]
fn a_shell_reads_back_what_was_quoted() {
    for (argument, expected) in [
        ("blockwise", "blockwise"),
        ("--json=a/b_c.json", "--json=a/b_c.json"),
        ("", "''"),
        ("causal 1024", "'causal 1024'"),
        ("1 × 1", "'1 × 1'"),
        ("$HOME/*", "'$HOME/*'"),
        ("it's", r"'it'\''s'"),
    ] {
        assert_eq!(quoted(argument), expected);
    }
}

#[test]
fn shares_and_bytes_may_be_unknown() {
    assert_eq!([percent(Some(0.046)), percent(None)], ["5 %", "–"]);
    assert_eq!([mebibytes(Some(287 << 20)), mebibytes(None)], ["290", "–"]);
}
