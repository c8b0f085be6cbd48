//! A user's own module of ours and burn-nn's: it trains, is saved and loaded, packed in 8 bits and forked.

use burn::{
    module::Module,
    nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig},
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor},
};
use burn_attn::{
    AttentionContext, BlockConfig, LayerInput, TransformerLayer, TransformerLayerConfig,
    positions::{Position, PositionEncoding},
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, assert_same, differs},
    devices,
    numbers::filled,
};
use burn_store::{ModuleSnapshot, SafetensorsStore};

use crate::quantized::{packed, schemes};

const D_MODEL: usize = 30;
const HEADS: usize = 3;
const CLASSES: usize = 6;

/// A classifier whose layers share one rotary table, with burn-nn's embedding, norm and head around them.
#[derive(Module, Debug)]
struct Classifier {
    tokens: Embedding,
    layers: Vec<TransformerLayer>,
    position: Position,
    norm: LayerNorm,
    head: Linear,
}

impl Classifier {
    fn new(device: &Device) -> Self {
        let layer = TransformerLayerConfig::new(D_MODEL, 39, HEADS)
            .with_block(BlockConfig::new().with_dropout(0.0));
        Self {
            tokens: EmbeddingConfig::new(24, D_MODEL).init(device),
            layers: (0..2).map(|_| layer.init(device)).collect(),
            position: PositionEncoding::rotary().init(HEADS, D_MODEL / HEADS, device),
            norm: LayerNormConfig::new(D_MODEL).init(device),
            head: LinearConfig::new(D_MODEL, CLASSES).init(device),
        }
    }

    /// `[batch, CLASSES]`
    fn forward(&self, tokens: Tensor<2, Int>, lengths: &[usize]) -> Tensor<2> {
        let context = AttentionContext::new()
            .lengths(lengths)
            .position(self.position.clone());
        let x = self.tokens.forward(tokens);
        let x = self.layers.iter().fold(x, |x, layer| {
            layer
                .forward(LayerInput::new(x).context(context.clone()))
                .states
        });
        let first = self.norm.forward(x).narrow(1, 0, 1);
        self.head.forward(first).squeeze_dim(1)
    }
}

fn logits(model: &Classifier, device: &Device) -> Tensor<2> {
    let tokens = Tensor::<2, Int>::from_data([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]], device);
    model.forward(tokens, &[5, 3])
}

fn loss(model: &Classifier, device: &Device) -> Tensor<1> {
    let targets = Tensor::<2>::from_data(
        [
            [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        ],
        device,
    );
    (logits(model, device) - targets).square().mean()
}

#[test]
fn it_trains() {
    for (name, device) in devices::cpu() {
        let device = device.autodiff();
        let mut model = filled(Classifier::new(&device), 1);
        let mut optimizer = AdamConfig::new().init();
        let first = loss(&model, &device).into_scalar::<f32>();
        for _ in 0..20 {
            let gradients = loss(&model, &device).backward();
            let gradients = GradientsParams::from_grads(gradients, &model);
            model = optimizer.step(1e-2, model, gradients);
        }
        let last = loss(&model, &device).into_scalar::<f32>();
        assert!(last < first / 20.0, "{last} after {first} on {name}");
    }
}

#[test]
fn it_is_saved_and_loaded() {
    let device = devices::any();
    let folder = tempfile::tempdir().expect("a folder to write to");
    let path = folder.path().join("classifier.safetensors");
    let saved = filled(Classifier::new(&device), 1);
    let mut loaded = filled(Classifier::new(&device), 2);
    assert!(differs(&logits(&loaded, &device), &logits(&saved, &device)));
    let mut store = SafetensorsStore::from_file(&path);
    saved.save_into(&mut store).expect("saved");
    let mut store = SafetensorsStore::from_file(&path);
    let result = loaded.load_from(&mut store).expect("loaded");
    assert!(result.unused.is_empty(), "{result}");
    assert_same(&logits(&loaded, &device), &logits(&saved, &device));
}

#[test]
fn it_is_packed_and_forked() {
    for (name, device) in devices::cpu() {
        let model = filled(Classifier::new(&device), 1);
        let exact = logits(&model, &device).into_data();
        let [(_, scheme), _] = schemes();
        let packed = packed(model, scheme);
        let packed = logits(&packed, &device).into_data();
        assert_ne!(packed, exact, "{name}");
        assert_close_to_largest(name, &packed, &exact, 0.05, 0.0);

        // A copy of a model in training that is trained by itself, as for each of several devices.
        let training = device.clone().autodiff();
        let original = filled(Classifier::new(&training), 1);
        let forked = original.clone().fork(&training);
        let gradients = loss(&forked, &training).backward();
        assert!(forked.head.weight.val().grad(&gradients).is_some());
        assert!(original.head.weight.val().grad(&gradients).is_none());
        assert_same(&logits(&forked, &training), &logits(&original, &training));
    }
}
