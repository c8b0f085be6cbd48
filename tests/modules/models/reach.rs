//! How long a text may be: as long as the scaling of rotary positions reaches.

use burn::tensor::{Int, Tensor};
use burn_attn_models::language_model::LanguageModel;
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden::GoldenFile};
use serde_json::json;

use super::{
    TOLERANCE,
    refused::{Fields, copied, shown},
};

/// The model of `make_reach.py`, whose file has the length from before its scaling.
fn load(model: &str, change: impl FnOnce(&mut Fields)) -> Result<LanguageModel, String> {
    let copy = copied(model, |config| {
        let texts = GoldenFile::open("models/reach");
        let expected = texts.config()[model].as_object().expect("an object");
        config.extend(expected.clone());
        config.remove("rope_parameters");
        change(config);
    });
    let loaded = LanguageModel::from_pretrained(copy.path(), &devices::any());
    loaded.map_err(|error| shown(&error, copy.path()))
}

#[test]
fn linear_scaling_reaches_its_multiple_of_the_length() {
    let values = GoldenFile::open("models/reach");
    for (model, max_len) in [("llama", 4 * 5), ("gpt_neox", 4 * 5)] {
        let loaded = load(model, |_| {}).unwrap_or_else(|error| panic!("{model}: {error}"));
        assert_eq!(loaded.max_len(), max_len, "{model}");
        let tokens = Tensor::<2, Int>::from_data(values.data("tokens"), &devices::any());
        assert_eq!(tokens.dims(), [1, 19]);
        let logits = loaded.forward(tokens).into_data();
        let expected = values.data(&format!("{model}.logits"));
        assert_close_to_largest(model, &logits, &expected, TOLERANCE, 0.0);
    }
}

#[test]
fn a_reach_that_no_memory_has_is_refused() {
    for (model, field) in [("llama", "factor"), ("gpt_neox", "rope_scaling.factor")] {
        let refused = load(model, |config| {
            let scaling = json!({"type": "linear", "factor": 1e9});
            config.insert("rope_scaling".into(), scaling);
        });
        let refused = refused.expect_err("it is refused");
        let expected = format!("config.json: {field} is 1000000000.0, but ");
        assert!(refused.starts_with(&expected), "{refused}");
    }
}
