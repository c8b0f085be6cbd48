//! Published models in other dtypes than that of their device.

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{DType, Device, FloatDType, Int, Tensor},
};
use burn_attn_models::{
    bert::{Bert, BertInput},
    generate::{GenerateOptions, generate},
    language_model::LanguageModel,
    pretrained::{LoadOptions, PretrainedError},
    seq2seq::Seq2Seq,
    t5,
};
use burn_attn_tests::{compare::difference_to_largest, devices};

use super::folder;

/// The dtypes of a model's parameters, and what they may cost in precision.
const DTYPES: [(FloatDType, DType, f64); 3] = [
    (FloatDType::F32, DType::F32, 0.0),
    (FloatDType::F16, DType::F16, 0.02),
    (FloatDType::BF16, DType::BF16, 0.1),
];

/// Checks the dtype of every parameter.
fn assert_dtype<M: Module>(model: &M, dtype: DType) {
    struct Same(DType);

    impl ModuleVisitor for Same {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            assert_eq!(param.dtype(), self.0);
        }
    }

    model.visit(&mut Same(dtype));
}

/// Two rows of tokens.
fn tokens(device: &Device) -> Tensor<2, Int> {
    Tensor::from_data([[5, 7, 3, 2, 11], [1, 4, 6, 8, 9]], device)
}

pub(super) fn numbers(tensor: Tensor<3>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Compares what a model in `dtype` computes with what it computes in f32.
pub(super) fn assert_like(
    what: &str,
    actual: Tensor<3>,
    exact: &[f64],
    (dtype, tolerance): (DType, f64),
) {
    assert_eq!(actual.dtype(), dtype);
    let difference = difference_to_largest(&numbers(actual), exact);
    println!("{what} in {dtype:?}: {difference:.1e}");
    assert!(difference <= tolerance, "{what} in {dtype:?}: {difference}");
}

#[test]
fn language_models_in_half_precision() {
    let device = devices::any();
    // Not gpt_oss, in which a rounding sends a token to another expert.
    for name in ["gpt2", "gpt_neox", "llama", "gemma3", "qwen3_moe", "olmo2"] {
        let exact = LanguageModel::from_pretrained(folder(name), &device).expect("a model");
        let exact = numbers(exact.forward(tokens(&device)));
        for (dtype, expected, tolerance) in DTYPES {
            let options = LoadOptions::new(&device).dtype(dtype);
            let model = LanguageModel::from_pretrained(folder(name), options);
            let model = model.expect("a model");
            assert_dtype(&model, expected);
            let logits = model.forward(tokens(&device));
            assert_like(name, logits, &exact, (expected, tolerance));
            let options = GenerateOptions::new(3);
            let outputs = generate(&model, model.start(1), &[vec![5, 7]], &options);
            assert_eq!(outputs.expect("tokens")[0].tokens.len(), 3);
        }
    }
}

#[test]
fn encoders_in_half_precision() {
    let device = devices::any();
    let exact = Bert::from_pretrained(folder("bert"), &device).expect("a model");
    let input = || BertInput::new(tokens(&device));
    let exact = numbers(exact.forward(input()));
    let t5 = t5::from_pretrained(folder("t5"), &device).expect("a model");
    let logits = |t5: &Seq2Seq| t5.forward(tokens(&device), &[5, 4], tokens(&device));
    let exact_logits = numbers(logits(&t5));
    for (dtype, expected, tolerance) in DTYPES {
        let options = LoadOptions::new(&device).dtype(dtype);
        let bert = Bert::from_pretrained(folder("bert"), options.clone()).expect("a model");
        assert_dtype(&bert, expected);
        assert_like("BERT", bert.forward(input()), &exact, (expected, tolerance));
        let t5 = t5::from_pretrained(folder("t5"), options).expect("a model");
        assert_dtype(&t5, expected);
        let logits = logits(&t5);
        if dtype == FloatDType::BF16 {
            // Too coarse for the scores of this small T5, which are not scaled: only that it computes.
            assert!(numbers(logits).iter().all(|logit| logit.is_finite()));
            continue;
        }
        assert_like("T5", logits, &exact_logits, (expected, tolerance));
    }
}

#[test]
fn a_dtype_that_no_parameter_has_is_refused() {
    let options = LoadOptions::new(&devices::any()).dtype(FloatDType::Flex32);
    let error = LanguageModel::from_pretrained(folder("gpt2"), options).unwrap_err();
    assert!(matches!(error, PretrainedError::DType { .. }), "{error:?}");
    assert!(
        error.to_string().ends_with(" does not compute in Flex32"),
        "{error}"
    );
}
