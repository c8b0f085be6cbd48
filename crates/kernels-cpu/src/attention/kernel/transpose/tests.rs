use super::*;

/// Row and column of every number, as one number.
const ROWS: [[f64; 4]; 8] = {
    let mut rows = [[0.0; 4]; 8];
    let mut index = 0;
    while index < 32 {
        rows[index / 4][index % 4] = (10 * (index / 4) + index % 4) as f64;
        index += 1;
    }
    rows
};

struct Eights;

impl pulp::WithSimd for Eights {
    type Output = ();

    fn with_simd<S: Simd>(self, simd: S) {
        let of_f64 = transpose_eights(simd, &ROWS);
        let of_f32 = transpose_eights(simd, &ROWS.map(|row| row.map(|x| x as f32)));
        for column in 0..4 {
            for row in 0..8 {
                assert_eq!(of_f64[column][row], ROWS[row][column]);
                assert_eq!(of_f32[column][row], ROWS[row][column] as f32);
            }
        }
    }
}

#[test]
fn eight_rows_in_vectors_of_every_width() {
    pulp::Arch::new().dispatch(Eights);
    pulp::Scalar.vectorize(Eights);
    // As wide as AVX-512.
    pulp::Scalar512b.vectorize(Eights);
}
