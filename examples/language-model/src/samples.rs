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
use example_common::{
    exit::{println, warn},
    files::FileError,
    text::printable_lines,
};
use tokenizers::Tokenizer;

use crate::{
    continuation::{continued, options},
    error::Error,
    folder::{Folder, SAMPLES},
};

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
    fn sample(&self, epoch: usize) -> Result<String, Error> {
        let path = self.folder.checkpoint("model", epoch);
        let record = self.files.restore(epoch).map_err(|error| Error::Run {
            path,
            problem: error.to_string(),
        })?;
        let model = self.config.init(&self.device).load_record(record);
        let mut sample = format!("[{}]", self.tokenizer.decode(&self.prompt, false)?);
        let options = options(TOKENS, 0.8, epoch as u64);
        let add = |text: &str| {
            sample.push_str(text);
            true
        };
        continued(&model, &self.tokenizer, &self.prompt, &options, add)?;
        Ok(sample)
    }

    /// Writes the sample of an epoch down.
    fn write(&self, epoch: usize) -> Result<(), Error> {
        let sample = printable_lines(self.sample(epoch)?.trim_end());
        let sample = format!("epoch {epoch}: {sample}\n");
        let path = self.folder.path().join(SAMPLES);
        let file = File::options().append(true).create(true).open(&path);
        file.and_then(|mut file| writeln!(file, "{sample}"))
            .map_err(FileError::of("write", path))?;
        if !std::io::stdout().is_terminal() {
            println(&sample);
        }
        Ok(())
    }
}

impl Checkpointer<ModuleRecord> for Samples {
    fn save(&self, epoch: usize, record: ModuleRecord) -> Result<(), CheckpointerError> {
        self.files.save(epoch, record)?;
        // The checkpoint is saved, whatever becomes of its sample.
        if let Err(error) = self.write(epoch) {
            warn(&format!("no sample of epoch {epoch}: {error}"));
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
