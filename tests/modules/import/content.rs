//! Files that hold something other than the module: each has its sentence, and the module stays as it was.

use std::fmt::Debug;

use burn::tensor::DType;
use burn_attn::{
    MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput, ProjectionBias,
    SelfAttentionConfig,
};
use burn_attn_models::import::{Import, ImportError};
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
fn refused(file: &str, prefix: &str, expected: &ImportError, sentence: &str) {
    from_both_files(file, |mut weights, device| {
        let mut module = filled(config().init(device), 1);
        let before = output(&module);
        let error = weights.load(prefix, &mut module).unwrap_err();
        assert_eq!(&error, expected);
        assert_eq!(error.to_string(), sentence);
        assert_same(&output(&module), &before);
    });
}

/// Loads into a module of another kind.
#[track_caller]
fn refused_by<M: Import + Clone + Debug>(module: M, file: &str, prefix: &str, sentence: &str) {
    from_both_files(file, |mut weights, _| {
        let error = weights.load(prefix, &mut module.clone()).unwrap_err();
        assert_eq!(error.to_string(), sentence);
    });
}

#[test]
fn a_tensor_is_missing() {
    let expected = ImportError::Missing {
        name: "missing.out_proj.bias".into(),
        shape: vec![12],
    };
    refused(
        "bad",
        "missing",
        &expected,
        "tensor missing.out_proj.bias of shape [12], which the module needs, is missing",
    );
}

#[test]
fn a_tensor_too_many() {
    let expected = ImportError::Unexpected {
        names: vec!["extra.relative_bias".into()],
    };
    refused(
        "bad",
        "extra",
        &expected,
        "the module has no parameter for extra.relative_bias",
    );
}

#[test]
fn a_tensor_of_another_shape() {
    let expected = ImportError::Shape {
        name: "shape.in_proj_weight".into(),
        found: vec![35, 12],
        expected: vec![36, 12],
    };
    refused(
        "bad",
        "shape",
        &expected,
        "tensor shape.in_proj_weight has shape [35, 12], but the module needs [36, 12]",
    );
}

#[test]
fn integers() {
    let expected = ImportError::DType {
        name: "dtype.in_proj_bias".into(),
        found: "I64".into(),
        expected: DType::F32,
    };
    refused(
        "bad",
        "dtype",
        &expected,
        "tensor dtype.in_proj_bias holds I64, which cannot become a parameter of F32",
    );
}

#[test]
fn an_appended_key_and_value() {
    let reason = "add_bias_kv=True appends a learned key and value to every sequence, which no module here does";
    let expected = ImportError::Unsupported {
        name: "bias_kv.bias_k".into(),
        reason: reason.into(),
    };
    let sentence = format!("bias_kv.bias_k: {reason}");
    refused("bad", "bias_kv", &expected, &sentence);
}

#[test]
fn another_prefix() {
    let expected = ImportError::Prefix {
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
    let expected = ImportError::Prefix {
        // No prefix of "packed", though it begins like it.
        prefix: "pack".into(),
        found: found.map(String::from).to_vec(),
    };
    refused(
        "attention",
        "pack",
        &expected,
        "no tensor is below \"pack\", only below double, half, no_bias, one_memory, packed and 2 more",
    );
}

#[test]
fn the_bias_of_one_side_only() {
    let without = config().with_bias(ProjectionBias::none());
    refused_by(
        without.init(&devices::any()),
        "attention",
        "packed",
        "the module has no parameter for packed.in_proj_bias, packed.out_proj.bias",
    );
    refused_by(
        config().init(&devices::any()),
        "attention",
        "no_bias",
        "tensor no_bias.in_proj_bias of shape [36], which the module needs, is missing",
    );
    let some = ProjectionBias::all().with_key(false);
    refused_by(
        config().with_bias(some).init(&devices::any()),
        "attention",
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
        "attention",
        "packed",
        "tensor packed.in_proj_weight has shape [36, 12], but the module needs [20, 12]",
    );
    refused_by(
        SelfAttentionConfig::new(12, 3).init(&device),
        "attention",
        "separate",
        "tensor separate.k_proj_weight has shape [12, 5], but the module needs [12, 12]",
    );
    refused_by(
        config().with_d_key_in(5).init(&device),
        "attention",
        "packed",
        "tensor packed.q_proj_weight of shape [12, 12], which the module needs, is missing",
    );
}

#[test]
fn parameters_that_pytorch_has_not() {
    refused_by(
        config().with_sinks(true).init(&devices::any()),
        "attention",
        "packed",
        "packed.heads: the module has sinks, which the source has only if it was made with burn-nn's quiet_softmax or PyTorch's \
         add_zero_attn; say that it was with Checkpoint::sinks_at_zero(true), or load into a module without sinks",
    );
}
