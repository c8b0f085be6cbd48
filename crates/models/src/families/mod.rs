//! Published model families: for each, the reader of its `config.json` and the table of its tensors.

/// Fields of a configuration with their names, for `ConfigError::check_positive`.
macro_rules! sizes {
    ($config:expr; $($field:ident),*) => {
        [$((stringify!($field), $config.$field)),*]
    };
}

pub mod bert;
pub mod clip;
mod decoder;
pub mod deepseek_v2;
pub mod detr;
mod files;
pub mod gpt2;
pub mod gpt_neox;
mod grid;
mod language_model;
pub mod llama;
mod loading;
pub mod qwen3_next;
pub mod resnet;
pub mod segformer;
pub mod t5;
pub mod vit;
pub mod wav2vec2;
pub mod whisper;

/// Refuses images without a patch.
fn check_image_size(
    config: &'static str,
    image: usize,
    patch: usize,
) -> Result<(), burn_attn::ConfigError> {
    burn_attn::ConfigError::check(config, image >= patch, || {
        format!("image_size {image} is less than patch_size {patch}")
    })
}

/// How learned tokens and positions begin: normal numbers with a mean of 0.
const fn normal(std: f64) -> burn::nn::Initializer {
    burn::nn::Initializer::Normal { mean: 0.0, std }
}
