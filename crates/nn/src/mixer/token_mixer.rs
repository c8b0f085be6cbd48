//! What a layer needs of the module that mixes its tokens.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleDisplay},
    tensor::Tensor,
};
use burn_attn_ops::AttentionMask;

use super::MixerState;
use crate::{
    KvCache, KvCacheConfig, SelfAttention, SelfAttentionInput,
    attention::{SharedKeyValue, refuse},
    positions::{Position, Positions, check_lengths},
    trace::Recorder,
};

/// A module in which tokens read each other: what a [`TransformerLayer`](crate::TransformerLayer) runs in place of [`SelfAttention`].
///
/// Layers, stacks and language models take any of them: see
/// [`TransformerLayerConfig::init_with`](crate::TransformerLayerConfig::init_with) and
/// [`TransformerStackConfig::init_with`](crate::TransformerStackConfig::init_with). This crate has [`SelfAttention`], with grouped heads,
/// [`LatentAttention`](crate::LatentAttention) and [`GatedDeltaRule`](crate::GatedDeltaRule).
///
/// # A mixer of one's own
///
/// It reads the tokens by [`SelfAttentionInput::sequences`], and where they stand by [`SelfAttentionInput::token_positions`] and
/// [`SelfAttentionInput::position_encoding`]. Masks, biases and score functions are for attention: a mixer for which they matter has one
/// of this crate inside, to whose [`mix`](Self::mix) it passes the input on, with another mask if it needs one.
///
/// The mean of a token and the two before it, projected. Its state is the last two tokens of each sequence: one path reads a whole
/// sequence and, token by token, the next ones.
///
/// ```
/// use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Distribution, Tensor}};
/// use burn_attn::{
///     KvCacheConfig, LayerInput, MixerCall, MixerState, SelfAttentionInput, TokenMixer, TransformerStackConfig, linear,
/// };
///
/// /// How many tokens before itself a token reads.
/// const BEFORE: usize = 2;
///
/// #[derive(Module, Debug)]
/// struct MovingAverage {
///     output: Linear,
/// }
///
/// /// The last tokens of each sequence, `[BEFORE, d_model]`, and how many it has had.
/// #[derive(Clone, Debug)]
/// struct LastTokens {
///     last: Vec<Tensor<2>>,
///     lengths: Vec<usize>,
/// }
///
/// impl TokenMixer for MovingAverage {
///     type State = LastTokens;
///
///     fn cache(&self, batch: usize, _config: &KvCacheConfig) -> LastTokens {
///         let [d_model, _] = self.output.weight.dims();
///         let nothing = Tensor::zeros([BEFORE, d_model], &self.output.weight.device());
///         LastTokens { last: vec![nothing; batch], lengths: vec![0; batch] }
///     }
///
///     fn mix(&self, input: SelfAttentionInput, state: Option<&mut LastTokens>, _call: &mut MixerCall) -> Tensor<3> {
///         let (x, lengths) = input.sequences("MovingAverage");
///         let [batch, len, _] = x.dims();
///         let mut fresh = self.cache(batch, &KvCacheConfig::new(len.max(1)));
///         let state = state.unwrap_or(&mut fresh);
///         let of_sequence = |b: usize| {
///             let new = x.clone().narrow(0, b, 1).squeeze_dim::<2>(0);
///             let read = Tensor::cat(vec![state.last[b].clone(), new], 0);
///             // What follows is padding, which no later token reads.
///             state.last[b] = read.clone().narrow(0, lengths[b], BEFORE);
///             state.lengths[b] += lengths[b];
///             (1..=BEFORE).fold(read.clone().narrow(0, 0, len), |sum, at| sum + read.clone().narrow(0, at, len))
///         };
///         let sums: Vec<Tensor<2>> = (0..batch).map(of_sequence).collect();
///         linear(&self.output, Tensor::stack(sums, 0) / (BEFORE + 1) as f64)
///     }
/// }
///
/// impl MixerState for LastTokens {
///     fn lengths(&self) -> Vec<usize> {
///         self.lengths.clone()
///     }
///
///     fn bytes(&self) -> usize {
///         self.last.iter().map(|last| last.shape().num_elements() * last.dtype().size()).sum()
///     }
///
///     fn reorder(&mut self, rows: &[usize]) {
///         self.last = rows.iter().map(|&row| self.last[row].clone()).collect();
///         self.lengths = rows.iter().map(|&row| self.lengths[row]).collect();
///     }
///
///     fn join(&mut self, other: Self) {
///         self.last.extend(other.last);
///         self.lengths.extend(other.lengths);
///     }
///
///     fn reset(&mut self) {
///         self.last.iter_mut().for_each(|last| *last = last.zeros_like());
///         self.lengths.fill(0);
///     }
/// }
///
/// let device = Device::default();
/// let mixer = |_layer| MovingAverage { output: LinearConfig::new(32, 32).init(&device) };
/// let model = TransformerStackConfig::causal(32, 64, 4, 2).init_with(mixer, &device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// let whole = model.forward(LayerInput::new(x.clone()));
///
/// let mut cache = model.cache(2, &KvCacheConfig::new(100));
/// let tokens = x.split(1, 1).into_iter().map(|token| model.forward_cached(token, &mut cache));
/// let one_by_one = Tensor::cat(tokens.collect(), 1);
/// one_by_one.into_data().assert_approx_eq::<f32>(&whole.into_data(), Default::default());
/// ```
pub trait TokenMixer: Module + ModuleDisplay {
    /// What it keeps of the tokens so far, for the next ones.
    type State: MixerState;

