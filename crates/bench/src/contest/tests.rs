use super::*;
use crate::work::{Implementation, Matmul, Op, Pass, Precision};

/// What is known of this work after these samples.
fn sampled(
    work: &Work,
    samples: &[f64],
    peak_bytes: Option<u64>,
    results: Vec<Digest>,
) -> Measured {
    let ready = Ready {
        iterations: 1,
        seconds: 1.0,
        results,
        note: None,
    };
    Measured::new(work, samples.to_vec(), peak_bytes, ready)
}

fn measured(work: &Work, seconds: f64, peak_bytes: Option<u64>) -> Measured {
    sampled(work, &[seconds], peak_bytes, Vec::new())
}

/// 8 GFLOP forward.
fn forward() -> Work {
    Work::Op(Op {
        dim: 125,
        ..Op::new(Pass::Forward, 1000)
    })
}

#[test]
fn the_median_and_the_spread_of_samples() {
    let of = |samples: &[f64]| {
        let measured = sampled(&forward(), samples, None, Vec::new());
        (measured.seconds, measured.spread)
    };
    assert_eq!(of(&[4.0, 1.0, 2.0]), (2.0, Some(1.5)));
    assert_eq!(of(&[8.0, 1.0, 2.0, 4.0]), (3.0, Some(7.0 / 3.0)));
    assert_eq!(of(&[3.0, 1.0]), (2.0, Some(1.0)));
    assert_eq!(of(&[5.0]), (5.0, None));
}

#[test]
fn a_ratio_above_one_means_that_ours_is_faster() {
    let ratio = |measure, our: &Work, their: &Work| {
        let (ours, theirs) = (
            measured(our, 2.0, Some(300)),
            measured(their, 5.0, Some(100)),
        );
        ratio(measure, &ours, &theirs)
    };
    let product = Work::Matmul(Matmul {
        size: 1000,
        precision: Precision::F32,
    });
    let op = forward();
    assert_eq!(ratio(Measure::Time, &op, &op), Ok(2.5));
    // 8 GFLOP in 2 s, and 2 GFLOP in 5 s.
    assert_eq!(ratio(Measure::Rate, &op, &product), Ok(4.0 / 0.4));
    assert_eq!(ratio(Measure::Rate, &product, &op), Ok(1.0 / 1.6));
    // A ratio of memory above 1 means that ours needs more.
    assert_eq!(ratio(Measure::Memory, &op, &op), Ok(3.0));
}

#[test]
fn a_ratio_of_what_is_not_known_is_none() {
    let op = forward();
    let pretrained = crate::suites::cases(crate::cli::Suite::Models, false)[0]
        .ours
        .clone();
    let (with, without) = (measured(&op, 1.0, Some(1)), measured(&op, 1.0, None));
    for (ours, theirs) in [(&with, &without), (&without, &with)] {
        let found = ratio(Measure::Memory, ours, theirs);
        assert_eq!(found, Err("peak memory cannot be measured here".into()));
    }
    let found = ratio(Measure::Rate, &with, &measured(&pretrained, 1.0, Some(1)));
    assert_eq!(
        found,
        Err("the operations of such a work are not counted".into())
    );
}

#[test]
fn patience_bounds_the_samples() {
    let samples = |patience: Patience, iterations, seconds| {
        patience.samples(&Ready {
            iterations,
            seconds,
            results: Vec::new(),
            note: None,
        })
    };
    let full = |iterations, seconds| samples(Patience::FULL, iterations, seconds);
    // 0.7 s of samples: not more than 7, not fewer than 3 …
    assert_eq!(full(30, 0.001), 7);
    assert_eq!(full(1, 0.125), 5);
    assert_eq!(full(1, 0.5), 3);
    // … unless a sample takes seconds.
    assert_eq!(full(1, 1.99), 3);
    assert_eq!(full(1, 2.0), 2);
    assert_eq!(full(1, 9.99), 2);
    assert_eq!(full(1, 10.0), 1);
    let quick = |iterations, seconds| samples(Patience::QUICK, iterations, seconds);
    assert_eq!(quick(30, 0.001), 3);
    assert_eq!(quick(1, 0.1), 2);
    assert_eq!(quick(1, 10.0), 1);
}

#[test]
fn only_a_peer_that_computes_the_same_must_agree() {
    let results = |value: f32| {
        let digest = Digest::new("output", &[value; 8]);
        sampled(&forward(), &[1.0], None, vec![digest])
    };
    let case = Case::new("a case", forward());
    let differs = agree(&case, &forward(), &results(1.0), &results(1.01));
    assert_eq!(
        differs,
        Err(
            "does not compute what ours does: output differs by 1.0e-2, and 1.0e-4 is allowed"
                .into()
        )
    );
    assert_eq!(
        agree(&case, &forward(), &results(1.0), &results(1.00005)),
        Ok(())
    );
    let backward = Work::Op(Op::new(Pass::Backward, 1000));
    assert_eq!(
        agree(&case, &backward, &results(1.0), &results(2.0)),
        Ok(())
    );
    // Another implementation makes no other work, of a peer or of ours …
    let op = Op::new(Pass::Training, 1000);
    let case = Case::new("blockwise", op.by(Implementation::Blockwise));
    let of_peer = |work: &Work| agree(&case, work, &results(1.0), &results(2.0));
    for of in [
        Implementation::Chosen,
        Implementation::Composed,
        Implementation::Blockwise,
    ] {
        assert!(of_peer(&op.by(of)).is_err(), "{of:?}");
    }
    // … but keys that heads share, and another length, do.
    let mut grouped = op.clone();
    grouped.heads_kv = 1;
    for other in [grouped, Op::new(Pass::Training, 500)] {
        assert_eq!(of_peer(&Work::Op(other)), Ok(()));
    }
    // Every library draws other random numbers.
    let dropout = Work::Op(Op {
        dropout: 0.1,
        ..Op::new(Pass::Forward, 1000)
    });
    let case = Case::new("dropout", dropout.clone());
    assert_eq!(agree(&case, &dropout, &results(1.0), &results(2.0)), Ok(()));
}
