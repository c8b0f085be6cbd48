//! The tokenizer that a model was trained with.

use std::path::Path;

pub use tokenizers::Tokenizer;

use super::{PretrainedError, source::folder_with, wanted::Wanted};
use crate::weights::lfs_pointer;

/// Reads the `tokenizer.json` of a folder, of that of a GGUF file, or of a [name on the Hub](super).
///
/// The result is a tokenizer of the crate `tokenizers` 0.23. Its file decides whether it pads or truncates texts, and to which length; those of
/// sentence encoders often do both. Change that with [`with_padding`](tokenizers::TokenizerImpl::with_padding) and
/// [`with_truncation`](tokenizers::TokenizerImpl::with_truncation).
///
/// # Errors
///
/// When the file is missing, or not a tokenizer.
///
/// # Example
///
/// One vector per text, with a small tokenizer written on the spot.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use burn_attn_models::{bert::{BertConfig, BertInput}, pretrained};
///
/// let folder = std::env::temp_dir().join("burn-attn-tokenizer");
/// std::fs::create_dir_all(&folder)?;
/// std::fs::write(folder.join("tokenizer.json"), r#"{
///     "version": "1.0", "truncation": null, "added_tokens": [], "normalizer": {"type": "Lowercase"},
///     "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
///     "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
///     "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[PAD]": 0, "[UNK]": 1, "keys": 2, "and": 3, "queries": 4}}
/// }"#)?;
/// let device = Device::default();
/// let bert = BertConfig::new(5).with_d_model(24).with_n_heads(3).with_n_layers(2).with_d_ff(48).init(&device);
///
/// let tokenizer = pretrained::tokenizer(&folder)?;
/// let texts = tokenizer.encode_batch(vec!["Keys and queries", "keys"], true)?;
/// let tokens: Vec<u32> = texts.iter().flat_map(|text| text.get_ids().to_vec()).collect();
/// assert_eq!(tokens, [2, 3, 4, 2, 0, 0]);
/// let lengths: Vec<usize> = texts.iter().map(|text| text.get_attention_mask().iter().sum::<u32>() as usize).collect();
/// assert_eq!(lengths, [3, 1]);
///
/// let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [2, texts[0].len()]), &device);
/// let states = bert.forward(BertInput::new(tokens).lengths(&lengths));
/// assert_eq!(bert.sentence_vectors(states, &lengths).dims(), [2, 24]);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn tokenizer(source: impl AsRef<Path>) -> Result<Tokenizer, PretrainedError> {
    let path = folder_with(source.as_ref(), Wanted::Tokenizer)?.join(Wanted::Tokenizer.file());
    Tokenizer::from_file(&path).map_err(|error| PretrainedError::Tokenizer {
        reason: lfs_pointer(&path).unwrap_or_else(|| error.to_string()),
        path,
    })
}
