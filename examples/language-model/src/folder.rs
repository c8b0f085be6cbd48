//! The folder of a run: the model as `transformers` saves a Llama, and the checkpoints of Burn's learner.

use std::{
    fs, io,
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
use example_common::{
    files::{self, FileError},
    lock::{self, Lock},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokenizers::Tokenizer;

use crate::{cli::Recipe, error::Error};

/// What a run is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// What it has to repeat when it is resumed.
    pub recipe: Recipe,
    /// Passes over the text at most.
    pub epochs: usize,
    /// The fingerprint of the text.
    pub text: String,
    /// The epoch with the lowest loss on what is held out, if one is over.
    pub best: Option<usize>,
}

/// The file that says so.
const RUN: &str = "run.json";

/// What the model wrote after each epoch.
pub const SAMPLES: &str = "samples.txt";

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

    /// Whether a run can begin here.
    ///
    /// # Errors
    ///
    /// If another process trains here, if there is a run with a checkpoint already, or something else.
    pub fn check_free(&self) -> Result<(), Error> {
        lock::free(&self.0)?;
        self.check_no_run()
    }

    fn check_no_run(&self) -> Result<(), Error> {
        let has = |name: &str| self.0.join(name).exists();
        if has(RUN) {
            return match self.newest_checkpoint() {
                Some(_) => Err(self.refused(
                    "there is a run here already: go on with it by --resume, or choose another --out",
                )),
                // It was stopped in its first epoch.
                None => Ok(()),
            };
        }
        let foreign = [
            "config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "model.safetensors",
            "checkpoint",
            SAMPLES,
        ];
        match foreign.into_iter().find(|name| has(name)) {
            Some(name) => Err(self.refused(&format!(
                "it has a {name} that is of no run: choose another --out"
            ))),
            None => Ok(()),
        }
    }

    /// Begins a run, in place of one that was stopped in its first epoch. Nobody else can train here for as long as the lock is there.
    pub fn start(&self, run: &Run, tokenizer: &Tokenizer) -> Result<Lock, Error> {
        let lock = lock::lock(&self.0)?;
        // Until it was locked, another run may have begun and ended.
        self.check_no_run()?;
        // Otherwise the learner adds to the logs of the other run, and chooses the best epoch from those of both. What is in a folder without a
        // run is somebody else's.
        if self.0.join(RUN).exists() {
            ["train", "valid", SAMPLES]
                .into_iter()
                .try_for_each(|name| self.remove(name))?;
        }
        let vocabulary = tokenizer.get_vocab_size(true);
        self.write("tokenizer.json", &tokenizer.to_string(false)?)?;
        let class = json!({"tokenizer_class": "PreTrainedTokenizerFast"});
        self.write("tokenizer_config.json", &format!("{class:#}\n"))?;
        let config = config_json(&run.recipe, vocabulary);
        self.write("config.json", &format!("{config:#}\n"))?;
        self.note(run)?;
        Ok(lock)
    }

    /// Removes a file, or a folder with all that is in it, if it is there.
    fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.0.join(name);
        let removed = match path.is_dir() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(FileError::of("remove", path)(error).into())
            }
            _ => Ok(()),
        }
    }

    /// Writes down what the run is.
    pub fn note(&self, run: &Run) -> Result<(), Error> {
        self.write(RUN, &format!("{:#}\n", json!(run)))
    }

    /// The run, its vocabulary, the newest epoch whose checkpoint is complete, and the lock that keeps others from training here.
    pub fn resume(&self) -> Result<(Run, Tokenizer, usize, Lock), Error> {
        lock::free(&self.0)?;
        // A folder that may be a typing error is not created.
        self.newest()?;
        let lock = lock::lock(&self.0)?;
        // Until it was locked, another process may have trained on.
        let (run, tokenizer, epoch) = self.newest()?;
        Ok((run, tokenizer, epoch, lock))
    }

    /// The run, its vocabulary, and the newest epoch whose checkpoint is complete.
    pub fn newest(&self) -> Result<(Run, Tokenizer, usize), Error> {
        let path = self.0.join(RUN);
        let file = fs::read(&path).map_err(FileError::of("read", &path))?;
        let run = serde_json::from_slice(&file)
            .map_err(|error| self.refused(&format!("{RUN}: {error}")))?;
        let epoch = self.newest_checkpoint();
        let epoch = epoch.ok_or_else(|| {
            self.refused("it was stopped in its first epoch: train again without --resume")
        })?;
        Ok((run, pretrained::tokenizer(&self.0)?, epoch))
    }

    /// The newest epoch whose checkpoint is complete.
    fn newest_checkpoint(&self) -> Option<usize> {
        let is_complete = |epoch: &usize| {
            let mut files = ["model", "optim"].into_iter();
            files.all(|name| self.checkpoint(name, *epoch).exists())
        };
        self.epochs().into_iter().filter(is_complete).max()
    }

    /// The epochs with a checkpoint.
    pub fn epochs(&self) -> Vec<usize> {
        let entries = fs::read_dir(self.0.join("checkpoint"));
        let epochs = entries.into_iter().flatten().flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let epoch = name.strip_prefix("scheduler-")?.strip_suffix(".bpk")?;
            epoch.parse().ok()
        });
        epochs.collect()
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
        // Otherwise it would be looked for on the Hugging Face Hub, if another crate of the build asks for that.
        if !self.0.join("model.safetensors").exists() {
            return Err(self.refused("there is no trained model here"));
        }
        let model = llama::from_pretrained(&self.0, device)?;
        Ok((model, pretrained::tokenizer(&self.0)?))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.0.join(name);
        // A kill leaves the old one or the new one.
        Ok(files::replace(&path, text.as_bytes()).map_err(FileError::of("write", &path))?)
    }

    /// An error about the folder.
    pub fn refused(&self, problem: &str) -> Error {
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
        // Without them, transformers would take tokens 1 and 2.
        "bos_token_id": null,
        "eos_token_id": null,
        "pad_token_id": null,
        "torch_dtype": "float32",
    })
}
