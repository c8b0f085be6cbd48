//! The kernels against the oracle, on sizes, masks and options made from arbitrary bytes.
//!
//! The case, its runs and the tolerance are those of the tests.

#![no_main]

use burn_attn_kernels_cpu::tiled::Instructions;
use libfuzzer_sys::fuzz_target;

#[path = "../../tests/kernels/allowed.rs"]
mod allowed;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/kernels/case.rs"]
mod case;
#[path = "../../tests/kernels/number.rs"]
mod number;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/kernels/options.rs"]
mod options;
#[path = "../../tests/kernels/plain.rs"]
mod plain;
#[path = "../../tests/kernels/random.rs"]
mod random;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/kernels/run.rs"]
mod run;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/kernels/tolerance.rs"]
mod tolerance;

use random::Choices;
use run::{How, Layout, USUAL};

#[derive(arbitrary::Arbitrary, Debug)]
struct Input {
    sizes: [u8; 7],
    options: u32,
    seed: u16,
    extremes: u8,
    portable: bool,
    strided: bool,
}

fuzz_target!(|input: Input| {
    let Input {
        sizes,
        options,
        seed,
        extremes,
        portable,
        strided,
    } = input;
    let choices = Choices {
        sizes,
        options,
        seed,
        extremes,
    };
    let how = How {
        instructions: if portable {
            Instructions::Portable
        } else {
            Instructions::Widest
        },
        layout: if strided {
            Layout::Strided
        } else {
            Layout::Contiguous
        },
        ..USUAL
    };
    let case = choices.case::<f32>(150);
    let oracle = case.oracle();
    let checked = tolerance::assert_near::<f64>(&case, &oracle, how)
        & tolerance::assert_near::<f32>(&case, &oracle, how);
    assert!(checked || extremes > 0, "{} is not checked", case.name);
    // Options of any size.
    if extremes > 0 {
        let case = choices.case::<f64>(150);
        // Whether it was checked or is out of range, the input is of use.
        let _ = tolerance::assert_near::<f64>(&case, &case.oracle(), how);
    }
});
