//! Modules as the files of PyTorch's and burn-nn's: bit for bit those that they were read from.

use burn::{
    module::{Lora, Module},
    nn::{
        attention::{
            CrossAttentionConfig as BurnNnCross, MultiHeadAttentionConfig as BurnNnAttention,
        },
        transformer::{
            TransformerDecoderConfig as BurnNnDecoder, TransformerEncoderConfig as BurnNnEncoder,
        },
    },
};
use burn_attn::{
    BlockConfig, CrossAttentionConfig, FeedForwardActivation, LayerPattern,
    MultiHeadAttentionConfig, NormPlacement, ProjectionBias, SelfAttentionConfig,
    TransformerConfig, TransformerStackConfig,
};
use burn_attn_models::{
    import::{self, Import, Library},
    weights::{Table, save},
};
use burn_attn_tests::{devices, numbers::filled};
use burn_store::{ModuleSnapshot, SafetensorsStore};

use super::golden;
use crate::weights::{Contents, contents};

/// What a module is written as.
fn written<M: Import>(table: &Table, module: &M) -> Contents {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let path = folder.path().join("written.safetensors");
    save(table, module, &path).expect("written");
    contents(&path)
}

/// Reads a part of a file of PyTorch's and writes it.
#[track_caller]
fn pytorch<M: Import>(file: &str, part: &str, mut module: M) {
    let file = golden(&format!("{file}.safetensors"));
    let mut weights = import::pytorch(&file).expect("readable");
    weights.load(part, &mut module).expect("loaded");
    let mut expected = contents(&file);
    expected.retain(|name, _| name.starts_with(&format!("{part}.")));
    assert!(!expected.is_empty());
    let table = import::table(&module, Library::Pytorch).expect("a table");
    // As a part of something larger.
    let table = Table::new().part("", part, table);
    assert_eq!(written(&table, &module), expected, "{part}");
}

/// Reads a module of burn-nn's and writes it.
#[track_caller]
fn burn_nn<T: Module, M: Import>(theirs: T, mut module: M) {
    let theirs = filled(theirs, 1);
    let folder = tempfile::tempdir().expect("a folder to write to");
    let path = folder.path().join("theirs.safetensors");
    let mut store = SafetensorsStore::from_file(&path);
    theirs.save_into(&mut store).expect("saved");
    let mut weights = import::burn_nn(&path).expect("readable");
    weights.load("", &mut module).expect("loaded");
    let table = import::table(&module, Library::BurnNn).expect("a table");
    assert_eq!(written(&table, &module), contents(&path));
}

fn block() -> BlockConfig {
    BlockConfig::new().with_activation(FeedForwardActivation::Relu)
}

#[test]
fn attention_of_pytorch() {
    let device = devices::any();
    let file = "attention";
    let config = MultiHeadAttentionConfig::new(12, 3);
    pytorch(file, "packed", config.init(&device));
    pytorch(
        file,
        "packed",
        SelfAttentionConfig::new(12, 3).init(&device),
    );
    pytorch(
        file,
        "packed",
        CrossAttentionConfig::new(12, 3).init(&device),
    );
    let separate = config.clone().with_d_key_in(5).with_d_value_in(7);
    pytorch(file, "separate", separate.init(&device));
    let of_memory = CrossAttentionConfig::new(12, 3).with_d_memory(5);
    pytorch(file, "one_memory", of_memory.init(&device));
    let no_bias = config.with_bias(ProjectionBias::none());
    pytorch(file, "no_bias", no_bias.init(&device));
    let no_bias = no_bias.with_d_key_in(5).with_d_value_in(7);
    pytorch(file, "separate_no_bias", no_bias.init(&device));
}

#[test]
fn stacks_of_pytorch() {
    let device = devices::any();
    let file = "stacks";
    let encoder = TransformerStackConfig::encoder(12, 7, 3, 2).with_block(block());
    pytorch(file, "encoder", encoder.init(&device));
    let causal = TransformerStackConfig::causal(12, 7, 3, 2).with_block(block());
    pytorch(file, "encoder", causal.init(&device));
    let pre = block().with_norm_placement(NormPlacement::Pre);
    let decoder = TransformerStackConfig::decoder(12, 7, 3, 1).with_block(pre);
    pytorch(file, "decoder", decoder.init(&device));
    let whole = TransformerConfig::new(12, 7, 3, 1, 1).with_block(block());
    pytorch(
        file,
        "transformer",
        whole.with_final_norm(true).init(&device),
    );
}

