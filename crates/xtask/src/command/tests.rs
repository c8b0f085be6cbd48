use super::{locked, run_tests};

#[test]
fn run_without_a_test_fails() {
    let summary = |passed: usize| {
        let line = format!("test result: ok. {passed} passed; 0 failed; 0 ignored");
        run_tests("echo", &[&line], &[])
    };
    assert!(summary(0).unwrap_err().ends_with("ran no test"));
    assert_eq!(summary(2), Ok(()));
}

#[test]
fn cargo_takes_the_versions_of_the_lock_file() {
    assert_eq!(locked(&["test", "--doc"]), ["test", "--locked", "--doc"]);
    // It knows no such flag, and reads no lock file.
    assert_eq!(locked(&["fmt", "--check"]), ["fmt", "--check"]);
}
