//! One of two mixers: the layers of a stack that are of two kinds.

use burn::{module::Module, tensor::Tensor};

use super::{MixerCall, MixerState, TokenMixer};
use crate::{KvCacheConfig, SelfAttentionInput};

/// One of two [mixers of tokens](TokenMixer), for stacks whose layers are of two kinds, such as [`SelfAttention`](crate::SelfAttention) in some
/// and [`GatedDeltaRule`](crate::GatedDeltaRule) in the others (Qwen3-Next): whichever is present.
///
/// Each kind reads what fits its [state](TokenMixer::cache) from a [`KvCacheConfig`]: in such a stack, 8 bits and sink tokens are for the layers with
/// attention.
///
/// It is a struct, not an enum, so that the names of its parameters in a file are those of its fields.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{EitherMixer, GatedDeltaRuleConfig, LayerInput, SelfAttentionConfig, TransformerStackConfig};
///
/// let device = Device::default();
/// let attention = SelfAttentionConfig::new(32, 4).with_causal(true);
/// let delta_rule = GatedDeltaRuleConfig::new(32, 2, 4, 8, 8);
/// let mixer = |layer: usize| match layer % 4 {
///     3 => EitherMixer::first(attention.init(&device)),
///     _ => EitherMixer::second(delta_rule.init(&device)),
/// };
/// let model = TransformerStackConfig::causal(32, 64, 4, 8).init_with(mixer, &device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// assert_eq!(model.forward(LayerInput::new(x)).dims(), [2, 7, 32]);
/// ```
#[derive(Module, Debug)]
pub struct EitherMixer<A, B> {
    /// The first kind.
    pub first: Option<A>,
    /// The second kind.
    pub second: Option<B>,
}

/// The state of an [`EitherMixer`]: that of the mixer which is present.
#[derive(Clone, Debug)]
pub enum EitherState<A, B> {
    /// The state of the first mixer.
    First(A),
    /// The state of the second mixer.
    Second(B),
}

const NEITHER: &str = "EitherMixer: neither mixer is present";
const OF_THE_OTHER: &str = "EitherMixer: the state is that of a layer of the other kind";

impl<A, B> EitherMixer<A, B> {
    /// A mixer of the first kind.
    pub fn first(mixer: A) -> Self {
        Self {
            first: Some(mixer),
            second: None,
        }
    }

    /// A mixer of the second kind.
    pub fn second(mixer: B) -> Self {
        Self {
            first: None,
            second: Some(mixer),
        }
    }
}

impl<A: TokenMixer, B: TokenMixer> TokenMixer for EitherMixer<A, B> {
    type State = EitherState<A::State, B::State>;

    fn cache(&self, batch: usize, config: &KvCacheConfig) -> Self::State {
        match (&self.first, &self.second) {
            (Some(mixer), _) => EitherState::First(mixer.cache(batch, config)),
            (None, Some(mixer)) => EitherState::Second(mixer.cache(batch, config)),
            (None, None) => panic!("{NEITHER}"),
        }
    }

    fn mix(
        &self,
        input: SelfAttentionInput,
        state: Option<&mut Self::State>,
        call: &mut MixerCall,
    ) -> Tensor<3> {
        match (&self.first, &self.second, state) {
            (Some(mixer), _, None) => mixer.mix(input, None, call),
            (None, Some(mixer), None) => mixer.mix(input, None, call),
            (Some(mixer), _, Some(EitherState::First(state))) => {
                mixer.mix(input, Some(state), call)
            }
            (None, Some(mixer), Some(EitherState::Second(state))) => {
                mixer.mix(input, Some(state), call)
            }
            (None, None, _) => panic!("{NEITHER}"),
            _ => panic!("{OF_THE_OTHER}"),
        }
    }
}

/// `$call` of the state of either kind, called `$state`.
macro_rules! of_either {
    ($either:expr, $state:ident => $call:expr) => {
        match $either {
            EitherState::First($state) => $call,
            EitherState::Second($state) => $call,
        }
    };
}

impl<A: MixerState, B: MixerState> MixerState for EitherState<A, B> {
    fn lengths(&self) -> Vec<usize> {
        of_either!(self, state => state.lengths())
    }

    fn bytes(&self) -> usize {
        of_either!(self, state => state.bytes())
    }

    fn reorder(&mut self, rows: &[usize]) {
        of_either!(self, state => state.reorder(rows));
    }

    fn join(&mut self, other: Self) {
        match (self, other) {
            (Self::First(own), Self::First(others)) => own.join(others),
            (Self::Second(own), Self::Second(others)) => own.join(others),
            _ => panic!("{OF_THE_OTHER}"),
        }
    }

    fn reset(&mut self) {
        of_either!(self, state => state.reset());
    }

    fn fork(&mut self, rows: usize) {
        of_either!(self, state => state.fork(rows));
    }

    fn reserve(&mut self, new: usize) {
        of_either!(self, state => state.reserve(new));
    }

    fn truncate(&mut self, lengths: &[usize]) {
        of_either!(self, state => state.truncate(lengths));
    }

    fn refuses_truncation(&self, lengths: &[usize]) -> Option<String> {
        of_either!(self, state => state.refuses_truncation(lengths))
    }

    fn refuses_join(&self, other: &Self) -> Option<String> {
        match (self, other) {
            (Self::First(own), Self::First(others)) => own.refuses_join(others),
            (Self::Second(own), Self::Second(others)) => own.refuses_join(others),
            _ => Some(OF_THE_OTHER.to_owned()),
        }
    }

    fn refuses_tokens(&self, counts: &[usize]) -> Option<String> {
        of_either!(self, state => state.refuses_tokens(counts))
    }
}
