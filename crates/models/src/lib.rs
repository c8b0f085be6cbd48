//! Transformer models made of the modules of [`burn_attn`]: published ones, read from their files, or your own; text generation with any
//! of them; and weights from PyTorch, Hugging Face's `transformers` and burn-nn.
//!
//! # Which model
//!
//! | task | model | published families |
//! | --- | --- | --- |
//! | continue a text | [`LanguageModel`](language_model::LanguageModel) | [`gpt2`]; [`gpt_neox`], with Pythia; [`llama`], with Mistral, Mixtral, Qwen 2 and 3, Gemma 2 and 3, OLMo 2, gpt-oss |
//! | turn one text into another | [`Seq2Seq`](seq2seq::Seq2Seq) | [`t5`], with T5 1.1 and Flan-T5 |
//! | turn a text into a vector | `sentences::SentenceEncoder` (feature `tokenizers`) | those of `sentence-transformers` that are a [`bert`], such as MiniLM and BGE |
//! | turn a text into one state per token | [`Bert`](bert::Bert) | [`bert`], with ALBERT |
//!
//! Each is a Burn module, but for the sentence encoder, which has a `Bert`. A configuration builds one with random parameters, and `forward` returns the logits or states to train on:
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use burn_attn_models::{generate::{GenerateOptions, generate}, language_model::LanguageModelConfig};
//!
//! let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
//!
//! let tokens = Tensor::from_data([[5, 6, 7], [8, 9, 2]], &Device::default()); // [batch, len]
//! assert_eq!(model.forward(tokens).dims(), [2, 3, 100]); // [batch, len, vocab_size]
//!
//! let prompts = [vec![5, 6, 7], vec![8]];
//! let outputs = generate(&model, model.start(2), &prompts, &GenerateOptions::new(11))?;
//! assert_eq!(outputs[1].tokens.len(), 11);
//! # Ok::<(), burn_attn_models::generate::GenerateError>(())
//! ```
//!
//! # Published models
//!
//! The `from_pretrained` of a family, or of [`LanguageModel`](language_model::LanguageModel) for any that continues a text, reads a folder that `transformers` saved, or, with the feature `hub`, a name on the Hugging Face Hub.
//! It takes a device, or [options](pretrained::LoadOptions) with a dtype, such as bf16. With the feature `tokenizers`, `pretrained::tokenizer` reads the model's tokenizer, and `sentences` the pipelines of `sentence-transformers`. [`pretrained`] says where files are looked for.
//!
//! ```no_run
//! use burn::tensor::Device;
//! use burn_attn_models::{generate::{GenerateOptions, generate}, language_model::LanguageModel};
//!
//! let model = LanguageModel::from_pretrained("path/to/gpt2", &Device::default())?; // or "openai-community/gpt2", with the feature `hub`
//! let prompt = vec![464, 3290]; // token ids
//! let outputs = generate(&model, model.start(1), &[prompt], &GenerateOptions::new(20))?;
//! println!("{:?}", outputs[0].tokens);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Generation
//!
//! | to | call |
//! | --- | --- |
//! | continue prompts to their end | [`generate`](generate::generate()) |
//! | handle tokens as they are chosen, or stop early | [`stream`](generate::stream) |
//! | let new requests join a running batch | [`Stream::join`](generate::Stream::join) |
//! | turn tokens into text while they are chosen | `text::TextStream`, with the feature `tokenizers` |
//! | forbid tokens, or favour them | [`Stream::logits_processor`](generate::Stream::logits_processor) |
//! | talk with a model by its chat template | `chat::Conversation::say`, with the feature `chat` |
//! | end where the model's files say | `pretrained::end_tokens`, with the feature `tokenizers` |
//! | go on with a conversation | [`Stream::into_state`](generate::Stream::into_state) |
//! | generate faster with a smaller model | [`speculate`](generate::speculate()) |
//! | find the most probable outputs | [`beam_search`](generate::beam_search) |
//! | draw tokens at random | [`Sampling`](generate::Sampling) |
//! | forget the last tokens again | [`LanguageModelState::truncate`](language_model::LanguageModelState::truncate) |
//! | generate with a model of another kind | implement [`Autoregressive`](generate::Autoregressive) |
//!
//! # Weights from other libraries
//!
//! | what you have | what reads it |
//! | --- | --- |
//! | a model of a family above | its `from_pretrained` |
//! | attention or transformers of PyTorch or burn-nn | [`import`], which is also the guide to moving from them |
//! | any other model | [`weights`]: a table of which parameter is which tensor, read in both directions |
//!
//! # Training
//!
//! With the feature `train`, `train::Trainer` trains [`LanguageModel`](language_model::LanguageModel) and [`Seq2Seq`](seq2seq::Seq2Seq), on one device or several,
//! and so does burn-train's `Learner`; `train` has their batches and steps, and what your own training loop needs on all cores of a CPU. [`loss`] is cross entropy
//! with smoothed labels, with its gradient in closed form.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `hub` | | names on the Hugging Face Hub in `from_pretrained`, from its local cache or the network |
//! | `chat` | | `chat`: chat templates and conversations; implies `tokenizers` |
//! | `tokenizers` | | `pretrained::{tokenizer, end_tokens}`, by the crate `tokenizers`; `sentences`; `text` |
//! | `train` | | `train`: a training loop; batches and steps for it, for burn-train's learner, or for your own loop |
//! | `flex` | yes | Burn's fast CPU backend |
//! | `ndarray`, `wgpu`, `vulkan`, `metal`, `webgpu`, `cuda`, `rocm`, `cpu`, `tch`, `remote` | | Burn's backend of the same name |
//! | `autodiff` | yes | training |
//! | `std` | yes | the standard library in Burn |

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
#[cfg(feature = "tokenizers")]
pub mod text;
pub mod tokens;
#[cfg(feature = "train")]
pub mod train;
mod vocabulary;
pub mod weights;

pub use families::{bert, gpt_neox, gpt2, llama, t5};

/// The example in the README, which loads models from the Hub.
#[cfg(all(doctest, feature = "hub", feature = "chat"))]
#[doc = include_str!("../README.md")]
struct Readme;
