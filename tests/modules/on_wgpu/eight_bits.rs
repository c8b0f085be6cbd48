//! What 8 bits are on wgpu, whose shaders in WGSL have no 8-bit integers: weights are packed by fours, caches are refused.

use burn::{
    module::{Module, Quantizer},
    tensor::{
        DType, Device, Tensor,
        quantization::{Calibration, QuantScheme, QuantStore, QuantValue, ScaleDtype},
    },
};
use burn_attn::{CacheStorage, KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
use burn_attn_tests::{
    compare::{assert_close, error},
    devices,
    numbers::{filled, tensor},
    sentence,
};

/// A multiple of the numbers that are packed together.
const D_MODEL: usize = 32;
const BLOCK: u8 = 8;

fn config() -> SelfAttentionConfig {
    SelfAttentionConfig::new(D_MODEL, 4)
        .with_causal(true)
        .with_dropout(0.0)
}

#[test]
fn weights_in_8_bits_are_those_of_the_cpu() {
    let Some(wgpu) = devices::wgpu() else { return };
    let bytes = QuantScheme::default()
        .with_value(QuantValue::Q8S)
        .with_store(QuantStore::PackedU32(0));
    for (name, scheme) in [
        ("per tensor", bytes.per_tensor(ScaleDtype::F32)),
        ("per block", bytes.per_block([BLOCK], ScaleDtype::F32)),
    ] {
        let run = |device: &Device, packed: bool| {
            let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, device);
            let mut module = filled(config().init(device), 3);
            if packed {
                module = module.quantize_weights(&mut Quantizer::new(Calibration::MinMax, scheme));
            }
            module.forward(SelfAttentionInput::new(x)).into_data()
        };
        let expected = run(&devices::any(), true);
        assert_close(name, &run(&wgpu, true), &expected, 1e-6);
        let moved = error(&expected, &run(&devices::any(), false));
        assert!(moved > 1e-5, "{name}: not in 8 bits ({moved:.1e})");
    }
}

/// Where kernels are SPIR-V there are integers of 8 bits, in WGSL there are none.
#[test]
fn a_cache_in_8_bits_is_that_of_the_cpu_or_is_refused() {
    let Some(gpu) = devices::wgpu() else { return };
    let quantized = KvCacheConfig::new(5).with_storage(CacheStorage::Int8);
    if !gpu.supports_dtype(DType::I8) {
        let module = config().init(&gpu);
        assert_eq!(
            sentence(|| module.cache(2, &quantized)),
            format!("KvCache: storage Int8 needs 8-bit integers, which {gpu:?} does not have")
        );
        return;
    }
    let run = |device: &Device| {
        let module = filled(config().init(device), 3);
        let mut cache = module.cache(2, &quantized);
        let x: Tensor<3> = tensor([2, 5, D_MODEL], 1, device);
        module.forward_cached(x, &mut cache).into_data()
    };
    // A number halfway between two of 8 bits may be rounded to the other one.
    assert_close("a cache", &run(&gpu), &run(&devices::any()), 0.01);
}
