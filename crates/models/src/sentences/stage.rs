//! What comes after pooling.

use std::path::Path;

use burn::{
    nn::{Linear, LinearConfig},
    tensor::{
        Tensor,
        activation::{gelu, relu, sigmoid, silu},
    },
};
use serde_json::json;

use super::files::{self, MODULE_CONFIG};
use crate::{
    bert::normalized,
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::Table,
};

type Activation = fn(Tensor<2>) -> Tensor<2>;

/// The activations by their names in PyTorch; the first is that of files that name none.
const ACTIVATIONS: [(&str, Activation); 6] = [
    ("torch.nn.modules.activation.Tanh", Tensor::tanh),
    ("torch.nn.modules.linear.Identity", |x| x),
    ("torch.nn.modules.activation.GELU", gelu),
    ("torch.nn.modules.activation.ReLU", relu),
    ("torch.nn.modules.activation.Sigmoid", sigmoid),
    ("torch.nn.modules.activation.SiLU", silu),
];

/// A module that turns vectors `[batch, d]` into others.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Dense(Linear, Activation),
    /// Scales a vector to length 1.
    Normalize,
}

impl Stage {
    pub(super) fn forward(&self, vectors: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Dense(layer, activation) => activation(layer.forward(vectors)),
            Self::Normalize => normalized(vectors),
        }
    }

    /// The files of a Dense module for vectors of this width, and the width of its outputs.
    pub(super) fn dense(
        folder: &Path,
        width: usize,
        options: &LoadOptions,
    ) -> Result<(Self, usize)> {
        let mut file = files::read(folder.join("config.json"), MODULE_CONFIG)?;
        of_sentences(&mut file)?;
        file.only("use_residual", json!(false))?;
        let [inputs, outputs] = [file.size("in_features")?, file.size("out_features")?];
        file.check("in_features", inputs == width && outputs > 0, || {
            format!("{width} (the width so far), and out_features above 0")
        })?;
        let activation = file.choice("activation_function", &ACTIVATIONS)?;
        let config = LinearConfig::new(inputs, outputs).with_bias(file.flag("bias", true)?);
        file.finish()?;
        let weights = options.weights(folder, None)?;
        let mut layer = config.init(&options.device);
        let loaded = weights.load(&Table::new().linear("", "linear"), &mut layer);
        loaded.map_err(|error| PretrainedError::weights(folder, error))?;
        Ok((Self::Dense(layer, activation), outputs))
    }

    /// The files of a Normalize module, which has none in older versions.
    pub(super) fn normalize(folder: &Path) -> Result<Self> {
        if let Some(mut file) = files::first_of(folder, &["config.json"], MODULE_CONFIG)? {
            of_sentences(&mut file)?;
            file.finish()?;
        }
        Ok(Self::Normalize)
    }
}

/// Refuses a module that reads or writes anything but the vectors.
fn of_sentences(file: &mut ConfigFile) -> Result<()> {
    let names = "module_input_name module_output_name";
    file.only(names, json!("sentence_embedding"))
}
