//! Mixers of tokens: a user's own.

mod own;
