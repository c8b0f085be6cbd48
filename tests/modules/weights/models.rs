//! Whole models as `transformers` saved them: its logits, and its bits back.

use std::{collections::BTreeMap, path::Path};

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn::{
    BlockConfig, FeedForwardActivation, NormConfig, NormPlacement,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_models::{
    gpt_neox, gpt2,
    language_model::{AbsolutePosition, LanguageModelConfig},
    weights::{Table, Weights, save},
};
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden::GoldenFile};

use super::{Contents, contents, folder, golden, load, tables, write_contents};

fn gpt2() -> LanguageModelConfig {
    LanguageModelConfig::new(11)
        .with_d_model(15)
        .with_n_heads(3)
        .with_d_ff(13)
        .with_max_len(7)
        .with_block(
            BlockConfig::new()
                .with_norm_placement(NormPlacement::Pre)
                .with_activation(FeedForwardActivation::GeluTanh)
                .with_dropout(0.0),
        )
        .with_absolute_position(AbsolutePosition::Learned)
        .with_scaled_embedding(false)
}

fn llama() -> LanguageModelConfig {
    let rotary = RotaryConfig::new().with_max_len(7);
    LanguageModelConfig::new(13)
        .with_d_model(18)
        .with_n_heads(3)
        .with_d_ff(11)
        .with_max_len(7)
        .with_block(
            BlockConfig::new()
                .with_norm(NormConfig::rms_norm())
                .with_norm_placement(NormPlacement::Pre)
                .with_activation(FeedForwardActivation::SwiGlu)
                .with_dropout(0.0)
                .with_bias(false)
                .with_n_kv_heads(1)
                .with_position(PositionEncoding::Rotary(rotary)),
        )
        .with_tied(false)
        .with_scaled_embedding(false)
}

fn gpt_neox() -> LanguageModelConfig {
    let rotary = RotaryConfig::new().with_max_len(7).with_rotary_dim(4);
    LanguageModelConfig::new(13)
        .with_d_model(24)
        .with_n_heads(3)
        .with_d_ff(11)
        .with_max_len(7)
        .with_block(
            BlockConfig::new()
                .with_norm_placement(NormPlacement::Pre)
                .with_activation(FeedForwardActivation::Gelu)
                .with_dropout(0.0)
                .with_position(PositionEncoding::Rotary(rotary)),
        )
        .with_tied(false)
        .with_scaled_embedding(false)
}

fn value(name: &str) -> TensorData {
    GoldenFile::open("weights/values").data(name)
}

/// The logits of the model in `path` are those of `transformers`, and what [`save`] writes has the bits of `originals`, on every CPU
/// backend, with autodiff and without.
fn check(name: &str, config: &LanguageModelConfig, table: &Table, path: &Path, originals: &[&str]) {
    let mut expected = BTreeMap::new();
    for original in originals {
        expected.append(&mut contents(&golden(original)));
    }
    for (backend, device) in devices::cpu() {
        for device in [device.clone(), device.autodiff()] {
            println!("{name} on {backend}");
            let mut model = config.init(&device);
            load(table, path, &mut model);
            let tokens = Tensor::<2, Int>::from_data(value("tokens"), &device);
            let logits = model.forward(tokens).into_data();
            assert_close_to_largest(name, &logits, &value(&format!("{name}.logits")), 1e-4, 0.0);

            let folder = folder();
            let written = folder.path().join("model.safetensors");
            save(table, &model, &written).expect("written");
            assert!(
                contents(&written) == expected,
                "{name} came back with other tensors"
            );
        }
    }
}

#[test]
fn gpt2_from_safetensors() {
    let file = "gpt2.safetensors";
    check("gpt2", &gpt2(), &gpt2::table(), &golden(file), &[file]);
}

#[test]
fn gpt2_from_pytorch_with_the_head_that_is_tied() {
    let path = golden("gpt2.bin");
    let weights = Weights::open(&path).expect("readable");
    assert!(
        weights
            .tensors()
            .any(|(name, shape)| name == "lm_head.weight" && shape == [11, 15])
    );
    let originals = ["gpt2.safetensors"];
    check("gpt2", &gpt2(), &gpt2::table(), &path, &originals);
}

#[test]
fn llama_from_shards() {
    let shards = [1, 2, 3, 4].map(|index| format!("llama/model-0000{index}-of-00004.safetensors"));
    let shards = shards.each_ref().map(String::as_str);
    let table = tables::llama(3, 1);
    for path in ["llama", "llama/model.safetensors.index.json"] {
        check("llama", &llama(), &table, &golden(path), &shards);
    }
}

#[test]
fn gpt_neox_whose_heads_are_interleaved() {
    let file = "gpt_neox.safetensors";
    check(
        "gpt_neox",
        &gpt_neox(),
        &gpt_neox::table(8),
        &golden(file),
        &[file],
    );
}

#[test]
fn gpt2_without_the_prefix_of_the_head_and_with_masks() {
    let file = "gpt2.safetensors";
    let tensors = contents(&golden(file)).into_iter().map(|(name, tensor)| {
        let name = name.strip_prefix("transformer.").expect("a prefix");
        (name.to_owned(), tensor)
    });
    let mut tensors: Contents = tensors.collect();
    let mask = ("U8".into(), vec![1, 1, 7, 7], vec![1; 49]);
    tensors.insert("h.0.attn.bias".into(), mask);
    let masked = ("F32".into(), vec![], vec![0; 4]);
    tensors.insert("h.1.attn.masked_bias".into(), masked);
    let folder = folder();
    write_contents(&folder.path().join("model.safetensors"), &tensors);
    check("gpt2", &gpt2(), &gpt2::table(), folder.path(), &[file]);
}

#[test]
fn the_table_of_one_family_does_not_fit_another() {
    let mut model = gpt2().init(&devices::any());
    let weights = Weights::open(golden("llama")).expect("readable");
    let sentence = super::sentence(weights.load(&gpt2::table(), &mut model));
    for part in [
        "missing: transformer.wpe.weight [7, 15], transformer.h.0.attn.c_attn.weight [15, 45]",
        "transformer.h.0.attn.c_proj.bias [15], … (27 in all, all in transformer)",
        // Instead of the embedding, by the name that it has.
        "of another shape: lm_head.weight is [13, 18] instead of [11, 15]",
        "unexpected: model.embed_tokens.weight",
    ] {
        assert!(sentence.contains(part), "{part}");
    }
}
