//! From images to logits and boxes.

use burn::{
    module::{Module, Param},
    nn::{Dropout, Linear, LinearConfig, conv::Conv2d},
    tensor::{
        Bool, Device, Tensor,
        activation::{relu, sigmoid},
        module::interpolate,
        ops::{InterpolateMode, InterpolateOptions},
    },
};
use burn_attn::{AttentionMask, LayerInput, TransformerStack, dropout, normalised};

use super::sine_positions;
use crate::{families::grid::to_tokens, resnet::ResNet};

/// A model that finds objects in images.
///
/// # Source
///
/// "End-to-end object detection with transformers" (arXiv:2005.12872), section 3.2. PyTorch equivalents: `DetrForObjectDetection` of Hugging
/// Face's `transformers`, and `DetrModel` without heads.
///
/// # Example
///
/// A model whose feature map comes from a small stem of convolutions, in place of a ResNet:
///
/// ```
/// use burn::{nn::conv::Conv2dConfig, tensor::{Device, Distribution, Tensor}};
/// use burn_attn_models::detr::{DetrConfig, post_process};
///
/// let device = Device::default();
/// let stem = Conv2dConfig::new([3, 16], [4, 4]).with_stride([4, 4]).init(&device);
/// let config = DetrConfig::new().with_d_features(16).with_d_model(32).with_n_heads(4).with_d_ff(64);
/// let config = config.with_n_encoder_layers(1).with_n_decoder_layers(2).with_n_queries(5).with_n_classes(3);
/// let model = config.init(&device);
///
/// let images = Tensor::random([2, 3, 32, 48], Distribution::Default, &device);
/// let output = model.forward_features(stem.forward(images), None);
/// assert_eq!(output.logits.dims(), [2, 5, 3 + 1]);
/// assert_eq!(output.boxes.dims(), [2, 5, 4]);
/// let found = post_process(&output, 0.0, &[[32, 48], [32, 48]]);
/// assert_eq!(found[0].len(), 5);
/// ```
#[derive(Module, Debug)]
pub struct Detr {
    /// The convolutions, if they are part of the model.
    pub backbone: Option<ResNet>,
    /// From the channels of the feature map to the width of the model, `[d_model, d_features, 1, 1]`.
    pub projection: Conv2d,
    /// The learned queries, `[n_queries, d_model]`: the positions of the decoder's tokens, which begin as zeros.
    pub queries: Param<Tensor<2>>,
    pub(super) dropout: Dropout,
    /// The layers that read the feature map.
    pub encoder: TransformerStack,
    /// The layers that answer the queries, and the norm after them.
    pub decoder: TransformerStack,
    /// From states to logits of the classes and of "no object", if the model has heads.
    pub class_head: Option<Linear>,
    /// From states to boxes, if the model has heads.
    pub box_head: Option<BoxHead>,
}

/// Which pixels of padded images are the image's own, `[batch, height, width]`: `true` there, and `false` in the padding. `None`: all of them.
pub type PixelMask = Option<Tensor<3, Bool>>;

/// What the decoder reads of images.
#[derive(Clone, Debug)]
pub struct DetrMemory {
    /// The encoder's states at each place of the feature map, row by row, `[batch, rows · columns, d_model]`.
    pub states: Tensor<3>,
    /// Where these places are, `[batch or 1, rows · columns, d_model]`.
    pub positions: Tensor<3>,
    /// Hides the places of padding.
    pub mask: AttentionMask,
    /// Rows and columns of the feature map.
    pub grid: [usize; 2],
}

/// What a [`Detr`] predicts for images.
#[derive(Clone, Debug)]
pub struct DetrOutput {
    /// Logits of the classes, the last of which is "no object", `[batch, n_queries, n_classes + 1]`.
    pub logits: Tensor<3>,
    /// Centre x, centre y, width and height of the boxes, `[batch, n_queries, 4]`, from 0 to 1: fractions of the width and height of the image
    /// without its padding.
    pub boxes: Tensor<3>,
    /// What the heads read, `[batch, n_queries, d_model]`.
    pub states: Tensor<3>,
    /// If requested, the output of the heads after each layer of the decoder but the last.
    pub auxiliary: Vec<DetrOutput>,
    /// If requested, which places of the feature map the queries attend to, `[batch, heads, n_queries, rows · columns]` per layer of the
    /// decoder.
    pub cross_weights: Vec<Tensor<4>>,
}

