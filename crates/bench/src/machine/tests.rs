use super::*;

#[test]
fn now_is_a_time_after_the_days_of_earlier_runs() {
    let now = now();
    assert!(humantime::parse_rfc3339(&now).is_ok(), "{now}");
    assert!(now.as_str() > "2026-11-30", "{now}");
}

#[test]
fn the_processor_by_name_family_and_model() {
    let cpuinfo = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\n";
    assert_eq!(cpu(cpuinfo), "AMD EPYC (family 25, model 1)");
    assert_eq!(cpu("model name: Cortex\n"), "Cortex");
    assert_eq!(cpu(""), "unknown processor");
}

#[test]
fn generations_of_zen_by_family_and_model() {
    let of = |family, model| zen(&format!("AMD EPYC (family {family}, model {model})"));
    let found = [of(25, 1), of(25, 17), of(25, 33), of(25, 97), of(26, 2)];
    assert_eq!(found, [3, 4, 3, 4, 5].map(Some));
    assert_eq!([of(23, 49), of(26, 80)], [None, None]);
    let intel = "Intel(R) Xeon(R) (family 25, model 1)";
    assert_eq!([zen(intel), zen("AMD EPYC"), zen("")], [None; 3]);
}

#[test]
fn versions_are_those_of_the_lockfile() {
    let lock = "[[package]]\nname = \"burn-nn\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"burn\"\nversion = \"4.5.6\"\n";
    assert_eq!(locked(lock, "burn"), Some("4.5.6"));
    assert_eq!(locked(lock, "nn"), None);
    let versions = Versions::new(None);
    for version in [&versions.burn, &versions.candle] {
        assert!(version.starts_with("0."), "{versions:?}");
    }
    assert!(versions.rustc.starts_with("rustc "), "{versions:?}");
}
