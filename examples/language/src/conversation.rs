//! A conversation with a language model, which reads each token once: its state goes on from turn to turn.

use burn_attn_models::{
    generate::{Autoregressive, FinishReason, GenerateOptions, stream},
    language_model::{LanguageModel, LanguageModelState},
    text::TextStream,
};
use tokenizers::Tokenizer;

use crate::{
    Error,
    template::{Message, Template},
};

/// What a turn took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Tokens that the model read before it answered. Those of former turns are not among them.
    pub read: usize,
    /// Tokens of its answer, the end token included.
    pub written: usize,
    /// Tokens of former turns that no longer fit, and were forgotten.
    pub forgotten: usize,
    /// Whether the answer ended because the model was full.
    pub is_full: bool,
}

/// A conversation.
///
/// With the model's chat template, all messages are one text, and what of its tokens the model has read before is not read again. Without one,
/// the tokens of what is said simply follow those of the last answer.
pub struct Conversation<'a> {
    model: &'a LanguageModel,
    tokenizer: &'a Tokenizer,
    template: Option<Template>,
    messages: Vec<Message>,
    state: LanguageModelState,
    /// Tokens that an answer may take, or a quarter of the model's if that is less.
    budget: usize,
    /// All tokens so far. The state has read the first ones of them, often all but the last.
    tokens: Vec<u32>,
}

impl<'a> Conversation<'a> {
    /// A conversation in which nothing has been said. A model without a chat template is only asked to continue. Former turns are forgotten where they
    /// would leave an answer less than this `budget` of tokens, or than a quarter of what the model holds.
    pub fn new(
        model: &'a LanguageModel,
        tokenizer: &'a Tokenizer,
        template: Option<Template>,
        budget: usize,
    ) -> Self {
        Self {
            model,
            tokenizer,
            template,
            messages: Vec::new(),
            state: model.start(1),
            budget: budget.clamp(1, (model.max_len() / 4).max(1)),
            tokens: Vec::new(),
        }
    }

    /// The same with a message of the system, which is never forgotten.
    ///
    /// # Errors
    /// If the model has no chat template.
    pub fn with_system(mut self, content: &str) -> Result<Self, Error> {
        if self.template.is_none() {
            return Err(Error::Option(
                "--system needs a model with a chat template, and this one has none".into(),
            ));
        }
        let content = content.into();
        self.messages.push(Message {
            role: "system",
            content,
        });
        Ok(self)
    }

    /// All tokens so far, answers included.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Says something and hands on the answer piece by piece, until `go_on` is false.
    ///
    /// # Errors
    /// If what is said has no tokens or does not fit into the model, if the template refuses it, or the model fails. The conversation is then what
    /// it was before.
    pub fn say(
        &mut self,
        text: &str,
        options: &GenerateOptions,
        go_on: impl FnMut(&str) -> bool,
    ) -> Result<Turn, Error> {
        let before = (self.tokens.clone(), self.messages.clone());
        let turn = self.turn(text, options, go_on);
        if turn.is_err() {
            // Everything is read again.
            self.state = self.model.start(1);
            (self.tokens, self.messages) = before;
        }
        turn
    }

