//! Encoder and decoder together.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn_derive::Config;
use burn_attn_ops::AttentionMask;

use super::{
    BlockConfig, LayerInput, TransformerStack, TransformerStackConfig, TransformerStackOutput,
};
use crate::error::{ConfigError, expect_valid};

/// Configuration of [`Transformer`].
#[derive(Config, Debug)]
pub struct TransformerConfig {
    /// Width of the inputs and the output.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Number of encoder layers.
    pub n_encoder_layers: usize,
    /// Number of decoder layers.
    pub n_decoder_layers: usize,
    /// How every layer of both stacks is built; not `parallel`. A `window` applies to the decoder only.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
    /// Whether a final norm follows each stack. Default: yes, unless the block is post-norm, whose sums are normalised already.
    pub final_norm: Option<bool>,
}

impl TransformerConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "TransformerConfig";
        let sizes = [
            ("n_encoder_layers", self.n_encoder_layers),
            ("n_decoder_layers", self.n_decoder_layers),
        ];
        ConfigError::check_positive(NAME, &sizes)?;
        self.encoder().validate_in(NAME)?;
        self.decoder().validate_in(NAME)
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Transformer {
        expect_valid(self.validate());
        Transformer {
            encoder: self.encoder().init(device),
            decoder: self.decoder().init(device),
        }
    }

    fn encoder(&self) -> TransformerStackConfig {
        // The window of a file is the decoder's: encoders had none when the first files were written.
        let block = self.block.clone().with_window(None);
        self.stack(self.n_encoder_layers, block)
    }

    fn decoder(&self) -> TransformerStackConfig {
        self.stack(self.n_decoder_layers, self.block.clone())
            .with_causal(true)
            .with_d_memory(self.d_model)
    }

    fn stack(&self, n_layers: usize, block: BlockConfig) -> TransformerStackConfig {
        TransformerStackConfig::new(self.d_model, self.d_ff, self.n_heads, n_layers)
            .with_block(block)
            .with_final_norm(self.final_norm)
    }
}

/// The encoder–decoder transformer of the paper, on embedded inputs.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), figure 1. PyTorch equivalent: `nn.Transformer` with
/// `batch_first=True`, a causal `tgt_mask`, and (`final_norm: Some(true)`) its final norms.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{TransformerConfig, TransformerInput};
///
/// let device = Device::default();
/// let transformer = TransformerConfig::new(32, 64, 4, 2, 2).init(&device);
/// let random = |len| Tensor::random([2, len, 32], Distribution::Default, &device);
/// let input = TransformerInput::new(random(7), random(5)).source_lengths(&[7, 4]);
/// assert_eq!(transformer.forward(input).dims(), [2, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct Transformer {
    /// Reads the source.
    pub encoder: TransformerStack,
    /// Writes the target.
    pub decoder: TransformerStack,
}

/// Input of [`Transformer`]: sources, targets, and what the [`AttentionContext`](crate::AttentionContext) of each hides.
#[derive(Clone, Debug)]
pub struct TransformerInput {
    source: LayerInput,
    target: LayerInput,
}

impl TransformerInput {
    /// Embedded sources `[batch, len_source, d_model]` and targets `[batch, len_target, d_model]`.
    pub fn new(source: Tensor<3>, target: Tensor<3>) -> Self {
        Self {
            source: LayerInput::new(source),
            target: LayerInput::new(target),
        }
    }

    /// Hides what `mask` hides of the source, from encoder and decoder, in addition to earlier masks; see
    /// [`AttentionMask::and`].
    ///
    /// The queries are the source in the encoder and the target in the decoder's cross-attention. A mask that depends on them (by
    /// position, or dense with a `len_q` other than 1) rarely means the same in both: give it to [`encoder`](Transformer::encoder) and
    /// [`decoder`](Transformer::decoder) one by one.
    pub fn source_mask(mut self, mask: AttentionMask) -> Self {
        self.source = self.source.mask(mask.clone());
        self.target = self.target.memory_mask(mask);
        self
    }

    /// Source `b` has `lengths[b]` tokens. What follows is padding, which neither encoder nor decoder sees.
    pub fn source_lengths(mut self, lengths: &[usize]) -> Self {
        self.source = self.source.lengths(lengths);
        self.target = self.target.memory_lengths(lengths);
        self
    }

