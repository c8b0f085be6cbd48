//! Answers in channels, as gpt-oss writes them: `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…`.

use super::ChatError;
use crate::pretrained::Tokenizer;

/// The channel of what is said to the user.
const FINAL: &str = "final";

/// Finds the tokens of an answer that are said to the user. Where the tokenizer has no channels, these are all tokens.
pub(super) struct Channels<'a> {
    tokenizer: &'a Tokenizer,
    /// `<|start|>`, `<|channel|>` and `<|message|>`, if the tokenizer has them as special tokens.
    marks: Option<[u32; 3]>,
    /// The name of the channel so far, between `<|channel|>` and `<|message|>`.
    name: Option<Vec<u32>>,
    is_said: bool,
}

impl<'a> Channels<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        let special = tokenizer.get_added_vocabulary();
        let mark = |name: &str| {
            let id = tokenizer.token_to_id(name);
            id.filter(|_| special.is_special_token(name))
        };
        let marks = [mark("<|start|>"), mark("<|channel|>"), mark("<|message|>")];
        Self {
            tokenizer,
            marks: match marks {
                [Some(start), Some(channel), Some(message)] => Some([start, channel, message]),
                _ => None,
            },
            name: None,
            // A model that begins no channel says everything to the user.
            is_said: true,
        }
    }

    /// Whether the next token is said to the user. Fails if the name of a channel cannot be decoded.
    pub(super) fn is_said(&mut self, token: u32) -> Result<bool, ChatError> {
        let Some([start, channel, message]) = self.marks else {
            return Ok(true);
        };
        if token == start {
            // The name of the role follows.
            self.is_said = false;
        } else if token == channel {
            self.is_said = false;
            self.name = Some(Vec::new());
        } else if token == message {
            if let Some(name) = self.name.take() {
                // The type of the content may follow, as in `final json`.
                let name = self.tokenizer.decode(&name, true)?;
                self.is_said = name.split_whitespace().next() == Some(FINAL);
            }
        } else if let Some(name) = &mut self.name {
            name.push(token);
        }
        Ok(self.is_said)
    }
}
