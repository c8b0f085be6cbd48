//! Rotary positions of a configuration, as it was written before version 5 of transformers and since.

use burn_attn::positions::{RotaryConfig, RotaryScaling};

use crate::pretrained::{ConfigFile, PretrainedError};

/// The rotary positions of all layers: `rope_parameters`, or `rope_theta` and `rope_scaling`.
pub(super) fn of_all_layers(
    file: &mut ConfigFile,
    max_len: usize,
) -> Result<RotaryConfig, PretrainedError> {
    let base = file.number("rope_theta", 10_000.0)?;
    let rotary = RotaryConfig::new().with_max_len(max_len).with_base(base);
    match file.object("rope_parameters")? {
        Some(parameters) => stretched(parameters, rotary),
        None => match file.object("rope_scaling")? {
            Some(scaling) => stretched(scaling, rotary),
            None => Ok(rotary),
        },
    }
}

/// Those of layers with a window and of layers without: Gemma 3's.
pub(super) fn of_two_kinds(
    file: &mut ConfigFile,
    max_len: usize,
) -> Result<[RotaryConfig; 2], PretrainedError> {
    let rotary = |base| RotaryConfig::new().with_max_len(max_len).with_base(base);
    let near = rotary(file.number("rope_local_base_freq", 10_000.0)?);
    let far = rotary(file.number("rope_theta", 1_000_000.0)?);
    if let Some(mut parameters) = file.object("rope_parameters")? {
        let mut of_kind = |kind: &str, rotary: RotaryConfig| match parameters.object(kind)? {
            Some(of_kind) => stretched(of_kind, rotary),
            None => Ok(rotary),
        };
        let both = [
            of_kind("sliding_attention", near)?,
            of_kind("full_attention", far)?,
        ];
        parameters.finish()?;
        return Ok(both);
    }
    let far = match file.object("rope_scaling")? {
        Some(scaling) => stretched(scaling, far)?,
        None => far,
    };
    Ok([near, far])
}

/// `rotary` with what an object of parameters says.
fn stretched(
    mut parameters: ConfigFile,
    rotary: RotaryConfig,
) -> Result<RotaryConfig, PretrainedError> {
    let rotary = rotary
        .clone()
        .with_base(parameters.number("rope_theta", rotary.base)?);
    // The older name of the two.
    let kinds = ["default", "linear", "llama3"].map(|kind| (kind, kind));
    let older = parameters.choice("type", &kinds)?;
    let kind = match parameters.has("rope_type") {
        true => parameters.choice("rope_type", &kinds)?,
        false => older,
    };
    let scaling = match kind {
        "linear" => RotaryScaling::Linear {
            factor: parameters.real("factor")?,
        },
        "llama3" => RotaryScaling::Llama3 {
            factor: parameters.real("factor")?,
            low_freq_factor: parameters.real("low_freq_factor")?,
            high_freq_factor: parameters.real("high_freq_factor")?,
            original_max_len: parameters.size("original_max_position_embeddings")?,
        },
        _ => RotaryScaling::None,
    };
    parameters.finish()?;
    Ok(rotary.with_scaling(scaling))
}
