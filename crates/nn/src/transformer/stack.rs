//! Stacks of layers.

use std::collections::BTreeMap;

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn_derive::Config;
use burn_attn_ops::StatisticsOptions;

use super::{
    BlockConfig, LayerInput, LayerOutput, LayerPattern, NormPlacement, TransformerLayer,
    TransformerLayerConfig,
};
use crate::{
    CrossMemory, MixerCall, Norm, SelfAttention, TokenMixer,
    attention::SharedKeyValue,
    error::{ConfigError, expect_valid},
    normalised,
    positions::{Position, PositionEncoding},
    trace::{Kept, Trace},
};

const NAME: &str = "TransformerStackConfig";

/// Configuration of [`TransformerStack`]. [`encoder`](Self::encoder), [`causal`](Self::causal()) and [`decoder`](Self::decoder) make
/// the usual stacks.
///
/// Fields that burn-nn 0.22.1's `TransformerEncoderConfig` and `TransformerDecoderConfig` have as well mean the same here.
#[derive(Config, Debug)]
pub struct TransformerStackConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Number of layers.
    pub n_layers: usize,
    /// Whether a position sees only itself and earlier positions, or all positions. Decoding with a cache needs a causal stack; the
    /// object queries of a DETR (arXiv:2005.12872) see each other.
    #[config(default = false)]
    pub causal: bool,
    /// Width of the memory for cross-attention: an encoder's `d_model`. Default: no cross-attention.
    pub d_memory: Option<usize>,
    /// How every layer is built, unless `pattern` overrides it. `parallel` excludes cross-attention.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
    /// Which layers differ, and which share their weights.
    #[config(default = "LayerPattern::Uniform")]
    pub pattern: LayerPattern,
    /// Whether a final norm follows the stack. Default: yes, unless the block is post-norm, whose sums are normalised already.
    pub final_norm: Option<bool>,
}

impl TransformerStackConfig {
    /// An encoder (BERT): every position sees all positions. PyTorch equivalent: `nn.TransformerEncoder` with `batch_first=True`.
    pub fn encoder(d_model: usize, d_ff: usize, n_heads: usize, n_layers: usize) -> Self {
        Self::new(d_model, d_ff, n_heads, n_layers)
    }

    /// The decoder-only stack of language models (GPT, Llama): every position sees itself and earlier ones.
    ///
    /// PyTorch equivalent: `nn.TransformerEncoder` with `batch_first=True`, called with the `mask` of
    /// `nn.Transformer.generate_square_subsequent_mask(len)` and `is_causal=True`.
    ///
    /// # Source
    ///
    /// "Generating Wikipedia by summarizing long sequences" (arXiv:1801.10198), section 4.2.3.
    pub fn causal(d_model: usize, d_ff: usize, n_heads: usize, n_layers: usize) -> Self {
        Self::new(d_model, d_ff, n_heads, n_layers).with_causal(true)
    }

