//! Folders that cannot become a model, and the one thing that is wrong with them.

use std::{fs, path::Path};

use burn_attn_models::{
    bert::Bert,
    detr,
    language_model::LanguageModel,
    pretrained::{self, PretrainedError},
    segformer, vit, wav2vec2, whisper,
};
use burn_attn_tests::devices;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ACTIVATIONS, change_json, folder, gpt_neox, llama};

pub(super) type Fields = serde_json::Map<String, Value>;

/// A copy of a model's folder whose configuration was changed.
pub(super) fn copied(model: &str, change: impl FnOnce(&mut Fields)) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(folder(model).join(file), copy.path().join(file)).expect("copied");
    }
    change_json(&copy.path().join("config.json"), |config| {
        change(config.as_object_mut().expect("an object"));
    });
    copy
}

/// What an error says, with `config.json` in place of the path of this file in a folder.
pub(super) fn shown(error: &PretrainedError, folder: &Path) -> String {
    let path = folder.join("config.json").display().to_string();
    error.to_string().replace(&path, "config.json")
}

fn changed(change: impl FnOnce(&mut Fields)) -> Result<Bert, String> {
    from(copied("bert", change).path())
}

fn from(folder: &Path) -> Result<Bert, String> {
    let loaded = Bert::from_pretrained(folder, &devices::any());
    loaded.map_err(|error| shown(&error, folder))
}

#[track_caller]
fn assert_refused(field: &str, value: Value, expected: &str) {
    let error = changed(|config| drop(config.insert(field.into(), value)));
    let expected = format!("config.json: {expected}");
    assert_eq!(error.expect_err("it is refused"), expected);
}

/// So that nothing is downloaded for nothing.
#[test]
fn configurations_are_validated_before_weights_are_looked_for() {
    let load = |model: &str, from: &Path| match model {
        "vit" => vit::from_pretrained(from, &devices::any()).map(drop),
        "detr" => detr::from_pretrained(from, &devices::any()).map(drop),
        "segformer" => segformer::from_pretrained(from, &devices::any()).map(drop),
        "wav2vec2" => wav2vec2::from_pretrained(from, &devices::any()).map(drop),
        _ => whisper::from_pretrained(from, &devices::any()).map(drop),
    };
    for (model, field, value, expected) in [
        ("vit", "num_attention_heads", json!(5), "VitConfig: d_model"),
        ("detr", "d_model", json!(10), "DetrConfig: d_model"),
        (
            "segformer",
            "hidden_dropout_prob",
            json!(1.5),
            "SegformerConfig: dropout",
        ),
        (
            "wav2vec2",
            "num_attention_heads",
            json!(5),
            "Wav2Vec2Config: d_model",
        ),
        ("whisper", "num_mel_bins", json!(0), "WhisperConfig: n_mels"),
    ] {
        let copy = copied(model, |config| drop(config.insert(field.into(), value)));
        fs::remove_file(copy.path().join("model.safetensors")).expect("removed");
        let error = load(model, copy.path())
            .expect_err("it is refused")
            .to_string();
        assert!(error.contains(expected), "{model}: {error}");
    }
}

#[test]
fn one_sentence_names_the_field() {
    assert!(changed(|_| {}).is_ok());
    for (field, value, supported) in [
        (
            "position_embedding_type",
            json!("relative_key"),
            "\"absolute\"",
        ),
        ("hidden_act", json!("mish"), ACTIVATIONS),
        ("hidden_size", json!(-12), "a whole number"),
        ("model_type", json!("roberta"), "bert, albert"),
        // Fewer or more than anybody has.
        ("num_hidden_layers", json!(0), "1 to 10000 layers"),
        ("num_hidden_layers", json!(10_001), "1 to 10000 layers"),
        (
            "num_hidden_layers",
            json!(1u64 << 60),
            "less than 2147483648",
        ),
    ] {
        let expected = format!("{field} is {value}, but BERT supports {supported}");
        assert_refused(field, value, &expected);
    }
    assert_refused(
        "embedding_size",
        json!(128),
        "BERT does not know embedding_size",
    );
    assert_refused(
        "num_attention_heads",
        json!(5),
        "BertConfig: d_model 12 is not divisible by n_heads 5",
    );
    let error = changed(|config| drop(config.remove("hidden_size")));
    assert_eq!(
        error.expect_err("it is refused"),
        "config.json has no field hidden_size, which BERT needs"
    );
}

#[test]
fn weights_of_another_size() {
    let error = changed(|config| drop(config.insert("intermediate_size".into(), json!(19))));
    let error = error.expect_err("it is refused");
    assert!(
        error.contains("encoder.layer.0.intermediate.dense.weight"),
        "{error}"
    );
}

