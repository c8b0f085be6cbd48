//! The picture of a curve.

use super::*;

#[test]
fn every_point_is_drawn_and_an_accuracy_of_no_tokens_is_not() {
    let point = |step, right| CurvePoint {
        epoch: 1,
        step,
        train: 2.0,
        validation: 1.5,
        train_accuracy: Accuracy { right, tokens: 8 },
        validation_accuracy: Accuracy::default(),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    draw(&[point(10, 4), point(20, 6)], &path).unwrap();
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    // Two points each of two losses and one accuracy.
    assert_eq!(svg.matches("<circle").count(), 6, "{svg}");
    for (text, times) in [
        ("loss (nats per token)", 1),
        ("training (as the model learns)", 2),
        ("validation", 2),
    ] {
        assert_eq!(svg.matches(text).count(), times, "{text}: {svg}");
    }
}

#[test]
fn a_run_without_a_point_has_an_empty_picture() {
    assert!(svg(&[]).unwrap().contains("</svg>"));
}
