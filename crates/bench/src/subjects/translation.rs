//! A whole training step of an encoder–decoder: ours, and burn-nn's stacks between the same embeddings, on the same parameters
//! and with the same loss.

use burn::{
    module::Module,
    nn::{
        Dropout, DropoutConfig, Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig,
        PositionalEncoding, PositionalEncodingConfig,
        attention::generate_autoregressive_mask,
        transformer::{
            TransformerDecoder, TransformerDecoderConfig, TransformerDecoderInput,
            TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
        },
    },
    optim::{AdamConfig, GradientsParams, ModuleOptimizer},
    tensor::{Bool, Device, Int, Tensor, TensorData},
};
use burn_attn::{BlockConfig, FeedForwardActivation, NormPlacement};
use burn_attn_models::{
    loss::{Loss, smoothed_cross_entropy},
    seq2seq::{Seq2Seq, Seq2SeqConfig},
    train::{Replicas, Seq2SeqBatch, Targets},
};

use super::op::padding;
use super::parameters::{
    ACROSS, APART, NormOf, PACKED, Parameter, assign, embedding, feed_forward, gradients, norm,
    projections,
};
use super::{Results, Subject, values};
use crate::case::Library;
use crate::generator::{seed, tokens};
use crate::work::Translation;

const LEARNING_RATE: f64 = 1e-4;
/// PyTorch's default; Burn's is larger.
const ADAM_EPSILON: f32 = 1e-8;

/// A batch of sentence pairs; token 0 is padding.
struct Batch {
    source: Tensor<2, Int>,
    source_lengths: Tensor<1, Int>,
    source_padding: Tensor<2, Bool>,
    /// What burn-nn's decoder hides, `[batch, len, len]`.
    causal: Tensor<3, Bool>,
    target: Tensor<2, Int>,
    expected: Tensor<2, Int>,
    /// 1 for a token, 0 for padding.
    weights: Tensor<2>,
    /// Tokens of each sentence.
    lengths: Vec<usize>,
    /// Their sum.
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
            causal: generate_autoregressive_mask(step.batch, step.len, device),
            source_padding: padding,
            lengths,
        }
    }

    /// The batch in `count` parts of about as many sentences.
    fn parts(&self, count: usize) -> Vec<Seq2SeqBatch> {
        let [sentences, _] = self.source.dims();
        let ends = (0..=count).map(|part| sentences * part / count);
        let starts = ends.clone();
        let of = |(start, end): (usize, usize)| {
            let rows = start..end;
            Seq2SeqBatch {
                source: self.source.clone().slice(rows.clone()),
                source_lengths: self.source_lengths.clone().slice(rows.clone()),
                input: self.target.clone().slice(rows.clone()),
                targets: Targets {
                    tokens: self.expected.clone().slice(rows.clone()),
                    weights: self.weights.clone().slice(rows.clone()),
                    count: self.lengths[rows].iter().sum(),
                    divisor: self.tokens,
                    smoothing: 0.0,
                    dropout_seed: [burn_attn::ops::backend::next_dropout_seed(), 0],
                },
            }
        };
        starts.zip(ends.skip(1)).map(of).collect()
    }
}

/// A model that can take a step of training.
trait Translator: Module + Send + Sized {
    /// The model, its parameters random.
    fn new(step: &Translation, device: &Device) -> Self;

    /// Its parameters in the order of its fields. Layers are numbered through: encoder, decoder, cross-attention of the decoder,
    /// and one for the last norm of each stack.
    fn parameters(step: &Translation) -> Vec<Parameter>;

    /// `[batch, len, vocabulary]`
    fn logits(&self, batch: &Batch) -> Tensor<3>;

    /// The loss of everybody on Burn, whose gradient is computed in closed form.
    fn loss(&self, batch: &Batch) -> Loss {
        let (expected, weights) = (batch.expected.clone(), batch.weights.clone());
        smoothed_cross_entropy(self.logits(batch), expected, weights, batch.tokens, 0.0)
    }
}

struct Training<M> {
    step: Translation,
    /// Taken out only while the optimizers hold it.
    model: Option<M>,
    replicas: Replicas,
    optimizers: Vec<ModuleOptimizer>,
    batch: Batch,
    gradients: GradientsOf<M>,
}

/// How the gradients of a step are computed.
type GradientsOf<M> = fn(&Replicas, &M, &Batch) -> GradientsParams;

/// Model, optimizer and batch of `step`, the model by `library`.
pub fn build(step: &Translation, library: Library) -> Result<Box<dyn Subject>, String> {
    let device = Device::default().autodiff();
    match library {
        Library::Ours => {
            // One for each thread that the contest gives it.
            let replicas = rayon::current_num_threads().min(step.batch);
            let gradients: GradientsOf<Seq2Seq> =
                |replicas, model, batch| replicas.step(model, batch.parts(replicas.count())).1;
            Ok(training(step, &device, replicas, gradients))
        }
        Library::BurnNn => {
            let gradients: GradientsOf<BurnNn> = |_, model, batch| {
                let gradients = model.loss(batch).surrogate.backward();
                GradientsParams::from_grads(gradients, model)
            };
            Ok(training(step, &device, 1, gradients))
        }
        _ => Err(format!("{} has no such model here", library.name())),
    }
}