impl Detr {
    /// The objects in images, `[batch, channels, height, width]`, which may be padded to one size. Published models read red, green and blue from 0 to
    /// 1, normalised by ImageNet's mean and standard deviation, in images whose shorter side has 800 pixels, or whose longer side has 1333 if it would
    /// have more.
    ///
    /// # Panics
    ///
    /// When there are no images, the model has no backbone or no heads, the channels differ, or the mask is not as large as the images.
    ///
    /// # Cost
    ///
    /// The cost of [`ResNet::forward`], of the encoder for `rows · columns` tokens, and of the decoder for `n_queries` tokens that attend to them.
    pub fn forward(&self, images: Tensor<4>, mask: PixelMask) -> DetrOutput {
        self.decode(&self.encode_images(images, mask))
    }

    /// As [`forward`](Self::forward), of a feature map, `[batch, d_features, rows, columns]`, which need not be that of the backbone. The mask
    /// is of any size: a place is padding if the pixel at its top left is.
    ///
    /// # Panics
    ///
    /// When there is no map, the model has no heads, or the channels or the numbers of features and masks differ.
    pub fn forward_features(&self, features: Tensor<4>, mask: PixelMask) -> DetrOutput {
        self.decode(&self.encode(features, mask))
    }

    /// What the decoder reads of images. Shapes and panics are those of [`forward`](Self::forward).
    pub fn encode_images(&self, images: Tensor<4>, mask: PixelMask) -> DetrMemory {
        let backbone = self.backbone.as_ref();
        let backbone = backbone.expect("Detr: the model has no backbone");
        let [batch, _, height, width] = images.dims();
        let fitting = [batch, height, width];
        let found = mask.as_ref().map_or(fitting, Tensor::dims);
        assert!(
            found == fitting,
            "Detr: a mask of shape {found:?} for {batch} images of {height} × {width}"
        );
        self.encode(backbone.forward(images), mask)
    }

    /// What the decoder reads of a feature map. Shapes and panics are those of [`forward_features`](Self::forward_features).
    pub fn encode(&self, features: Tensor<4>, mask: PixelMask) -> DetrMemory {
        let ([batch, channels, ..], device) = (features.dims(), features.device());
        let [d_model, own, ..] = self.projection.weight.dims();
        assert!(batch > 0, "Detr: there are no images");
        assert!(
            channels == own,
            "Detr: features of {channels} channels for a model that reads {own}"
        );
        let features = features.cast(self.projection.weight.dtype());
        let (x, [rows, columns]) = to_tokens(self.projection.forward(features));
        let everywhere = Tensor::full([1, rows, columns], true, &device);
        let (visible, mask) = match mask {
            None => (everywhere, AttentionMask::none()),
            Some(mask) => {
                let [masks, ..] = mask.dims();
                assert!(masks == batch, "Detr: masks of {masks} images for {batch}");
                let visible = resized(mask, [rows, columns]);
                let padding = visible.clone().reshape([batch, rows * columns]).bool_not();
                (visible, AttentionMask::mask_pad(padding))
            }
        };
        let positions = sine_positions(visible, d_model).cast(x.dtype());
        let input = LayerInput::new(dropout(&self.dropout, x))
            .query_key_position_embedding(positions.clone())
            .mask(mask.clone());
        DetrMemory {
            states: self.encoder.forward(input),
            positions,
            mask,
            grid: [rows, columns],
        }
    }

    /// The output of the heads for a memory. Panics when the model has no heads, or the memory is of another width.
    pub fn decode(&self, memory: &DetrMemory) -> DetrOutput {
        self.detect(self.states(memory))
    }

