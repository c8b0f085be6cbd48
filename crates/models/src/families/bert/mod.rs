//! BERT (Devlin et al., "BERT: pre-training of deep bidirectional transformers for language understanding", arXiv:1810.04805): an encoder of
//! texts, which also turns sentences into vectors (MiniLM, arXiv:2002.10957); and ALBERT (arXiv:1909.11942), whose layers share their weights and whose
//! embeddings are narrower than its states.

mod config;
mod files;
mod model;
mod pooling;

pub use config::BertConfig;
pub use model::{Bert, BertInput};
pub use pooling::Pooling;
pub(crate) use pooling::normalized;
