use super::*;

#[test]
fn days_are_dates() {
    for (day, expected) in [
        (0, "1970-01-01"),
        (58, "1970-02-28"),
        (59, "1970-03-01"),
        (364, "1970-12-31"),
        (11_016, "2000-02-29"),
        (11_017, "2000-03-01"),
        (20_779, "2026-11-22"),
    ] {
        assert_eq!(date(day), expected, "day {day}");
    }
}

#[test]
fn the_processor_by_name_family_and_model() {
    let cpuinfo = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\n";
    assert_eq!(cpu(cpuinfo), "AMD EPYC (family 25, model 1)");
    assert_eq!(cpu("model name: Cortex\n"), "Cortex");
    assert_eq!(cpu(""), "unknown processor");
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
