//! A conversation with a language model, whose state goes on from turn to turn: it reads what is new.

use super::{ChatError, Message, Template, channels::Channels};
use crate::{
    generate::{Autoregressive, FinishReason, GenerateOptions, stream},
    language_model::{LanguageModel, LanguageModelState},
    pretrained::Tokenizer,
    text::TextStream,
};

/// An answer, and what it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// The text of the answer; of a model that writes in [channels](Conversation), that of the channel `final`.
    pub answer: String,
    /// Tokens that the model read before it answered. Those that its state still had from former turns do not count.
    pub read: usize,
    /// Tokens that the model wrote: the answer, the end token, and what it wrote in other channels.
    pub written: usize,
    /// Tokens of former turns that were left out because they no longer fit.
    pub forgotten: usize,
    /// Whether the answer ended because the model was full.
    pub is_full: bool,
}

/// A conversation.
///
/// With the model's chat template, all messages become one text. Of its tokens, the model reads those behind the first that differs from what its state has
/// read: the new ones, and more if the template writes a former answer in another way than the model, or if former turns are forgotten. All are
/// read again where layers with windows have dropped what is needed. Without a template, the tokens of a new text follow those of the last answer.
///
/// Some models, such as gpt-oss, write thoughts before their answer, each in a channel: `<|channel|>analysis<|message|>…`. Where the tokenizer has `<|start|>`,
/// `<|channel|>` and `<|message|>` as special tokens, only the channel `final` is the answer and the content of the message. If the limit on new tokens ends a turn
/// before this channel, the answer is empty.
pub struct Conversation<'a> {
    model: &'a LanguageModel,
    tokenizer: &'a Tokenizer,
    template: Option<Template>,
    end_tokens: Vec<u32>,
    messages: Vec<Message>,
    state: LanguageModelState,
    /// Tokens that an answer has room for: at most a quarter of the model's length.
    budget: usize,
    /// Turns that have succeeded.
    turns: u64,
    /// All tokens so far. The state has read the first of these tokens, often all but the last.
    tokens: Vec<u32>,
}

impl<'a> Conversation<'a> {
    /// A conversation in which nothing has been said. A model without a chat template is only asked to continue what is said.
    ///
    /// `budget` is how many tokens an answer has room for, up to a quarter of the model's length: if former turns leave
    /// less, the oldest are forgotten until what remains fills at most half of the model.
    ///
    /// # Panics
    ///
    /// When the tokenizer truncates or pads texts, as its file may say: the end of a conversation would be cut off.
    pub fn new(
        model: &'a LanguageModel,
        tokenizer: &'a Tokenizer,
        template: Option<Template>,
        budget: usize,
    ) -> Self {
        assert!(
            tokenizer.get_truncation().is_none() && tokenizer.get_padding().is_none(),
            "Conversation: the tokenizer truncates or pads texts"
        );
        Self {
            model,
            tokenizer,
            template,
            end_tokens: Vec::new(),
            messages: Vec::new(),
            state: model.start(1),
            budget: budget.clamp(1, (model.max_len() / 4).max(1)),
            turns: 0,
            tokens: Vec::new(),
        }
    }

    /// The tokens that end an answer, beside those of the options. Default: none.
    pub fn with_end_tokens(mut self, end_tokens: Vec<u32>) -> Self {
        self.end_tokens = end_tokens;
        self
    }

    /// Adds a system message, which stands before all turns and is never forgotten.
    ///
    /// # Errors
    ///
    /// When the model has no chat template.
    pub fn with_system(mut self, content: &str) -> Result<Self, ChatError> {
        if self.template.is_none() {
            return Err(ChatError::NoTemplate);
        }
        let at = n_of_system(&self.messages);
        self.messages.insert(at, Message::new("system", content));
        Ok(self)
    }

    /// All tokens so far, answers included.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Says a text and lets the model answer. `go_on` gets the answer piece by piece, and ends it by returning false; while the model writes in another
    /// channel, the pieces are empty.
    ///
    /// A repetition penalty is about all tokens of the conversation that are not forgotten. To the seed of the options, each turn adds the number of the turns before
    /// it, so that turns with the same options draw other random numbers.
    ///
    /// # Errors
    ///
    /// When the text has no tokens or does not fit into the model, when the template refuses the text, or when the model fails. The conversation
    /// is then as it was before.
    pub fn say(
        &mut self,
        text: &str,
        options: &GenerateOptions,
        go_on: impl FnMut(&str) -> bool,
    ) -> Result<Turn, ChatError> {
        let next = self.next(text)?;
        let before = (self.tokens.clone(), self.messages.clone());
        let turn = self.turn(next, options, go_on);
        match turn {
            Ok(_) => self.turns += 1,
            Err(_) => {
                // The next turn reads all tokens again.
                self.state = self.model.start(1);
                (self.tokens, self.messages) = before;
            }
        }
        turn
    }

    /// The tokens and messages with this text, and how many tokens were forgotten for it.
    fn next(&self, text: &str) -> Result<(Vec<u32>, Vec<Message>, usize), ChatError> {
        let refused = |reason: String| ChatError::Text {
            text: text.into(),
            reason,
        };
        let tokens = self.tokenizer.encode(text, false);
        let tokens = tokens.map_err(|error| refused(format!("the tokenizer failed: {error}")))?;
        if tokens.is_empty() {
            return Err(refused("this text has no tokens".into()));
        }
        match &self.template {
            Some(template) => self.by_template(template, text),
            None => self.continued(text),
        }
    }

