//! What keeping keys and values in 8 bits costs in accuracy.

use std::f32::consts::TAU;

use burn::{
    nn::Linear,
    tensor::{Device, Tensor, TensorData},
};
use burn_attn::{
    CacheStorage, KvCacheConfig, MultiHeadAttention, MultiHeadAttentionConfig,
    MultiHeadAttentionInput, ProjectionBias, SelfAttentionInput,
};
use burn_attn_tests::{
    compare::{assert_close, error, numbers},
    devices,
    numbers::{filled, tensor, uniform},
    parameters,
};

use super::{D_MODEL, in_pieces, modules, small};

const HEADS: usize = 3;
const D_HEAD: usize = 64;
const WIDTH: usize = HEADS * D_HEAD;
const LEN: usize = 512;

/// Attention that leaves queries, keys, values and outputs as they come.
fn bare(device: &Device) -> MultiHeadAttention {
    let config = MultiHeadAttentionConfig::new(WIDTH, HEADS)
        .with_causal(true)
        .with_bias(ProjectionBias::none());
    parameters::replace(config.init(device), |_, _| {
        let mut identity = vec![0.0; WIDTH * WIDTH];
        for at in 0..WIDTH {
            identity[at * WIDTH + at] = 1.0;
        }
        identity
    })
}

/// Normal numbers; the first `outliers` channels of each head are 10 times as large.
fn normal(seed: u64, outliers: usize, device: &Device) -> Tensor<3> {
    let pairs = uniform(seed, 2 * LEN * WIDTH);
    let numbers = pairs.chunks_exact(2).enumerate().map(|(at, pair)| {
        // Box and Muller's, of numbers in (0, 1] and [-1, 1).
        let radius = (-2.0 * (1.0 - (pair[0] + 1.0) / 2.0).max(1e-7).ln()).sqrt();
        let factor = if at % D_HEAD < outliers { 10.0 } else { 1.0 };
        factor * radius * (TAU / 2.0 * pair[1]).cos()
    });
    let data = TensorData::new(numbers.collect::<Vec<f32>>(), [1, LEN, WIDTH]);
    Tensor::from_data(data, device)
}

/// The outputs of all heads and positions with a cache like this.
fn outputs(module: &MultiHeadAttention, outliers: usize, storage: CacheStorage) -> Vec<f32> {
    let device = module.query.weight.device();
    let input = MultiHeadAttentionInput::new(
        normal(1, 0, &device),
        normal(2, outliers, &device),
        normal(3, outliers, &device),
    );
    let config = KvCacheConfig::new(LEN).with_storage(storage);
    numbers(&module.forward_cached(input, &mut module.cache(1, &config)))
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|x| x * x).sum::<f32>().sqrt()
}

/// The length of the error of each head's output at each position, relative to that of the output: the mean and the largest.
fn relative_errors(actual: &[f32], exact: &[f32]) -> [f32; 2] {
    let outputs = actual.chunks_exact(D_HEAD).zip(exact.chunks_exact(D_HEAD));
    let errors: Vec<f32> = outputs
        .map(|(actual, exact)| {
            let off: Vec<f32> = actual.iter().zip(exact).map(|(a, b)| a - b).collect();
            length(&off) / length(exact)
        })
        .collect();
    let mean = errors.iter().sum::<f32>() / errors.len() as f32;
    [mean, errors.into_iter().fold(0.0, f32::max)]
}

#[test]
fn eight_bits_have_the_documented_error() {
    for (backend, device) in devices::cpu() {
        let module = bare(&device);
        for (what, outliers, documented) in [
            ("normal numbers", 0, [0.0080, 0.0148]),
            ("2 of 64 channels 10 times as large", 2, [0.0426, 0.2431]),
        ] {
            let exact = outputs(&module, outliers, CacheStorage::Float);
            let [mean, largest] =
                relative_errors(&outputs(&module, outliers, CacheStorage::Int8), &exact);
            println!("{backend}, {what}: mean {mean:.4}, largest {largest:.4}");
            for (measured, documented) in [mean, largest].into_iter().zip(documented) {
                assert!(
                    measured > 0.5 * documented && measured < 1.2 * documented,
                    "{backend}, {what}: {measured} is not the documented {documented}"
                );
            }
        }
    }
}

