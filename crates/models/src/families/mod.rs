//! Published model families: for each, the reader of its `config.json` and the table of its tensors.

pub mod bert;
pub mod clip;
pub mod detr;
mod fields;
pub mod gpt2;
pub mod gpt_neox;
mod grid;
mod language_model;
pub mod llama;
mod loading;
mod model_files;
pub mod resnet;
pub mod segformer;
pub mod t5;
mod tables;
pub mod vit;
pub mod wav2vec2;
pub mod whisper;

/// How learned tokens and positions begin: normal numbers with a mean of 0.
const fn normal(std: f64) -> burn::nn::Initializer {
    burn::nn::Initializer::Normal { mean: 0.0, std }
}