    /// Hides what `mask` hides of the target, in addition to causality and earlier masks; see [`AttentionMask::and`].
    pub fn target_mask(mut self, mask: AttentionMask) -> Self {
        self.target = self.target.mask(mask);
        self
    }

    /// Target `b` has `lengths[b]` tokens. What follows is padding, which no query sees.
    pub fn target_lengths(mut self, lengths: &[usize]) -> Self {
        self.target = self.target.lengths(lengths);
        self
    }
}

/// Output of a [`Transformer`] with more than its states.
#[derive(Clone, Debug)]
pub struct TransformerOutput {
    /// `[batch, len_target, d_model]`
    pub states: Tensor<3>,
    /// If requested, one `[batch, heads, len_source, len_source]` per encoder layer.
    pub encoder_weights: Vec<Tensor<4>>,
    /// If requested, one `[batch, heads, len_target, len_target]` per decoder layer.
    pub decoder_weights: Vec<Tensor<4>>,
    /// If requested, one `[batch, heads, len_target, len_source]` per decoder layer.
    pub cross_weights: Vec<Tensor<4>>,
    /// One `[batch · len_source, n_experts]` per encoder layer with experts, for [`load_balancing_loss`](crate::load_balancing_loss).
    pub encoder_router_logits: Vec<Tensor<2>>,
    /// One `[batch · len_target, n_experts]` per decoder layer with experts, for another [`load_balancing_loss`](crate::load_balancing_loss).
    pub decoder_router_logits: Vec<Tensor<2>>,
}

impl Transformer {
    /// The decoder's states, `[batch, len_target, d_model]`. The cost is that of [`TransformerStack::forward`] for the encoder and for the
    /// decoder. Panics when a width is not `d_model`, the batch sizes differ, or a mask or lengths do not fit.
    pub fn forward(&self, input: TransformerInput) -> Tensor<3> {
        // ANCHOR: encoder-then-decoder
        let memory = self.encoder.forward(input.source);
        self.decoder.forward(input.target.memory(memory))
        // ANCHOR_END: encoder-then-decoder
    }

    /// As [`forward`](Self::forward), with the attention weights of every layer. This takes all scores once more, and memory for
    /// `batch · heads · len_source²` weights for each layer of the encoder, and `batch · heads · len_target · (len_target + len_source)` for
    /// each layer of the decoder.
    pub fn forward_with_weights(&self, input: TransformerInput) -> TransformerOutput {
        self.traced(input, TransformerStack::forward_with_weights)
    }

    /// As [`forward`](Self::forward), with the logits of every router, for training layers with [experts](BlockConfig::experts). Here are the
    /// losses of both stacks, without the padding of the sources:
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn::{BlockConfig, ExpertsConfig, TransformerConfig, TransformerInput, load_balancing_loss};
    ///
    /// let device = Device::default();
    /// let block = BlockConfig::new().with_experts(ExpertsConfig::new(4, 2));
    /// let transformer = TransformerConfig::new(32, 64, 4, 2, 2).with_block(block).init(&device);
    /// let random = |len| Tensor::random([2, len, 32], Distribution::Default, &device);
    /// let input = TransformerInput::new(random(3), random(5)).source_lengths(&[3, 2]);
    /// let output = transformer.forward_with_router_logits(input);
    /// let is_token = Tensor::from_data([true, true, true, true, true, false], &device);
    /// // To be added to the loss of the model.
    /// let loss = load_balancing_loss(&output.encoder_router_logits, 2, Some(is_token))
    ///     + load_balancing_loss(&output.decoder_router_logits, 2, None);
    /// let loss = loss * 0.02;
    /// # assert_eq!(loss.dims(), [1]);
    /// ```
    pub fn forward_with_router_logits(&self, input: TransformerInput) -> TransformerOutput {
        self.traced(input, TransformerStack::forward_with_router_logits)
    }

    fn traced(
        &self,
        input: TransformerInput,
        run: impl Fn(&TransformerStack, LayerInput) -> TransformerStackOutput,
    ) -> TransformerOutput {
        let encoded = run(&self.encoder, input.source);
        let decoded = run(&self.decoder, input.target.memory(encoded.states));
        TransformerOutput {
            states: decoded.states,
            encoder_weights: encoded.self_weights,
            decoder_weights: decoded.self_weights,
            cross_weights: decoded.cross_weights,
            encoder_router_logits: encoded.router_logits,
            decoder_router_logits: decoded.router_logits,
        }
    }
}
