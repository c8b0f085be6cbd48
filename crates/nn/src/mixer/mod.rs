//! The modules in which the tokens of a layer read each other, and what they keep of them.

mod state;
mod token_mixer;

pub use state::MixerState;
pub use token_mixer::{MixerCall, TokenMixer};
