//! Random sizes, masks and options.

use proptest::prelude::*;

use crate::{
    random::Choices,
    run::{How, Layout, PORTABLE, USUAL},
    tolerance::assert_near,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_kernels_say_what_the_oracle_says(sizes: [u8; 7], options: u32, seed: u16) {
        let case = Choices { sizes, options, seed }.case(150);
        let oracle = case.oracle();
        let strided = How { layout: Layout::Strided, ..USUAL };
        for how in [USUAL, PORTABLE, strided] {
            assert_near::<f64>(&case, &oracle, how);
            assert_near::<f32>(&case, &oracle, how);
        }
    }
}
