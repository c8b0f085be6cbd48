use super::*;
use crate::generator::numbers;

/// What is wrong with `theirs` if `ours` is right.
fn disagreement(ours: &[f32], theirs: &[f32]) -> Option<String> {
    let digest = |values| [Digest::new("output", values)];
    let tolerance = Tolerance::OfTheLargest(1e-2);
    Digest::disagreement(&digest(ours), &digest(theirs), tolerance)
}

#[test]
fn the_same_digest_as_in_python() {
    // The command is in `generator/tests.rs`.
    let digest = Digest::new("", &numbers(7, 1310, 1.0));
    assert!((digest.mean - 0.503_312_551_520_253).abs() < 1e-13);
    assert_eq!(digest.largest, 0.999_806_284_904_48);
    assert!((digest.root_mean_square - 0.582_183_456_614_886_4).abs() < 1e-13);
    assert_eq!([digest.count, digest.samples.len()], [1310, 256]);
    assert_eq!(digest.samples[255], -0.813_780_188_560_485_8);
}

#[test]
fn a_digest_has_256_samples_and_of_less_all() {
    for count in [0, 1, 2, 3, 128, 255, 256, 257, 258, 4096, 100_000] {
        let values: Vec<f32> = (0..count).map(|index| index as f32).collect();
        let mut samples = Digest::new("", &values).samples;
        assert_eq!(samples.len(), values.len().min(256), "of {count}");
        samples.sort_by(f64::total_cmp);
        samples.dedup();
        assert_eq!(samples.len(), values.len().min(256), "apart, of {count}");
    }
}

#[test]
fn a_fault_in_one_column_or_in_the_last_rows_is_found() {
    // Heads, rows, columns.
    for [heads, rows, columns] in [[16, 256, 64], [2, 512, 64], [64, 64, 16], [1, 250, 256]] {
        let ours = numbers(3, heads * rows * columns, 1.0);
        // Far too small for the mean to tell.
        let wrong = |fault: &dyn Fn(usize, usize, usize) -> bool| {
            let mut theirs = ours.clone();
            let mut sign = 0.02;
            for (index, value) in theirs.iter_mut().enumerate() {
                let row = index / columns;
                if fault(row / rows, row % rows, index % columns) {
                    *value += sign * value.signum();
                    sign = -sign;
                }
            }
            disagreement(&ours, &theirs).is_some()
        };
        let size = format!("{heads} heads of {rows} × {columns}");
        for wanted in 0..columns {
            assert!(wrong(&|_, _, column| column == wanted), "{wanted}, {size}");
        }
        assert!(wrong(&|_, row, _| row >= rows - 16), "last 16 rows, {size}");
        let last = |head, row, _| head == heads - 1 && row == rows - 1;
        assert!(wrong(&last), "the last row, {size}");
        assert!(!wrong(&|_, _, _| false), "no fault, {size}");
    }
}

#[test]
fn small_numbers_count_in_bf16_as_the_root_mean_square_does() {
    // As causal rows are: one large number among many small ones.
    let mut ours = [0.1f32; 100];
    ours[0] = 10.0;
    let found = |place: usize, off: f32| {
        let mut theirs = ours;
        theirs[place] += off;
        let digest = |values| [Digest::new("output", values)];
        let tolerance = Tolerance::OfEachOrTheRootMeanSquare(5e-2);
        Digest::disagreement(&digest(&ours), &digest(&theirs), tolerance)
    };
    // The root mean square is 1.005.
    assert_eq!(found(7, 0.05), None);
    assert_eq!(
        found(7, 0.06).as_deref(),
        Some("output differs by 6.0e-2, and 5.0e-2 is allowed")
    );
    assert_eq!(found(0, 0.4), None);
    assert!(found(0, 0.6).is_some());
}

