//! Published models, from a folder that Hugging Face's `transformers` saved (`config.json` and the weights), from the Hugging Face Hub, or from a GGUF file
//! of llama.cpp.
//!
//! | call | `model_type` of `config.json` |
//! | --- | --- |
//! | [`Bert::from_pretrained`](crate::bert::Bert::from_pretrained) | `bert`, `albert`, without a head on top |
//! | `sentences::SentenceEncoder::from_pretrained`, with the feature `tokenizers` | the same, in a pipeline of `sentence-transformers` |
//! | [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained) | any of the next three rows |
//! | [`gpt2::from_pretrained`](crate::gpt2::from_pretrained) | `gpt2` |
//! | [`gpt_neox::from_pretrained`](crate::gpt_neox::from_pretrained) | `gpt_neox` |
//! | [`llama::from_pretrained`](crate::llama::from_pretrained) | [ten families](crate::llama) |
//! | [`deepseek_v2::from_pretrained`](crate::deepseek_v2::from_pretrained) | `deepseek_v2` |
//! | [`qwen3_next::from_pretrained`](crate::qwen3_next::from_pretrained) | `qwen3_next` |
//! | [`t5::from_pretrained`](crate::t5::from_pretrained) | `t5` |
//! | [`whisper::from_pretrained`](crate::whisper::from_pretrained) | `whisper` |
//! | `speech::SpeechRecognizer::from_pretrained`, with the feature `speech` | the same |
//! | `speech::{AudioProcessor, CtcVocabulary}::from_pretrained`, with the feature `speech` | `wav2vec2`, whose weights they do not read |
//! | [`wav2vec2::from_pretrained`](crate::wav2vec2::from_pretrained) | `wav2vec2` |
//! | [`clip::from_pretrained`](crate::clip::from_pretrained) | `clip`, `siglip` |
//! | [`ClipVision::from_pretrained`](crate::clip::ClipVision::from_pretrained) | the same, `clip_vision_model`, `siglip_vision_model` |
//! | [`ClipText::from_pretrained`](crate::clip::ClipText::from_pretrained) | the same, `clip_text_model`, `siglip_text_model` |
//! | [`detr::from_pretrained`](crate::detr::from_pretrained) | `detr` |
//! | `vision::ObjectDetector::from_pretrained`, with the feature `vision` | the same |
//! | [`segformer::from_pretrained`](crate::segformer::from_pretrained) | `segformer` |
//! | `vision::ImageSegmenter::from_pretrained`, with the feature `vision` | the same |
//! | [`vit::from_pretrained`](crate::vit::from_pretrained) | `vit`, `deit`, `dinov2` |
//! | `vision::ImageClassifier::from_pretrained`, with the feature `vision` | the same |
//! | `vision::ImageProcessor::from_pretrained`, with the feature `vision` | any model of images, whose weights it does not read |
//!
//! Every field of `config.json` is used, known to change nothing, or refused by name. Every tensor is used, refused by name, or known not to belong to
//! what is loaded, which is then without it, such as a head on top of a BERT or ALBERT. A [`Table`](crate::weights::Table) that has
//! [`BertConfig::table`](crate::bert::BertConfig::table) as a part, and a row for the head, reads both. In the place of a device, each call takes
//! [`LoadOptions`], such as bf16 parameters. With the feature `tokenizers`, this module also has `tokenizer`, which reads `tokenizer.json`, and `end_tokens`.
//!
//! # GGUF
//!
//! A source that is a file is a GGUF file, as llama.cpp's converter writes it of BERT, Llama, Mistral, Qwen 2 and Qwen 3: `"model-Q8_0.gguf"`. Tensors in F64, F32, F16,
//! BF16, Q8_0, Q4_0 and Q6_K become parameters in the dtype of the options; other types are refused by name. The scaled rotary positions of Llama 3.1, which the
//! converter writes as a tensor, are read. A Mistral 7B v0.1 is a `llama` there, without its window of 4096 tokens, so longer texts get other logits
//! than from its own files. The tokenizer inside the file is not read: put `tokenizer.json` beside it.
//!
//! # Names on the Hub
//!
//! With the feature `hub`, a source that is not a folder is taken for a name on the Hugging Face Hub: `"sentence-transformers/all-MiniLM-L6-v2"`,
//! or, with a branch, a tag or a commit, `"openai-community/gpt2@607a30d783dfa663caf39e06633721c8d4cfcd7e"`. The default is `main`.
//!
//! The local cache is shared with the Python library `huggingface_hub`. A model that is complete there is used as it is, without the
//! network, so `main` stays what it was when it was downloaded; to follow it, update the cache with Python's `hf download`. Otherwise `config.json` is
//! downloaded; then, if the model is supported, the files of tokenizer, chat and sentence modules if there are any, and the weights (`model.safetensors`, its shards, or
//! `pytorch_model.bin`). Nothing is printed: `on_download` reports the progress. After an interrupted download, the next call keeps the
//! files that were complete and begins the others again.
//!
//! That a model has no `modules.json`, no `tokenizer_config.json` or no `generation_config.json` is noted in the cache as the Python library notes it.
//! Where that is not known, a sentence encoder, a `chat`, `end_tokens` or a `speech::CtcVocabulary` needs the network once, or the folder of the
//! model instead of its name.
//!
//! | environment variable | meaning |
//! | --- | --- |
//! | `HF_HUB_CACHE`, or `HUGGINGFACE_HUB_CACHE` | the cache. Default: `hub` in `HF_HOME`, which is `huggingface` in `XDG_CACHE_HOME` or `~/.cache` by default |
//! | `HF_HUB_OFFLINE`, `TRANSFORMERS_OFFLINE` | the first of them that is set decides: if it is `1`, `ON`, `YES` or `TRUE`, nothing is downloaded |
//! | `HF_TOKEN` | your access token, for models that require one, unless `HF_HUB_DISABLE_IMPLICIT_TOKEN` is `1`. Default: what the file at `HF_TOKEN_PATH` has, or else the file `token` in `HF_HOME`; in folders a leading `~` is your own folder, but not for these files |
//! | `HF_ENDPOINT` | another server |