fn training<M: Translator + 'static>(
    step: &Translation,
    device: &Device,
    replicas: usize,
    gradients: GradientsOf<M>,
) -> Box<dyn Subject> {
    let optimizer = AdamConfig::new().with_epsilon(ADAM_EPSILON).init();
    Box::new(Training {
        step: step.clone(),
        model: Some(assign(M::new(step, device), &M::parameters(step))),
        optimizers: vec![optimizer; replicas],
        replicas: Replicas::new(replicas),
        batch: Batch::new(step, device),
        gradients,
    })
}

impl<M: Translator> Subject for Training<M> {
    fn step(&mut self) {
        let model = self.model.take().expect("the last step put it back");
        let gradients = (self.gradients)(&self.replicas, &model, &self.batch);
        let (replicas, optimizers) = (&self.replicas, &mut self.optimizers);
        self.model = Some(replicas.update(optimizers, LEARNING_RATE, model, gradients));
    }

    /// Those of a step without dropout, for which every library rolls its own dice.
    fn results(&mut self) -> Results {
        let step = Translation {
            dropout: 0.0,
            ..self.step.clone()
        };
        let parameters = M::parameters(&step);
        let model = assign(M::new(&step, &self.batch.weights.device()), &parameters);
        // As the timed step computes them.
        let computed = (self.gradients)(&self.replicas, &model, &self.batch);
        let mut results = gradients(&model, &parameters, &computed);
        results.push(("loss".into(), values(model.loss(&self.batch).value)));
        results
    }
}

impl Translator for Seq2Seq {
    fn new(step: &Translation, device: &Device) -> Self {
        let block = BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_activation(FeedForwardActivation::Gelu)
            .with_dropout(step.dropout);
        Seq2SeqConfig::new(step.vocabulary)
            .with_d_model(step.d_model)
            .with_n_heads(step.heads)
            .with_n_encoder_layers(step.layers)
            .with_n_decoder_layers(step.layers)
            .with_d_ff(4 * step.d_model)
            .with_dropout(step.dropout)
            .with_block(block)
            .init(device)
    }

    fn parameters(step: &Translation) -> Vec<Parameter> {
        let (d_model, layers) = (step.d_model, step.layers);
        let mut parameters = embedding(step.vocabulary, d_model);
        for layer in 0..2 * layers {
            if layer == layers {
                parameters.extend(norm(3 * layers, NormOf::FeedForward, d_model));
            }
            parameters.extend(projections(layer, d_model, &PACKED));
            parameters.extend(norm(layer, NormOf::SelfAttention, d_model));
            if layer >= layers {
                parameters.extend(projections(layer + layers, d_model, &ACROSS));
                parameters.extend(norm(layer, NormOf::CrossAttention, d_model));
            }
            parameters.extend(feed_forward(layer, d_model));
            parameters.extend(norm(layer, NormOf::FeedForward, d_model));
        }
        parameters.extend(norm(3 * layers + 1, NormOf::FeedForward, d_model));
        parameters
    }

    fn logits(&self, batch: &Batch) -> Tensor<3> {
        let (source, target) = (batch.source.clone(), batch.target.clone());
        self.forward(source, batch.source_lengths.clone(), target)
    }
}

/// What a user of burn-nn writes: its embeddings and stacks, pre-norm with a last norm, embedding tied to the output.
#[derive(Module, Debug)]
struct BurnNn {
    embedding: Embedding,
    positions: PositionalEncoding,
    dropout: Dropout,
    encoder: TransformerEncoder,
    encoder_norm: LayerNorm,
    decoder: TransformerDecoder,
    decoder_norm: LayerNorm,
}

impl BurnNn {
    fn embed(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [_, d_model] = self.embedding.weight.dims();
        let embedded = self.embedding.forward(tokens) * (d_model as f64).sqrt();
        self.dropout.forward(self.positions.forward(embedded))
    }
}

impl Translator for BurnNn {
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
        }
    }

    fn parameters(step: &Translation) -> Vec<Parameter> {
        let (d_model, layers) = (step.d_model, step.layers);
        let mut parameters = embedding(step.vocabulary, d_model);
        for layer in 0..2 * layers {
            if layer == layers {
                parameters.extend(norm(3 * layers, NormOf::FeedForward, d_model));
            }
            if layer >= layers {
                parameters.extend(projections(layer + layers, d_model, &APART));
            }
            parameters.extend(projections(layer, d_model, &APART));
            parameters.extend(feed_forward(layer, d_model));
            if layer >= layers {
                parameters.extend(norm(layer, NormOf::CrossAttention, d_model));
            }
            parameters.extend(norm(layer, NormOf::FeedForward, d_model));
            parameters.extend(norm(layer, NormOf::SelfAttention, d_model));
        }
        parameters.extend(norm(3 * layers + 1, NormOf::FeedForward, d_model));
        parameters
    }

    fn logits(&self, batch: &Batch) -> Tensor<3> {
        let input = TransformerEncoderInput::new(self.embed(batch.source.clone()))
            .mask_pad(batch.source_padding.clone());
        let memory = self.encoder_norm.forward(self.encoder.forward(input));
        let [items, len] = batch.target.dims();
        let input = TransformerDecoderInput::new(self.embed(batch.target.clone()), memory)
            .target_mask_attn(batch.causal.clone())
            .memory_mask_pad(batch.source_padding.clone());
        let states = self.decoder_norm.forward(self.decoder.forward(input));
        let [vocabulary, d_model] = self.embedding.weight.dims();
        states
            .reshape([items * len, d_model])
            .matmul(self.embedding.weight.val().transpose())
            .reshape([items, len, vocabulary])
    }
}
