//! Whole models made of the modules of [`burn_attn`], and generation with any of them.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`seq2seq`] | the translation model of "Attention is all you need" |
//! | [`generate`] | greedy, sampled and beam search, token by token, over any model |
//! | [`import`] | weights of PyTorch's and burn-nn's modules, and how to move from them |

pub mod generate;
pub mod import;
pub mod seq2seq;
