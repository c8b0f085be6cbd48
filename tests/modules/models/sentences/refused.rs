//! Files of sentence encoders that would give other vectors, and texts that give none.

use std::fs;

use burn_attn_models::sentences::{Prompt, SentenceEncoder};
use burn_attn_tests::devices;
use serde_json::{Value, json};

use super::{
    super::{change_json, read_json},
    assembled,
};

/// The error of a model one of whose files is changed.
fn refused(name: &str, file: &str, change: impl FnOnce(&mut Value)) -> String {
    let (copy, _) = assembled(name);
    let path = copy.path().join(file);
    if !path.exists() {
        fs::write(&path, "{}").expect("written");
    }
    change_json(&path, change);
    let error = SentenceEncoder::from_pretrained(copy.path(), &devices::any());
    let error = error.expect_err("it is refused").to_string();
    error.replace(&format!("{}/", copy.path().display()), "")
}

#[test]
fn other_modules_are_refused_by_name() {
    let class = |number: usize, class: &'static str| {
        refused("labse", "modules.json", |modules| {
            modules[number]["type"] = json!(class);
        })
    };
    assert_eq!(
        class(2, "sentence_transformers.models.LSTM"),
        "modules.json: type of module 2 is \"sentence_transformers.models.LSTM\", but SentenceEncoder supports Dense or Normalize of \
         sentence_transformers behind a Pooling"
    );
    assert_eq!(
        class(0, "custom_st.Transformer"),
        "modules.json: type of module 0 is \"custom_st.Transformer\", but SentenceEncoder supports a Transformer of sentence_transformers"
    );
    let no_pooling = "SentenceEncoder supports a Pooling of sentence_transformers";
    let error = class(1, "sentence_transformers.models.WeightedLayerPooling");
    assert!(error.ends_with(no_pooling), "{error}");
    let error = refused("plain", "modules.json", |modules| {
        *modules = json!([{"type": "sentence_transformers.models.Transformer", "path": ""}]);
    });
    assert!(
        error.ends_with(no_pooling) && error.contains("is missing"),
        "{error}"
    );
    let outside = refused("labse", "modules.json", |modules| {
        modules[1]["path"] = json!("../1_Pooling");
    });
    assert_eq!(
        outside,
        "modules.json cannot be read as the modules of a sentence encoder: it is not a list of modules, each with its type and a path below the folder"
    );
}

#[test]
fn files_are_called_what_they_are() {
    let tokenizer = "the configuration of a tokenizer";
    let module = "the configuration of a module";
    for (file, what) in [
        ("config.json", "the configuration of a model"),
        ("tokenizer_config.json", tokenizer),
        ("sentence_bert_config.json", module),
        ("1_Pooling/config.json", module),
        (
            "config_sentence_transformers.json",
            "the configuration of a sentence encoder",
        ),
    ] {
        assert_eq!(
            refused("labse", file, |content| *content = json!([3])),
            format!("{file} cannot be read as {what}: it is not a JSON object")
        );
    }
}

