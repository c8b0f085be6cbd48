//! Whole models made of the modules of [`burn_attn`], one file each, and search for the best output.
//!
//! | file | what it is |
//! | --- | --- |
//! | [`seq2seq`] | the translation model of "Attention is all you need" |
//! | [`generate`] | greedy and beam search |

pub mod generate;
pub mod seq2seq;
