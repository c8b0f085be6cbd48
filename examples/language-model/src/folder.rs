//! The folder of a run: the model as `transformers` saves a Llama, and the checkpoints of Burn's learner.

use std::{
    fs,
    path::{Path, PathBuf},
};

use burn::tensor::Device;
use burn_attn::{
    BlockConfig, FeedForwardActivation, NormConfig, NormPlacement,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_models::{
    language_model::{LanguageModel, LanguageModelConfig},
    llama, pretrained, weights,
};
use serde_json::json;
use tokenizers::Tokenizer;

use crate::{cli::Recipe, error::Error};

/// The folder of a run.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at `path`.
    pub fn new(path: &Path) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Begins a run of `recipe`.
    ///
    /// # Errors
    ///
    /// If there is one in the folder.
    pub fn start(&self, recipe: &Recipe, tokenizer: &Tokenizer) -> Result<(), Error> {
        let recipe_file = self.0.join("recipe.json");
        if recipe_file.exists() {
            return Err(self.refused(
                "there is a run here already: go on with it by --resume, or choose another --out",
            ));
        }
        fs::create_dir_all(&self.0).map_err(Error::file("create", &self.0))?;
        let vocabulary = tokenizer.get_vocab_size(true);
        let tokenizer_file = self.0.join("tokenizer.json");
        tokenizer.save(&tokenizer_file, false)?;
        self.write("config.json", &config_json(recipe, vocabulary))?;
        // Last: a folder without it is no run.
        self.write("recipe.json", &json!(recipe))
    }

    /// The recipe of the run, and its vocabulary.
    pub fn resume(&self) -> Result<(Recipe, Tokenizer), Error> {
        let path = self.0.join("recipe.json");
        let file = fs::read(&path).map_err(Error::file("read", &path))?;
        let recipe = serde_json::from_slice(&file)
            .map_err(|error| self.refused(&format!("recipe.json: {error}")))?;
        Ok((recipe, pretrained::tokenizer(&self.0)?))
    }

    /// The newest epoch whose checkpoint is complete.
    pub fn newest_checkpoint(&self) -> Result<usize, Error> {
        let has = |epoch: usize| {
            let files = ["model", "optim", "scheduler"];
            let mut files = files.map(|name| self.checkpoint(name, epoch)).into_iter();
            files.all(|file| file.exists())
        };
        let folder = self.0.join("checkpoint");
        let entries = fs::read_dir(&folder).map_err(Error::file("read", &folder))?;
        let epochs = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let epoch = name.strip_prefix("scheduler-")?.strip_suffix(".bpk")?;
            epoch.parse().ok()
        });
        epochs
            .filter(|&epoch| has(epoch))
            .max()
            .ok_or_else(|| self.refused("it has no checkpoint yet: remove it and train again"))
    }

    /// A file of the learner's checkpoints.
    pub fn checkpoint(&self, name: &str, epoch: usize) -> PathBuf {
        self.0.join(format!("checkpoint/{name}-{epoch}.bpk"))
    }

    /// Saves the weights.
    pub fn save(&self, model: &LanguageModel) -> Result<(), Error> {
        let table = llama::table(&self.0)?;
        Ok(weights::save(
            &table,
            model,
            self.0.join("model.safetensors"),
        )?)
    }

    /// The trained model with its vocabulary.
    pub fn load(&self, device: &Device) -> Result<(LanguageModel, Tokenizer), Error> {
        let model = llama::from_pretrained(&self.0, device)?;
        Ok((model, pretrained::tokenizer(&self.0)?))
    }

    fn write(&self, name: &str, value: &serde_json::Value) -> Result<(), Error> {
        let path = self.0.join(name);
        fs::write(&path, format!("{value:#}\n")).map_err(Error::file("write", &path))
    }

    fn refused(&self, problem: &str) -> Error {
        Error::Run {
            path: self.0.clone(),
            problem: problem.into(),
        }
    }
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

/// The same as `transformers` writes it.
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
        "torch_dtype": "float32",
    })
}
