//! From tokens back to text: piece by piece while they are chosen, and one label for each token of a picture.

use tokenizers::{DecoderWrapper, Result, Tokenizer};

/// The most bytes that a character may still lack, and so the most tokens.
const MISSING: usize = 3;

/// The text of tokens that are chosen one after the other, each piece of it as soon as it is certain.
///
/// All pieces together are what [`decode`](tokenizers::TokenizerImpl::decode) makes of all tokens, with U+FFFD for bytes that are no character. There is one
/// exception: a tokenizer that falls back on bytes replaces decoded characters by U+FFFD when an invalid byte follows them. Returned pieces cannot be
/// replaced, so the text then goes on behind them.
///
/// # Example
///
/// ```
/// use burn_attn_models::{pretrained::Tokenizer, text::TextStream};
///
/// let tokenizer: Tokenizer = r#"{
///     "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
///     "post_processor": null, "decoder": {"type": "ByteFallback"},
///     "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "<0xC3>": 1, "<0xA9>": 2}}
/// }"#.parse()?;
/// let mut text = TextStream::new(&tokenizer, true);
/// assert_eq!([text.push(0)?, text.push(1)?, text.push(2)?, text.push(1)?], ["a", "", "é", ""]);
/// assert_eq!(text.finish()?, "\u{fffd}");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    skip_special_tokens: bool,
    /// The last tokens.
    tokens: Vec<u32>,
    /// How many of the first of these tokens are kept only because the text of later tokens depends on them: their text has been returned.
    context: usize,
    /// The part of the text of `tokens` that has been returned.
    shown: String,
}

impl<'a> TextStream<'a> {
    /// The text of tokens yet to come, without special tokens if they are to be skipped.
    pub fn new(tokenizer: &'a Tokenizer, skip_special_tokens: bool) -> Self {
        Self {
            tokenizer,
            skip_special_tokens,
            tokens: Vec::new(),
            context: 0,
            shown: String::new(),
        }
    }

    /// The text that the next token makes certain; empty if the token may be a part of a character.
    ///
    /// # Errors
    ///
    /// When the decoder of the tokenizer fails.
    pub fn push(&mut self, token: u32) -> Result<String> {
        // A token without text must not count as a part of a character.
        let special = self.tokenizer.get_added_vocabulary();
        let has_text = self.tokenizer.id_to_token(token).is_some_and(|name| {
            !(self.skip_special_tokens && special.is_special_token(name.as_str()))
        });
        if !has_text {
            return Ok(String::new());
        }
        self.tokens.push(token);
        self.certain(MISSING)
    }

    /// The rest of the text: the bytes of a character that was never completed, as U+FFFD.
    ///
    /// It fails as [`push`](Self::push).
    pub fn finish(mut self) -> Result<String> {
        self.certain(0)
    }

    fn decoded(&self) -> Result<String> {
        self.tokenizer
            .decode(&self.tokens, self.skip_special_tokens)
    }

    /// The new text without up to `open` U+FFFD at its end, of which more tokens may make a character.
    fn certain(&mut self, open: usize) -> Result<String> {
        if self.tokens.is_empty() {
            return Ok(String::new());
        }
        let mut text = self.decoded()?;
        let last = text.chars().rev().take(open);
        let open = last.take_while(|&c| c == char::REPLACEMENT_CHARACTER);
        let open = open.count();
        text.truncate(text.len() - open * char::REPLACEMENT_CHARACTER.len_utf8());
        match text.strip_prefix(&self.shown) {
            Some(new) if open == 0 && !new.is_empty() => {
                self.tokens.drain(..self.context);
                self.context = self.tokens.len();
                self.shown = self.decoded()?;
                Ok(new.to_string())
            }
            Some(new) => {
                let new = new.to_string();
                self.shown = text;
                Ok(new)
            }
            // The last bytes may still complete a character, which brings back what is shown.
            None if open > 0 && self.tokens.len() - self.context <= MISSING => Ok(String::new()),
            None => {
                self.tokens.drain(..self.context);
                self.context = 0;
                self.shown.clear();
                self.certain(open)
            }
        }
    }
}

/// The labels of these tokens in pictures: the text of tokens that a tokenizer writes as bytes, and the names of all others.
///
/// A byte-level tokenizer writes ` café` as `ĠcafÃ©`, and one that falls back on bytes writes a line feed as `<0x0A>`. A part of a character becomes
/// U+FFFD. An unknown token is its number, as in `<7>`.
pub fn labels(tokenizer: &Tokenizer, tokens: &[u32]) -> Vec<String> {
    let added = tokenizer.get_added_tokens_decoder();
    let steps = tokenizer.get_decoder().map_or(Vec::new(), steps);
    let has = |step: fn(&DecoderWrapper) -> bool| steps.iter().any(|&decoder| step(decoder));
    let is_byte_level = has(|decoder| matches!(decoder, DecoderWrapper::ByteLevel(_)));
    let falls_back = has(|decoder| matches!(decoder, DecoderWrapper::ByteFallback(_)));
    let label = |&token: &u32| {
        let Some(name) = tokenizer.id_to_token(token) else {
            return format!("<{token}>");
        };
        if added.contains_key(&token) {
            return name;
        }
        match byte(&name).filter(|_| falls_back) {
            // Not decoded: a decoder may strip the space that a text begins with.
            Some(byte) if byte.is_ascii() => char::from(byte).into(),
            Some(_) => char::REPLACEMENT_CHARACTER.into(),
            None if is_byte_level => tokenizer.decode(&[token], false).unwrap_or(name),
            None => name,
        }
    };
    tokens.iter().map(label).collect()
}

/// The byte that a token such as `<0x0A>` stands for.
fn byte(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_byte = digits.len() == 2;
    u8::from_str_radix(digits, 16).ok().filter(|_| is_byte)
}

/// A decoder, or those of a sequence.
fn steps(decoder: &DecoderWrapper) -> Vec<&DecoderWrapper> {
    match decoder {
        DecoderWrapper::Sequence(all) => all.get_decoders().iter().flat_map(steps).collect(),
        one => vec![one],
    }
}

#[cfg(test)]
mod tests;
