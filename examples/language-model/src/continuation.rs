//! Continues prompts.

use std::io::Write;

use burn_attn_models::{
    generate::{GenerateOptions, Sampling, stream},
    language_model::LanguageModel,
    text::TextStream,
};
use example_common::text::printable_lines;
use tokenizers::Tokenizer;

use crate::{cli::ContinueArgs, error::Error, folder::Folder};

/// Prints a prompt and its continuation while it grows.
pub fn print(args: &ContinueArgs) -> Result<(), Error> {
    if !(args.temperature >= 0.0 && args.temperature.is_finite()) {
        return Err(Error::Option(format!(
            "--temperature must be 0 or more, got {}",
            args.temperature
        )));
    }
    let (device, _) = example_common::devices::choose(args.device)?;
    let (model, tokenizer) = Folder::new(&args.out).load(&device)?;
    let prompt = tokenizer.encode(args.prompt.as_str(), false)?;
    let prompt = prompt.get_ids();
    if !(1..model.max_len()).contains(&prompt.len()) {
        return Err(Error::Option(format!(
            "the prompt has {} tokens, but this model continues prompts of 1 to {}",
            prompt.len(),
            model.max_len() - 1
        )));
    }
    // A reader that closes the pipe has read enough.
    let mut out = std::io::stdout();
    let mut is_read = write!(out, "{}", printable_lines(&args.prompt)).is_ok();
    let options = options(args.tokens, args.temperature, args.seed);
    continued(&model, &tokenizer, prompt, &options, |text| {
        let text = printable_lines(text);
        is_read = is_read && write!(out, "{text}").and_then(|()| out.flush()).is_ok();
        is_read
    })?;
    let _ = writeln!(out);
    Ok(())
}

/// Options that draw tokens, or always take the most probable one at temperature 0.
pub fn options(tokens: usize, temperature: f64, seed: u64) -> GenerateOptions {
    let sampling = match temperature > 0.0 {
        true => Sampling::temperature(temperature),
        false => Sampling::greedy(),
    };
    GenerateOptions::new(tokens).sampling(sampling).seed(seed)
}

/// Hands on each piece of the continuation as soon as it is whole characters, until `go_on` is false.
pub fn continued(
    model: &LanguageModel,
    tokenizer: &Tokenizer,
    prompt: &[u32],
    options: &GenerateOptions,
    mut go_on: impl FnMut(&str) -> bool,
) -> Result<(), Error> {
    let mut text = TextStream::new(tokenizer, false);
    for step in stream(model, model.start(1), &[prompt.to_vec()], options)? {
        for chosen in step? {
            let piece = text.push(chosen.token)?;
            if !piece.is_empty() && !go_on(&piece) {
                return Ok(());
            }
        }
    }
    go_on(&text.finish()?);
    Ok(())
}
