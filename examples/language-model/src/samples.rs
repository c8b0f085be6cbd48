//! What the model writes after each epoch.

use std::{
    fs::File,
    io::{IsTerminal, Write},
};

use burn::{
    module::Module,
    store::ModuleRecord,
    tensor::Device,
    train::checkpoint::{Checkpointer, CheckpointerError, FileCheckpointer},
};
use burn_attn_models::language_model::LanguageModelConfig;
use tokenizers::Tokenizer;

use crate::{cli::ContinueArgs, continuation::continued, folder::Folder};

/// Tokens of a sample.
const TOKENS: usize = 60;

/// Saves the learner's checkpoints of the model, and lets each continue a prompt: into `samples.txt`, and to the standard output, unless the
/// dashboard is there.
pub struct Samples {
    files: FileCheckpointer,
    folder: Folder,
    config: LanguageModelConfig,
    tokenizer: Tokenizer,
    device: Device,
    prompt: Vec<u32>,
}

impl Samples {
    /// Samples of the model of `config`, computed on `device`.
    pub fn new(
        folder: &Folder,
        config: &LanguageModelConfig,
        tokenizer: &Tokenizer,
        prompt: &[u32],
        device: &Device,
    ) -> Self {
        Self {
            files: FileCheckpointer::new(folder.path().join("checkpoint"), "model"),
            folder: folder.clone(),
            config: config.clone(),
            tokenizer: tokenizer.clone(),
            device: device.clone(),
            prompt: prompt.to_vec(),
        }
    }

    /// The prompt in brackets and what the model of an epoch makes of it.
    fn sample(&self, epoch: usize) -> Result<String, CheckpointerError> {
        let record = self.files.restore(epoch)?;
        let model = self.config.init(&self.device).load_record(record);
        let failed = |error: String| CheckpointerError::Unknown(error);
        let prompt = self.tokenizer.decode(&self.prompt, false);
        let mut sample = format!("[{}]", prompt.map_err(|error| failed(error.to_string()))?);
        let args = ContinueArgs {
            prompt: String::new(),
            out: self.folder.path().into(),
            device: None,
            tokens: TOKENS,
            temperature: 0.8,
            seed: epoch as u64,
        };
        let add = |text: &str| {
            sample.push_str(text);
            true
        };
        continued(&model, &self.tokenizer, &self.prompt, &args, add)
            .map_err(|error| failed(error.to_string()))?;
        Ok(sample)
    }
}

impl Checkpointer<ModuleRecord> for Samples {
    fn save(&self, epoch: usize, record: ModuleRecord) -> Result<(), CheckpointerError> {
        self.files.save(epoch, record)?;
        let sample = format!("epoch {epoch}: {}\n\n", self.sample(epoch)?);
        let path = self.folder.path().join("samples.txt");
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(path)
            .map_err(CheckpointerError::IOError)?;
        file.write_all(sample.as_bytes())
            .map_err(CheckpointerError::IOError)?;
        if !std::io::stdout().is_terminal() {
            print!("{sample}");
        }
        Ok(())
    }

    fn delete(&self, epoch: usize) -> Result<(), CheckpointerError> {
        Checkpointer::<ModuleRecord>::delete(&self.files, epoch)
    }

    fn restore(&self, epoch: usize) -> Result<ModuleRecord, CheckpointerError> {
        self.files.restore(epoch)
    }
}
