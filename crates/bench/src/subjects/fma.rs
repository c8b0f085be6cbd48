//! The most f32 multiply-adds that the machine can do: the peak of which rates are shares.

use std::any;
use std::hint::black_box;
use std::thread;

use pulp::{Arch, Simd, WithSimd};

use super::subject::{Results, Subject, calls};
use crate::work::FMA_OPERATIONS;

/// Sums that do not wait for each other: more than the cycles of a multiply-add times its units, which may be 4 cycles and
/// 4 units, and fewer than the registers, of which factor and term need two.
const CHAINS_OF_16_REGISTERS: usize = 12;
const CHAINS_OF_32_REGISTERS: usize = 24;

/// So many threads, all busy at once with nothing but multiply-adds in registers.
pub fn build(threads: usize) -> Box<dyn Subject> {
    let busy = move || {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| Arch::new().dispatch(Chains));
            }
        });
    };
    calls(busy, |()| Results::new())
}

/// [`FMA_OPERATIONS`] operations of one thread.
struct Chains;

impl WithSimd for Chains {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::REGISTER_COUNT {
            32.. => multiply_add::<S, CHAINS_OF_32_REGISTERS>(simd),
            _ => multiply_add::<S, CHAINS_OF_16_REGISTERS>(simd),
        }
    }
}

#[inline(always)]
fn multiply_add<S: Simd, const CHAINS: usize>(simd: S) {
    let rounds = FMA_OPERATIONS as usize / (2 * CHAINS * S::F32_LANES);
    let factor = simd.splat_f32s(black_box(0.5));
    let term = simd.splat_f32s(black_box(1.0));
    let mut sums = [term; CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = simd.mul_add_f32s(*sum, factor, term);
        }
    }
    let sum = sums
        .into_iter()
        .reduce(|a, b| simd.add_f32s(a, b))
        .expect("there are chains");
    black_box(simd.reduce_sum_f32s(sum));
}

/// The vector instructions that `pulp` chooses, for our kernels as well.
pub fn instructions() -> String {
    struct Name;
    impl WithSimd for Name {
        type Output = (&'static str, usize);

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> Self::Output {
            (any::type_name::<S>(), S::F32_LANES)
        }
    }
    let (name, lanes) = Arch::new().dispatch(Name);
    match name.rsplit("::").next().unwrap_or(name) {
        "V3" => "AVX2 with FMA".into(),
        "V4" => "AVX-512".into(),
        "Neon" => "NEON".into(),
        "Scalar" => "none".into(),
        other => format!("{other}, {lanes} lanes of f32"),
    }
}
