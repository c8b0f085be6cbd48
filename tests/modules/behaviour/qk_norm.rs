//! Normalised queries and keys, by hand and in half precision.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::{
    MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput, ProjectionBias,
    QkNormConfig,
};
use burn_attn_tests::{compare::numbers, devices, parameters};

/// One head of width 2 whose queries, keys and values are what comes in.
fn bare(norm: QkNormConfig, dtype: DType, device: &Device) -> MultiHeadAttention {
    let config = MultiHeadAttentionConfig::new(2, 1)
        .with_bias(ProjectionBias::none())
        .with_qk_norm(norm);
    let module = parameters::replace(config.init(device), |path, _| match path {
        "heads.qk_norm.factor" => vec![3.0],
        _ => vec![1.0, 0.0, 0.0, 1.0],
    });
    parameters::in_dtype(module, dtype)
}

/// The weights of some queries on some keys.
fn weights(
    norm: QkNormConfig,
    queries: &[[f32; 2]],
    keys: &[[f32; 2]],
    dtype: DType,
    device: &Device,
) -> Vec<f32> {
    let rows = |rows: &[[f32; 2]]| {
        let data: Vec<f32> = rows.concat();
        let data = burn::tensor::TensorData::new(data, [1, rows.len(), 2]);
        Tensor::<3>::from_data(data, device).cast(dtype)
    };
    let input = MultiHeadAttentionInput::new(rows(queries), rows(keys), rows(keys));
    let output = bare(norm, dtype, device).forward_with_weights(input);
    assert_eq!(output.states.dtype(), dtype);
    assert!(numbers(&output.states).iter().all(|x| x.is_finite()));
    numbers(&output.weights)
}

/// Flex alone computes in half precision.
fn dtypes() -> Vec<(Device, DType, f32)> {
    let mut dtypes = Vec::new();
    for (_, device) in devices::cpu() {
        dtypes.push((device.clone(), DType::F32, 1e-6));
        dtypes.push((device, DType::F64, 1e-6));
    }
    #[cfg(feature = "flex")]
    for (dtype, tolerance) in [(DType::F16, 1e-3), (DType::BF16, 1e-2)] {
        dtypes.push((Device::flex(), dtype, tolerance));
    }
    dtypes
}

#[test]
fn cosines_are_those_of_any_length() {
    for (device, dtype, tolerance) in dtypes() {
        // A vector of length 500: its square is beyond f16. So are (0.6, 0.8) and (-0.8, 0.6), orthogonal.
        let queries = [[300.0, 400.0], [0.0, 0.0], [-400.0, 300.0]];
        let keys = [[0.75, 1.0], [300.0, 400.0], [-4.0, 3.0], [0.0, 0.0]];
        let found = weights(QkNormConfig::l2(), &queries, &keys, dtype, &device);
        // Cosines times the factor 3; a row of zeros is orthogonal to all.
        let parallel = 3.0f32.exp();
        let expected = [
            [parallel, parallel, 1.0, 1.0],
            [1.0; 4],
            [1.0, 1.0, parallel, 1.0],
        ];
        for (found, expected) in found.chunks(4).zip(expected) {
            let sum: f32 = expected.iter().sum();
            for (found, expected) in found.iter().zip(expected) {
                let error = (found - expected / sum).abs();
                assert!(error <= tolerance, "{dtype:?}: {found}, {}", expected / sum);
            }
        }
    }
}

#[test]
fn a_bound_whose_square_is_no_number_still_bounds() {
    for (device, dtype, _) in dtypes() {
        let norm = QkNormConfig::L2 {
            factor: 10.0,
            epsilon: 1e-30,
        };
        let found = weights(
            norm,
            &[[0.0, 0.0]],
            &[[0.0, 0.0], [1.0, 0.0]],
            dtype,
            &device,
        );
        assert_eq!(found, [0.5, 0.5], "{dtype:?}");
    }
}

#[test]
fn parameters_have_plain_names() {
    let device = devices::any();
    let names = |norm: QkNormConfig| -> Vec<String> {
        let config = MultiHeadAttentionConfig::new(15, 3).with_qk_norm(norm);
        let parameters = parameters::values(&config.init(&device).heads);
        parameters.into_keys().collect()
    };
    assert_eq!(
        names(QkNormConfig::rms()),
        ["qk_norm.key.gamma", "qk_norm.query.gamma"]
    );
    assert_eq!(
        names(QkNormConfig::rms_across_heads()),
        ["qk_norm.key.gamma", "qk_norm.query.gamma"]
    );
    assert_eq!(names(QkNormConfig::l2()), ["qk_norm.factor"]);
}
