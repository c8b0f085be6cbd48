//! Whole models made of the modules of [`burn_attn`], and generation with any of them.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`bert`] | BERT, an encoder of texts and sentences |
//! | [`gpt2`] | GPT-2, a language model |
//! | [`gpt_neox`] | GPT-NeoX and Pythia, language models |
//! | [`language_model`] | the decoder-only language model of GPT and Llama |
//! | [`llama`] | Llama, Mistral, Qwen 2 and 3, Gemma 2 and 3, OLMo 2 |
//! | [`seq2seq`] | the encoder–decoder model of "Attention is all you need" and T5 |
//! | [`t5`] | T5, T5 1.1 and Flan-T5, from text to text |
//! | [`loss`] | cross entropy with smoothed labels for training, its gradient in closed form |
//! | [`generate`] | greedy, sampled and beam search, token by token, over any model |
//! | [`pretrained`] | models that other people trained, from their folders |
//! | [`import`] | weights of PyTorch's and burn-nn's modules, and how to move from them |
//! | [`weights`] | weights of other libraries' models, by a table that is read both ways |

pub mod bert;
pub mod generate;
pub mod gpt2;
pub mod gpt_neox;
pub mod import;
pub mod language_model;
pub mod llama;
pub mod loss;
mod new_tokens;
pub mod pretrained;
pub mod seq2seq;
pub mod t5;
mod vocabulary;
pub mod weights;

/// The example in the README, which names models on the Hub.
#[cfg(all(doctest, feature = "hub", feature = "tokenizers"))]
#[doc = include_str!("../README.md")]
struct Readme;
