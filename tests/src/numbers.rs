//! Numbers that are the same on every machine and backend, and the lock around what tests could not share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};

use crate::parameters;

/// Holds for one test what a process has one of: Burn's generators, the stream of dropout seeds, the count of what is allocated.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A failed test must fail alone.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What SplitMix64 adds to its state for the next number.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of SplitMix64 in this state (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub fn mixed(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Uniform numbers in `[-1, 1)`: SplitMix64 of `seed` and the index.
pub fn uniform(seed: u64, count: usize) -> Vec<f32> {
    let first = seed.wrapping_mul(0xd1b5_4a32_d192_ed03);
    (0..count as u64)
        .map(|index| {
            let state = first.wrapping_add(index.wrapping_mul(STEP));
            // 24 bits are exact in f32.
            let bits = (mixed(state) >> 40) as f32;
            bits / (1u32 << 23) as f32 - 1.0
        })
        .collect()
}

/// Uniform numbers in `[-1, 1)` that f32 holds exactly, so that every precision but a half reads the same input.
///
/// Another generator than that of [`uniform`]: `make_attention.py` of `tests/golden/attention` draws the same numbers.
pub fn uniform_f64(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(STEP) | 1;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 44) as f64) / f64::from(1 << 19) - 1.0
        })
        .collect()
}

/// A tensor of uniform numbers in `[-1, 1)`.
pub fn tensor<const D: usize>(shape: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    let data = uniform(seed, shape.iter().product());
    Tensor::from_data(TensorData::new(data, shape), device)
}

/// `module` with parameters that follow from `seed` alone, of the size that training would give them.
pub fn filled<M: Module>(module: M, seed: u64) -> M {
    let mut parameter = seed.wrapping_mul(1000);
    parameters::replace(module, |path, shape| {
        parameter += 1;
        let numbers = uniform(parameter, shape.iter().product());
        // Norms scale around 1; everything else keeps the variance of what passes through.
        let (center, spread) = match path.ends_with("gamma") {
            true => (1.0, 0.1),
            false => (0.0, 1.0 / (shape[shape.len() - 1] as f32).sqrt()),
        };
        numbers
            .into_iter()
            .map(|number| center + spread * number)
            .collect()
    })
}
