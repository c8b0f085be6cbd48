//! The translator of the explorer's page: it translates and traces a sentence, with the same weights in other configurations.

mod file;
mod model;
mod request;

pub use file::ModelFile;
pub use model::{Answer, Explorer, TensorPlace};
pub use request::{AttentionKind, HeadPlace, Request, Side, Switches};
