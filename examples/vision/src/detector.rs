//! A small DETR: its queries are proposed by the encoder, and every layer of the decoder refines their boxes.
//!
//! ```text
//! x       = convolutions(image), a token for each place;  x = encoder(x + position(box of the place), …)
//! logits  = class_head(x);  box = sigmoid(logit(box of the place) + box_head(x))                            a proposal for every token
//! y       = x of the proposals with the largest logits
//! y       = layer(y + position(box), x + position(box of the place));  box = sigmoid(logit(box) + box_head(y))     layer by layer
//! ```

use std::f64::consts::PI;

use burn::{
    module::{Module, Param},
    nn::{
        GroupNorm, GroupNormConfig, Initializer, Linear, LinearConfig, PaddingConfig2d,
        conv::{Conv2d, Conv2dConfig},
    },
    tensor::{
        Device, Tensor, TensorData,
        activation::{relu, sigmoid},
    },
    train::{InferenceStep, SequenceOutput, TrainOutput, TrainStep},
};
use burn_attn::{LayerInput, TransformerLayer, TransformerStack, TransformerStackConfig};
use burn_attn_models::{
    detr::DetrConfig,
    train::{DetectionBatch, Predictions},
};

/// Channels of the convolutions; each halves rows and columns.
const CHANNELS: [usize; 3] = [32, 64, D_MODEL];
/// Width, heads, layers of each stack, and width inside the feed-forward networks.
const D_MODEL: usize = 128;
const N_HEADS: usize = 8;
const N_LAYERS: usize = 3;
const D_FF: usize = 512;
/// Boxes that the decoder refines.
const N_QUERIES: usize = 10;
const N_CLASSES: usize = 10;
/// Height and width of the box of a place, of those of the image: the mean of the longer sides of what is sought.
const BOX: f64 = 0.28;
/// How probable an object is for a model that has learned nothing.
const PRIOR: f64 = 0.01;
/// Waves of each side of a box, and the shortest of them, as a fraction of the image.
const WAVES: usize = D_MODEL / 8;
const SHORTEST: f64 = 1.0 / 12.0;

/// A detector of 1.6 million parameters.
#[derive(Module, Debug)]
pub struct Detector {
    convolutions: Vec<Conv2d>,
    norms: Vec<GroupNorm>,
    position: Mlp,
    encoder: TransformerStack,
    proposal: Head,
    decoder: Vec<TransformerLayer>,
    heads: Vec<Head>,
}

/// What a detector says of images.
pub struct DetectorOutput {
    /// Predictions for all places, then for the queries after each layer of the decoder.
    pub layers: Vec<Predictions>,
    /// If requested, where the queries looked in the last layer, `[batch, heads, queries, rows · columns]`.
    pub weights: Option<Tensor<4>>,
    /// Rows and columns of places.
    pub grid: [usize; 2],
}

/// From states to classes and to how much a box changes.
#[derive(Module, Debug)]
struct Head {
    class: Linear,
    shift: Mlp,
}

/// Two linear layers with ReLU between them.
#[derive(Module, Debug)]
struct Mlp {
    inner: Linear,
    outer: Linear,
}

