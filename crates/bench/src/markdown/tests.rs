use std::collections::BTreeMap;

use super::*;
use crate::machine::{Machine, Pytorch, Versions};
use crate::text::name;
use crate::work::Precision;

fn row() -> Row {
    Row {
        suite: "op".into(),
        case: "forward full 1024".into(),
        peer: "pytorch".into(),
        measure: Measure::Time,
        precision: None,
        ours_seconds: 0.01234,
        peer_seconds: 0.0249,
        ours_operations: Some(1e9),
        peer_operations: Some(1e9),
        ratio: 2.018,
        ours_spread: Some(0.046),
        peer_spread: None,
        ours_peak_bytes: Some(3 << 20),
        peer_peak_bytes: None,
        peer_note: None,
    }
}

fn run() -> Run {
    Run {
        machine: Machine {
            cpu: "Abacus".into(),
            processors: 3,
            instructions: "beads".into(),
            os: "linux".into(),
            virtual_machine: true,
        },
        versions: Versions {
            burn_attn: "0.1".into(),
            burn: "0.22".into(),
            candle: "0.11".into(),
            rustc: "rustc 1".into(),
            pytorch: Some(Pytorch {
                version: "2.15".into(),
                instructions: "AVX2".into(),
                mkl: true,
                transformers: None,
                python: "3.11".into(),
                card: None,
            }),
        },
        date: "2026-11-22".into(),
        command: "cargo run".into(),
        quick: false,
        threads: 2,
        device: "Flex(Cpu)".into(),
        fma_peak: Some(162.04),
        matmul_peaks: BTreeMap::new(),
        rows: vec![row()],
        missing: Vec::new(),
    }
}

/// A run on a GPU without rows.
fn on_card() -> Run {
    Run {
        device: "Cube(Wgpu(DefaultDevice)), Abacus 3000".into(),
        fma_peak: None,
        rows: Vec::new(),
        ..run()
    }
}

#[test]
fn the_committed_report_is_that_of_the_committed_runs() {
    let committed = fs::read_to_string(FILE).unwrap();
    assert!(
        committed == report(&committed_runs().unwrap()),
        "BENCHMARKS.md is written by `cargo run -p burn-attn-bench --no-default-features -- --report`"
    );
}

#[test]
fn every_suite_is_explained() {
    use clap::ValueEnum;
    for &suite in crate::cli::Suite::value_variants() {
        let name = name(suite);
        assert!(
            SUITES.iter().any(|(explained, _)| *explained == name),
            "{name}"
        );
    }
}

#[test]
fn a_row_has_times_rates_and_memory() {
    let line = table(&[&row()], |_| Some(162.0));
    assert_eq!(
        line.lines().nth(2).unwrap(),
        "| forward full 1024 | pytorch | 12, 25 | 2.0 (one sample) | 5 %, – | 81 (50 %) | 40 (25 %) | 3.0, – |"
    );
}

#[test]
fn a_row_without_operations_peak_or_memory_says_so() {
    let row = Row {
        ours_operations: None,
        ours_peak_bytes: None,
        peer_note: Some("plain | products".into()),
        ..row()
    };
    let line = table(&[&row], |_| None);
    assert_eq!(
        line.lines().nth(2).unwrap(),
        "| forward full 1024 | pytorch (plain \\| products) | 12, 25 | 2.0 (one sample) | 5 %, – | – | 40 | – |"
    );
}

#[test]
fn memory_of_a_few_pages_is_next_to_nothing() {
    let memory = |bytes| {
        super::memory(&Row {
            ours_peak_bytes: Some(bytes),
            ..row()
        })
    };
    assert_eq!(memory(0), "< 0.1, –");
    assert_eq!(memory(104_857), "< 0.1, –");
    assert_eq!(memory(104_858), "0.10, –");
    assert_eq!(memory(287 << 20), "290, –");
}

/// The cell of a ratio.
fn ratio(
    measure: Measure,
    ratio: f64,
    ours_spread: Option<f64>,
    peer_spread: Option<f64>,
) -> String {
    super::ratio(&Row {
        measure,
        ratio,
        ours_spread,
        peer_spread,
        ..row()
    })
}

#[test]
fn a_ratio_within_the_spread_is_marked() {
    assert_eq!(ratio(Measure::Time, 1.2, Some(0.1), Some(0.21)), "≈ 1.2");
    assert_eq!(ratio(Measure::Time, 1.2, Some(0.1), Some(0.19)), "1.2");
    // Twice as slow is as far away as twice as fast.
    let two = |ratio_of, spread| ratio(Measure::Time, ratio_of, Some(spread), Some(0.1));
    assert_eq!([two(2.0, 1.1), two(0.5, 1.1)], ["≈ 2.0", "≈ 0.50"]);
    assert_eq!([two(2.0, 0.9), two(0.5, 0.9)], ["2.0", "0.50"]);
    assert_eq!(
        ratio(Measure::Rate, 0.85, Some(0.01), Some(0.02)),
        "0.85 of the rate"
    );
    // Memory does not vary as times do.
    assert_eq!(
        ratio(Measure::Memory, 1.98, Some(1.0), None),
        "2.0 of the memory"
    );
}

