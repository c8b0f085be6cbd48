#![doc = include_str!("lib.md")]

#[cfg(feature = "chat")]
pub mod chat;
mod families;
pub mod generate;
pub mod import;
pub mod language_model;
pub mod loss;
mod new_tokens;
pub mod pretrained;
#[cfg(feature = "tokenizers")]
pub mod sentences;
pub mod seq2seq;
#[cfg(feature = "speech")]
pub mod speech;
#[cfg(feature = "tokenizers")]
pub mod text;
pub mod tokens;
#[cfg(feature = "train")]
pub mod train;
#[cfg(feature = "vision")]
pub mod vision;
mod vocabulary;
pub mod weights;

pub use families::{
    bert, clip, deepseek_v2, detr, gpt_neox, gpt2, llama, qwen3_next, resnet, segformer, t5, vit,
    wav2vec2, whisper,
};

/// The example in the README, which loads models from the Hub.
#[cfg(all(doctest, feature = "hub", feature = "chat"))]
#[doc = include_str!("../README.md")]
struct Readme;
