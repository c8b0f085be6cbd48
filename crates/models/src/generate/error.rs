//! Why a generation could not begin or go on.

/// Why a generation could not begin or go on, in one sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// There are more or fewer prompts than rows in the state.
    #[error("generate: {prompts} prompts for a state of {rows} rows")]
    Rows {
        /// The prompts.
        prompts: usize,
        /// The rows of the state.
        rows: usize,
    },
    /// A prompt has no token.
    #[error(
        "generate: prompt {row} is empty; it needs at least one token, such as the begin token"
    )]
    EmptyPrompt {
        /// The prompt.
        row: usize,
    },
    /// A prompt has a token that the model does not know.
    #[error(
        "generate: token {token} of prompt {row} is outside the vocabulary of {vocab_size} tokens"
    )]
    Token {
        /// The token.
        token: u32,
        /// The prompt.
        row: usize,
        /// Tokens that the model knows.
        vocab_size: usize,
    },
    /// A prompt is longer than what the model holds.
    #[error(
        "generate: prompt {row} brings its row to {len} tokens, but the model holds at most {max_len}"
    )]
    TooLong {
        /// The prompt.
        row: usize,
        /// Tokens of its row, with those that the state has read before.
        len: usize,
        /// The most that the model holds.
        max_len: usize,
    },
    /// A stop token is one that the model does not know.
    #[error("generate: stop token {token} is outside the vocabulary of {vocab_size} tokens")]
    StopToken {
        /// The token.
        token: u32,
        /// Tokens that the model knows.
        vocab_size: usize,
    },
    /// A beam cannot have so many different tokens.
    #[error("generate: a beam of {beam} is wider than the vocabulary of {vocab_size} tokens")]
    Beam {
        /// Hypotheses of the beam.
        beam: usize,
        /// Tokens that the model knows.
        vocab_size: usize,
    },
    /// The vocabularies of a model and its draft are not of one size.
    #[error("generate: the model knows {model} tokens, but its draft {draft}")]
    Vocabularies {
        /// Tokens that the model knows.
        model: usize,
        /// Tokens that the draft knows.
        draft: usize,
    },
    /// The model predicts no token.
    #[error(
        "generate: the model has no logits head, because it was loaded from the files of a bare model, so it cannot predict tokens"
    )]
    NoLogits,
    /// Dropout would act, and the graph of all steps would be kept.
    #[error(
        "generate: the model is on an autodiff device, where dropout acts and every step is kept for gradients; generate with \
         model.valid()"
    )]
    Autodiff,
    /// The model did not give the logits that it was asked for.
    #[error("generate: the model gave logits {found:?} instead of [{rows}, {vocab_size}]")]
    Shape {
        /// The shape of the logits.
        found: [usize; 2],
        /// The tokens to choose: one for each row that goes on, or several if guesses are checked.
        rows: usize,
        /// Tokens that the model says it knows.
        vocab_size: usize,
    },
    /// The backend could not hand the logits over.
    #[error("generate: the logits cannot be read: {0}")]
    Unreadable(String),
    /// No token can be chosen: the weights are broken, or a logits processor has left none.
    #[error(
        "generate: in row {row}, the logit of token {token} is {logit}, and the largest must be finite"
    )]
    Logit {
        /// The number of the prompt; 0 for [`Sampling::distribution`](super::Sampling::distribution), which has one row.
        row: usize,
        /// The token.
        token: u32,
        /// Its logit.
        logit: f32,
    },
    /// The draft of [`speculate`](super::speculate()) could not begin or go on, for this reason.
    #[error("the draft: {0}")]
    Draft(Box<GenerateError>),
}
