//! Numbers that are the same on every machine and backend, and the lock around those that are not.

use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};

use crate::parameters;

/// Holds the process-wide generators (Burn's and the stream of dropout seeds) for one test.
pub fn alone() -> MutexGuard<'static, ()> {
    static GENERATORS: Mutex<()> = Mutex::new(());
    // A failed test must fail alone.
    GENERATORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Uniform numbers in `[-1, 1)`: SplitMix64 of `seed` and the index.
pub fn uniform(seed: u64, count: usize) -> Vec<f32> {
    (0..count as u64)
        .map(|index| {
            let state = seed
                .wrapping_mul(0xd1b5_4a32_d192_ed03)
                .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            // 24 bits are exact in f32.
            let bits = ((mixed ^ (mixed >> 31)) >> 40) as f32;
            bits / (1u32 << 23) as f32 - 1.0
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