impl Detector {
    /// A model with random parameters.
    pub fn new(device: &Device) -> Self {
        let block = DetrConfig::base_block().with_dropout(0.0);
        let channels = [1].into_iter().chain(CHANNELS);
        let convolution = |(input, output)| {
            let config = Conv2dConfig::new([input, output], [3, 3]).with_stride([2, 2]);
            config
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .init(device)
        };
        let decoder = TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, N_LAYERS);
        Self {
            convolutions: channels.zip(CHANNELS).map(convolution).collect(),
            norms: CHANNELS
                .map(|channels| GroupNormConfig::new(8, channels).init(device))
                .into(),
            position: Mlp::new(D_MODEL, device),
            encoder: TransformerStackConfig::encoder(D_MODEL, D_FF, N_HEADS, N_LAYERS)
                .with_block(block.clone())
                .init(device),
            proposal: Head::new(device),
            decoder: decoder.with_block(block).init(device).layers,
            heads: (0..N_LAYERS).map(|_| Head::new(device)).collect(),
        }
    }

    /// What is in images, `[batch, 1, height, width]`.
    pub fn forward(&self, images: Tensor<4>, with_weights: bool) -> DetectorOutput {
        let convolutions = self.convolutions.iter().zip(&self.norms);
        let map = convolutions.fold(images, |map, (convolution, norm)| {
            relu(norm.forward(convolution.forward(map)))
        });
        let [batch, _, rows, columns] = map.dims();
        let places = places([rows, columns], &map.device());
        let positions = self.positions(places.clone());
        let x = map.flatten::<3>(2, 3).swap_dims(1, 2);
        let input = LayerInput::new(x).query_key_position_embedding(positions.clone());
        let memory = self.encoder.forward(input);
        let (first, boxes) = self.proposal.forward(memory.clone(), places);
        // The largest logit of each place.
        let scores = first.logits.clone().detach().max_dim(2);
        let (_, best) = scores.topk_with_indices(N_QUERIES, 1);
        let mut boxes = boxes.gather(1, best.clone().expand([batch, N_QUERIES, 4]));
        let mut y = memory
            .clone()
            .gather(1, best.expand([batch, N_QUERIES, D_MODEL]));
        let (mut layers, mut weights) = (vec![first], None);
        for (index, (layer, head)) in self.decoder.iter().zip(&self.heads).enumerate() {
            let input = LayerInput::new(y)
                .query_key_position_embedding(self.positions(boxes.clone()))
                .memory(memory.clone())
                .memory_position_embedding(positions.clone())
                .weights(with_weights && index + 1 == self.decoder.len());
            let output = layer.forward(input);
            y = output.states;
            weights = output.cross_weights;
            let (predictions, refined) = head.forward(y.clone(), boxes);
            boxes = refined;
            layers.push(predictions);
        }
        DetectorOutput {
            layers,
            weights,
            grid: [rows, columns],
        }
    }

    /// Where the parameters are.
    pub fn device(&self) -> Device {
        self.proposal.class.weight.device()
    }

    /// The position embeddings of boxes, which are given as logits.
    fn positions(&self, boxes: Tensor<3>) -> Tensor<3> {
        let [batch, len, sides] = boxes.dims();
        let last = (WAVES - 1) as f64;
        // From half a wave in an image to the shortest.
        let rate = |wave: usize| PI * (2.0 / SHORTEST).powf(wave as f64 / last);
        let rates = TensorData::new((0..WAVES).map(rate).collect::<Vec<f64>>(), [1, 1, 1, WAVES]);
        let rates = Tensor::<4>::from_data(rates, (&boxes.device(), boxes.dtype()));
        let angles = sigmoid(boxes).unsqueeze_dim::<4>(3) * rates;
        let waves = Tensor::cat(vec![angles.clone().sin(), angles.cos()], 3);
        self.position
            .forward(waves.reshape([batch, len, sides * 2 * WAVES]))
    }
}

impl Head {
    fn new(device: &Device) -> Self {
        let mut class = LinearConfig::new(D_MODEL, N_CLASSES).init(device);
        let prior = Tensor::full([N_CLASSES], (PRIOR / (1.0 - PRIOR)).ln(), device);
        class.bias = Some(Param::from_tensor(prior));
        let mut shift = Mlp::new(4, device);
        // A box begins as the one before it.
        let zeros = LinearConfig::new(D_MODEL, 4).with_initializer(Initializer::Zeros);
        shift.outer = zeros.init(device);
        Self { class, shift }
    }

    /// The predictions for states and the boxes they begin with, which are given as logits; and the new boxes as logits, without a graph.
    fn forward(&self, states: Tensor<3>, boxes: Tensor<3>) -> (Predictions, Tensor<3>) {
        let boxes = boxes + self.shift.forward(states.clone());
        let predictions = Predictions {
            logits: self.class.forward(states),
            boxes: sigmoid(boxes.clone()),
        };
        (predictions, boxes.detach())
    }
}

impl Mlp {
    fn new(d_output: usize, device: &Device) -> Self {
        let linear = |d_output| LinearConfig::new(D_MODEL, d_output).init(device);
        Self {
            inner: linear(D_MODEL),
            outer: linear(d_output),
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.outer.forward(relu(self.inner.forward(x)))
    }
}

/// The boxes of all places as logits, `[1, rows · columns, 4]`.
fn places([rows, columns]: [usize; 2], device: &Device) -> Tensor<3> {
    let logit = |share: f64| (share / (1.0 - share)).ln();
    let middle = |at: usize, len: usize| logit((at as f64 + 0.5) / len as f64);
    let places = (0..rows * columns).flat_map(|place| {
        let (x, y) = (
            middle(place % columns, columns),
            middle(place / columns, rows),
        );
        [x, y, logit(BOX), logit(BOX)]
    });
    let places = TensorData::new(places.collect::<Vec<f64>>(), [1, rows * columns, 4]);
    Tensor::from_data(places, device)
}

impl TrainStep for Detector {
    type Input = DetectionBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: DetectionBatch) -> TrainOutput<SequenceOutput> {
        let layers = self.forward(batch.images.clone(), false).layers;
        let (loss, output) = batch.loss(&layers);
        TrainOutput::new(self, loss.backward(), output)
    }
}

impl InferenceStep for Detector {
    type Input = DetectionBatch;
    type Output = SequenceOutput;

    fn step(&self, batch: DetectionBatch) -> SequenceOutput {
        batch
            .loss(&self.forward(batch.images.clone(), false).layers)
            .1
    }
}
