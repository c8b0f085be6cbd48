//! What images become before a model sees them.

use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use example_common::{error::Error, files};
use serde_json::{Value, json};

/// Mean and standard deviation of MNIST's pixels, from 0 to 1.
const MEAN: f32 = 0.1307;
const STD: f32 = 0.3081;

/// Images of `side × side` pixels from 0 to 255, `[images, 1, side, side]`, as models see them.
pub fn images(mut pixels: Vec<f32>, side: usize, device: &Device) -> Tensor<4> {
    for pixel in &mut pixels {
        *pixel = (*pixel / 255.0 - MEAN) / STD;
    }
    let shape = [pixels.len() / (side * side), 1, side, side];
    Tensor::from_data(TensorData::new(pixels, shape), device)
}

/// Writes the configuration of a model, and that of the image processor of this kind for images of `side × side` pixels.
pub fn save(folder: &Path, config: &Value, kind: &str, side: usize) -> Result<(), Error> {
    let processor = json!({
        "image_processor_type": kind,
        "do_resize": true,
        "size": {"height": side, "width": side},
        "resample": 2,
        "do_rescale": true,
        "rescale_factor": 1.0 / 255.0,
        "do_normalize": true,
        "image_mean": [MEAN],
        "image_std": [STD],
    });
    for (name, fields) in [
        ("config.json", config),
        ("preprocessor_config.json", &processor),
    ] {
        files::replace(&folder.join(name), format!("{fields:#}\n").as_bytes())?;
    }
    Ok(())
}
