//! Folders that cannot become a model, and the one thing that is wrong with them.

use std::{fs, path::Path};

use burn_attn_models::{
    bert::Bert,
    detr, gpt_neox,
    language_model::LanguageModel,
    llama,
    pretrained::{self, PretrainedError},
    segformer, vit, wav2vec2, whisper,
};
use burn_attn_tests::devices;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::folder;

pub(super) type Fields = serde_json::Map<String, Value>;

/// A copy of a model's folder whose configuration was changed.
pub(super) fn copied(model: &str, change: impl FnOnce(&mut Fields)) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    let original = folder(model);
    fs::copy(
        original.join("model.safetensors"),
        copy.path().join("model.safetensors"),
    )
    .expect("copied");
    let text = fs::read_to_string(original.join("config.json")).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    change(config.as_object_mut().expect("an object"));
    fs::write(copy.path().join("config.json"), config.to_string()).expect("written");
    copy
}

fn changed(change: impl FnOnce(&mut Fields)) -> Result<Bert, String> {
    from(copied("bert", change).path())
}

fn from(folder: &Path) -> Result<Bert, String> {
    let loaded = Bert::from_pretrained(folder, &devices::any());
    let shown = folder.join("config.json").display().to_string();
    loaded.map_err(|error: PretrainedError| error.to_string().replace(&shown, "config.json"))
}

#[track_caller]
fn assert_refused(change: impl FnOnce(&mut Fields), expected: &str) {
    assert_eq!(changed(change).expect_err("it is refused"), expected);
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
    let set = |field: &'static str, value: Value| {
        move |config: &mut Fields| {
            config.insert(field.into(), value);
        }
    };
    assert_refused(
        set("position_embedding_type", json!("relative_key")),
        r#"config.json: position_embedding_type is "relative_key", but BERT supports "absolute""#,
    );
    assert_refused(
        set("hidden_act", json!("mish")),
        r#"config.json: hidden_act is "mish", but BERT supports gelu, gelu_python, gelu_new, gelu_fast, gelu_accurate, gelu_pytorch_tanh, gelu_python_tanh, quick_gelu, relu, relu2, silu, swish"#,
    );
    assert_refused(
        set("embedding_size", json!(128)),
        "config.json: BERT does not know embedding_size",
    );
    assert_refused(
        set("hidden_size", json!(-12)),
        "config.json: hidden_size is -12, but BERT supports a whole number",
    );
    assert_refused(
        set("num_attention_heads", json!(5)),
        "config.json: BertConfig: d_model 12 is not divisible by n_heads 5",
    );
    assert_refused(
        |config| {
            config.remove("hidden_size");
        },
        "config.json has no field hidden_size, which BERT needs",
    );
    assert_refused(
        set("model_type", json!("roberta")),
        r#"config.json: model_type is "roberta", but BERT supports bert, albert"#,
    );
}

#[test]
fn weights_of_another_size() {
    let error = changed(|config| {
        config.insert("intermediate_size".into(), json!(19));
    });
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
    let load = |family: &str, change: &dyn Fn(&mut Fields)| {
        let copy = copied(family, change);
        let loaded = llama::from_pretrained(copy.path(), &devices::any());
        let shown = copy.path().join("config.json").display().to_string();
        let error = loaded.expect_err("it is refused").to_string();
        error.replace(&shown, "config.json")
    };
    assert_eq!(
        load("llama", &|config| {
            let rope = json!({ "rope_type": "dynamic", "rope_theta": 500.0, "factor": 4.0 });
            config.insert("rope_parameters".into(), rope);
        }),
        r#"config.json: rope_type is "dynamic", but the Llama family supports default, linear, llama3, yarn"#
    );
    assert_eq!(
        load("llama", &|config| {
            config.insert("model_type".into(), json!("llama4_text"));
        }),
        r#"config.json: model_type is "llama4_text", but the Llama family supports llama, mistral, qwen2, qwen3, gemma2, gemma3_text, olmo2, mixtral, qwen3_moe, gpt_oss"#
    );
    assert_eq!(
        load("gemma2", &|config| {
            config.insert("layer_types".into(), json!(["full_attention"]));
        }),
        r#"config.json: layer_types is ["full_attention"], but the Llama family supports as many types as num_hidden_layers, 2"#
    );
    // Each of them would be a table of many gigabytes.
    assert_eq!(
        load("llama", &|config| {
            config.insert("max_position_embeddings".into(), json!(16_777_217));
        }),
        "config.json: max_position_embeddings is 16777217, but the Llama family supports at most 16777216 positions"
    );
    let error = load("llama", &|config| {
        config.insert("max_position_embeddings".into(), json!(16_777_216));
    });
    let begins = "config.json describes 16777216 positions, whose tables would have 100663296 numbers, more than the ";
    assert!(error.starts_with(begins), "{error}");
    // Layers with a window and layers without have a table each; the rest of a head has none.
    let error = load("gemma3", &|config| {
        config.insert("max_position_embeddings".into(), json!(2_000_000));
    });
    let begins = "config.json describes 2000000 positions, whose tables would have 24000000 numbers, more than the ";
    assert!(error.starts_with(begins), "{error}");
    let half = copied("gpt_neox", |config| {
        config.insert("max_position_embeddings".into(), json!(1 << 22));
    });
    assert!(gpt_neox::from_pretrained(half.path(), &devices::any()).is_ok());
    let error = load("llama", &|config| {
        config.insert("head_dim".into(), json!(2_000_000_000));
    });
    let begins = "config.json describes states or heads of width 6000000000, but no tensor of the weights is wider than ";
    assert!(error.starts_with(begins), "{error}");
    // Gate and up alternate: each pair would be noted before any tensor is seen.
    let error = load("gpt_oss", &|config| {
        config.insert("intermediate_size".into(), json!(65_536));
    });
    assert!(
        error.ends_with("131072 outputs are more than 65535 groups of [1, 1]"),
        "{error}"
    );
    for (family, field) in [
        ("mistral", "sliding_window"),
        ("gemma2", "final_logit_softcapping"),
    ] {
        assert_eq!(
            load(family, &|config| {
                config.remove(field);
            }),
            format!("config.json has no field {field}, which the Llama family needs")
        );
    }
    assert_eq!(
        load("qwen3", &|config| {
            config.insert("num_experts".into(), json!(4));
        }),
        "config.json: the Llama family does not know num_experts"
    );
}

#[test]
fn fewer_or_more_layers_than_anybody_has() {
    assert_refused(
        |config| {
            config.insert(
                "num_hidden_layers".into(),
                json!(1_000_000_000_000_000_000_u64),
            );
        },
        "config.json: num_hidden_layers is 1000000000000000000, but BERT supports less than 2147483648",
    );
    for layers in [0, 10_001] {
        assert_refused(
            |config| {
                config.insert("num_hidden_layers".into(), json!(layers));
            },
            &format!(
                "config.json: num_hidden_layers is {layers}, but BERT supports 1 to 10000 layers"
            ),
        );
    }
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