#[test]
fn a_ratio_of_a_single_sample_says_so() {
    let found = [
        ratio(Measure::Time, 13.66, None, None),
        ratio(Measure::Time, 3.3, Some(0.2), None),
        ratio(Measure::Time, 0.9, Some(0.2), None),
        ratio(Measure::Time, 0.5, None, Some(0.2)),
        ratio(Measure::Rate, 0.85, None, Some(0.01)),
    ];
    let expected = [
        "14 (one sample)",
        "3.3 (one sample)",
        "≈ 0.90 (one sample)",
        "0.50 (one sample)",
        "0.85 of the rate (one sample)",
    ];
    assert_eq!(found, expected);
}

#[test]
fn two_significant_digits() {
    for (x, expected) in [
        (0.0, "0"),
        (0.00449, "0.0045"),
        (0.0996, "0.10"),
        (0.994, "0.99"),
        (0.996, "1.0"),
        (1.04, "1.0"),
        (9.96, "10"),
        (13.66, "14"),
        (99.6, "100"),
        (1234.0, "1200"),
    ] {
        assert_eq!(significant(x, 2), expected, "{x}");
    }
}

#[test]
fn all_rows_of_a_run_are_in_the_report() {
    let mut run = run();
    for suite in ["decode", "models"] {
        run.rows.push(Row {
            suite: suite.into(),
            peer: "candle".into(),
            ..row()
        });
    }
    run.missing.push(Missing {
        suite: "translation".into(),
        case: "d 128".into(),
        peer: "pytorch".into(),
        why: "it ended".into(),
    });
    let text = report(&[run]);
    assert_eq!(text.matches("| forward full 1024 | ").count(), 3);
    assert_eq!(text.matches(" | candle | ").count(), 2);
    assert!(text.contains("\n- d 128, pytorch: it ended\n"), "{text}");
    for said in [
        "## Abacus, 2 threads, Flex(Cpu), 2026-11-22",
        "3, 2 threads used",
        "162 GFLOP/s",
        "a virtual machine",
        "with MKL",
        "`cargo run`",
    ] {
        assert!(text.contains(said), "{said}");
    }
    assert!(!text.contains("only a look"));
}

#[test]
fn on_a_gpu_rates_are_shares_of_what_it_does_with_matrices() {
    let mut run = on_card();
    for (suite, case, precision) in [
        ("gpu", "on the card", Precision::F32),
        ("gpu", "rounded", Precision::Bf16),
        ("blockwise", "in blocks", Precision::F32),
    ] {
        run.rows.push(Row {
            suite: suite.into(),
            case: case.into(),
            precision: Some(precision),
            ..row()
        });
    }
    run.matmul_peaks.insert(Precision::F32, 405.0);
    run.versions.pytorch.as_mut().unwrap().card = Some("Abacus 3000".into());
    let text = report(&[run]);
    let cells = |case: &str| {
        let line = text.lines().find(|line| line.contains(case)).unwrap();
        line.split(" | ").skip(5).take(2).collect::<Vec<_>>()
    };
    for case in ["on the card", "in blocks"] {
        assert_eq!(cells(case), ["81 (20 %)", "40 (10 %)"]);
    }
    assert_eq!(cells("rounded"), ["81", "40"]);
    assert!(
        text.contains("| products of matrices on the device | 405 GFLOP/s in f32 |"),
        "{text}"
    );
    assert!(text.contains("AVX2, Python 3.11, Abacus 3000"), "{text}");
}

#[test]
fn one_thread_is_not_plural() {
    let text = report(&[Run {
        threads: 1,
        ..run()
    }]);
    assert!(text.contains("## Abacus, 1 thread, Flex"), "{text}");
}

#[test]
fn a_suite_is_explained_once() {
    let prose = SUITES[0].1;
    let text = report(&[
        run(),
        Run {
            quick: true,
            ..run()
        },
    ]);
    assert_eq!(text.matches(prose).count(), 1);
    assert_eq!(text.matches("### op\n").count(), 2);
    assert!(text.contains("only a look"));
}

#[test]
fn a_run_survives_json() {
    let mut run = on_card();
    run.matmul_peaks = [(Precision::F32, 405.0), (Precision::Bf16, 810.0)].into();
    run.rows.push(Row {
        suite: "gpu".into(),
        precision: Some(Precision::Bf16),
        ..row()
    });
    let json = serde_json::to_string(&run).unwrap();
    let read: Run = serde_json::from_str(&json).unwrap();
    let text = report(&[read]);
    assert!(
        text.contains("| 405 GFLOP/s in f32, 810 in bf16 |"),
        "{text}"
    );
    assert!(text.contains("| 81 (10 %) | 40 (5 %) |"), "{text}");
    assert_eq!(text, report(&[run]));
}
