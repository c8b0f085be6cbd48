//! The modules in which the tokens of a layer read each other, and what they keep of them.

mod either;
mod gated_delta_rule;
mod gated_delta_state;
mod state;
mod token_mixer;

pub use either::{EitherMixer, EitherState};
pub use gated_delta_rule::{GatedDeltaRule, GatedDeltaRuleConfig};
pub use gated_delta_state::GatedDeltaState;
pub use state::MixerState;
pub use token_mixer::{MixerCall, TokenMixer};
