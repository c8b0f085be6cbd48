use clap::ValueEnum;

use super::*;
use crate::cli::Suite;
use crate::suites;

#[test]
fn names_of_every_suite_fit_their_columns() {
    for &suite in Suite::value_variants() {
        let on_gpu = suite == Suite::Gpu;
        let cases = suites::cases(suite, on_gpu);
        let table = Table::new(&cases);
        let width = |line: String| line.chars().count();
        let title = width(table.line(COLUMNS.map(|(title, _)| title.into())));
        for case in &cases {
            for peer in &case.peers {
                let row = table.row(&Row {
                    suite: String::new(),
                    case: case.name.clone(),
                    peer: peer.name.clone(),
                    measure: Measure::Rate,
                    precision: None,
                    ours_seconds: 1.0,
                    peer_seconds: 1.0,
                    ours_operations: None,
                    peer_operations: None,
                    ratio: 1.5,
                    ours_spread: Some(1.1),
                    peer_spread: Some(1.1),
                    ours_peak_bytes: Some(1 << 36),
                    peer_peak_bytes: None,
                    peer_note: None,
                });
                assert_eq!(width(row), title, "{}, {}", case.name, peer.name);
            }
        }
    }
    let widths = Table::new(&[]).widths;
    assert_eq!(widths[..2], [4, 4]);
}
