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