#[test]
fn what_would_change_vectors_is_refused_by_name() {
    let pooling = "1_Pooling/config.json";
    let dense = "2_Dense/config.json";
    let transformer = "sentence_bert_config.json";
    let encoder = "config_sentence_transformers.json";
    for (name, file, field, value, supported) in [
        (
            "list",
            pooling,
            "pooling_mode",
            json!("first"),
            "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, or a list of them",
        ),
        ("list", pooling, "pooling_mode", json!([]), "cls, max, "),
        (
            "prompts",
            pooling,
            "include_prompt",
            json!(false),
            "true where there are prompts",
        ),
        (
            "labse",
            dense,
            "activation_function",
            json!("custom.Swish"),
            "torch.nn.modules.activation.Tanh, torch.nn",
        ),
        ("labse", dense, "use_residual", json!(true), "false"),
        (
            "labse",
            dense,
            "in_features",
            json!(13),
            "12 (the width so far)",
        ),
        (
            "labse",
            dense,
            "module_input_name",
            json!("token_embeddings"),
            "\"sentence_embedding\"",
        ),
        (
            "saved",
            "3_Normalize/config.json",
            "module_output_name",
            json!("token_embeddings"),
            "\"sentence_embedding\"",
        ),
        (
            "mean",
            transformer,
            "transformer_task",
            json!("fill-mask"),
            "\"feature-extraction\"",
        ),
        ("mean", transformer, "query_length", json!(7), "null"),
        (
            "mean",
            transformer,
            "model_args",
            json!({"layers": 1}),
            "{}",
        ),
        (
            "prompts",
            encoder,
            "default_prompt_name",
            json!("third"),
            "the name of a prompt",
        ),
        (
            "prompts",
            encoder,
            "prompts",
            json!(["a"]),
            "a text for each name",
        ),
        (
            "mean",
            encoder,
            "model_type",
            json!("SparseEncoder"),
            "\"SentenceTransformer\"",
        ),
        ("mean", encoder, "truncate_dim", json!(0), "1 or more"),
    ] {
        let expected = format!("{field} is {value}, but SentenceEncoder supports {supported}");
        let error = refused(name, file, |content| content[field] = value);
        assert!(error.contains(&expected), "{error}");
    }
    for (file, field, value, expected) in [
        (
            pooling,
            "pooling_mode_second",
            json!(true),
            "SentenceEncoder does not know pooling_mode_second",
        ),
        (
            pooling,
            "word_embedding_dimension",
            json!(13),
            "hidden_size is 12, but SentenceEncoder supports 13, as its Pooling says",
        ),
        (
            transformer,
            "tokenizer_args",
            json!({"strip": 1}),
            "SentenceEncoder does not know strip",
        ),
        (
            transformer,
            "max_seq_length",
            json!(2),
            "tokenizer.json cannot be read as a tokenizer: it puts 2 tokens around a text, and the model reads at most 2",
        ),
        (
            encoder,
            "layers",
            json!(1),
            "SentenceEncoder does not know layers",
        ),
    ] {
        let error = refused("mean", file, |content| content[field] = value);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_text_that_the_model_cannot_read_is_refused() {
    let (copy, _) = assembled("mean");
    change_json(&copy.path().join("tokenizer.json"), |tokenizer| {
        tokenizer["post_processor"] = json!(null);
        tokenizer["model"]["vocab"]["moon"] = json!(23);
    });
    let encoder = SentenceEncoder::from_pretrained(copy.path(), &devices::any());
    let encoder = encoder.expect("a model");
    let refused = |texts: &[&str]| {
        let error = encoder.encode(texts, Prompt::Text).expect_err("refused");
        error.to_string()
    };
    assert_eq!(refused(&["cat", " "]), "text 1 has no tokens");
    assert_eq!(
        refused(&["cat", "a moon"]),
        "text 1: the tokenizer makes the token 23, but the model knows 23"
    );
}

/// Whatever a field says, the model is refused in one line, or it gives vectors. Large sizes take no memory.
#[test]
fn odd_values_do_not_panic() {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(2_147_483_647),
        json!(1e30),
        json!(""),
        json!([["cls"], 1]),
        json!({"": -1}),
    ];
    for name in ["labse", "saved", "prompts"] {
        let (copy, files) = assembled(name);
        let is_ours = |file: &&String| {
            file.ends_with(".json") && !["config.json", "tokenizer.json"].contains(&file.as_str())
        };
        for file in files.iter().filter(is_ours) {
            let path = copy.path().join(file);
            let original = read_json(&path);
            let is_list = original.is_array();
            let of = if is_list { &original[1] } else { &original };
            for field in of.as_object().expect("fields").keys() {
                for value in &values {
                    let mut changed = original.clone();
                    let of = if is_list {
                        &mut changed[1]
                    } else {
                        &mut changed
                    };
                    of[field] = value.clone();
                    fs::write(&path, changed.to_string()).expect("written");
                    match SentenceEncoder::from_pretrained(copy.path(), &devices::any()) {
                        Ok(encoder) => {
                            let vectors = encoder.encode(&["a cat"], Prompt::Text);
                            assert_eq!(vectors.expect("vectors").dims(), [1, encoder.width()]);
                        }
                        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
                    }
                }
            }
            fs::write(&path, original.to_string()).expect("written");
        }
    }
}