    /// A decoder with cross-attention to a memory that is `d_model` wide. As in burn-nn and PyTorch (`nn.TransformerDecoder` with
    /// `batch_first=True`), a position sees the whole target unless a mask or `with_causal(true)` hides what is later.
    pub fn decoder(d_model: usize, d_ff: usize, n_heads: usize, n_layers: usize) -> Self {
        Self::new(d_model, d_ff, n_heads, n_layers).with_d_memory(d_model)
    }

    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_in(NAME)
    }

    /// [`validate`](Self::validate), with errors in the name of `config`.
    pub(super) fn validate_in(&self, config: &'static str) -> Result<(), ConfigError> {
        for block in self.pattern.different(&self.block) {
            self.layer(block).validate_in(config)?;
        }
        ConfigError::check_positive(config, &[("n_layers", self.n_layers)])?;
        self.pattern.validate(config, self.n_layers)?;
        self.sources(config).map(|_| ())
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> TransformerStack {
        self.assemble(device, |_, layer| layer.init(device))
    }

    /// As [`init`](Self::init), with other mixers of tokens than the self-attention that the fields describe: `mixer(i)` is that of
    /// [`layers[i]`](TransformerStack::layers). The fields are checked all the same, but say nothing of the mixers, except for a rotary or relative position encoding: blocks
    /// that agree in it and in the width of their heads share one, which the mixers of their layers get. [`TokenMixer`] has an
    /// example.
    pub fn init_with<M: TokenMixer>(
        &self,
        mixer: impl Fn(usize) -> M,
        device: &Device,
    ) -> TransformerStack<M> {
        let mut blocks = self.pattern.different(&self.block).iter();
        let shares = blocks.any(|block| block.shared_key_value);
        expect_valid(ConfigError::check(NAME, !shares, || {
            "shared_key_value is true, but only layers of self-attention can take keys and values from the layer before"
                .into()
        }));
        self.assemble(device, |index, layer| layer.init_with(mixer(index), device))
    }

    fn assemble<M>(
        &self,
        device: &Device,
        init: impl Fn(usize, &TransformerLayerConfig) -> TransformerLayer<M>,
    ) -> TransformerStack<M> {
        expect_valid(self.validate());
        let mut shared: Vec<(PositionEncoding, usize)> = Vec::new();
        let (mut layers, mut positions, mut position_of) = (Vec::new(), Vec::new(), Vec::new());
        let blocks = self.pattern.blocks(&self.block, self.n_layers);
        let last = blocks.last().copied().unwrap_or(&self.block);
        for &block in &blocks {
            let mut layer = self.layer(block);
            position_of.push(layer.take_shared_position().map(|position| {
                let found = shared.iter().position(|other| *other == position);
                found.unwrap_or_else(|| {
                    let (encoding, d_head) = &position;
                    positions.push(encoding.init(self.n_heads, *d_head, device));
                    shared.push(position);
                    shared.len() - 1
                })
            }));
            layers.push(init(layers.len(), &layer));
        }
        // Post-norm has normalised the last sum.
        let default = last.norm_placement != NormPlacement::Post;
        let has_norm = self.final_norm.unwrap_or(default);
        let order = 0..self.n_layers;
        TransformerStack {
            layers,
            positions,
            norm: has_norm.then(|| last.norm.init(self.d_model, device)),
            order: order
                .map(|index| self.pattern.layer(index, self.n_layers))
                .collect(),
            position_of,
            source_of: expect_valid(self.sources(NAME)),
        }
    }

    fn layer(&self, block: &BlockConfig) -> TransformerLayerConfig {
        TransformerLayerConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            causal: self.causal,
            d_memory: self.d_memory,
            block: block.clone(),
        }
    }
}

/// A stack of layers, which may differ: the encoder, the decoder and the causal stack of language models are this module with
/// different configurations.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.1. PyTorch equivalents: `nn.TransformerEncoder` and
/// `nn.TransformerDecoder`.
///
/// An encoder, and a decoder that attends to its states:
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{LayerInput, TransformerStackConfig};
///
/// let device = Device::default();
/// let random = |len| Tensor::random([2, len, 32], Distribution::Default, &device);
/// let encoder = TransformerStackConfig::encoder(32, 64, 4, 2).init(&device);
/// let lengths = [7, 4];
/// let memory = encoder.forward(LayerInput::new(random(7)).lengths(&lengths));
///
/// let decoder = TransformerStackConfig::decoder(32, 64, 4, 2).with_causal(true).init(&device);
/// let input = LayerInput::new(random(5)).memory(memory).memory_lengths(&lengths);
/// assert_eq!(decoder.forward(input).dims(), [2, 5, 32]);
/// ```
///
/// The states after every layer, in a stack whose layers share their weights:
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{LayerPattern, TransformerStackConfig};
///
/// let device = Device::default();
/// let albert = TransformerStackConfig::encoder(32, 64, 4, 3).with_pattern(LayerPattern::Shared(1)).init(&device);
/// assert_eq!(albert.layers.len(), 1);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// assert_eq!(albert.forward_with_hidden_states(x).hidden_states.len(), 3);
/// ```
#[derive(Module, Debug)]
pub struct TransformerStack<M = SelfAttention> {
    /// The layers with weights, first to last. To run a layer alone, pass its shared position encoding, if there is one:
    /// [`position`](Self::position).
    pub layers: Vec<TransformerLayer<M>>,
    /// The position encodings that layers share: a rotary table, or a relative bias as in T5, for all layers that are configured alike.
    /// ALiBi's slopes belong to the layers.
    pub positions: Vec<Position>,
    /// The final norm, if there is one.
    pub norm: Option<Norm>,
    /// Indices into `layers`, in the order in which they run.
    order: Vec<usize>,
    /// Index into `positions` for each of `layers`, if it shares one.
    #[module(skip)]
    position_of: Vec<Option<usize>>,
    /// For each layer, in the order in which they run: which layer's keys and values it attends to, as an index into the caches.
    #[module(skip)]
    pub(super) source_of: Vec<usize>,
}