#[test]
fn a_folder_of_nothing() {
    let empty = tempfile::tempdir().expect("a folder");
    let error = from(empty.path()).expect_err("it is refused");
    assert!(
        error.starts_with("config.json cannot be read as the configuration of a model: "),
        "{error}"
    );
    fs::write(empty.path().join("config.json"), "[1, 2]").expect("written");
    assert_eq!(
        from(empty.path()).expect_err("it is refused"),
        "config.json cannot be read as the configuration of a model: it is not a JSON object"
    );
    let path = empty.path().join("config.json");
    let file = fs::File::create(&path).expect("a file");
    file.set_len((1 << 24) + 1).expect("a longer file");
    assert_eq!(
        from(empty.path()).expect_err("it is refused"),
        "config.json cannot be read as the configuration of a model: it has 16777217 bytes, and at most 16777216 are read"
    );
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("a folder");
    assert_eq!(
        from(empty.path()).expect_err("it is refused"),
        "config.json cannot be read as the configuration of a model: it is not a regular file"
    );
}

/// What a clone of a repository has in the place of its large files.
#[test]
fn a_pointer_of_git_lfs_is_named() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 90868376\n";
    let ends = ": it is a pointer of Git LFS, not the file: git lfs pull gets it";
    for file in [
        "config.json",
        "model.safetensors",
        "model.safetensors.index.json",
        "pytorch_model.bin",
    ] {
        let copy = copied("bert", |_| {});
        if file != "config.json" {
            fs::remove_file(copy.path().join("model.safetensors")).expect("removed");
        }
        fs::write(copy.path().join(file), pointer).expect("written");
        let error = from(copy.path()).expect_err("it is refused");
        assert!(error.contains(file) && error.ends_with(ends), "{error}");
    }
    let copy = copied("bert", |_| {});
    let [gguf, tokenizer] = ["model.gguf", "tokenizer.json"].map(|file| copy.path().join(file));
    for path in [&gguf, &tokenizer] {
        fs::write(path, pointer).expect("written");
    }
    let error = from(&gguf).expect_err("it is refused");
    assert!(error.ends_with(ends), "{error}");
    let error = pretrained::tokenizer(copy.path()).expect_err("it is refused");
    assert!(error.to_string().ends_with(ends), "{error}");
}

#[test]
fn relatives_of_llama_that_are_not_supported() {
    let refused = |family: &'static str, field: &str, value: Value| {
        let error = llama::model(family).set(field, value);
        error.expect_err("it is refused")
    };
    let rope = json!({ "rope_type": "dynamic", "rope_theta": 500.0, "factor": 4.0 });
    llama::model("llama").assert_refused(
        "rope_parameters",
        rope,
        r#"config.json: rope_type is "dynamic", but the Llama family supports default, linear, llama3, yarn"#,
    );
    llama::model("llama").assert_unsupported(
        llama::FAMILY,
        [
            (
                "model_type",
                json!("llama4_text"),
                "llama, mistral, qwen2, qwen3, gemma2, gemma3_text, olmo2, mixtral, qwen3_moe, gpt_oss",
            ),
            // It would be a table of many gigabytes.
            ("max_position_embeddings", json!(16_777_217), "at most 16777216 positions"),
        ],
    );
    llama::model("gemma2").assert_unsupported(
        llama::FAMILY,
        [(
            "layer_types",
            json!(["full_attention"]),
            "as many types as num_hidden_layers, 2",
        )],
    );
    let error = refused("llama", "max_position_embeddings", json!(16_777_216));
    let begins = "config.json describes 16777216 positions, whose tables would have 100663296 numbers, more than the ";
    assert!(error.starts_with(begins), "{error}");
    // Layers with a window and layers without have a table each; the rest of a head has none.
    let error = refused("gemma3", "max_position_embeddings", json!(2_000_000));
    let begins = "config.json describes 2000000 positions, whose tables would have 24000000 numbers, more than the ";
    assert!(error.starts_with(begins), "{error}");
    let half = gpt_neox::parallel().set("max_position_embeddings", json!(1 << 22));
    assert!(half.is_ok());
    let error = refused("llama", "head_dim", json!(2_000_000_000));
    let begins = "config.json describes states or heads of width 6000000000, but no tensor of the weights is wider than ";
    assert!(error.starts_with(begins), "{error}");
    // Gate and up alternate: each pair would be noted before any tensor is seen.
    let error = refused("gpt_oss", "intermediate_size", json!(65_536));
    let ends = "131072 outputs are more than 65535 groups of [1, 1]";
    assert!(error.ends_with(ends), "{error}");
    for (family, field) in [
        ("mistral", "sliding_window"),
        ("gemma2", "final_logit_softcapping"),
    ] {
        llama::model(family).assert_needed(llama::FAMILY, field);
    }
    llama::model("qwen3").assert_refused(
        "num_experts",
        json!(4),
        "config.json: the Llama family does not know num_experts",
    );
}

/// Their models are of other types.
#[test]
fn models_with_other_mixers_have_readers_of_their_own() {
    for name in ["deepseek_v2", "qwen3_next"] {
        let folder = folder(name);
        let error = LanguageModel::from_pretrained(&folder, &devices::any());
        let path = folder.join("config.json");
        assert_eq!(
            error.expect_err("it is refused").to_string(),
            format!(
                "{}: model_type is \"{name}\", but LanguageModel supports models of self-attention alone; {name}::from_pretrained \
                 loads this one",
                path.display()
            )
        );
    }
}
