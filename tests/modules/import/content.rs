//! Files that hold something other than the module: each has its sentence, and the module stays as it was.

use std::fmt::Debug;

use burn::tensor::DType;
use burn_attn::{
    MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput, ProjectionBias,
    SelfAttentionConfig,
};
use burn_attn_models::{
    import::Import,
    weights::{Mismatch, Missing, WeightsError, WrongDType, WrongShape},
};
use burn_attn_tests::{compare::assert_same, devices, numbers::filled};

use super::{from_both_files, value};

fn config() -> MultiHeadAttentionConfig {
    MultiHeadAttentionConfig::new(12, 3).with_dropout(0.0)
}

fn output(module: &MultiHeadAttention) -> burn::tensor::Tensor<3> {
    let x = value("x", &module.query.weight.device());
    module.forward(MultiHeadAttentionInput::self_attention(x))
}

/// Loads what must be refused from both files, and sees that the module is as it was.
#[track_caller]
fn refused(file: &str, prefix: &str, expected: &WeightsError, sentence: &str) {
    from_both_files(file, |mut weights, device| {
        let mut module = filled(config().init(device), 1);
        let before = output(&module);
        let error = weights.load(prefix, &mut module).unwrap_err();
        assert_eq!(&error, expected);
        assert_eq!(error.to_string(), sentence);
        assert_same(&output(&module), &before);
    });
}

/// What does not fit.
fn mismatch(set: impl FnOnce(&mut Mismatch)) -> WeightsError {
    let mut mismatch = Mismatch::default();
    set(&mut mismatch);
    WeightsError::Mismatch(Box::new(mismatch))
}

/// Loads into a module of another kind.
#[track_caller]
fn refused_by<M: Import + Clone + Debug>(module: M, prefix: &str, sentence: &str) {
    from_both_files("attention", |mut weights, _| {
        let error = weights.load(prefix, &mut module.clone()).unwrap_err();
        assert_eq!(error.to_string(), sentence);
    });
}

#[test]
fn a_tensor_is_missing() {
    let name = "missing.out_proj.bias".into();
    let shape = vec![12];
    let expected = mismatch(|wrong| wrong.missing = vec![Missing { name, shape }]);
    refused(
        "bad",
        "missing",
        &expected,
        "the weights do not fit the model: missing: missing.out_proj.bias [12]",
    );
}

#[test]
fn a_tensor_too_many() {
    let expected = mismatch(|wrong| wrong.unexpected = vec!["extra.relative_bias".into()]);
    refused(
        "bad",
        "extra",
        &expected,
        "the weights do not fit the model: unexpected: extra.relative_bias",
    );
}

#[test]
fn a_tensor_of_another_shape() {
    let wrong_shape = WrongShape {
        name: "shape.in_proj_weight".into(),
        found: vec![35, 12],
        needed: vec![36, 12],
    };
    let expected = mismatch(|wrong| wrong.shapes = vec![wrong_shape]);
    refused(
        "bad",
        "shape",
        &expected,
        "the weights do not fit the model: of another shape: shape.in_proj_weight is [35, 12] instead of [36, 12]",
    );
}

#[test]
fn integers() {
    let wrong_dtype = WrongDType {
        name: "dtype.in_proj_bias".into(),
        found: "I64".into(),
        parameter: "query.bias".into(),
        needed: DType::F32,
    };
    let expected = mismatch(|wrong| wrong.dtypes = vec![wrong_dtype]);
    refused(
        "bad",
        "dtype",
        &expected,
        "the weights do not fit the model: of another dtype: dtype.in_proj_bias holds I64, but query.bias F32",
    );
}

#[test]
fn an_appended_key_and_value() {
    let reason = "add_bias_kv=True appends a learned key and value to every sequence, which no module here does";
    let expected = WeightsError::Unsupported {
        name: "bias_kv.bias_k".into(),
        reason: reason.into(),
    };
    let sentence = format!("bias_kv.bias_k: {reason}");
    refused("bad", "bias_kv", &expected, &sentence);
}

#[test]
fn another_prefix() {
    let expected = WeightsError::Prefix {
        prefix: "packed.self_attn".into(),
        found: ["in_proj_bias", "in_proj_weight", "out_proj"]
            .map(|name| format!("packed.{name}"))
            .to_vec(),
    };
    refused(
        "attention",
        "packed.self_attn",
        &expected,
        "no tensor is below \"packed.self_attn\", only below packed.in_proj_bias, packed.in_proj_weight, \
         packed.out_proj",
    );

    let found = [
        "double",
        "half",
        "no_bias",
        "one_memory",
        "packed",
        "separate",
        "separate_no_bias",
    ];
    let expected = WeightsError::Prefix {
        // No prefix of "packed", though it begins like it.
        prefix: "pack".into(),
        found: found.map(String::from).to_vec(),
    };
    refused(
        "attention",
        "pack",
        &expected,
        "no tensor is below \"pack\", only below double, half, no_bias, one_memory, packed, … (7 in all)",
    );
}

#[test]
fn the_bias_of_one_side_only() {
    let without = config().with_bias(ProjectionBias::none());
    refused_by(
        without.init(&devices::any()),
        "packed",
        "the weights do not fit the model: unexpected: packed.in_proj_bias, packed.out_proj.bias",
    );
    refused_by(
        config().init(&devices::any()),
        "no_bias",
        "the weights do not fit the model: missing: no_bias.in_proj_bias [36], no_bias.out_proj.bias [12]",
    );
    let some = ProjectionBias::all().with_key(false);
    refused_by(
        config().with_bias(some).init(&devices::any()),
        "packed",
        "packed.in_proj_bias: PyTorch's projections all have a bias or none has, but the module's bias is query true, \
         key false, value true",
    );
}

#[test]
fn other_widths() {
    let device = devices::any();
    refused_by(
        config().with_n_kv_heads(1).init(&device),
        "packed",
        "the weights do not fit the model: of another shape: packed.in_proj_weight is [36, 12] instead of [20, 12], \
         packed.in_proj_bias is [36] instead of [20]",
    );
    refused_by(
        SelfAttentionConfig::new(12, 3).init(&device),
        "separate",
        "the weights do not fit the model: of another shape: separate.k_proj_weight is [12, 5] instead of [12, 12], \
         separate.v_proj_weight is [12, 7] instead of [12, 12]",
    );
    refused_by(
        config().with_d_key_in(5).init(&device),
        "packed",
        "the weights do not fit the model: missing: packed.q_proj_weight [12, 12], packed.k_proj_weight [12, 5], \
         packed.v_proj_weight [12, 12]; unexpected: packed.in_proj_weight",
    );
}
