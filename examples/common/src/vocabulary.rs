//! Vocabularies learnt from texts.

use tokenizers::{
    AddedToken, Result, Tokenizer,
    models::{
        TrainerWrapper,
        bpe::{BPE, BpeTrainerBuilder},
    },
    pre_tokenizers::byte_level::ByteLevel,
};

/// Tokens with which any text can be written: one for each byte.
pub const BYTES: usize = 256;

/// Learns byte-level BPE, as in GPT-2, of at most `size` tokens: those of `special`, whose ids are the first, the bytes, and sequences of bytes
/// that occur at least twice. With `prefix_space`, the first word of a text is the same token as inside it.
///
/// # Errors
/// If the tokenizer refuses the texts.
pub fn byte_level_bpe<'a>(
    texts: impl Iterator<Item = &'a str> + Clone + Send,
    size: usize,
    special: &[&str],
    prefix_space: bool,
) -> Result<Tokenizer> {
    // The trainer allocates memory for all tokens, and learns less than one for each byte of the texts.
    let most = special.len() + BYTES + texts.clone().map(str::len).sum::<usize>();
    let special = special.iter().map(|&token| AddedToken::from(token, true));
    let mut trainer: TrainerWrapper = BpeTrainerBuilder::new()
        .vocab_size(size.min(most))
        .min_frequency(2)
        .show_progress(false)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .special_tokens(special.collect())
        .build()
        .into();
    let bytes = ByteLevel::default().add_prefix_space(prefix_space);
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer
        .with_pre_tokenizer(Some(bytes))
        .with_decoder(Some(bytes));
    tokenizer.train(&mut trainer, texts)?;
    Ok(tokenizer)
}
