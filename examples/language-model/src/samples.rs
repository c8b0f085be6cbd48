//! What the model writes after each epoch.

use std::{
    fs::File,
    io::{IsTerminal, Write},
    path::Path,
};

use burn_attn_models::language_model::LanguageModel;
use example_common::{
    error::{Error, tokenizer_failed},
    exit::{println, warn},
    files::FileError,
    text::printable_lines,
};
use tokenizers::Tokenizer;

use crate::{
    continuation::{continued, options},
    folder::SAMPLES,
};

/// Tokens of a sample.
const TOKENS: usize = 60;

/// Lets the model of an epoch continue a prompt: into `samples.txt`, and to the standard output, unless the dashboard is there. A sample that
/// cannot be written is a warning.
pub fn write(
    folder: &Path,
    epoch: usize,
    model: &LanguageModel,
    tokenizer: &Tokenizer,
    prompt: &[u32],
) {
    let written = sample(epoch, model, tokenizer, prompt).and_then(|sample| {
        let sample = printable_lines(sample.trim_end());
        let sample = format!("epoch {epoch}: {sample}\n");
        let path = folder.join(SAMPLES);
        let file = File::options().append(true).create(true).open(&path);
        file.and_then(|mut file| writeln!(file, "{sample}"))
            .map_err(FileError::of("write", path))?;
        if !std::io::stdout().is_terminal() {
            println(&sample);
        }
        Ok(())
    });
    if let Err(error) = written {
        warn(&format!("no sample of epoch {epoch}: {error}"));
    }
}

/// The prompt in brackets and what the model makes of it.
fn sample(
    epoch: usize,
    model: &LanguageModel,
    tokenizer: &Tokenizer,
    prompt: &[u32],
) -> Result<String, Error> {
    let read = tokenizer.decode(prompt, false).map_err(tokenizer_failed)?;
    let mut sample = format!("[{read}]");
    let options = options(TOKENS, 0.8, epoch as u64);
    continued(model, tokenizer, prompt, &options, |text| {
        sample.push_str(text);
    })?;
    Ok(sample)
}