#[test]
fn eight_bits_are_nearly_exact() {
    for (backend, device) in devices::cpu() {
        let x = tensor([2, 23, D_MODEL], 1, &device);
        for (name, module) in modules(&device) {
            let whole = module.forward(SelfAttentionInput::new(x.clone()));
            let mut cache = module.cache(2, &small(23).with_storage(CacheStorage::Int8));
            let cached = in_pieces(&module, &mut cache, &x, &[7, 1, 1, 11, 3]);
            let error = error(&cached.into_data(), &whole.into_data());
            println!("{backend}, {name}: error {error:.1e}");
            // Each key and value is off by up to 1/254 of its row's largest number: visibly more than rounding.
            assert!(
                (1e-5..6e-3).contains(&error),
                "{backend}, {name}: {error:.1e}"
            );
        }
    }
}

/// Not even to the largest number of a row, by which its scale is measured.
#[test]
fn no_gradient_passes_through_eight_bits() {
    let device = devices::any().autodiff();
    let config = MultiHeadAttentionConfig::new(D_MODEL, 6).with_causal(true);
    let module = filled(config.init(&device), 1);
    let x = || tensor([2, 5, D_MODEL], 1, &device);
    let config = small(5).with_storage(CacheStorage::Int8);
    let input = MultiHeadAttentionInput::new(x(), x(), x());
    let output = module.forward_cached(input, &mut module.cache(2, &config));
    let gradients = output.powi_scalar(2).sum().backward();
    let of = |linear: &Linear| linear.weight.val().grad(&gradients);
    assert!(of(&module.query).is_some());
    for linear in [&module.key, &module.value] {
        let gradient = of(linear).map(|gradient| gradient.abs().max().into_scalar::<f32>());
        assert_eq!(gradient.unwrap_or(0.0), 0.0);
    }
}

#[test]
fn rows_of_zeros_are_kept_exactly() {
    for (_, device) in devices::cpu() {
        let module = bare(&device);
        let x = Tensor::<3>::zeros([1, 3, WIDTH], &device);
        let input = MultiHeadAttentionInput::new(x.clone(), x.clone(), x);
        let config = KvCacheConfig::new(3).with_storage(CacheStorage::Int8);
        let output = module.forward_cached(input, &mut module.cache(1, &config));
        assert_eq!(numbers(&output), [0.0; 3 * WIDTH]);
    }
}

#[test]
fn sequences_that_join_keep_their_codes() {
    let device = devices::any();
    let x = tensor([2, 9, D_MODEL], 1, &device);
    let config = small(40).with_storage(CacheStorage::Int8);
    let (_, module) = modules(&device).swap_remove(0);
    let row = |b: usize, len: usize| x.clone().narrow(0, b, 1).narrow(1, 0, len);
    let mut caches = [(0, 8), (1, 3)].map(|(b, len)| {
        let mut cache = module.cache(1, &config);
        in_pieces(&module, &mut cache, &row(b, len), &[len]);
        cache
    });
    let mut joined = caches[0].clone();
    joined.join(caches[1].clone());
    let next = x.clone().narrow(1, 8, 1);
    let output = in_pieces(&module, &mut joined, &next, &[1]);
    for (b, cache) in caches.iter_mut().enumerate() {
        let alone = in_pieces(&module, cache, &next.clone().narrow(0, b, 1), &[1]);
        let output = output.clone().narrow(0, b, 1);
        assert_close("8 bits", &output.into_data(), &alone.into_data(), 2e-6);
    }
}
