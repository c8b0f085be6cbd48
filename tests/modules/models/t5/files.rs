//! What files of T5 say, in the words of several releases, and what is refused.

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn_models::generate::{GenerateOptions, generate};
use burn_attn_tests::{compare::assert_close_to_largest, devices};
use serde_json::{Map, Value, json};

use super::{NEW_TOKENS, Texts, first, gated, tokens};
use crate::weights::Contents;

#[test]
fn published_files_have_fewer_fields() {
    // The first T5.
    first().assert_same_model(|config| {
        for field in [
            "classifier_dropout",
            "dense_act_fn",
            "feed_forward_proj",
            "is_decoder",
            "is_gated_act",
            "relative_attention_max_distance",
            "relative_attention_num_buckets",
            "scale_decoder_outputs",
            "tie_word_embeddings",
        ] {
            config.remove(field).expect("a field");
        }
        config.insert("n_positions".into(), json!(512));
        config.insert("task_specific_params".into(), json!({"summarization": {}}));
    });
    // Flan-T5.
    gated().assert_same_model(|config| {
        config
            .remove("scale_decoder_outputs")
            .expect("which is newer");
        config.insert("tie_word_embeddings".into(), json!(false));
    });
    // As many layers in both stacks, unless it is said.
    let error = first().changed(|config| drop(config.remove("num_decoder_layers")));
    let error = error.expect_err("it is refused");
    assert!(error.contains("decoder.block.2.layer.0"), "{error}");
}

/// What a missing field means is what it means where it is there, and something else than another value.
#[test]
fn missing_fields_are_those_of_the_first_t5() {
    let device = devices::any();
    // So long that distances above 64 and above 128 are in it.
    let source = TensorData::new((0..149).map(|at| at % 23).collect(), [1, 149]);
    let memory = |field: &str, value: Option<Value>| {
        let model = first()
            .changed(|config| match value {
                Some(value) => drop(config.insert(field.into(), value)),
                None => drop(config.remove(field).expect("a field")),
            })
            .expect("a model");
        let source = Tensor::<2, Int>::from_data(source.clone(), &device);
        model.encode(source, &[149]).states.into_data()
    };
    for (field, meant, another) in [
        ("relative_attention_max_distance", json!(128), json!(64)),
        ("layer_norm_epsilon", json!(1e-6), json!(1e-3)),
    ] {
        let missing = memory(field, None);
        assert_eq!(missing, memory(field, Some(meant)), "{field}");
        assert_ne!(missing, memory(field, Some(another)), "{field}");
    }
}

#[test]
fn nulls_are_refused_as_by_the_reference() {
    for (field, supported) in [
        ("relative_attention_num_buckets", "a whole number"),
        ("relative_attention_max_distance", "a whole number"),
        ("layer_norm_epsilon", "a number"),
    ] {
        first().assert_unsupported("T5", [(field, Value::Null, supported)]);
    }
}

#[test]
fn outputs_are_as_long_as_a_file_says() {
    assert_eq!(first().load(&devices::any()).max_len(), 512);
    let shorter = first().set("n_positions", 5).expect("a model");
    assert_eq!(shorter.max_len(), 5);
    // Sources may be longer: there is no table of positions.
    let texts = Texts::new(&first().values(), &devices::any());
    let start = shorter.start(texts.source, &texts.source_lengths);
    let options = GenerateOptions::new(NEW_TOKENS);
    let outputs = generate(&shorter, start, &[vec![0], vec![0]], &options).unwrap();
    let whole = tokens(&first().values(), "greedy.0");
    assert_eq!(outputs[0].tokens, whole[..5]);
}

