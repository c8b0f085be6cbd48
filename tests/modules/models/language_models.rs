//! What every family of language models has to do: compared with `transformers`, with and without padding and caches, and written back. What
//! does not depend on the model serves T5 too.

use std::{ops::Range, path::Path};

use burn::{
    module::Module,
    nn::loss::CrossEntropyLossConfig,
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData},
};
use burn_attn::{LayerInput, TokenMixer};
use burn_attn_models::{
    generate::{GenerateOptions, generate},
    language_model::LanguageModel,
    pretrained::PretrainedError,
    weights::{Table, save},
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, numbers},
    devices,
    golden::GoldenFile,
};
use serde_json::{Map, Value};

use super::{
    TOLERANCE, assert_states, folder,
    refused::{copied, shown},
};
use crate::weights::{Contents, contents, write_contents};

/// How many tokens the two texts have; the rest is padding.
const LENGTHS: [usize; 2] = [7, 4];

/// A family of models.
pub type FromPretrained<M> = fn(&Path, &Device) -> Result<M, PretrainedError>;

/// One of its models, from a folder of golden files.
pub struct Model<M = LanguageModel> {
    pub name: &'static str,
    pub from_pretrained: FromPretrained<M>,
    pub table: Table,
}

/// A model that says how probable tokens are.
pub trait Logits: Module {
    /// Logits of the first text of golden values.
    fn logits_of(&self, values: &GoldenFile) -> TensorData;
}

impl<X: TokenMixer> Logits for LanguageModel<X> {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        let tokens = Tensor::<2, Int>::from_data(values.data("tokens"), &devices::any());
        self.forward(tokens.narrow(0, 0, 1)).into_data()
    }
}

/// The one of these models with this name.
pub fn named<M, const N: usize>(models: [Model<M>; N], name: &str) -> Model<M> {
    let mut models = models.into_iter();
    models.find(|model| model.name == name).expect("a model")
}

impl<M: Logits> Model<M> {
    pub fn load(&self, device: &Device) -> M {
        let model = (self.from_pretrained)(&folder(self.name), device);
        model.unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn values(&self) -> GoldenFile {
        GoldenFile::open(&format!("models/{}/values", self.name))
    }
}

impl<X: TokenMixer> Model<LanguageModel<X>> {
    /// Logits and the states behind every layer are the reference's, and padding changes nothing before it.
    pub fn check_states(&self) {
        let values = self.values();
        for (backend, device) in devices::cpu() {
            let model = self.load(&device);
            let tokens = Tensor::<2, Int>::from_data(values.data("tokens"), &device);
            let input = LayerInput::new(model.embed(tokens.clone(), 0));
            let output = model.transformer.forward_with_hidden_states(input);
            let layers = values.names().filter(|name| name.starts_with("states."));
            assert_eq!(output.hidden_states.len(), layers.count());
            for (layer, states) in output.hidden_states.into_iter().enumerate() {
                let expected = values.tensor(&format!("states.{layer}"), &device);
                let what = format!("{}, layer {layer} on {backend}", self.name);
                assert_states(&what, states, expected);
            }
            let logits = model.forward(tokens.clone());
            let what = format!("{}, logits on {backend}", self.name);
            assert_states(&what, logits.clone(), values.tensor("logits", &device));
            let alone = tokens.narrow(0, 1, 1).narrow(1, 0, LENGTHS[1]);
            let padded = logits.narrow(0, 1, 1).narrow(1, 0, LENGTHS[1]);
            let (padded, alone) = (padded.into_data(), model.forward(alone).into_data());
            assert_close_to_largest("padded", &padded, &alone, 1e-6, 0.0);
        }
    }

    /// Greedy tokens are those without a cache, and the reference's.
    pub fn check_generation(&self) {
        let values = self.values();
        let tokens: Vec<u32> = values.data("tokens").iter().collect();
        let prompts = [
            tokens[..LENGTHS[0]].to_vec(),
            tokens[7..7 + LENGTHS[1]].to_vec(),
        ];
        for (_, device) in devices::cpu() {
            let model = self.load(&device);
            let outputs =
                generate(&model, model.start(2), &prompts, &GenerateOptions::new(10)).unwrap();
            for (row, (mut text, output)) in prompts.iter().cloned().zip(outputs).enumerate() {
                let expected = values.data(&format!("greedy.{row}"));
                assert_eq!(output.tokens, expected.iter::<u32>().collect::<Vec<_>>());
                for token in output.tokens {
                    let read = TensorData::new(text.clone(), [1, text.len()]);
                    let logits = model.forward(Tensor::from_data(read, &device));
                    let last = numbers(&logits.narrow(1, text.len() - 1, 1));
                    let best = (0..).zip(last).max_by(|a, b| a.1.total_cmp(&b.1));
                    assert_eq!(Some(token), best.map(|(token, _)| token));
                    text.push(token);
                }
            }
        }
    }

