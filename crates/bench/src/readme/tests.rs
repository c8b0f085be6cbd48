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
    let newer = with_ratio("9999-12-29T14:03:55Z", "AVX2 with FMA", 42.0);
    // Runs of the same day.
    let earlier = ["9999-12-29T09:30:00Z", "9999-12-29"];
    let earlier = earlier.map(|date| with_ratio(date, "AVX2 with FMA", 13.0));
    let mut other = with_ratio("9999-12-30", "beads", 17.0);
    other.machine.cpu = "Abacus".into();
    // The newest, but not such runs as the README speaks of.
    let mut strangers = [0; 3].map(|_| with_ratio("9999-12-31", "AVX2 with FMA", 99.0));
    strangers[0].quick = true;
    strangers[1].device = "Cube(Wgpu(DefaultDevice)), Abacus 3000".into();
    strangers[2].threads = 3;
    // A run without such a row has no column.
    let mut without_rows = with_ratio("9999-12-31", "knots", 1.0);
    without_rows.rows.clear();
    // Whatever their order.
    runs.splice(0..0, [newer, other, without_rows]);
    runs.extend(earlier.into_iter().chain(strangers));
    let table = with_table(readme, &runs).unwrap();
    assert!(
        table.contains(
            "| work | PyTorch, AMD Zen 3 (AVX2) | Burn, AMD Zen 3 (AVX2) | PyTorch, Abacus (beads) | Burn, Abacus (beads) |\n"
        ),
        "{table}"
    );
    let of_newer: Vec<&str> = table
        .lines()
        .filter(|line| line.contains("| 42 |"))
        .collect();
    assert_eq!(
        of_newer,
        [
            "| translator, a whole step, batch 64, 8 heads of width 32, 3 + 3 layers | 42 | 42 | 17 | 17 |"
        ]
    );
}

#[test]
fn a_column_names_all_processors_whose_numbers_it_has() {
    let mut runs = committed_runs().unwrap();
    runs.retain(|run| instructions_of(run) == "AVX-512");
    runs.truncate(1);
    runs[0].machine.cpu = "AMD EPYC (family 25, model 17)".into();
    let mut newer = runs[0].clone();
    newer.date = "9999-12-31".into();
    newer.machine.cpu = "AMD EPYC (family 26, model 2)".into();
    let said = |runs: &[Run]| {
        let table = with_table("<!-- speed -->\n<!-- end of speed -->\n", runs).unwrap();
        table.lines().nth(1).unwrap().to_string()
    };
    let head = |processors: &str| {
        format!("| work | PyTorch, {processors} (AVX-512) | Burn, {processors} (AVX-512) |")
    };
    assert_eq!(said(&runs), head("AMD Zen 4"));
    runs.push(newer);
    assert_eq!(said(&runs), head("AMD Zen 5"));
    runs[1].rows.retain(|row| row.suite == "op");
    assert_eq!(said(&runs), head("AMD Zen 5 and AMD Zen 4"));
}
