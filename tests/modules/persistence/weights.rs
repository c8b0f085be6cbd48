//! Every module gives the same bits after a file, read into a module that started from other numbers.

use burn::{
    module::Module,
    tensor::{Int, Tensor},
};
use burn_attn::{
    BlockConfig, CrossAttentionConfig, CrossAttentionInput, FeedForwardActivation, LayerInput,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, NormConfig, NormPlacement, ProjectionBias,
    SelfAttentionConfig, SelfAttentionInput, TiedEmbeddingConfig, TransformerConfig,
    TransformerInput, TransformerStackConfig,
    positions::{LearnedConfig, SinusoidalConfig},
};
use burn_attn_models::{
    language_model::{AbsolutePosition, LanguageModelConfig},
    seq2seq::Seq2SeqConfig,
};
use burn_attn_tests::{
    compare::{assert_same, differs},
    devices,
    numbers::{filled, tensor},
    parameters,
};
use burn_store::{BurnpackStore, ModuleSnapshot, ModuleStore, SafetensorsStore};

/// Writes `module` filled from one seed and reads it over the same module filled from another.
fn check<M: Module>(module: M, forward: impl Fn(&M) -> Tensor<3>) {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let saved = filled(module.clone(), 1);
    let expected = forward(&saved);

    let fresh = filled(module, 2);
    let has_parameters = fresh.num_params() > 0;
    assert_eq!(differs(&forward(&fresh), &expected), has_parameters);

    let [burnpack, safetensors, record] =
        ["weights.bpk", "weights.safetensors", "record.bpk"].map(|name| folder.path().join(name));
    saved.clone().save_file(&record).expect("saved");
    for loaded in [
        through(&saved, fresh.clone(), || {
            BurnpackStore::from_file(&burnpack)
        }),
        through(&saved, fresh.clone(), || {
            SafetensorsStore::from_file(&safetensors)
        }),
        fresh.try_load_file(&record).expect("loaded"),
    ] {
        assert_same(&forward(&loaded), &expected);
    }
}

/// `fresh` with what was saved into a store, read from another of the same file.
fn through<M: Module, S: ModuleStore>(saved: &M, mut fresh: M, store: impl Fn() -> S) -> M {
    saved.save_into(&mut store()).expect("saved");
    let result = fresh.load_from(&mut store()).expect("loaded");
    assert!(result.unused.is_empty(), "{result}");
    fresh
}

#[test]
fn attention() {
    let device = devices::any();
    let x = || tensor([2, 7, 15], 3, &device);
    let memory = || tensor([2, 11, 15], 4, &device);
    let config = SelfAttentionConfig::new(15, 3);
    for config in [config.clone(), config.with_bias(ProjectionBias::none())] {
        check(config.init(&device), |module| {
            module.forward(SelfAttentionInput::new(x()))
        });
    }
    check(CrossAttentionConfig::new(15, 3).init(&device), |module| {
        module.forward(CrossAttentionInput::new(x(), memory()))
    });
    check(
        MultiHeadAttentionConfig::new(15, 3).init(&device),
        |module| module.forward(MultiHeadAttentionInput::cross_attention(x(), memory())),
    );
}

#[test]
fn transformers() {
    let device = devices::any();
    let x = || tensor([2, 7, 15], 3, &device);
    let memory = || tensor([2, 11, 15], 4, &device);
    check(
        TransformerStackConfig::encoder(15, 29, 3, 2).init(&device),
        |module| module.forward(LayerInput::new(x())),
    );
    check(
        TransformerStackConfig::decoder(15, 29, 3, 2).init(&device),
        |module| module.forward(LayerInput::new(x()).memory(memory())),
    );
    check(
        TransformerConfig::new(15, 29, 3, 2, 2).init(&device),
        |module| module.forward(TransformerInput::new(memory(), x())),
    );
}

#[test]
fn causal_transformers() {
    let device = devices::any();
    let block = BlockConfig::new()
        .with_norm(NormConfig::rms_norm())
        .with_norm_placement(NormPlacement::Sandwich)
        .with_activation(FeedForwardActivation::SwiGlu)
        .with_bias(false);
    for parallel in [false, true] {
        let config = TransformerStackConfig::causal(15, 29, 3, 2)
            .with_block(block.clone().with_parallel(parallel));
        check(config.init(&device), |module| {
            module.forward(LayerInput::new(tensor([2, 7, 15], 3, &device)))
        });
    }
}

#[test]
fn tied_embeddings() {
    let device = devices::any();
    let tokens = Tensor::<2, Int>::from_data([[5, 6, 7], [8, 9, 0]], &device);
    let config = TiedEmbeddingConfig::new(23, 15);
    check(config.init(&device), |module| {
        module.logits(module.forward(tokens.clone()))
    });
}

#[test]
fn positions() {
    let device = devices::any();
    let x = || tensor([2, 7, 15], 3, &device);
    check(LearnedConfig::new(15, 31).init(&device), |module| {
        module.forward(x())
    });
    // Its table follows from the configuration, so the file is empty.
    check(SinusoidalConfig::new(15).init(&device), |module| {
        module.forward(x())
    });
}

#[test]
fn models_keep_their_weights() {
    let device = devices::any();
    let source = Tensor::<2, Int>::from_data([[5, 6, 7], [8, 9, 0]], &device);
    let lengths = [3, 2];
    let target = Tensor::<2, Int>::from_data([[1, 11], [1, 12]], &device);
    for (position, tied) in [
        (AbsolutePosition::Sinusoidal, true),
        (AbsolutePosition::Learned, false),
    ] {
        let config = Seq2SeqConfig::new(23)
            .with_d_model(15)
            .with_n_heads(3)
            .with_d_ff(29)
            .with_absolute_position(position)
            .with_tied(tied);
        check(config.init(&device), |module| {
            module.forward(source.clone(), &lengths, target.clone())
        });
    }
    for tied in [true, false] {
        let config = LanguageModelConfig::new(23)
            .with_d_model(15)
            .with_n_heads(3)
            .with_d_ff(29)
            .with_absolute_position(AbsolutePosition::Learned)
            .with_tied(tied);
        check(config.init(&device), |module| {
            module.forward(target.clone())
        });
    }
}

/// Names are what files are found by: they hold the fields of the modules, no choice that was made in a configuration.
#[test]
fn parameter_names_are_the_fields_of_modules() {
    let device = devices::any();
    for norm in [NormConfig::layer_norm(), NormConfig::rms_norm()] {
        let bias = matches!(norm, NormConfig::LayerNorm { .. });
        let block = BlockConfig::new()
            .with_norm(norm)
            .with_norm_placement(NormPlacement::Sandwich);
        let config = TransformerStackConfig::encoder(15, 29, 3, 1).with_block(block);
        let names: Vec<String> = parameters::values(&config.init(&device))
            .into_keys()
            .collect();
        let mut expected = Vec::new();
        for linear in [
            "self_attention.output",
            "self_attention.query_key_value",
            "feed_forward.linear_inner",
            "feed_forward.linear_outer",
        ] {
            expected.push(format!("layers.0.{linear}.bias"));
            expected.push(format!("layers.0.{linear}.weight"));
        }
        for norm in [
            "layers.0.self_attention_residual.norm",
            "layers.0.self_attention_residual.output_norm",
            "layers.0.feed_forward_residual.norm",
            "layers.0.feed_forward_residual.output_norm",
            "norm",
        ] {
            expected.push(format!("{norm}.gamma"));
            if bias {
                expected.push(format!("{norm}.beta"));
            }
        }
        expected.sort();
        assert_eq!(names, expected);
    }
}
