//! What a story has.

use std::ops::Range;

/// A short English story, and questions that phrases of it answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// Four to seven sentences.
    pub text: String,
    /// At most four.
    pub questions: Vec<Question>,
}

/// A question about a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// Which bytes of the story answer it.
    pub answer: Range<usize>,
}
