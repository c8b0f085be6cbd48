use super::*;

/// The first line of what is said of such arguments, if they are refused.
fn refused(arguments: &[&str]) -> Option<String> {
    let program = ["bench"];
    let error = Arguments::try_parse_from(program.iter().chain(arguments)).err()?;
    error.to_string().lines().next().map(Into::into)
}

#[test]
fn suites_are_those_of_the_device() {
    use Suite::{Blockwise, Decode, Gpu, Models, Module, Op, Translation};
    let chosen = |asked: &[Suite], on_gpu| Suite::chosen(asked, "Abacus", on_gpu);
    assert_eq!(chosen(&[], true), Ok(vec![Blockwise, Gpu]));
    let of_processor = vec![Op, Module, Decode, Translation, Models, Blockwise];
    assert_eq!(chosen(&[], false), Ok(of_processor.clone()));
    assert_eq!(chosen(&of_processor, false), Ok(of_processor));
    assert_eq!(chosen(&[Gpu, Blockwise], true), Ok(vec![Gpu, Blockwise]));
    assert_eq!(
        chosen(&[Blockwise, Decode], true),
        Err("the suite `decode` is for a processor, and Burn's device is Abacus: set BURN_DEVICE=flex".into())
    );
    assert_eq!(
        chosen(&[Op, Gpu], false),
        Err("the suite `gpu` is for a GPU, and Burn's device is Abacus: build with `--features wgpu`, and leave BURN_DEVICE unset or say wgpu".into())
    );
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