    /// As [`decode`](Self::decode), with the output of the heads after each layer, which the paper trains as well.
    pub fn decode_with_auxiliary(&self, memory: &DetrMemory) -> DetrOutput {
        let input = self.decoder_input(memory);
        let output = self.decoder.forward_with_hidden_states(input);
        let mut earlier = output.hidden_states;
        earlier.pop();
        let norm = &self.decoder.norm;
        let earlier = earlier.into_iter().map(|states| normalised(norm, states));
        let auxiliary = earlier.map(|states| self.detect(states)).collect();
        DetrOutput {
            auxiliary,
            ..self.detect(output.states)
        }
    }

    /// As [`decode`](Self::decode), with the weights of the cross-attention. This takes all scores of the decoder once more.
    pub fn decode_with_weights(&self, memory: &DetrMemory) -> DetrOutput {
        let input = self.decoder_input(memory);
        let output = self.decoder.forward_with_weights(input);
        DetrOutput {
            cross_weights: output.cross_weights,
            ..self.detect(output.states)
        }
    }

    /// The states that heads read, `[batch, n_queries, d_model]`, for a memory: the output of a model without heads.
    pub fn states(&self, memory: &DetrMemory) -> Tensor<3> {
        self.decoder.forward(self.decoder_input(memory))
    }

    fn decoder_input(&self, memory: &DetrMemory) -> LayerInput {
        let (states, queries) = (memory.states.clone(), self.queries.val());
        let ([batch, ..], [n_queries, d_model]) = (states.dims(), queries.dims());
        let place = (&states.device(), states.dtype());
        LayerInput::new(Tensor::zeros([batch, n_queries, d_model], place))
            .query_key_position_embedding(queries.unsqueeze())
            .memory(states)
            .memory_mask(memory.mask.clone())
            .memory_position_embedding(memory.positions.clone())
    }

    fn detect(&self, states: Tensor<3>) -> DetrOutput {
        let heads = self.class_head.as_ref().zip(self.box_head.as_ref());
        let (class_head, box_head) = heads.expect("Detr: the model has no heads");
        DetrOutput {
            logits: class_head.forward(states.clone()),
            boxes: box_head.forward(states.clone()),
            states,
            auxiliary: Vec::new(),
            cross_weights: Vec::new(),
        }
    }
}

/// A mask resized to these rows and columns: each place has the value of its pixel at the top left.
fn resized(mask: Tensor<3, Bool>, size: [usize; 2]) -> Tensor<3, Bool> {
    let options = InterpolateOptions::new(InterpolateMode::Nearest).with_output_size(size);
    let mask = interpolate(mask.float().unsqueeze_dim(1), options);
    mask.squeeze_dim::<3>(1).greater_elem(0.5)
}

/// From states to boxes: three linear layers with ReLU between them, and a sigmoid.
///
/// # Source
///
/// "End-to-end object detection with transformers" (arXiv:2005.12872), section 3.2. PyTorch equivalent: `DetrMLPPredictionHead` of Hugging Face's
/// `transformers`, and the sigmoid after it.
#[derive(Module, Debug)]
pub struct BoxHead {
    /// The linear layers.
    pub layers: Vec<Linear>,
}

impl BoxHead {
    /// A head for states of this width, with random weights.
    pub fn new(d_model: usize, device: &Device) -> Self {
        let linear = |d_output| LinearConfig::new(d_model, d_output).init(device);
        let layers = [d_model, d_model, 4].map(linear).into();
        Self { layers }
    }

    /// Centre x, centre y, width and height, `[batch, n_queries, 4]`, from 0 to 1, for states `[batch, n_queries, d_model]`. Panics when the width
    /// differs. It takes `4 · batch · n_queries · d_model · (d_model + 2)` operations.
    pub fn forward(&self, states: Tensor<3>) -> Tensor<3> {
        let mut layers = self.layers.iter();
        let first = layers.next().expect("BoxHead: there are no layers");
        let outputs = layers.fold(first.forward(states), |x, layer| layer.forward(relu(x)));
        sigmoid(outputs)
    }
}