/// Output of a [`TransformerStack`] with more than its states.
#[derive(Clone, Debug)]
pub struct TransformerStackOutput {
    /// `[batch, len, d_model]`
    pub states: Tensor<3>,
    /// If requested, the states after every layer, `[batch, len, d_model]` each, before the final norm.
    pub hidden_states: Vec<Tensor<3>>,
    /// If requested, one `[batch, heads, len, len]` per layer whose mixer is an attention.
    pub self_weights: Vec<Tensor<4>>,
    /// If requested, one `[batch, heads, len, len_kv]` per layer with cross-attention.
    pub cross_weights: Vec<Tensor<4>>,
    /// One `[batch · len, n_experts]` per layer with experts, for [`load_balancing_loss`](crate::load_balancing_loss).
    pub router_logits: Vec<Tensor<2>>,
}

impl<M: TokenMixer> TransformerStack<M> {
    /// The states of every position, `[batch, len, d_model]` as the input, at the cost of [`TransformerLayer::forward`] layer by layer.
    /// Panics as each layer does, and when a position encoding is given to a stack whose layers share one.
    pub fn forward(&self, input: impl Into<LayerInput>) -> Tensor<3> {
        // The weights are not returned.
        self.run(input.into().weights(false), |output| output.states)
    }

    /// As [`forward`](Self::forward), with the attention weights of every layer. This takes all scores once more, and memory for
    /// `batch · heads · len · (len + len_kv)` weights per layer with cross-attention, `batch · heads · len²` per layer without it.
    pub fn forward_with_weights(&self, input: impl Into<LayerInput>) -> TransformerStackOutput {
        self.traced(input.into().weights(true), |_| {})
    }

    /// Every step of [`forward`](Self::forward), by name: those of the layers as `0.…`, `1.…`, in the order in which they run, then `output`. Panics as
    /// [`forward`](Self::forward); cost as [`SelfAttention::forward_traced`](crate::SelfAttention::forward_traced), layer by layer.
    pub fn forward_traced(&self, input: impl Into<LayerInput>) -> Trace {
        let (mut trace, states) = self.kept(input.into().kept(Kept::Steps));
        trace.add("output", states);
        trace
    }

    /// What the attention weights look like, by name: the statistics that [`Trace`] lists, as `0.self.…`, `1.self.…`, layer by layer. Panics as
    /// [`forward`](Self::forward); cost as [`SelfAttention::forward_with_statistics`](crate::SelfAttention::forward_with_statistics).
    pub fn forward_with_statistics(
        &self,
        input: impl Into<LayerInput>,
        options: StatisticsOptions,
    ) -> Trace {
        self.kept(input.into().kept(Kept::Statistics(options))).0
    }

    /// What the layers keep, and the states.
    fn kept(&self, input: LayerInput) -> (Trace, Tensor<3>) {
        let (mut trace, mut number) = (Trace::new(), 0);
        let states = self.run(input, |output| {
            trace.extend(&number.to_string(), output.trace);
            number += 1;
            output.states
        });
        (trace, states)
    }

    /// As [`forward`](Self::forward), with the logits of every router, for training layers with [experts](BlockConfig::experts).
    /// [`load_balancing_loss`](crate::load_balancing_loss) makes the loss from them, as
    /// [`Transformer::forward_with_router_logits`](crate::Transformer::forward_with_router_logits) shows, but not for every router.
    pub fn forward_with_router_logits(
        &self,
        input: impl Into<LayerInput>,
    ) -> TransformerStackOutput {
        self.traced(input.into(), |_| {})
    }

