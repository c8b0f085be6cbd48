//! The folder of a run: its checkpoints, its samples, and the model as `transformers` saves a Llama.

use std::path::Path;

use burn::tensor::Device;
use burn_attn::{
    BlockConfig, FeedForwardActivation, NormConfig, NormPlacement,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_models::{
    language_model::{LanguageModel, LanguageModelConfig},
    llama, pretrained, train, weights,
};
use example_common::{
    error::{Error, tokenizer_failed},
    exit::println,
    files,
    run_folder::{RunFolder, name},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokenizers::Tokenizer;

use crate::cli::Recipe;

/// What a run is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// What it has to repeat when it is resumed.
    pub recipe: Recipe,
    /// The fingerprint of the text.
    pub text: String,
}

/// A checkpoint that was read.
pub type Checkpoint = train::Checkpoint<Run>;

/// The vocabulary: a part of each checkpoint, and a file beside the weights.
pub const TOKENIZER: &str = "tokenizer.json";

/// What the model wrote after each epoch.
pub const SAMPLES: &str = "samples.txt";

/// What a run writes beside its checkpoints.
const RESULTS: &[&str] = &[
    "config.json",
    TOKENIZER,
    "tokenizer_config.json",
    "model.safetensors",
    SAMPLES,
];

/// The folder of a run.
pub fn of_run(path: &Path) -> RunFolder {
    RunFolder::new(path, RESULTS)
}

/// Saves the model of the best checkpoint, with its vocabulary, and says where.
pub fn save_best(folder: &Path, device: &Device) -> Result<(), Error> {
    let best = Checkpoint::best(folder)?;
    let tokenizer = tokenizer(&best)?;
    let vocabulary = tokenizer.get_vocab_size(true);
    let recipe = &best.config.recipe;
    let model = best.trained(model_config(recipe, vocabulary).init(device))?;
    let class = json!({"tokenizer_class": "PreTrainedTokenizerFast"});
    let config = config_json(recipe, vocabulary);
    let tokenizer = tokenizer.to_string(false).map_err(tokenizer_failed)?;
    for (name, text) in [
        (TOKENIZER, tokenizer),
        ("tokenizer_config.json", format!("{class:#}\n")),
        ("config.json", format!("{config:#}\n")),
    ] {
        // A kill leaves the old one or the new one.
        files::replace(&folder.join(name), text.as_bytes())?;
    }
    let table = llama::table(folder)?;
    let path = folder.join("model.safetensors");
    weights::save(&table, &model, &path)?;
    let name = name(&best.state);
    println(&format!("the model of {name} is in {}", path.display()));
    Ok(())
}

/// The trained model with its vocabulary.
pub fn load(folder: &Path, device: &Device) -> Result<(LanguageModel, Tokenizer), Error> {
    // Otherwise the path would be looked for on the Hugging Face Hub, if another crate of the build turns on the feature `hub`.
    if !folder.join("model.safetensors").exists() {
        return Err(of_run(folder).refused("there is no trained model here"));
    }
    let model = llama::from_pretrained(folder, device)?;
    Ok((model, pretrained::tokenizer(folder)?))
}

/// The vocabulary of a run.
pub fn tokenizer(checkpoint: &Checkpoint) -> Result<Tokenizer, Error> {
    Tokenizer::from_bytes(checkpoint.part(TOKENIZER)?).map_err(tokenizer_failed)
}

/// A small Llama.
pub fn model_config(recipe: &Recipe, vocabulary: usize) -> LanguageModelConfig {
    let block = BlockConfig::new()
        .with_norm(NormConfig::rms_norm())
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(FeedForwardActivation::SwiGlu)
        .with_position(PositionEncoding::Rotary(
            RotaryConfig::new().with_max_len(recipe.len),
        ))
        .with_bias(false)
        .with_dropout(recipe.dropout);
    LanguageModelConfig::new(vocabulary)
        .with_d_model(recipe.d_model)
        .with_n_heads(recipe.heads)
        .with_n_layers(recipe.layers)
        .with_d_ff(recipe.d_ff)
        .with_max_len(recipe.len)
        .with_block(block)
        .with_scaled_embedding(false)
}

/// The configuration of such a Llama as `transformers` writes it.
fn config_json(recipe: &Recipe, vocabulary: usize) -> serde_json::Value {
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": recipe.d_model,
        "intermediate_size": recipe.d_ff,
        "num_attention_heads": recipe.heads,
        "num_key_value_heads": recipe.heads,
        "num_hidden_layers": recipe.layers,
        "max_position_embeddings": recipe.len,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": false,
        "mlp_bias": false,
        "tie_word_embeddings": true,
        // Without them, transformers would take tokens 1 and 2.
        "bos_token_id": null,
        "eos_token_id": null,
        "pad_token_id": null,
        "torch_dtype": "float32",
    })
}