#[test]
fn older_files_have_more_tensors() {
    let copies = |tensors: &mut Contents| {
        let shared = tensors["shared.weight"].clone();
        for stack in ["encoder", "decoder"] {
            tensors.insert(format!("{stack}.embed_tokens.weight"), shared.clone());
        }
        let unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
        let numbers = ("F32".into(), vec![1, 3], vec![0; 12]);
        tensors.insert(unused.into(), numbers);
        shared
    };
    first().assert_same_weights(|tensors| {
        let shared = copies(tensors);
        tensors.insert("lm_head.weight".into(), shared);
    });
    gated().assert_same_weights(|tensors| drop(copies(tensors)));
    // One of the copies alone.
    first().assert_same_weights(|tensors| {
        let shared = tensors.remove("shared.weight").expect("a table");
        tensors.insert("encoder.embed_tokens.weight".into(), shared);
    });
}

#[test]
fn the_head_is_the_files() {
    // Another head than the table, where they are one.
    let error = first().with(
        |_| {},
        |tensors| {
            let (dtype, shape, mut bytes) = tensors["shared.weight"].clone();
            bytes[0] ^= 1;
            tensors.insert("lm_head.weight".into(), (dtype, shape, bytes));
        },
    );
    let error = error.expect_err("it is refused");
    assert!(error.contains("lm_head.weight"), "{error}");

    // A table that is the head and not scaled, as `transformers` 5 makes and writes it.
    let without_head = |tensors: &mut Contents| drop(tensors.remove("lm_head.weight"));
    let tied = gated().with(|_| {}, without_head).expect("a model");
    assert!(tied.head.is_none() && gated().load(&devices::any()).head.is_some());
    let states = Tensor::<2>::from_data(
        TensorData::new((0..24u8).map(f32::from).collect(), [2, 12]),
        &devices::any(),
    );
    let expected = states
        .clone()
        .matmul(tied.embedding.weight.val().transpose());
    let (logits, expected) = (tied.logits(states).into_data(), expected.into_data());
    assert_close_to_largest("tied", &logits, &expected, 1e-6, 0.0);

    // A file that says that they are two has to have both.
    let two = |config: &mut Map<String, Value>| {
        config.remove("scale_decoder_outputs");
        config.insert("tie_word_embeddings".into(), json!(false));
    };
    let error = gated().with(two, without_head).expect_err("it is refused");
    assert!(error.contains("lm_head.weight"), "{error}");
}

#[test]
fn one_sentence_names_the_field() {
    first().assert_unsupported(
        "T5",
        [
            ("model_type", json!("mt5"), "\"t5\""),
            (
                "feed_forward_proj",
                json!("gated-mish"),
                "relu, gelu, gelu_new, silu, gated-gelu, gated-gelu_new, gated-relu, gated-silu",
            ),
            ("dense_act_fn", json!("gelu"), "\"relu\""),
            ("is_gated_act", json!(true), "false"),
            ("is_decoder", json!(true), "false"),
            ("num_layers", json!(0), "1 to 10000 layers"),
        ],
    );
    for (field, value, expected) in [
        (
            "tie_word_embeddings",
            json!(false),
            "scale_decoder_outputs is true, but T5 supports false, as tie_word_embeddings",
        ),
        (
            "relative_attention_num_buckets",
            json!(2),
            "Seq2SeqConfig: position: RelativeBiasConfig: relative buckets need at least 4 buckets (2 for each direction), but have 2",
        ),
        (
            "d_kv",
            json!(0),
            "Seq2SeqConfig: d_head must be at least 1, got 0",
        ),
        (
            "dropout_rate",
            json!(1.5),
            "Seq2SeqConfig: dropout must be in [0, 1), got 1.5",
        ),
        ("layer_types", json!([]), "T5 does not know layer_types"),
    ] {
        first().assert_refused(field, value, &format!("config.json: {expected}"));
    }
    for field in [
        "d_model",
        "d_kv",
        "d_ff",
        "num_heads",
        "num_layers",
        "vocab_size",
    ] {
        first().assert_refused(
            field,
            Value::Null,
            &format!("config.json has no field {field}, which T5 needs"),
        );
    }
}
