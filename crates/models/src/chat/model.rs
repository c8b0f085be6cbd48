//! A language model with what a conversation needs beside it.

use std::path::Path;

use super::{ChatError, Conversation, Template};
use crate::{
    generate::GenerateError,
    language_model::LanguageModel,
    pretrained::{self, LoadOptions, Tokenizer, Wanted, folder_with},
};

/// A language model, its tokenizer, its chat template and its end tokens.
///
/// How tokens are drawn is no part of it: of `generation_config.json`, only the end tokens are read. What this file says of `temperature`, `top_k`, `top_p`
/// or `repetition_penalty` goes into the [`GenerateOptions`](crate::generate::GenerateOptions) of each turn, which are greedy by default;
/// `transformers` takes a `top_k` of 50 where a file with `do_sample` has none.
///
/// # Example
///
/// ```no_run
/// // Not run: it reads a gigabyte.
/// use burn::tensor::Device;
/// use burn_attn_models::{chat::ChatModel, generate::GenerateOptions};
///
/// let model = ChatModel::from_pretrained("Qwen/Qwen2.5-0.5B-Instruct", &Device::default())?;
/// let mut conversation = model.conversation(200).with_system("Answer in one sentence.")?;
/// let turn = conversation.say("Why is the sky blue?", &GenerateOptions::new(200), |_| true)?;
/// println!("{}", turn.answer);
/// # Ok::<(), burn_attn_models::chat::ChatError>(())
/// ```
#[derive(Debug)]
pub struct ChatModel {
    /// The model.
    pub model: LanguageModel,
    /// The tokenizer, which neither truncates nor pads texts, whatever `tokenizer.json` says.
    pub tokenizer: Tokenizer,
    /// The chat template. A model that was only trained to continue texts has none. [`Template::with_variable`] gives it variables.
    pub template: Option<Template>,
    /// The tokens that end an answer.
    pub end_tokens: Vec<u32>,
}

impl ChatModel {
    /// Loads a [`LanguageModel`] and the files beside it, from a folder, a [name on the Hub](crate::pretrained), or a GGUF file with these files
    /// beside it.
    ///
    /// # Errors
    ///
    /// As [`LanguageModel::from_pretrained`], and when the model has no logits or a file beside it cannot be read.
    ///
    /// # Cost
    ///
    /// The cost of [`LanguageModel::from_pretrained`].
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, ChatError> {
        let source = source.as_ref();
        let model = LanguageModel::from_pretrained(source, options)?;
        if !model.has_logits() {
            return Err(GenerateError::NoLogits.into());
        }
        let folder = folder_with(source, Wanted::Chat)?;
        let mut tokenizer = pretrained::tokenizer(&folder)?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None)?;
        let mut end_tokens = pretrained::end_tokens(&folder, &tokenizer)?;
        // The model cannot write tokens outside its vocabulary.
        let [vocab_size, _] = model.embedding.weight.dims();
        end_tokens.retain(|&token| (token as usize) < vocab_size);
        Ok(Self {
            template: Template::of(&folder)?,
            model,
            tokenizer,
            end_tokens,
        })
    }

    /// A conversation in which nothing has been said: [`Conversation::new`] with this model's template and end tokens.
    pub fn conversation(&self, budget: usize) -> Conversation<'_> {
        let template = self.template.clone();
        Conversation::new(&self.model, &self.tokenizer, template, budget)
            .with_end_tokens(self.end_tokens.clone())
    }
}
