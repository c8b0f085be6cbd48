//! Speech recognition: from samples to words and when they were said, with a [`Whisper`](crate::whisper::Whisper).
//!
//! ```no_run
//! // Not run: it reads the weights, with the feature `hub` from the Hub.
//! use burn::tensor::Device;
//! use burn_attn_models::speech::SpeechRecognizer;
//!
//! let recognizer = SpeechRecognizer::from_pretrained("openai/whisper-tiny.en", &Device::default())?;
//! let samples: Vec<f32> = vec![0.0; 16_000]; // a second, 16,000 samples in -1..1
//! for window in recognizer.windows(&samples) {
//!     println!("{}", recognizer.recognize(window)?.text);
//! }
//! # Ok::<(), burn_attn_models::speech::SpeechError>(())
//! ```
//!
//! | file | what it says |
//! | --- | --- |
//! | `config.json`, weights | the model |
//! | `tokenizer.json` | its tokens |
//! | `generation_config.json` | `decoder_start_token_id`, `eos_token_id`, `no_timestamps_token_id`; `suppress_tokens`, which are never chosen, and `begin_suppress_tokens`, which are not chosen first; `alignment_heads`, whose attention says when a word begins; `is_multilingual`, `lang_to_id`, `task_to_id`, `language`; `max_new_tokens` and `max_length`; `forced_decoder_ids`, or else those of `config.json`, unless there is a `language` or a `task`: where `lang_to_id` names languages, they say which is spoken, and those of a translation are refused. Settings that would change the text or end it, such as beams and `stop_strings`, are refused |
//!
//! Texts are chosen greedily and without timestamps, as by `generate()` of Hugging Face's `transformers`, and as by `generate(task="transcribe")` where the files
//! name languages but neither one of them, nor a task, nor `forced_decoder_ids`: `generate()` then begins a text without the token of a task. A recording of more
//! than 30 seconds is cut into windows, at 30 seconds each, also within a word, while `transformers` cuts it at timestamps. There is no translation.
//! Spectrograms have the windows and frequencies of published Whispers; a `preprocessor_config.json` with others is refused, and so is a `feature_extractor` in
//! `processor_config.json`.
//!
//! [`AudioProcessor`] reads the `preprocessor_config.json` of a [`Wav2Vec2`](crate::wav2vec2::Wav2Vec2), whose input is samples instead of spectrograms;
//! [`CtcVocabulary`] reads its letters.

mod alignment;
mod audio_processor;
mod ctc_vocabulary;
mod error;
mod languages;
mod log_mel;
mod recognizer;
mod settings;
mod words;

pub use audio_processor::{AudioBatch, AudioProcessor};
pub use ctc_vocabulary::CtcVocabulary;
pub use error::SpeechError;
pub use log_mel::LogMel;
pub use recognizer::{SpeechRecognizer, Transcript};
pub use settings::SpeechSettings;
pub use words::{Alignment, Word};
