//! A whole training step of an encoder–decoder: ours, and burn-nn's stacks between the same embeddings.

use std::time::{Duration, Instant};

use burn::{
    module::Module,
    nn::{
        Dropout, DropoutConfig, Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig,
        PositionalEncoding, PositionalEncodingConfig,
        attention::generate_autoregressive_mask,
        loss::{CrossEntropyLoss, CrossEntropyLossConfig},
        transformer::{
            TransformerDecoder, TransformerDecoderConfig, TransformerDecoderInput,
            TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
        },
    },
    optim::{AdamConfig, GradientsParams, ModuleOptimizer},
    tensor::{Bool, Device, Int, Tensor, TensorData},
};
use burn_attn_models::{
    loss,
    seq2seq::{Seq2Seq, Seq2SeqConfig},
};

use super::op::padding;
use super::parameters::count;
use super::{Results, Subject};
use crate::case::Library;
use crate::generator::{seed, tokens};
use crate::work::Translation;

const LEARNING_RATE: f64 = 1e-4;

/// A batch of sentence pairs; token 0 is padding.
struct Batch {
    source: Tensor<2, Int>,
    source_lengths: Tensor<1, Int>,
    source_padding: Tensor<2, Bool>,
    target: Tensor<2, Int>,
    expected: Tensor<2, Int>,
    /// 1 for a token, 0 for padding.
    weights: Tensor<2>,
    /// Sum of the weights.
    tokens: usize,
}

impl Batch {
    fn new(step: &Translation, device: &Device) -> Self {
        let lengths = step.lengths();
        let shape = [step.batch, step.len];
        let padded = |seed| {
            let mut tokens = tokens(seed, step.batch * step.len, step.vocabulary);
            for (sentence, &length) in tokens.chunks_mut(step.len).zip(&lengths) {
                sentence[length..].fill(0);
            }
            Tensor::<2, Int>::from_data(TensorData::new(tokens, shape), device)
        };
        let signed: Vec<i64> = lengths.iter().map(|&length| length as i64).collect();
        let padding = padding(&lengths, step.len, device);
        Self {
            source: padded(seed::QUERY),
            source_lengths: Tensor::from_data(signed.as_slice(), device),
            target: padded(seed::KEY),
            expected: padded(seed::VALUE),
            weights: padding.clone().bool_not().float(),
            tokens: lengths.iter().sum(),
            source_padding: padding,
        }
    }
}

/// A model that can take a step of training.
trait Translator: Module {
    /// The number whose gradient the step follows.
    fn loss(&self, batch: &Batch) -> Tensor<1>;
}

struct Training<M> {
    /// Taken out only while the optimizer holds it.
    model: Option<M>,
    optimizer: ModuleOptimizer,
    batch: Batch,
}

/// Model, optimizer and batch of `step`, the model by `library`.
pub fn build(step: &Translation, library: Library) -> Result<Box<dyn Subject>, String> {
    let device = Device::default().autodiff();
    match library {
        Library::Ours => {
            let config = Seq2SeqConfig::new(step.vocabulary)
                .with_d_model(step.d_model)
                .with_n_heads(step.heads)
                .with_n_encoder_layers(step.layers)
                .with_n_decoder_layers(step.layers)
                .with_d_ff(4 * step.d_model)
                .with_dropout(step.dropout);
            Ok(training(config.init(&device), step, &device))
        }
        Library::BurnNn => Ok(training(BurnNn::new(step, &device), step, &device)),
        _ => Err(format!("{} has no such model here", library.name())),
    }
}

fn training<M: Translator + 'static>(
    model: M,
    step: &Translation,
    device: &Device,
) -> Box<dyn Subject> {
    Box::new(Training {
        model: Some(model),
        optimizer: AdamConfig::new().init(),
        batch: Batch::new(step, device),
    })
}

impl<M: Translator> Subject for Training<M> {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        let model = self.model.take().expect("the last step put it back");
        let gradients = model.loss(&self.batch).backward();
        let gradients = GradientsParams::from_grads(gradients, &model);
        self.model = Some(self.optimizer.step(LEARNING_RATE, model, gradients));
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        vec![count(
            self.model.as_ref().expect("the last step put it back"),
        )]
    }
}

impl Translator for Seq2Seq {
    /// With the translator's own loss, whose gradient is computed outside the graph.
    fn loss(&self, batch: &Batch) -> Tensor<1> {
        let (source, target) = (batch.source.clone(), batch.target.clone());
        let logits = self.forward(source, batch.source_lengths.clone(), target);
        let (expected, weights) = (batch.expected.clone(), batch.weights.clone());
        loss::smoothed_cross_entropy(logits, expected, weights, batch.tokens, 0.0).surrogate
    }
}

/// What a user of burn-nn writes: its embeddings, stacks and loss, pre-norm with a last norm, embedding tied to the output.
#[derive(Module, Debug)]
struct BurnNn {
    embedding: Embedding,
    positions: PositionalEncoding,
    dropout: Dropout,
    encoder: TransformerEncoder,
    encoder_norm: LayerNorm,
    decoder: TransformerDecoder,
    decoder_norm: LayerNorm,
    loss: CrossEntropyLoss,
}

impl BurnNn {
    fn new(step: &Translation, device: &Device) -> Self {
        let [d_model, heads, layers] = [step.d_model, step.heads, step.layers];
        let d_ff = 4 * d_model;
        let norm = || LayerNormConfig::new(d_model).init(device);
        Self {
            embedding: EmbeddingConfig::new(step.vocabulary, d_model).init(device),
            positions: PositionalEncodingConfig::new(d_model).init(device),
            dropout: DropoutConfig::new(step.dropout).init(),
            encoder: TransformerEncoderConfig::new(d_model, d_ff, heads, layers)
                .with_dropout(step.dropout)
                .with_norm_first(true)
                .init(device),
            encoder_norm: norm(),
            decoder: TransformerDecoderConfig::new(d_model, d_ff, heads, layers)
                .with_dropout(step.dropout)
                .with_norm_first(true)
                .init(device),
            decoder_norm: norm(),
            loss: CrossEntropyLossConfig::new()
                .with_pad_tokens(Some(vec![0]))
                .init(device),
        }
    }

    fn embed(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [_, d_model] = self.embedding.weight.dims();
        let embedded = self.embedding.forward(tokens) * (d_model as f64).sqrt();
        self.dropout.forward(self.positions.forward(embedded))
    }
}

impl Translator for BurnNn {
    fn loss(&self, batch: &Batch) -> Tensor<1> {
        let input = TransformerEncoderInput::new(self.embed(batch.source.clone()))
            .mask_pad(batch.source_padding.clone());
        let memory = self.encoder_norm.forward(self.encoder.forward(input));
        let [items, len] = batch.target.dims();
        let causal = generate_autoregressive_mask(items, len, &batch.target.device());
        let input = TransformerDecoderInput::new(self.embed(batch.target.clone()), memory)
            .target_mask_attn(causal)
            .memory_mask_pad(batch.source_padding.clone());
        let states = self.decoder_norm.forward(self.decoder.forward(input));
        let [_, d_model] = self.embedding.weight.dims();
        let logits = states
            .reshape([items * len, d_model])
            .matmul(self.embedding.weight.val().transpose());
        let expected = batch.expected.clone().reshape([items * len]);
        self.loss.forward(logits, expected)
    }
}