    /// The state of `batch` sequences that have no tokens yet. A mixer reads what fits its state from `config`. Panics when no such state can
    /// be made.
    fn cache(&self, batch: usize, config: &KvCacheConfig) -> Self::State;

    /// The output, `[batch, len, d_model]` as the input: for whole sequences, or for the next tokens of each, which are added to the `state`.
    /// A mixer that has others inside passes `call` on to them, and otherwise leaves it alone.
    ///
    /// # Panics
    ///
    /// When the width differs, or the mixer cannot do what the input asks for: [`SelfAttentionInput::sequences`] panics for mixers that have
    /// no masks.
    fn mix(
        &self,
        input: SelfAttentionInput,
        state: Option<&mut Self::State>,
        call: &mut MixerCall,
    ) -> Tensor<3>;

    /// [`mix`](Self::mix) of whole sequences, outside of a layer.
    fn forward(&self, input: impl Into<SelfAttentionInput>) -> Tensor<3> {
        self.mix(input.into(), None, &mut MixerCall::default())
    }

    /// [`mix`](Self::mix) of the next tokens of each sequence, outside of a layer.
    fn forward_cached(
        &self,
        input: impl Into<SelfAttentionInput>,
        state: &mut Self::State,
    ) -> Tensor<3> {
        self.mix(input.into(), Some(state), &mut MixerCall::default())
    }
}

/// What a layer keeps of its mixer's call besides the output, and what the layers of a stack share: nothing, by default.
#[derive(Default)]
pub struct MixerCall {
    pub(crate) recorder: Recorder,
    pub(crate) shared: SharedKeyValue,
    /// In a stack on whole sequences, the masks of the layers so far.
    pub(crate) masks: Option<BTreeMap<MaskKind, AttentionMask>>,
}

/// The sizes of a layer's input, its heads, whether it is causal, and its window.
type MaskKind = ([usize; 3], usize, bool, Option<usize>);

impl TokenMixer for SelfAttention {
    type State = KvCache;

    fn cache(&self, batch: usize, config: &KvCacheConfig) -> KvCache {
        self.cache(batch, config)
    }

    fn mix(
        &self,
        mut input: SelfAttentionInput,
        state: Option<&mut KvCache>,
        call: &mut MixerCall,
    ) -> Tensor<3> {
        if let Some(cache) = state {
            return self.run_cached(input, cache, &mut call.shared);
        }
        if let Some(masks) = call.masks.as_mut().filter(|_| input.context.is_of_stack) {
            let heads = self.heads.n_heads();
            let made = masks.entry((input.x.dims(), heads, self.causal, self.window));
            let made = made.or_insert_with(|| self.mask_for_calls(&input.context, &input.x));
            input.context.made_mask = Some(made.clone());
        }
        self.run(input, &mut call.recorder, &mut call.shared)
    }
}

impl SelfAttentionInput {
    /// Where the tokens stand, if the caller has said so: by default each at its place in its sequence, after those that the mixer's state
    /// has read ([`MixerState::lengths`](crate::MixerState::lengths)). What a
    /// [`TokenMixer`](crate::TokenMixer) reads before [`sequences`](Self::sequences), if positions matter to it.
    pub fn token_positions(&self) -> Option<&Positions> {
        self.context.positions.as_ref()
    }

    /// The position encoding that is not the mixer's own: that of the input, or a rotary or relative one that the layers of a stack share, for
    /// [`Position::rotate`] or [`Position::bias`].
    pub fn position_encoding(&self) -> Option<&Position> {
        self.context.position.as_ref()
    }

    /// The sequences, `[batch, len, d_model]`, and how many of the `len` tokens of each are no padding: all that a causal
    /// [`TokenMixer`](crate::TokenMixer) without scores and positions reads. The order of the tokens is that in which they stand: their positions, and a
    /// position encoding, are left to the layers with attention of the same stack, which passes both to all layers, and to mixers that ask for them.
    ///
    /// Panics, in the name of `mixer`, on a mask, a bias, a score function, an offset, positions of keys or an embedding, and on lengths that do not
    /// fit.
    pub fn sequences(self, mixer: &str) -> (Tensor<3>, Vec<usize>) {
        let context = self.context;
        let unused = [
            ("a mask was", !context.mask.is_none()),
            ("a bias was", !context.bias.is_none()),
            ("a score function was", context.score_function.is_some()),
            ("an offset was", context.offset.is_some()),
            ("key positions were", context.key_positions.is_some()),
            (
                "a position embedding was",
                self.query_key_position_embedding.is_some(),
            ),
        ];
        refuse(unused, |what| {
            format!("{mixer}: {what} given, but it has no scores of queries and keys")
        });
        let [batch, len, _] = self.x.dims();
        let lengths = context.lengths.unwrap_or_else(|| vec![len; batch]);
        check_lengths(mixer, &lengths, "", [batch, len]);
        (self.x, lengths)
    }
}
