//! Rates of single steps, and rates that are refused.

use super::*;

fn scheduler(steps: usize) -> ModuleLrScheduler {
    warmup_cosine(0.1, 11, Some(steps), 0.01).unwrap()
}

fn next(scheduler: &mut ModuleLrScheduler) -> f64 {
    scheduler.step().base()
}

#[test]
fn a_longer_run_goes_on_where_a_shorter_one_ended() {
    // Within the warm-up, at its end, and in the cosine of the shorter one.
    for over in [5, 11, 17] {
        let mut short = scheduler(over);
        (0..over).for_each(|_| drop(short.step()));
        let mut long = scheduler(29);
        (0..over).for_each(|_| drop(long.step()));
        let mut resumed = scheduler(29).load_record(short.to_record());
        for step in over..29 {
            assert_eq!(next(&mut resumed), next(&mut long), "{over}, step {step}");
        }
    }
}

#[test]
fn a_run_that_ends_within_the_warm_up_never_reaches_the_peak() {
    let mut short = scheduler(5);
    let rates: Vec<f64> = (0..20).map(|_| next(&mut short)).collect();
    assert!((rates[4] - 0.1 * 5.0 / 11.0).abs() < 1e-9, "{rates:?}");
    // If it does not end there, it stays at the peak.
    assert_eq!([rates[10], rates[19]], [0.1; 2]);
}

#[test]
fn rates_that_cannot_be_are_refused() {
    for (peak, floor, given) in [
        (f64::NAN, 0.0, "NaN and 0"),
        (0.0, 0.0, "0 and 0"),
        (1.5, 0.0, "1.5 and 0"),
        (0.1, 0.2, "0.1 and 0.2"),
        (0.1, -0.1, "0.1 and -0.1"),
        (0.1, f64::NAN, "0.1 and NaN"),
    ] {
        let refused = warmup_cosine(peak, 2, Some(8), floor).err();
        let sentence = format!(
            "the highest rate must be above 0 and at most 1, and the lowest from 0 to that, got {given}"
        );
        assert_eq!(refused, Some(sentence));
    }
}
