//! Random sizes, masks and options.

use proptest::prelude::*;

use crate::{
    random::Choices,
    run::{How, Layout, PORTABLE, USUAL},
    tolerance::assert_near,
};

/// Whether every call was checked, which extreme options may prevent.
fn check(choices: Choices) -> bool {
    let strided = How {
        layout: Layout::Strided,
        ..USUAL
    };
    let case = choices.case::<f32>(150);
    let oracle = case.oracle();
    let mut checked = true;
    for how in [USUAL, PORTABLE, strided] {
        checked &= assert_near::<f64>(&case, &oracle, how);
        checked &= assert_near::<f32>(&case, &oracle, how);
    }
    if choices.extremes > 0 {
        let case = choices.case::<f64>(150);
        checked &= assert_near::<f64>(&case, &case.oracle(), USUAL);
    }
    checked
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_kernels_agree_with_the_oracle(sizes: [u8; 7], options: u32, seed: u16) {
        let checked = check(Choices { sizes, options, seed, extremes: 0 });
        prop_assert!(checked);
    }

    #[test]
    fn the_kernels_agree_with_extreme_options(sizes: [u8; 7], options: u32, seed: u16, extremes: u8) {
        // Sinks, a bias and a scale.
        let options = options | 1 << 21 | 1 << 12 | 1 << 23;
        let checked = check(Choices { sizes, options, seed, extremes });
        prop_assert!(checked || extremes > 0);
        prop_assume!(checked);
    }
}

#[test]
fn a_logsumexp_is_as_near_as_its_terms() {
    // The logsumexp is 0.084 here, and its terms are about 1.
    let choices = Choices {
        sizes: [193, 36, 159, 6, 4, 26, 236],
        options: 4_203_941_699,
        seed: 7939,
        extremes: 0,
    };
    assert!(check(choices));
}

/// Calls that `tests/op/random_calls.rs` found.
#[test]
fn scores_and_slopes_below_the_range_of_a_softcap_are_near() {
    // The ratio of a score to its softcap is 2e-348.
    let far_below = Choices {
        sizes: [2, 160, 121, 11, 2, 134, 228],
        options: 1_002_637_211,
        seed: 36032,
        extremes: 108,
    };
    // The derivative of a saturated softcap is below the smallest normal number.
    let saturated = Choices {
        sizes: [1, 176, 96, 8, 2, 32, 37],
        options: 518_038_072,
        seed: 20640,
        extremes: 180,
    };
    // The product of a small derivative and a key is below the smallest normal number, and a large scale comes after it.
    let product = Choices {
        sizes: [2, 8, 42, 8, 1, 234, 252],
        options: 3_505_696_808,
        seed: 45005,
        extremes: 212,
    };
    for choices in [far_below, saturated, product] {
        let case = choices.case::<f64>(12);
        assert!(
            assert_near::<f64>(&case, &case.oracle(), USUAL),
            "{}",
            case.name
        );
    }
}
