use super::*;

/// The first line of what is said of such arguments, if they are refused.
fn refused(arguments: &[&str]) -> Option<String> {
    let program = ["bench"];
    let error = Arguments::try_parse_from(program.iter().chain(arguments)).err()?;
    error.to_string().lines().next().map(Into::into)
}

#[test]
fn what_makes_no_sense_is_refused() {
    assert_eq!(refused(&["op", "--threads", "3", "--quick"]), None);
    assert_eq!(refused(&["--report"]), None);
    let zero = refused(&["--threads", "0"]).unwrap();
    assert!(
        zero.contains("invalid value '0' for '--threads <N>'"),
        "{zero}"
    );
    for others in [["op"].as_slice(), &["--quick"], &["--threads", "2"]] {
        let conflict = refused(&[others, &["--report"]].concat()).unwrap();
        assert!(conflict.contains("'--report'"), "{conflict}");
    }
}
