//! Sentence encoders: a BERT or ALBERT that turns texts into vectors, of which those of similar texts have a similar direction ("Sentence-BERT",
//! arXiv:1908.10084), from the files of the Python library `sentence-transformers`. MiniLM and BGE are such models.
//!
//! | file | what it says |
//! | --- | --- |
//! | `modules.json` | the modules in their order: a `Transformer`, a `Pooling`, and then any of `Dense` and `Normalize`; others are refused by name |
//! | the `config.json` in the folder of each | how it pools, by one or several [`Pooling`](crate::bert::Pooling)s side by side, in either schema; the sizes and the activation of `Dense`, whose weights lie beside it |
//! | `sentence_bert_config.json` | `max_seq_length`, `do_lower_case` |
//! | `tokenizer_config.json` | `model_max_length`, which counts where there is no `max_seq_length`; `truncation_side` |
//! | `config_sentence_transformers.json` | prompts, and `truncate_dim` |
//!
//! No text is longer than the model has positions. Every field is used, known to change nothing, or refused by name.
//!
//! **Without a `modules.json`** the vector is the mean of the states, not normalised, as `sentence-transformers` reads a plain folder of `transformers`.
//!
//! **A GGUF file** pools by its `bert.pooling_type` (1, the mean; 2, the first token; 3, the last one), or else by the mean, and its vectors are normalised, which is the
//! default of llama.cpp's programs. A `modules.json` beside the file is read instead, and has to pool as the file says.
//!
//! Vectors were compared with those of `sentence-transformers` 6.2.

mod encoder;
mod error;
mod files;
mod pipeline;
mod stage;
mod transformer_config;

pub use encoder::{Prompt, SentenceEncoder};
pub use error::EncodeError;