    /// It learns a text by heart, whose tokens follow 3 and 7 in different ways, and says it token by token.
    pub fn check_training(&self) {
        const TEXT: [u32; 12] = [3, 7, 3, 11, 3, 7, 19, 7, 3, 2, 11, 5];
        for (backend, device) in devices::cpu() {
            let device = device.autodiff();
            let tokens = |range: Range<usize>| {
                let tokens = Tensor::<1, Int>::from_data(&TEXT[range], &device);
                tokens.unsqueeze::<2>()
            };
            let (input, goal) = (tokens(0..11), tokens(1..12).flatten(0, 1));
            let mut model = self.load(&device);
            let mut optimizer = AdamConfig::new().init();
            for _ in 0..80 {
                let logits = model.forward(input.clone()).flatten(0, 1);
                let loss = CrossEntropyLossConfig::new().init(&device);
                let gradients = loss.forward(logits, goal.clone()).backward();
                let gradients = GradientsParams::from_grads(gradients, &model);
                model = optimizer.step(1e-2, model, gradients);
            }
            let model = model.valid();
            let options = GenerateOptions::new(10);
            let output = generate(&model, model.start(1), &[TEXT[..2].to_vec()], &options);
            let what = format!("{} on {backend}", self.name);
            assert_eq!(output.expect("a prompt")[0].tokens, TEXT[2..], "{what}");
        }
    }
}

impl<M: Logits> Model<M> {
    /// The table read backwards writes the tensors of the checkpoint, bit for bit.
    pub fn check_export(&self) {
        let written = tempfile::tempdir().expect("a folder");
        let path = written.path().join("model.safetensors");
        save(&self.table, &self.load(&devices::any()), &path).expect("written");
        let original = folder(self.name).join("model.safetensors");
        let (written, mut original) = (contents(&path), contents(&original));
        // A count of batches, which nobody reads, and what image models have for pretraining.
        let is_left_out = |name: &str| {
            let ends = [".num_batches_tracked", "embeddings.mask_token"];
            ends.iter().any(|end| name.ends_with(end)) || name.starts_with("pooler.")
        };
        original.retain(|name, _| !is_left_out(name));
        assert!(original.len() > 20);
        assert_eq!(
            written.keys().collect::<Vec<_>>(),
            original.keys().collect::<Vec<_>>()
        );
        for (name, tensor) in &original {
            assert!(written[name] == *tensor, "{name} came back otherwise");
        }
    }

    /// What a copy of the folder gives whose configuration and tensors were changed; errors say `config.json` for its path.
    pub fn with(
        &self,
        change_config: impl FnOnce(&mut Map<String, Value>),
        change_tensors: impl FnOnce(&mut Contents),
    ) -> Result<M, String> {
        let copy = copied(self.name, change_config);
        let path = copy.path().join("model.safetensors");
        let mut tensors = contents(&path);
        change_tensors(&mut tensors);
        write_contents(&path, &tensors);
        let loaded = (self.from_pretrained)(copy.path(), &devices::any());
        loaded.map_err(|error| shown(&error, copy.path()))
    }

    /// What a copy of the folder gives whose configuration was changed.
    pub fn changed(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<M, String> {
        self.with(change, |_| {})
    }

    /// What a copy of the folder gives whose configuration has this value in a field.
    pub fn set(&self, field: &str, value: impl Into<Value>) -> Result<M, String> {
        self.changed(|config| drop(config.insert(field.into(), value.into())))
    }

    /// A checkpoint whose tensors were changed is the same model.
    pub fn assert_same_weights(&self, change: impl FnOnce(&mut Contents)) {
        let model = self.with(|_| {}, change).expect("a model");
        let expected = self.logits_of(&self.load(&devices::any()));
        assert_eq!(self.logits_of(&model), expected);
    }

    /// A field with another value is refused in this sentence.
    #[track_caller]
    pub fn assert_refused(&self, field: &str, value: Value, expected: &str) {
        let error = self.set(field, value).expect_err("it is refused");
        assert_eq!(error, expected);
    }

    /// Fields, each with a value that this family refuses, and what the sentence says that it supports.
    #[track_caller]
    pub fn assert_unsupported<const N: usize>(&self, family: &str, rows: [(&str, Value, &str); N]) {
        for (field, value, supported) in rows {
            let supports = format!("{field} is {value}, but {family} supports {supported}");
            self.assert_refused(field, value, &format!("config.json: {supports}"));
        }
    }

    /// This family refuses a file without the field.
    #[track_caller]
    pub fn assert_needed(&self, family: &str, field: &str) {
        let error = self.changed(|config| drop(config.remove(field)));
        let expected = format!("config.json has no field {field}, which {family} needs");
        assert_eq!(error.expect_err("it is refused"), expected);
    }

    /// Logits of the first text.
    pub fn logits_of(&self, model: &M) -> TensorData {
        model.logits_of(&self.values())
    }

    /// A configuration changed so that it means the same is the same model.
    #[track_caller]
    pub fn assert_same_model(&self, change: impl FnOnce(&mut Map<String, Value>)) {
        let model = self
            .changed(change)
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            self.logits_of(&model),
            self.logits_of(&self.load(&devices::any()))
        );
    }

    /// A changed model gives other logits.
    #[track_caller]
    pub fn assert_differs(&self, what: &str, changed: Result<M, String>) {
        let changed = changed.unwrap_or_else(|error| panic!("{what}: {error}"));
        let own = self.logits_of(&self.load(&devices::any()));
        assert_ne!(self.logits_of(&changed), own, "{what}");
    }

    /// The logits of the first text are these.
    #[track_caller]
    pub fn assert_logits(&self, what: &str, model: &M, expected: &TensorData) {
        assert_close_to_largest(what, &self.logits_of(model), expected, TOLERANCE, 0.0);
    }
}