    fn turn(
        &mut self,
        (tokens, messages, forgotten): (Vec<u32>, Vec<Message>, usize),
        options: &GenerateOptions,
        mut go_on: impl FnMut(&str) -> bool,
    ) -> Result<Turn, ChatError> {
        let ends = options.stop_tokens.iter().chain(&self.end_tokens);
        let options = options
            .clone()
            .stop_tokens(ends.copied().collect::<Vec<_>>())
            .seed(options.seed.wrapping_add(self.turns));
        let known = self.rewind(&tokens);
        let mut turn = Turn {
            read: tokens.len() - known,
            forgotten,
            ..Turn::default()
        };
        (self.tokens, self.messages) = (tokens, messages);
        let state = std::mem::replace(&mut self.state, self.model.start(1));
        let prompt = [self.tokens[known..].to_vec()];
        let steps = stream(self.model, state, &prompt, &options)?;
        let mut steps = steps.after(&self.tokens[..known]);
        let mut answer = String::new();
        let mut channels = Channels::new(self.tokenizer);
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
                turn.is_full = self.tokens.len() > self.model.max_len();
                is_heard = match channels.is_said(chosen.token)? {
                    true => {
                        let piece = stream.push(chosen.token)?;
                        answer.push_str(&piece);
                        piece.is_empty() || go_on(&piece)
                    }
                    false => go_on(""),
                };
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
        if self.template.is_some() {
            self.messages.push(Message::new("assistant", &answer));
        }
        turn.answer = answer;
        Ok(turn)
    }

    /// The tokens of all messages and of this one, the messages, and how many tokens were forgotten: if they leave no room for an answer, the
    /// oldest messages are left out, until the others fill half of the model at most.
    fn by_template(
        &self,
        template: &Template,
        said: &str,
    ) -> Result<(Vec<u32>, Vec<Message>, usize), ChatError> {
        let mut messages = self.messages.clone();
        messages.push(Message::new("user", said));
        let system = n_of_system(&messages);
        let (mut at_first, mut most) = (None, self.most());
        loop {
            // The template writes the special tokens.
            let tokens = self.tokenizer.encode(template.text(&messages)?, false)?;
            let len = tokens.len();
            if len == 0 {
                return Err(template.refused("it wrote nothing"));
            }
            let forgotten = at_first.get_or_insert(len).saturating_sub(len);
            let is_alone = messages.len() < system + 3;
            if len <= most || (is_alone && len < self.model.max_len()) {
                return Ok((tokens.get_ids().to_vec(), messages, forgotten));
            }
            if is_alone {
                let this = "with the system messages and the template, this";
                return Err(self.too_long(said, this, len));
            }
            // Just below the limit, each turn would leave out messages, and the model would read all behind them again.
            most = self.model.max_len() / 2;
            // The oldest message of the user, and its answer.
            messages.drain(system..system + 2);
        }
    }

    /// The tokens so far and those of this text, the messages, and how many tokens were forgotten: if they leave too little room for an answer, the
    /// last ones stay, half of what the model holds, behind the special tokens that texts begin with.
    fn continued(&self, said: &str) -> Result<(Vec<u32>, Vec<Message>, usize), ChatError> {
        let new = match self.tokens.is_empty() {
            true => self.tokenizer.encode(said, true)?,
            false if self.adds_spaces()? => self.tokenizer.encode(said, false)?,
            false => self.tokenizer.encode(format!(" {said}"), false)?,
        };
        let new = new.get_ids();
        if new.len() >= self.model.max_len() {
            return Err(self.too_long(said, "this", new.len()));
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
            // The new text is never cut.
            let begin = begin.min(self.model.max_len() - 1 - new.len());
            let kept = (self.model.max_len() / 2).max(new.len());
            forgotten = tokens.len().saturating_sub(kept + begin);
            tokens.drain(begin..begin + forgotten);
        }
        Ok((tokens, self.messages.clone(), forgotten))
    }

    /// Whether the tokenizer puts a space before each text by itself, as those of the first Llamas do.
    fn adds_spaces(&self) -> Result<bool, ChatError> {
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

    fn too_long(&self, said: &str, this: &str, len: usize) -> ChatError {
        let most = self.model.max_len() - 1;
        ChatError::Text {
            text: said.into(),
            reason: format!(
                "{this} makes {len} tokens, but the model reads at most {most} and answers"
            ),
        }
    }

    /// Lets the state keep the common beginning of its tokens and `tokens`, without the last of `tokens`; returns the number of tokens that stay.
    fn rewind(&mut self, tokens: &[u32]) -> usize {
        let read = self.model.lengths(&self.state)[0];
        let same = self.tokens[..read].iter().zip(tokens);
        let same = same.take_while(|(read, token)| read == token).count();
        let known = same.min(tokens.len() - 1);
        if self.state.can_truncate(&[known]) {
            self.state.truncate(&[known]);
            return known;
        }
        // Layers with windows have dropped keys that the next token would see, so all tokens are read again.
        self.state = self.model.start(1);
        0
    }
}

/// The system messages that a conversation begins with.
fn n_of_system(messages: &[Message]) -> usize {
    let is_of_system = |message: &&Message| message.role == "system";
    messages.iter().take_while(is_of_system).count()
}
