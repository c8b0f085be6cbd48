//! Published model families: for each, the reader of its `config.json` and the table of its tensors.

pub mod bert;
pub mod clip;
pub mod detr;
pub mod gpt2;
pub mod gpt_neox;
mod language_model;
pub mod llama;
mod loading;
pub mod resnet;
pub mod segformer;
pub mod t5;
pub mod vit;
pub mod wav2vec2;
pub mod whisper;
