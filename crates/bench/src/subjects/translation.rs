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
use burn_attn::{BlockConfig, FeedForwardActivation, NormPlacement, padding};
use burn_attn_models::{
    loss::{Loss, smoothed_cross_entropy},
    seq2seq::{Seq2Seq, Seq2SeqConfig},
    train::{Replicas, Seq2SeqBatch, Targets},
};

use super::parameters::{
    Layer, NormOf, Parameter, assign, burn_layer, embedding, gradients, norm, our_layer,
};
use super::subject::{Results, Subject, values};
use crate::generator::{seed, tokens};
use crate::work::Translation;

const LEARNING_RATE: f64 = 1e-4;
/// PyTorch's default; Burn's is larger.
const ADAM_EPSILON: f32 = 1e-8;

/// A batch of sentence pairs; token 0 is padding.
struct Batch {
    all: Seq2SeqBatch,
    source_padding: Tensor<2, Bool>,
    /// What burn-nn's decoder hides, `[batch, len, len]`.
    causal: Tensor<3, Bool>,
    /// Tokens of each sentence.
    lengths: Vec<usize>,
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
        let count = lengths.iter().sum();
        let padding = padding(&lengths, step.len, device);
        let targets = Targets {
            tokens: padded(seed::VALUE),
            weights: padding.clone().bool_not().float(),
            count,
            divisor: count,
            smoothing: 0.0,
            dropout_seed: [0; 2],
            largest: step.vocabulary as u32 - 1,
        };
        Self {
            all: Seq2SeqBatch {
                source: padded(seed::QUERY),
                source_lengths: lengths.clone(),
                input: padded(seed::KEY),
                targets,
            },
            causal: generate_autoregressive_mask(step.batch, step.len, device),
            source_padding: padding,
            lengths,
        }
    }

    /// The batch in `count` parts of about as many sentences.
    fn parts(&self, count: usize) -> Vec<Seq2SeqBatch> {
        let (all, targets) = (&self.all, &self.all.targets);
        let end = |part| self.lengths.len() * part / count;
        let parts = (0..count).map(|part| {
            let rows = end(part)..end(part + 1);
            Seq2SeqBatch {
                source: all.source.clone().slice(rows.clone()),
                source_lengths: self.lengths[rows.clone()].to_vec(),
                input: all.input.clone().slice(rows.clone()),
                targets: Targets {
                    tokens: targets.tokens.clone().slice(rows.clone()),
                    weights: targets.weights.clone().slice(rows.clone()),
                    count: self.lengths[rows].iter().sum(),
                    dropout_seed: [burn_attn::ops::next_dropout_seed(), 0],
                    ..*targets
                },
            }
        });
        parts.collect()
    }
}

/// A model that can take a step of training.
trait Translator: Module + Send + Sized {
    const LAYER: Layer;

    /// The model, its parameters random.
    fn new(step: &Translation, device: &Device) -> Self;

    /// `[batch, len, vocabulary]`
    fn logits(&self, batch: &Batch) -> Tensor<3>;

    /// The loss of ours and of burn-nn's, whose gradient is computed in closed form.
    fn loss(&self, batch: &Batch) -> Loss {
        let of = &batch.all.targets;
        let (expected, weights) = (of.tokens.clone(), of.weights.clone());
        smoothed_cross_entropy(self.logits(batch), expected, weights, of.count, 0.0)
    }

    fn gradients(&self, replicas: &Replicas, batch: &Batch) -> GradientsParams;

    /// Its parameters in the order of its fields. Layers are numbered through: encoder, decoder, cross-attention of the decoder,
    /// and one for the last norm of each stack.
    fn parameters(step: &Translation) -> Vec<Parameter> {
        let (d_model, layers) = (step.d_model, step.layers);
        let last_norm = |stack| norm(3 * layers + stack, NormOf::FeedForward, d_model);
        let encoder = (0..layers).flat_map(|layer| Self::LAYER(d_model, layer, None));
        let decoder = (layers..2 * layers)
            .flat_map(|layer| Self::LAYER(d_model, layer, Some(layer + layers)));
        [
            embedding(step.vocabulary, d_model),
            encoder.collect(),
            last_norm(0),
            decoder.collect(),
            last_norm(1),
        ]
        .concat()
    }
}

