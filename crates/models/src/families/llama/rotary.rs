//! The rotary positions of a configuration, in files from before version 5 of transformers and since. What its versions 4 and 5 read differently is
//! refused.

use burn_attn::positions::{RotaryConfig, RotaryScaling, YarnScaling};
use serde_json::json;

use super::family::FamilySpec;
use crate::pretrained::{ConfigFile, PretrainedError, ROPE_FREQS, Result};

/// What `rope_scaling` has to be.
pub(in crate::families) const WITH_TYPE: &str = "an object with rope_type";

pub(super) fn of_all_layers(
    file: &mut ConfigFile,
    spec: &FamilySpec,
    max_len: usize,
) -> Result<RotaryConfig> {
    if spec.needs_scaling && !file.has("rope_parameters") {
        file.needs("rope_scaling")?;
        let has_scaling = file.has("rope_scaling");
        file.check("rope_scaling", has_scaling, || WITH_TYPE)?;
    }
    let config = RotaryConfig::new()
        .with_max_len(max_len)
        .with_base(spec.rope_theta);
    // The factors that llama.cpp computes from the parameters of Llama 3.1.
    match file.value(ROPE_FREQS, "a list of numbers")? {
        Some(factors) => {
            let config = config.with_base(file.number("rope_theta", spec.rope_theta)?);
            Ok(config.with_scaling(RotaryScaling::LongRope {
                factors,
                attention_factor: 1.0,
            }))
        }
        None => read(file, config),
    }
}

/// `rotary`, which is what a file without their fields means, as a file says: by `rope_parameters`, or, before version 5, by `rope_scaling`.
pub(in crate::families) fn read(
    file: &mut ConfigFile,
    rotary: RotaryConfig,
) -> Result<RotaryConfig> {
    let says = file.number_if_any("rope_theta")?;
    let base = file.number("rope_theta", rotary.base)?;
    let rotary = rotary.with_base(base);
    if let Some(parameters) = file.object("rope_parameters")? {
        return newer(parameters, rotary, says);
    }
    match older(file, &rotary)? {
        Some(scaling) => stretched(scaling, rotary),
        None => Ok(rotary),
    }
}

/// The object with the parameters of a file: `rope_parameters`, or, before version 5, `rope_scaling`.
pub(in crate::families) fn parameters(file: &mut ConfigFile) -> Result<Option<ConfigFile>> {
    match file.object("rope_parameters")? {
        Some(parameters) => Ok(Some(parameters)),
        None => file.object("rope_scaling"),
    }
}

/// The rotary positions of layers with a window and of layers without, with these bases if the file has none. `max_len` is the length after
/// scaling.
pub(super) fn of_two_kinds(
    file: &mut ConfigFile,
    missing: [f64; 2],
    max_len: usize,
) -> Result<[RotaryConfig; 2], PretrainedError> {
    let config = |base| RotaryConfig::new().with_max_len(max_len).with_base(base);
    let bases = ["rope_local_base_freq", "rope_theta"];
    let says = [file.number_if_any(bases[0])?, file.number_if_any(bases[1])?];
    let near = config(file.number(bases[0], missing[0])?);
    let far = config(file.number(bases[1], missing[1])?);
    if let Some(mut parameters) = file.object("rope_parameters")? {
        let mut of_kind = |kind: &str, config: RotaryConfig, says| match parameters.object(kind)? {
            Some(of_kind) => newer(of_kind, config, says),
            None => Ok(config),
        };
        let both = [
            of_kind("sliding_attention", near, says[0])?.with_max_len(max_len),
            of_kind("full_attention", far, says[1])?.with_max_len(max_len),
        ];
        parameters.finish()?;
        return Ok(both);
    }
    let far = match older(file, &far)? {
        Some(mut scaling) => {
            // The older name `type` alone scales nothing in version 5, and is refused by version 4.
            file.check("rope_scaling", scaling.has("rope_type"), || WITH_TYPE)?;
            stretched(scaling, far)?.with_max_len(max_len)
        }
        None => far,
    };
    Ok([near, far])
}

