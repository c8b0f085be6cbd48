use super::*;

const PROBLEM: Problem = Problem {
    batch: 2,
    heads_q: 3,
    heads_kv: 1,
    len_q: 5,
    len_kv: 7,
    dim_qk: 1,
    dim_v: 1,
};

#[test]
fn all_sixteen_shapes_repeat_along_their_ones() {
    let full = [2, 3, 5, 7];
    for pattern in 0..16 {
        let shape: [usize; 4] = core::array::from_fn(|axis| {
            if pattern >> axis & 1 == 1 {
                1
            } else {
                full[axis]
            }
        });
        let data: Vec<usize> = (0..shape.iter().product()).collect();
        let operand = Broadcast::new(&data, shape).unwrap();
        assert_eq!(operand.validate(&PROBLEM), Ok(()));
        // Walk the full tensor; the expected index uses remainders, where `get` uses strides of 0.
        let strides = [
            shape[1] * shape[2] * shape[3],
            shape[2] * shape[3],
            shape[3],
            1,
        ];
        for flat in 0..full.iter().product() {
            let at = [flat / 105, flat / 35 % 3, flat / 7 % 5, flat % 7];
            let expected: usize = (0..4)
                .map(|axis| at[axis] % shape[axis] * strides[axis])
                .sum();
            assert_eq!(
                operand.get(at[0], at[1], at[2], at[3]),
                expected,
                "{shape:?} {at:?}"
            );
        }
    }
}

#[test]
fn errors_name_the_offending_values() {
    assert_eq!(
        Broadcast::new(&[0.0; 6], [1, 1, 1, 7])
            .unwrap_err()
            .to_string(),
        "a broadcast operand of shape [1, 1, 1, 7] needs 7 elements, but has 6"
    );
    let swapped = Broadcast::new(&[0.0; 35], [1, 1, 7, 5]).unwrap();
    assert_eq!(
        swapped.validate(&PROBLEM).unwrap_err().to_string(),
        "shape [1, 1, 7, 5] does not broadcast to [batch, heads_q, len_q, len_kv] = [2, 3, 5, 7]"
    );
}
