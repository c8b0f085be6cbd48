use super::*;

#[test]
fn run_without_a_test_fails() {
    let summary = |passed: usize| {
        let line = format!("test result: ok. {passed} passed; 0 failed; 0 ignored");
        run_tests(program("echo").arg(line))
    };
    assert!(summary(0).unwrap_err().ends_with("ran no test"));
    assert_eq!(summary(2), Ok(()));
}

#[test]
fn cargo_takes_the_versions_of_the_lock_file() {
    let mut test = cargo("test --doc");
    let shown_test = shown(test.env("B", "2").env("A", "1 and 2"));
    assert_eq!(shown_test, "A='1 and 2' B='2' cargo test --locked --doc");
    assert_eq!(shown(&cargo("fmt --check")), "cargo fmt --check");
}
