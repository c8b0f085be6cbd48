use super::*;
use crate::markdown::committed_runs;

#[test]
fn the_table_is_that_of_the_committed_runs() {
    let runs = committed_runs().unwrap();
    let readme = committed().unwrap();
    assert!(
        with_table(&readme, &runs).unwrap() == readme,
        "the table of speed in README.md is written by `cargo run -p burn-attn-bench --no-default-features -- --report`"
    );
}

#[test]
fn a_place_and_all_rows_are_needed() {
    let mut runs = committed_runs().unwrap();
    assert_eq!(
        with_table("# burn-attn\n", &runs).unwrap_err(),
        "README.md has no line <!-- speed -->"
    );
    for run in &mut runs {
        run.rows.retain(|row| row.suite != "module");
    }
    assert_eq!(
        with_table("<!-- speed -->\n<!-- end of speed -->\n", &runs).unwrap_err(),
        "no run has a row \"MultiHeadAttention 1024\" of module"
    );
}

#[test]
fn a_row_is_that_of_the_newest_run_on_such_a_processor() {
    let readme = "<!-- speed -->\n<!-- end of speed -->\n";
    let mut runs = committed_runs().unwrap();
    runs.retain(|run| instructions_of(run) == "AVX2");
    let with_ratio = |date: &str, instructions: &str, ratio| {
        let mut run = runs[0].clone();
        run.date = date.into();
        run.machine.instructions = instructions.into();
        run.rows.retain(|row| row.suite == "translation");
        for row in &mut run.rows {
            row.ratio = ratio;
        }
        run
    };
    let newer = with_ratio("9999-12-31", "AVX2 with FMA", 42.0);
    let other = with_ratio("9999-12-30", "beads", 17.0);
    // Whatever their order.
    runs.splice(0..0, [newer, other]);
    let table = with_table(readme, &runs).unwrap();
    assert!(
        table.contains("| work | PyTorch, AVX2 | Burn, AVX2 | PyTorch, beads | Burn, beads |\n")
    );
    let of_newer: Vec<&str> = table
        .lines()
        .filter(|line| line.contains("| 42 |"))
        .collect();
    assert_eq!(
        of_newer,
        ["| translator, a whole step, width 256, 3 + 3 layers | 42 | 42 | 17 | 17 |"]
    );
}
