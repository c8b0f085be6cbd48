use super::*;

const PRIMES: Problem = Problem {
    batch: 2,
    heads_q: 15,
    heads_kv: 3,
    len_q: 7,
    len_kv: 11,
    dim_qk: 13,
    dim_v: 17,
};

#[test]
fn every_query_head_reads_the_head_of_its_group() {
    let heads: Vec<_> = (0..15).map(|head| PRIMES.kv_head(head)).collect();
    assert_eq!(heads, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
}

#[test]
fn buffers_have_the_documented_sizes() {
    assert_eq!(PRIMES.query_elements(), 2 * 15 * 7 * 13);
    assert_eq!(PRIMES.key_elements(), 2 * 3 * 11 * 13);
    assert_eq!(PRIMES.value_elements(), 2 * 3 * 11 * 17);
    assert_eq!(PRIMES.output_elements(), 2 * 15 * 7 * 17);
    assert_eq!(PRIMES.score_elements(), 2 * 15 * 7 * 11);
    assert_eq!(PRIMES.query_row(1, 14, 6) + 1, PRIMES.query_rows());
    assert_eq!(PRIMES.key_row(1, 2, 10) + 1, PRIMES.key_rows());
    assert_eq!(PRIMES.query_row(1, 2, 3), 15 * 7 + 2 * 7 + 3);
    assert_eq!(PRIMES.key_row(1, 2, 5), 3 * 11 + 2 * 11 + 5);
}

#[test]
fn empty_batches_and_lengths_are_legal() {
    let empty = Problem {
        batch: 0,
        len_q: 0,
        len_kv: 0,
        ..PRIMES
    };
    assert_eq!(empty.validate(), Ok(()));
}

#[test]
fn errors_name_the_offending_values() {
    let message = |set: fn(&mut Problem)| {
        let mut problem = PRIMES;
        set(&mut problem);
        problem.validate().unwrap_err().to_string()
    };
    assert_eq!(
        message(|problem| problem.heads_kv = 4),
        "heads_kv must divide heads_q, but heads_q is 15 and heads_kv is 4"
    );
    for (name, message) in [
        ("heads_q", message(|problem| problem.heads_q = 0)),
        ("heads_kv", message(|problem| problem.heads_kv = 0)),
        ("dim_qk", message(|problem| problem.dim_qk = 0)),
        ("dim_v", message(|problem| problem.dim_v = 0)),
    ] {
        assert_eq!(message, format!("{name} must be at least 1, but is 0"));
    }
}