struct Training<M> {
    step: Translation,
    /// Taken out only while the optimizers hold it.
    model: Option<M>,
    replicas: Replicas,
    optimizers: Vec<ModuleOptimizer>,
    batch: Batch,
}

/// Model, optimizer and batch of `step`: ours, with a replica for each thread that the contest gives it.
pub fn ours(step: &Translation) -> Box<dyn Subject> {
    training::<Seq2Seq>(step, rayon::current_num_threads().min(step.batch))
}

/// Model, optimizer and batch of `step` with the layers of burn-nn.
pub fn burn_nn(step: &Translation) -> Box<dyn Subject> {
    training::<BurnNn>(step, 1)
}

fn training<M: Translator + 'static>(step: &Translation, replicas: usize) -> Box<dyn Subject> {
    let device = Device::default().autodiff();
    let optimizer = AdamConfig::new().with_epsilon(ADAM_EPSILON).init();
    Box::new(Training {
        step: step.clone(),
        model: Some(assign(M::new(step, &device), &M::parameters(step))),
        optimizers: vec![optimizer; replicas],
        replicas: Replicas::new(replicas),
        batch: Batch::new(step, &device),
    })
}

impl<M: Translator> Subject for Training<M> {
    fn step(&mut self) {
        let model = self.model.take().expect("the last step put it back");
        let gradients = model.gradients(&self.replicas, &self.batch);
        let (replicas, optimizers) = (&self.replicas, &mut self.optimizers);
        self.model = Some(replicas.update(optimizers, LEARNING_RATE, model, gradients));
    }

    /// The results of a step without dropout, for which every library draws other random numbers.
    fn results(&mut self) -> Results {
        let mut step = self.step.clone();
        step.dropout = 0.0;
        let parameters = M::parameters(&step);
        let device = Device::default().autodiff();
        let model = assign(M::new(&step, &device), &parameters);
        // As the timed step computes them.
        let computed = model.gradients(&self.replicas, &self.batch);
        let mut results = gradients(&model, &parameters, &computed);
        results.push(("loss".into(), values(model.loss(&self.batch).value)));
        results
    }
}

impl Translator for Seq2Seq {
    const LAYER: Layer = our_layer;

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

    fn logits(&self, batch: &Batch) -> Tensor<3> {
        let (source, input) = (batch.all.source.clone(), batch.all.input.clone());
        self.forward(source, &batch.lengths, input)
    }

    fn gradients(&self, replicas: &Replicas, batch: &Batch) -> GradientsParams {
        replicas.step(self, batch.parts(replicas.count())).1
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
    const LAYER: Layer = burn_layer;

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

    fn logits(&self, batch: &Batch) -> Tensor<3> {
        let input = TransformerEncoderInput::new(self.embed(batch.all.source.clone()))
            .mask_pad(batch.source_padding.clone());
        let memory = self.encoder_norm.forward(self.encoder.forward(input));
        let [items, len] = batch.all.input.dims();
        let input = TransformerDecoderInput::new(self.embed(batch.all.input.clone()), memory)
            .target_mask_attn(batch.causal.clone())
            .memory_mask_pad(batch.source_padding.clone());
        let states = self.decoder_norm.forward(self.decoder.forward(input));
        let [vocabulary, d_model] = self.embedding.weight.dims();
        states
            .reshape([items * len, d_model])
            .matmul(self.embedding.weight.val().transpose())
            .reshape([items, len, vocabulary])
    }

    fn gradients(&self, _: &Replicas, batch: &Batch) -> GradientsParams {
        GradientsParams::from_grads(self.loss(batch).surrogate.backward(), self)
    }
}
