//! Bare models, whose tensors have no name of the model before theirs, as `AutoModel` saves them; and what is said of tensors that have another.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn::LayerInput;
use burn_attn_models::{
    generate::{
        BeamOptions, GenerateError, GenerateOptions, beam_search, generate, speculate, stream,
    },
    gpt_neox,
    language_model::LanguageModel,
    llama,
    pretrained::PretrainedError,
    weights::{WeightsError, save},
};
use burn_attn_tests::devices;
use tempfile::TempDir;

use super::{folder, refused::copied};
use crate::weights::{contents, write_contents};

/// A copy of a model whose tensors are named anew, or left out.
fn renamed(model: &str, name: impl Fn(&str) -> Option<String>) -> TempDir {
    let copy = copied(model, |_| {});
    let path = copy.path().join("model.safetensors");
    let tensors = contents(&path).into_iter();
    let tensors = tensors.filter_map(|(old, tensor)| Some((name(&old)?, tensor)));
    write_contents(&path, &tensors.collect());
    copy
}

fn load(folder: &Path) -> Result<LanguageModel, PretrainedError> {
    LanguageModel::from_pretrained(folder, &devices::any())
}

fn tokens() -> Tensor<2, Int> {
    Tensor::from_data([[3, 1, 4, 1, 5, 9, 2]], &devices::any())
}

fn states(model: &LanguageModel) -> TensorData {
    let input = LayerInput::new(model.embed(tokens(), 0));
    model.transformer.forward(input).into_data()
}

#[test]
fn bare_models_are_those_that_they_are_part_of() {
    let models = [
        ("llama", "model."),
        ("mistral", "model."),
        ("qwen2", "model."),
        ("qwen3", "model."),
        ("gemma2", "model."),
        ("gemma3", "model."),
        ("olmo2", "model."),
        ("mixtral", "model."),
        ("qwen3_moe", "model."),
        ("gpt_oss", "model."),
        ("gpt_neox", "gpt_neox."),
        ("gpt_neox_sequential", "gpt_neox."),
        ("gpt2", "transformer."),
    ];
    for (name, body) in models {
        let whole = load(&folder(name)).expect("a model");
        let bare = renamed(name, |tensor| tensor.strip_prefix(body).map(str::to_owned));
        let bare = load(bare.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(states(&bare), states(&whole), "{name}");
        // The head is the embedding, or there is none.
        match &whole.head {
            None => assert_eq!(
                bare.forward(tokens()).into_data(),
                whole.forward(tokens()).into_data(),
                "{name}"
            ),
            Some(_) => {
                check_without_logits(&bare, name);
                let logits = catch_unwind(AssertUnwindSafe(|| bare.forward(tokens())));
                let panic = logits.expect_err("there are no logits");
                let sentence = panic.downcast_ref::<&str>().copied();
                let sentence = sentence.expect("a sentence");
                assert!(
                    sentence.ends_with("it has states, but no logits"),
                    "{sentence}"
                );
            }
        }
        // With its head, where others have it.
        let headed = renamed(name, |tensor| {
            Some(tensor.strip_prefix(body).unwrap_or(tensor).to_owned())
        });
        let headed = load(headed.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            headed.forward(tokens()).into_data(),
            whole.forward(tokens()).into_data(),
            "{name}"
        );
    }
}

/// A model without logits generates nothing, and is saved and loaded as what it is.
fn check_without_logits(bare: &LanguageModel, name: &str) {
    assert!(!bare.has_logits(), "{name}");
    let prompts = [vec![3, 1, 4]];
    let (options, state) = (GenerateOptions::new(2), || bare.start(1));
    let without = GenerateError::NoLogits;
    assert_eq!(
        generate(bare, state(), &prompts, &options),
        Err(without.clone())
    );
    assert_eq!(
        stream(bare, state(), &prompts, &options).err(),
        Some(without.clone())
    );
    assert_eq!(
        beam_search(bare, state(), &prompts, &BeamOptions::new(2, 2)),
        Err(without.clone())
    );
    assert_eq!(
        speculate((bare, state()), (bare, state()), &prompts, &options, 1),
        Err(GenerateError::Draft(Box::new(without.clone())))
    );
    assert_eq!(
        without.to_string(),
        "generate: the model has no logits head, because it was loaded from the files of a bare model, so it cannot predict tokens"
    );

    let table = match name.starts_with("gpt_neox") {
        true => gpt_neox::table(8).bare("gpt_neox"),
        false => llama::table(folder(name)).expect("a table").bare("model"),
    };
    let copy = copied(name, |_| {});
    let file = copy.path().join("model.safetensors");
    save(&table, bare, &file).expect("saved");
    let again = load(copy.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(!again.has_logits(), "{name}");
    assert_eq!(states(&again), states(bare), "{name}");
}

/// A file without its head that is not bare was cut off.
#[test]
fn a_head_that_is_missing_is_not_a_bare_model() {
    let headless = renamed("llama", |tensor| {
        (tensor != "lm_head.weight").then(|| tensor.to_owned())
    });
    let error = load(headless.path())
        .expect_err("it is refused")
        .to_string();
    assert_eq!(
        error,
        format!(
            "{}: the weights do not fit the model: missing: lm_head.weight [13, 12]",
            headless.path().display()
        )
    );
}

/// The sentence has five names of each kind, how many there are, and what is before all of them; the error has all.
#[test]
fn tensors_in_another_module() {
    let wrapped = renamed("llama", |tensor| Some(format!("module.{tensor}")));
    let error = load(wrapped.path()).expect_err("it is refused");
    let begins = format!("{}: ", wrapped.path().display());
    assert_eq!(
        error.to_string().replace(&begins, ""),
        "the weights do not fit the model: missing: model.embed_tokens.weight [13, 12], \
         model.layers.0.self_attn.q_proj.weight [18, 12], model.layers.0.self_attn.k_proj.weight [6, 12], \
         model.layers.0.self_attn.v_proj.weight [6, 12], model.layers.0.self_attn.o_proj.weight [12, 18], … (21 in all); \
         unexpected: module.lm_head.weight, module.model.embed_tokens.weight, module.model.layers.0.input_layernorm.weight, \
         module.model.layers.0.mlp.down_proj.weight, module.model.layers.0.mlp.gate_proj.weight, … (21 in all, all in module)"
    );
    let PretrainedError::Weights { path, error } = error else {
        panic!("{error}");
    };
    assert_eq!(path, wrapped.path());
    let WeightsError::Mismatch(mismatch) = error else {
        panic!("{error}");
    };
    assert_eq!(
        [mismatch.missing.len(), mismatch.unexpected.len()],
        [21, 21]
    );
}