/// Norms change their numbers where they come first.
#[test]
fn modules_of_burn_nn() {
    let device = devices::any();
    let theirs = BurnNnAttention::new(15, 3);
    burn_nn(
        theirs.init(&device),
        MultiHeadAttentionConfig::new(15, 3).init(&device),
    );
    burn_nn(
        theirs.init(&device),
        SelfAttentionConfig::new(15, 3).init(&device),
    );
    burn_nn(
        theirs.init(&device),
        CrossAttentionConfig::new(15, 3).init(&device),
    );
    let ours = CrossAttentionConfig::new(15, 6).with_d_memory(11);
    let ours = ours.with_n_kv_heads(2).with_d_head(5);
    burn_nn(
        BurnNnCross::new(15, 11, 6, 2, 5).init(&device),
        ours.init(&device),
    );
    for (first, placement) in [(false, NormPlacement::Post), (true, NormPlacement::Pre)] {
        let block = block().with_norm_placement(placement);
        let theirs = BurnNnEncoder::new(12, 7, 3, 2).with_norm_first(first);
        let ours = TransformerStackConfig::encoder(12, 7, 3, 2).with_block(block.clone());
        let ours = ours.with_final_norm(false);
        burn_nn(theirs.init(&device), ours.init(&device));
        let theirs = BurnNnDecoder::new(12, 7, 3, 2).with_norm_first(first);
        let ours = TransformerStackConfig::decoder(12, 7, 3, 2).with_block(block);
        let ours = ours.with_final_norm(false);
        burn_nn(theirs.init(&device), ours.init(&device));
    }
}

/// Sinks at 0 are no tensor there; others cannot be written.
#[test]
fn sinks_that_were_trained_stay_here() {
    let module = SelfAttentionConfig::new(12, 3).with_sinks(true);
    let module = module.init(&devices::any());
    for library in [Library::Pytorch, Library::BurnNn] {
        let table = import::table(&module, library).expect("a table");
        let folder = tempfile::tempdir().expect("a folder to write to");
        let path = folder.path().join("sinks.safetensors");
        let refused = save(&table, &filled(module.clone(), 1), &path);
        assert_eq!(
            refused.expect_err("they are not 0").to_string(),
            "parameter heads.sinks cannot be written: it is not 0 where the other library has no tensor"
        );
        let sinks = module.heads.sinks.clone().expect("sinks");
        let mut at_zero = module.clone();
        at_zero.heads.sinks = Some(sinks.map(|sinks| sinks.zeros_like()));
        let names: Vec<String> = written(&table, &at_zero).into_keys().collect();
        assert!(
            !names.iter().any(|name| name.contains("sinks")),
            "{names:?}"
        );
    }
}

#[test]
fn what_the_others_cannot_be() {
    let device = devices::any();
    let config = TransformerStackConfig::encoder(12, 7, 3, 2);
    let blocks = vec![block(), block().with_shared_key_value(true)];
    let module = config
        .with_pattern(LayerPattern::Cycle(blocks))
        .init(&device);
    for (library, name) in [
        (Library::Pytorch, "layers.1.self_attn"),
        (Library::BurnNn, "layers.1.mha"),
    ] {
        let refused = import::table(&module, library);
        assert_eq!(
            refused.expect_err("it has no keys").to_string(),
            format!(
                "{name}.query_key_value: the module has no keys and values of its own: it attends to those of another layer (shared_key_value)"
            )
        );
    }
    let module = SelfAttentionConfig::new(12, 3).init(&device);
    let refused = import::table(&module.apply_lora(Lora::new(3, 6.0)), Library::Pytorch);
    assert_eq!(
        refused.expect_err("it has an adapter").to_string(),
        "in_proj_weight: the module's weight has an adapter (LoRA), which would be lost; load the weights first"
    );
}
