//! The rotary positions of a configuration, in files from before version 5 of transformers and since.

use burn_attn::positions::{RotaryConfig, RotaryScaling, YarnScaling};

use super::Family;
use crate::pretrained::{ConfigFile, MOST_POSITIONS, PretrainedError};

/// The rotary positions of all layers: `rope_parameters`, or `rope_theta` and `rope_scaling`.
pub(super) fn of_all_layers(
    file: &mut ConfigFile,
    family: Family,
    max_len: usize,
) -> Result<RotaryConfig, PretrainedError> {
    let missing = match family {
        Family::Mixtral => 1_000_000.0,
        Family::GptOss => 150_000.0,
        _ => 10_000.0,
    };
    // gpt-oss scales its positions unless the file says otherwise.
    if family == Family::GptOss && !file.has("rope_parameters") {
        file.needs("rope_scaling")?;
    }
    let base = file.number("rope_theta", missing)?;
    let rotary = RotaryConfig::new().with_max_len(max_len).with_base(base);
    match file.object("rope_parameters")? {
        Some(parameters) => stretched(parameters, rotary),
        None => match file.object("rope_scaling")? {
            Some(scaling) => stretched(scaling, rotary),
            None => Ok(rotary),
        },
    }
}

/// The rotary positions of layers with a window and of layers without, which differ in Gemma 3.
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

/// `rotary` with the parameters of a JSON object.
fn stretched(
    mut parameters: ConfigFile,
    rotary: RotaryConfig,
) -> Result<RotaryConfig, PretrainedError> {
    let rotary = rotary
        .clone()
        .with_base(parameters.number("rope_theta", rotary.base)?);
    let mut max_len = rotary.max_len;
    // transformers too takes the model's positions if the original ones are missing.
    let original = |parameters: &mut ConfigFile| {
        let original = parameters.size_if_any("original_max_position_embeddings")?;
        Ok::<_, PretrainedError>(original.unwrap_or(rotary.max_len))
    };
    // The older of the two names.
    let kinds = ["default", "linear", "llama3", "yarn"].map(|kind| (kind, kind));
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
            original_max_len: original(&mut parameters)?,
        },
        "yarn" => {
            let original = original(&mut parameters)?;
            let factor = parameters.real("factor")?;
            // The length that the scaling is meant to reach, even if the file still has the length from before it.
            let stretched = factor * original as f64;
            if stretched > MOST_POSITIONS as f64 {
                return Err(
                    parameters.unsupported("factor", format!("at most {MOST_POSITIONS} positions"))
                );
            }
            max_len = max_len.max(stretched as usize);
            let yarn = YarnScaling::new(factor, original);
            RotaryScaling::Yarn(
                yarn.with_beta_fast(parameters.number("beta_fast", yarn.beta_fast)?)
                    .with_beta_slow(parameters.number("beta_slow", yarn.beta_slow)?)
                    .with_truncate(parameters.flag("truncate", true)?)
                    .with_attention_factor(parameters.number_if_any("attention_factor")?),
            )
        }
        _ => RotaryScaling::None,
    };
    parameters.finish()?;
    Ok(rotary.with_scaling(scaling).with_max_len(max_len))
}