mod choices;
mod config_file;
mod error;
mod fields;
mod gguf;
#[cfg(feature = "hub")]
mod hub;
#[cfg(feature = "hub")]
mod hub_files;
mod json;
mod load_options;
#[cfg(any(feature = "speech", feature = "vision"))]
mod preprocessor;
#[cfg(feature = "hub")]
mod progress;
#[cfg(any(feature = "hub", feature = "tokenizers"))]
mod sentence_modules;
mod source;
#[cfg(feature = "tokenizers")]
mod tokenizer;
mod wanted;

pub(crate) use config_file::ConfigFile;
pub use error::PretrainedError;
pub(crate) use error::Result;
#[cfg(feature = "speech")]
pub(crate) use error::{AUDIO_SETTINGS, GENERATION_SETTINGS};
pub(crate) use gguf::ROPE_FREQS;
#[cfg(feature = "vision")]
pub(crate) use json::object_if_any;
pub use load_options::LoadOptions;
#[cfg(any(feature = "speech", feature = "vision"))]
pub(crate) use preprocessor::preprocessor;
#[cfg(feature = "speech")]
pub(crate) use preprocessor::preprocessor_if_any;
#[cfg(feature = "hub")]
pub use progress::{Download, on_download};
pub use source::folder;
#[cfg(feature = "tokenizers")]
pub use tokenizer::{Tokenizer, end_tokens, tokenizer};
#[cfg(any(feature = "tokenizers", feature = "vision"))]
pub(crate) use {error::MODEL_CONFIG, json::object, source::folder_with, wanted::Wanted};
#[cfg(feature = "tokenizers")]
pub(crate) use {
    error::TOKENIZER_SETTINGS,
    sentence_modules::{MODULES, SENTENCE_CONFIGS, sentence_modules},
};
#[cfg(any(feature = "chat", feature = "speech"))]
pub(crate) use {
    tokenizer::{text_of, tokenizer_fields},
    wanted::TOKENIZER_CONFIG,
};