#[test]
fn the_largest_number_of_ours_is_the_measure() {
    let ours = [1.0, -200.0, 3.0];
    assert_eq!(disagreement(&ours, &ours), None);
    assert_eq!(disagreement(&ours, &[2.9, -200.0, 3.0]), None);
    assert_eq!(
        disagreement(&ours, &[1.0, -197.0, 3.0]).as_deref(),
        Some("output differs by 3.0e0, and 2.0e0 is allowed")
    );
    // Theirs may be as large as it likes.
    assert!(disagreement(&ours, &[1.0, -200.0, 1e6]).is_some());
    assert!(disagreement(&ours, &[1.0, 200.0, 3.0]).is_some());
    assert!(disagreement(&[0.0], &[1e-30]).is_some());
}

#[test]
fn numbers_between_the_samples_count_in_the_mean() {
    let places: Vec<f32> = (0..512).map(|index| index as f32).collect();
    let samples = Digest::new("", &places).samples;
    let ours = [1.0; 512];
    // Half of the numbers are samples.
    let theirs = places.iter().map(|&place| {
        let sampled = samples.contains(&f64::from(place));
        if sampled { 1.0 } else { 1.1 }
    });
    let theirs: Vec<f32> = theirs.collect();
    assert_eq!(
        disagreement(&ours, &theirs).as_deref(),
        Some("output differs by 5.0e-2, and 1.0e-2 is allowed")
    );
}

#[test]
fn nan_is_a_difference_wherever_it_is() {
    let ours = numbers(3, 2000, 1.0);
    for place in [0, 1, 1999] {
        let mut theirs = ours.clone();
        theirs[place] = f32::NAN;
        assert!(disagreement(&ours, &theirs).is_some(), "theirs at {place}");
        assert!(disagreement(&theirs, &ours).is_some(), "ours at {place}");
        assert!(disagreement(&theirs, &theirs).is_some(), "both at {place}");
    }
    let infinite = [f32::INFINITY, 1.0];
    assert!(disagreement(&[1.0, 1.0], &infinite).is_some());
    assert!(disagreement(&infinite, &[1.0, 1.0]).is_some());
}

#[test]
fn nan_and_infinity_are_said_by_name() {
    let all = |value| {
        let mut numbers = vec![1.0; 1000];
        numbers[1] = value;
        let results = [("output".into(), vec![1.0]), ("dkey".into(), numbers)];
        let digests = Digest::all(&results)?;
        Ok::<_, String>(serde_json::to_string(&digests).unwrap())
    };
    let finite: Vec<Digest> = serde_json::from_str(&all(3e38).unwrap()).unwrap();
    assert_eq!(finite[1].largest, f64::from(3e38f32));
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(all(value).unwrap_err(), "dkey has NaN or infinity");
    }
}

#[test]
fn another_number_of_elements_is_a_difference() {
    assert_eq!(
        disagreement(&[1.0; 64], &[1.0; 65]).as_deref(),
        Some("output has 65 elements, and ours has 64")
    );
    // Of more than 256 no longer by the number of samples.
    assert_eq!(
        disagreement(&[1.0; 1000], &[1.0; 500]).as_deref(),
        Some("output has 500 elements, and ours has 1000")
    );
}

#[test]
fn every_result_is_compared_and_none_may_be_missing() {
    let digests = |results: &[(&str, f32)]| -> Vec<_> {
        let digest = |&(name, value): &_| Digest::new(name, &[value]);
        results.iter().map(digest).collect()
    };
    let ours = digests(&[("output", 1.0), ("dquery", 2.0), ("dkey", 3.0)]);
    let disagreement = |theirs: &[(&str, f32)]| {
        Digest::disagreement(&ours, &digests(theirs), Tolerance::OfTheLargest(0.1))
    };
    let theirs = [("dkey", 3.0), ("dquery", 2.0), ("output", 1.0)];
    assert_eq!(disagreement(&theirs), None);
    assert_eq!(
        disagreement(&[("output", 1.0), ("dquery", 2.0), ("dkey", 3.5)]).as_deref(),
        Some("dkey differs by 5.0e-1, and 3.0e-1 is allowed")
    );
    assert_eq!(
        disagreement(&theirs[..2]).as_deref(),
        Some("it has no output")
    );
    let more = [&theirs[..], &[("dvalue", 5.0)]].concat();
    assert_eq!(disagreement(&more).as_deref(), Some("ours has no dvalue"));
}
