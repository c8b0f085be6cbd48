//! The blockwise body on Burn's plain CubeCL backend, where each operation is launched at once instead of recorded by fusion.

use std::sync::LazyLock;

use burn::{
    backend::tensor::{Device, FloatTensor},
    tensor::{self, TensorData, read_sync, wgpu::wgpu::Backend},
};
use burn_attn_kernels_cpu::{CausalAlignment, PositionMask};
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_flex::{Flex, FlexDevice};
use burn_wgpu::{WgpuDevice, WgpuSetup};

use crate::backend::{
    AttentionOps, AttentionScalars, Body, MaskInputs, OptionalFloat, OptionalInt, SavedAndGrads,
    ScoreInputs,
};

/// Output, logsumexp, and the gradients of query, key, value, dense bias, distance bias and sinks.
fn results<B: AttentionOps>(device: &Device<B>, softcap: f64) -> [Vec<f32>; 8] {
    let tensor = |seed: usize, shape: &[usize]| -> FloatTensor<B> {
        let numbers = (0..shape.iter().product()).map(|i: usize| ((7 * seed + i) as f32).sin());
        B::float_from_data(TensorData::new(numbers.collect(), shape.to_vec()), device)
    };
    let [batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v] = [2, 6, 3, 7, 11, 5, 13];
    let lengths = TensorData::from([11_i32, 8]);
    let inputs = ScoreInputs {
        query: tensor(1, &[batch, heads_q, len_q, dim_qk]),
        key: tensor(2, &[batch, heads_kv, len_kv, dim_qk]),
        bias: OptionalFloat::Present(tensor(3, &[1, heads_q, len_q, len_kv])),
        distance_bias: OptionalFloat::Present(tensor(4, &[heads_q, len_q + len_kv - 1])),
        sinks: OptionalFloat::Present(tensor(5, &[heads_q])),
        captured: OptionalFloat::Absent,
        score_function: None,
        mask: MaskInputs {
            key_lengths: OptionalInt::Present(B::int_from_data(lengths, device)),
            ..MaskInputs::default()
        },
        scalars: AttentionScalars {
            scale: 0.5,
            softcap: Some(softcap),
            by_position: PositionMask::causal(CausalAlignment::BottomRight),
            first_keys_are_causal: false,
            block_size: None,
            dropout: None,
            body: Body::Blockwise(Some(20)),
        },
    };
    let value = tensor(6, &[batch, heads_kv, len_kv, dim_v]);
    let (output, logsumexp) = <B as AttentionOps>::fused_attention(inputs.clone(), value.clone());
    let saved = SavedAndGrads {
        output: output.clone(),
        logsumexp: logsumexp.clone(),
        output_gradient: tensor(7, &[batch, heads_q, len_q, dim_v]),
        logsumexp_gradient: tensor(8, &[batch, heads_q, len_q]),
    };
    let gradients = B::fused_attention_backward(inputs, value, saved, [true; 7]);
    let Ok([query, key, value, bias, distance_bias, sinks]) = <[_; 6]>::try_from(gradients) else {
        panic!("every gradient is required");
    };
    // One by one: with Burn 0.22.1 on Mesa's driver, bytes that were read and are still held change while more is computed.
    [
        output,
        logsumexp,
        query,
        key,
        value,
        bias,
        distance_bias,
        sinks,
    ]
    .map(|tensor| {
        let data = read_sync(B::float_into_data(tensor)).expect("the device computes");
        data.iter::<f32>().collect()
    })
}

/// The adapter that wgpu finds, OpenGL excluded. Panics without an adapter unless `BURN_ATTN_ALLOW_NO_ADAPTER` is 1, as the suites
/// of the workspace do, whose code no package can hold.
pub(crate) fn found() -> Option<WgpuSetup> {
    // A process can ask only once.
    static FOUND: LazyLock<Option<WgpuSetup>> = LazyLock::new(|| {
        let found = tensor::Device::wgpu_options().init_with_setup();
        let setup = found.ok().map(|(_, setup)| setup);
        setup.filter(|setup| setup.backend != Backend::Gl)
    });
    let allowed =
        || std::env::var_os("BURN_ATTN_ALLOW_NO_ADAPTER").is_some_and(|value| value == "1");
    assert!(
        FOUND.is_some() || allowed(),
        "the test on wgpu needs a Vulkan, Metal or DirectX 12 adapter"
    );
    FOUND.clone()
}

/// Whether there is an adapter.
pub(crate) fn finds_adapter() -> bool {
    found().is_some()
}

#[test]
fn plain_cubecl_computes_what_flex_computes() {
    if !finds_adapter() {
        println!("skipped: no adapter");
        return;
    }
    for softcap in [3.0, 3e4, 1e7, 1e17] {
        let expected = results::<Flex>(&FlexDevice, softcap);
        let actual = results::<CubeBackend>(&CubeDevice::from(WgpuDevice::default()), softcap);
        for (index, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
            assert_eq!(expected.len(), actual.len());
            let largest = expected.iter().fold(1.0_f32, |max, x| max.max(x.abs()));
            assert!(expected.iter().any(|&x| x != 0.0), "result {index}");
            for (expected, actual) in expected.iter().zip(actual) {
                let error = (expected - actual).abs() / largest;
                assert!(
                    error <= 2e-6,
                    "result {index} with softcap {softcap:e} is off by {error:e}"
                );
            }
        }
    }
}