    fn turn(
        &mut self,
        text: &str,
        options: &GenerateOptions,
        mut go_on: impl FnMut(&str) -> bool,
    ) -> Result<Turn, Error> {
        if self.tokenizer.encode(text, false)?.is_empty() {
            return Err(Error::text(text, "this text has no tokens"));
        }
        let (tokens, messages, forgotten) = match &self.template {
            Some(template) => self.by_template(template, text)?,
            None => self.continued(text)?,
        };
        let known = self.rewind(&tokens);
        let mut turn = Turn {
            read: tokens.len() - known,
            forgotten,
            ..Turn::default()
        };
        (self.tokens, self.messages) = (tokens, messages);
        let state = std::mem::replace(&mut self.state, self.model.start(1));
        let prompt = [self.tokens[known..].to_vec()];
        let mut steps = stream(self.model, state, &prompt, options)?;
        let mut answer = String::new();
        let mut stream = TextStream::new(self.tokenizer, true);
        let mut is_heard = true;
        'turn: for step in steps.by_ref() {
            for chosen in step? {
                turn.written += 1;
                if matches!(chosen.finish_reason, Some(FinishReason::Stop(_))) {
                    // The template writes the end token itself, and a text that goes on has none.
                    break 'turn;
                }
                self.tokens.push(chosen.token);
                turn.is_full =
                    chosen.finish_reason.is_some() && self.tokens.len() > self.model.max_len();
                let piece = stream.push(chosen.token)?;
                answer.push_str(&piece);
                is_heard = piece.is_empty() || go_on(&piece);
                if !is_heard {
                    break 'turn;
                }
            }
        }
        let piece = stream.finish()?;
        answer.push_str(&piece);
        if is_heard && !piece.is_empty() {
            go_on(&piece);
        }
        self.state = steps.into_state().0;
        self.messages.push(Message {
            role: "assistant",
            content: answer,
        });
        Ok(turn)
    }

    /// The tokens of all messages and of this one, the messages, and how many tokens were forgotten: if they leave no room for an answer, the
    /// oldest messages are left out.
    fn by_template(
        &self,
        template: &Template,
        said: &str,
    ) -> Result<(Vec<u32>, Vec<Message>, usize), Error> {
        let mut messages = self.messages.clone();
        messages.push(Message {
            role: "user",
            content: said.into(),
        });
        let mut of_system = messages.iter();
        let system = of_system.position(|message| message.role != "system");
        let system = system.unwrap_or(messages.len());
        let mut at_first = None;
        loop {
            // The template writes the special tokens.
            let tokens = self.tokenizer.encode(template.text(&messages)?, false)?;
            let len = tokens.len();
            if len == 0 {
                return Err(Error::Option("the chat template wrote nothing".into()));
            }
            let forgotten = at_first.get_or_insert(len).saturating_sub(len);
            let is_alone = messages.len() < system + 3;
            if len <= self.most() || (is_alone && len < self.model.max_len()) {
                return Ok((tokens.get_ids().to_vec(), messages, forgotten));
            }
            if is_alone {
                return Err(self.too_long(said, len));
            }
            // What was said, and its answer.
            messages.drain(system..system + 2);
        }
    }

    /// The tokens so far and those of this text, the messages, and how many tokens were forgotten: if they leave too little room for an answer, the
    /// last ones stay, half of what the model holds, behind the special tokens that texts begin with.
    fn continued(&self, said: &str) -> Result<(Vec<u32>, Vec<Message>, usize), Error> {
        let new = match self.tokens.is_empty() {
            true => self.tokenizer.encode(said, true)?,
            false if self.adds_spaces()? => self.tokenizer.encode(said, false)?,
            false => self.tokenizer.encode(format!(" {said}"), false)?,
        };
        let new = new.get_ids();
        if new.len() >= self.model.max_len() {
            return Err(self.too_long(said, new.len()));
        }
        let mut tokens = [&self.tokens, new].concat();
        let mut forgotten = 0;
        if tokens.len() > self.most() && !self.tokens.is_empty() {
            let begin = self.tokenizer.encode("", true)?;
            let begin = begin.get_ids();
            let begin = if tokens.starts_with(begin) {
                begin.len()
            } else {
                0
            };
            // What was said is never cut.
            let begin = begin.min(self.model.max_len() - 1 - new.len());
            let kept = (self.model.max_len() / 2).max(new.len());
            forgotten = tokens.len().saturating_sub(kept + begin);
            tokens.drain(begin..begin + forgotten);
        }
        Ok((tokens, self.messages.clone(), forgotten))
    }

    /// Whether the tokenizer puts a space before each text by itself, as those of the first Llamas do.
    fn adds_spaces(&self) -> Result<bool, Error> {
        let [bare, spaced] = [
            self.tokenizer.encode("a", false)?,
            self.tokenizer.encode(" a", false)?,
        ];
        let (bare, spaced) = (bare.get_ids(), spaced.get_ids());
        Ok(spaced.len() > bare.len() && spaced.ends_with(bare))
    }

    /// The most tokens that leave enough room for an answer.
    fn most(&self) -> usize {
        (self.model.max_len() - self.budget).max(1)
    }

    fn too_long(&self, said: &str, len: usize) -> Error {
        let most = self.model.max_len() - 1;
        Error::text(
            said,
            format!("this makes {len} tokens, but the model reads at most {most} and answers"),
        )
    }

    /// Lets the state forget what is not the beginning of `tokens`, and the last of them; returns how many of them it has read then.
    fn rewind(&mut self, tokens: &[u32]) -> usize {
        let read = self.model.lengths(&self.state)[0];
        let same = self.tokens[..read].iter().zip(tokens);
        let same = same.take_while(|(read, token)| read == token).count();
        let known = same.min(tokens.len() - 1);
        if known == read {
            return known;
        }
        // Layers with windows may have dropped what they would need: then everything is read again.
        match self.state.can_truncate(&[known]) {
            true => {
                self.state.truncate(&[known]);
                known
            }
            false => {
                self.state = self.model.start(1);
                0
            }
        }
    }
}
