//! Continues prompts.

use burn_attn_models::{
    generate::{GenerateOptions, Sampling, stream},
    language_model::LanguageModel,
    text::TextStream,
};
use example_common::{
    devices,
    error::{Error, tokenizer_failed},
    input,
    text::Pieces,
};
use tokenizers::Tokenizer;

use crate::{cli::ContinueArgs, folder};

/// Prints a prompt and its continuation while it grows.
pub fn print(args: &ContinueArgs) -> Result<(), Error> {
    let temperature = args.temperature;
    let is_allowed = temperature >= 0.0 && temperature.is_finite();
    input::check([("--temperature", is_allowed, "0 or more", temperature)])?;
    let device = devices::choose(args.device)?.device;
    let (model, tokenizer) = folder::load(&args.out, &device)?;
    let prompt = tokenizer.encode(args.prompt.as_str(), false);
    let prompt = prompt.map_err(tokenizer_failed)?;
    let prompt = prompt.get_ids();
    if !(1..model.max_len()).contains(&prompt.len()) {
        return Err(format!(
            "the prompt has {} tokens, but this model continues prompts of 1 to {}",
            prompt.len(),
            model.max_len() - 1
        )
        .into());
    }
    args.pictures.probe()?;
    let mut pieces = Pieces::default();
    args.pictures.print(&pieces.printable(&args.prompt));
    let options = options(args.tokens, temperature, args.seed);
    let written = continued(&model, &tokenizer, prompt, &options, |text| {
        args.pictures.print(&pieces.printable(text));
    })?;
    args.pictures.print("\n");
    if args.pictures.are_wanted() {
        let tokens = [prompt, &written].concat();
        args.pictures
            .draw_language_model(&model, &tokenizer, &tokens, &device)?;
    }
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

/// Hands on each piece of the continuation as soon as it is whole characters, and returns its tokens.
pub fn continued(
    model: &LanguageModel,
    tokenizer: &Tokenizer,
    prompt: &[u32],
    options: &GenerateOptions,
    mut each: impl FnMut(&str),
) -> Result<Vec<u32>, Error> {
    let mut written = Vec::new();
    let mut text = TextStream::new(tokenizer, false);
    for step in stream(model, model.start(1), &[prompt.to_vec()], options)? {
        for chosen in step? {
            written.push(chosen.token);
            let piece = text.push(chosen.token).map_err(tokenizer_failed)?;
            if !piece.is_empty() {
                each(&piece);
            }
        }
    }
    each(&text.finish().map_err(tokenizer_failed)?);
    Ok(written)
}