/// `rotary`, whose base is what the file `says` outside of the parameters, if it says one, with the parameters of version 5, which have the base among them.
fn newer(
    mut parameters: ConfigFile,
    rotary: RotaryConfig,
    says: Option<f64>,
) -> Result<RotaryConfig> {
    let base = match (parameters.number_if_any("rope_theta")?, says) {
        (Some(inside), Some(outside)) if inside != outside => {
            return Err(parameters.unsupported("rope_theta", outside.to_string()));
        }
        (Some(inside), _) => inside,
        (None, _) => rotary.base,
    };
    stretched(parameters, rotary.with_base(base))
}

/// The scaling in a file from before version 5, which has to name its type. Version 4 reads no base there, and needs all of Llama 3's numbers.
fn older(file: &mut ConfigFile, rotary: &RotaryConfig) -> Result<Option<ConfigFile>> {
    let Some(mut scaling) = file.object("rope_scaling")? else {
        return Ok(None);
    };
    let names = ["rope_type", "type"].map(|name| scaling.has(name));
    file.check("rope_scaling", names.contains(&true), || WITH_TYPE)?;
    let base = scaling.number_if_any("rope_theta")?;
    let agrees = base.is_none_or(|base| base == rotary.base);
    scaling.check("rope_theta", agrees, || rotary.base.to_string())?;
    if scaling.has("low_freq_factor") {
        scaling.needs("original_max_position_embeddings")?;
    }
    Ok(Some(scaling))
}

/// `rotary` with the scaling of a JSON object.
fn stretched(mut parameters: ConfigFile, rotary: RotaryConfig) -> Result<RotaryConfig> {
    // transformers too takes the model's positions if the original ones are missing.
    let original = |parameters: &mut ConfigFile| -> Result<usize> {
        let original = parameters.size_if_any("original_max_position_embeddings")?;
        Ok(original.unwrap_or(rotary.max_len))
    };
    let kinds = ["default", "linear", "llama3", "yarn"];
    let kind = parameters.kind(["rope_type", "type"], &kinds)?;
    let (scaling, max_len) = match kind {
        "linear" => {
            let factor = parameters.real("factor")?;
            let max_len = parameters.reach("factor", factor, rotary.max_len)?;
            (RotaryScaling::Linear { factor }, max_len)
        }
        "llama3" => {
            let scaling = RotaryScaling::Llama3 {
                factor: parameters.real("factor")?,
                low_freq_factor: parameters.real("low_freq_factor")?,
                high_freq_factor: parameters.real("high_freq_factor")?,
                original_max_len: original(&mut parameters)?,
            };
            (scaling, rotary.max_len)
        }
        "yarn" => {
            let original = original(&mut parameters)?;
            let factor = parameters.real("factor")?;
            let max_len = parameters.reach("factor", factor, original)?;
            let yarn = YarnScaling::new(factor, original);
            let yarn = yarn
                .with_beta_fast(parameters.number("beta_fast", yarn.beta_fast)?)
                .with_beta_slow(parameters.number("beta_slow", yarn.beta_slow)?)
                .with_truncate(parameters.flag("truncate", true)?)
                .with_attention_factor(parameters.number_if_any("attention_factor")?);
            let magnitudes = ["mscale", "mscale_all_dim"];
            let [own, of_all] = magnitudes.map(|field| parameters.number_if_any(field));
            // transformers reads either of them only beside the other.
            let yarn = match (yarn.attention_factor, own?.zip(of_all?)) {
                (None, Some((own, of_all))) if own != 0.0 && of_all != 0.0 => {
                    yarn.with_mscale(own, of_all)
                }
                _ => yarn,
            };
            (RotaryScaling::Yarn(yarn), max_len)
        }
        _ => (RotaryScaling::None, rotary.max_len),
    };
    match rotary.rotary_dim {
        // Every number of a head is rotated.
        None => parameters.only("partial_rotary_factor", json!(1.0))?,
        // Whoever has set it has read this field.
        Some(_) => parameters.ignore("partial_rotary_factor"),
    }
    // How the model was trained, which transformers does not read either.
    parameters.ignore("finetuned");
    parameters.finish()?;
    let max_len = max_len.max(rotary.max_len);
    Ok(rotary.with_scaling(scaling).with_max_len(max_len))
}