    /// As [`forward`](Self::forward), with the states after every layer.
    pub fn forward_with_hidden_states(
        &self,
        input: impl Into<LayerInput>,
    ) -> TransformerStackOutput {
        let mut hidden_states = Vec::with_capacity(self.order.len());
        let mut output = self.traced(input.into(), |states| hidden_states.push(states.clone()));
        output.hidden_states = hidden_states;
        output
    }

    fn traced(
        &self,
        input: LayerInput,
        mut look: impl FnMut(&Tensor<3>),
    ) -> TransformerStackOutput {
        let (mut self_weights, mut cross_weights) = (Vec::new(), Vec::new());
        let mut router_logits = Vec::new();
        let states = self.run(input, |output| {
            self_weights.extend(output.self_weights);
            cross_weights.extend(output.cross_weights);
            router_logits.extend(output.router_logits);
            look(&output.states);
            output.states
        });
        TransformerStackOutput {
            states,
            hidden_states: Vec::new(),
            self_weights,
            cross_weights,
            router_logits,
        }
    }

    /// The states of whole sequences; `states_of` takes those of each layer out of its output. All layers with the same window share a mask.
    fn run(
        &self,
        input: LayerInput,
        mut states_of: impl FnMut(LayerOutput) -> Tensor<3>,
    ) -> Tensor<3> {
        let call = MixerCall {
            masks: Some(BTreeMap::new()),
            ..MixerCall::default()
        };
        self.fold(input, call, |layer, input, _, call| {
            states_of(layer.run(input, None, call))
        })
    }

    /// Calls `run` for each layer, with the layer's shared position encoding and the index of the cache whose keys and values the layer attends
    /// to, and normalises the last result. The `call` goes from layer to layer.
    pub(super) fn fold(
        &self,
        input: LayerInput,
        mut call: MixerCall,
        mut run: impl FnMut(&TransformerLayer<M>, LayerInput, usize, &mut MixerCall) -> Tensor<3>,
    ) -> Tensor<3> {
        let LayerInput { x, context, more } = input;
        assert!(
            self.positions.is_empty() || context.position.is_none(),
            "TransformerStack: a position encoding was given to a stack that has its own"
        );
        assert!(
            self.layers.len() == 1 || !matches!(more.memory, Some(CrossMemory::Projected(_))),
            "TransformerStack: a projected memory belongs to one of the {} layers; cache_memory takes that of a stack",
            self.layers.len()
        );
        let mut kept: BTreeMap<usize, SharedKeyValue> = BTreeMap::new();
        let layers = self.order.iter().zip(&self.source_of);
        let states = layers.enumerate().fold(x, |x, (at, (&index, &source))| {
            // What no later layer reads is dropped.
            call.shared = kept.remove(&source).unwrap_or_default();
            call.shared.is_wanted = self.source_of[at + 1..].contains(&source);
            let mut context = match self.position(index) {
                Some(position) => context.clone().position(position.clone()),
                None => context.clone(),
            };
            context.is_of_stack = true;
            let more = more.clone();
            let input = LayerInput { x, context, more };
            let x = run(&self.layers[index], input, source, &mut call);
            if call.shared.is_wanted {
                kept.insert(source, core::mem::take(&mut call.shared));
            }
            x
        });
        normalised(&self.norm, states)
    }

    /// The position encoding that layer `index` of [`layers`](Self::layers) shares with others, if any, for
    /// [`LayerInput::position`]. Panics when `index` is not below the number of [`layers`](Self::layers).
    pub fn position(&self, index: usize) -> Option<&Position> {
        self.position_of[index].map(|position| &self.positions[position])
    }

    /// The layers in the order in which they run, repeated if they run several times.
    pub(super) fn layers_in_order(&self) -> impl Iterator<Item = &TransformerLayer<M>> {
        self.order.iter().map(|&index| &self.layers[index])
    }
}
