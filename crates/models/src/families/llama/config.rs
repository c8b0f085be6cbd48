//! Reads a `config.json`.

use burn_attn::{BlockConfig, HeadsConfig, LayerPattern, NormConfig, positions::PositionEncoding};
use serde_json::Value;

use super::{
    experts,
    family::{FAMILIES, FamilySpec, Windows},
    rotary,
};
use crate::{
    families::decoder,
    language_model::LanguageModelConfig,
    pretrained::{ConfigFile, Result},
};

/// The family and the configuration that a file describes.
pub(super) fn read(file: &mut ConfigFile) -> Result<(&'static FamilySpec, LanguageModelConfig)> {
    let spec = file.choice("model_type", &FAMILIES.map(|spec| (spec.model_type, spec)))?;
    let is_quantized = file.has("quantization_config");
    let supported = || "floating-point weights";
    file.check("quantization_config", !is_quantized, supported)?;
    file.needs("rms_norm_eps")?;
    for field in spec.needed.split_whitespace() {
        file.needs(field)?;
    }
    let n_layers = file.layers("num_hidden_layers")?;
    let mut max_len = file.positions("max_position_embeddings")?;
    let block = block(file, spec)?;
    // Layers with a window, and layers without.
    let [near, far] = match spec.local_base {
        Some(base) => rotary::of_two_kinds(file, [base, spec.rope_theta], max_len)?,
        None => {
            let rotary = rotary::of_all_layers(file, spec, max_len)?;
            max_len = rotary.max_len;
            [rotary.clone(), rotary]
        }
    };
    // A published window counts the token itself.
    let window = match spec.windows {
        Windows::None => None,
        _ => file.size_if_any("sliding_window")?,
    };
    let window = window.map(|window| window.saturating_sub(1));
    let windows = windows(file, spec.windows, n_layers)?;
    let (experts, sparse) = experts::read(file, spec, n_layers)?;
    // Which layers have a window, and which have experts.
    let kinds: Vec<(bool, bool)> = windows.into_iter().zip(sparse).collect();
    let layers = kinds.iter().map(|&(has_window, is_sparse)| {
        let (rotary, window) = match has_window {
            true => (&near, window),
            false => (&far, None),
        };
        block
            .clone()
            .with_window(window)
            .with_experts(experts.clone().filter(|_| is_sparse))
            .with_position(PositionEncoding::Rotary(rotary.clone()))
    });
    let layers: Vec<BlockConfig> = layers.collect();
    let first = layers.first().cloned().unwrap_or_else(|| block.clone());
    let differ = kinds.windows(2).any(|pair| pair[0] != pair[1]);
    let config = decoder::sizes(file, spec.scaled_embedding)?
        .with_max_len(max_len)
        .with_block(first)
        .with_pattern(match differ {
            true => LayerPattern::Cycle(layers),
            false => LayerPattern::Uniform,
        })
        .with_scaled_embedding(spec.scaled_embedding)
        .with_logit_softcap(match spec.logit_softcap {
            true => file.number_if_any("final_logit_softcapping")?,
            false => None,
        });
    for (field, value) in spec.only {
        let value: Value = serde_json::from_str(value).expect("JSON of this crate");
        file.only(field, value)?;
    }
    file.ignore(spec.ignored);
    // How training was split among machines.
    file.ignore("pretraining_tp");
    Ok((spec, config))
}

fn block(file: &mut ConfigFile, spec: &FamilySpec) -> Result<BlockConfig> {
    let epsilon = file.number("rms_norm_eps", 1e-6)?;
    let norm = NormConfig::rms_norm().with_epsilon(epsilon);
    let norm = match spec.unit_offset {
        true => norm.with_unit_offset(),
        false => norm,
    };
    let (field, name, activation) = spec.activation;
    let activation = file.choice(field, &[(name, activation)])?;
    let mut heads = HeadsConfig::new()
        .with_n_kv_heads(file.size_if_any("num_key_value_heads")?)
        .with_d_head(file.size_if_any("head_dim")?)
        .with_sinks(spec.sinks)
        .with_qk_norm(spec.qk_norm.map(|norm| norm(epsilon)));
    if spec.query_scalar {
        let scalar = file.number("query_pre_attn_scalar", 256.0)?;
        heads = heads.with_scale(scalar.powf(-0.5));
    }
    if spec.score_softcap {
        heads = heads.with_softcap(file.number_if_any("attn_logit_softcapping")?);
    }
    let projection_bias = match spec.projection_bias {
        Some(bias) => bias,
        None => file.flag("attention_bias", false)?.into(),
    };
    let feed_forward_bias = match spec.feed_forward_bias {
        Some(bias) => bias,
        None => file.flag("mlp_bias", false)?,
    };
    Ok(BlockConfig::new()
        .with_norm(norm)
        .with_norm_placement(spec.placement)
        .with_activation(activation)
        .with_bias(feed_forward_bias)
        .with_projection_bias(projection_bias)
        .with_dropout(0.0)
        .with_attention_dropout(file.number_if_any("attention_dropout")?.unwrap_or(0.0))
        .with_heads(heads))
}

fn windows(file: &mut ConfigFile, windows: Windows, n_layers: usize) -> Result<Vec<bool>> {
    let named = match windows {
        Windows::None | Windows::All | Windows::AllIfUsed => None,
        Windows::LastIfUsed | Windows::Alternating | Windows::Pattern => file.choices(
            "layer_types",
            &[("sliding_attention", true), ("full_attention", false)],
        )?,
    };
    let is_named = named.is_some();
    // Older files have no list of layer types.
    let unnamed: Vec<bool> = match windows {
        Windows::None => vec![false; n_layers],
        Windows::All => vec![file.has("sliding_window"); n_layers],
        Windows::AllIfUsed => {
            let uses = file.flag("use_sliding_window", false)?;
            if uses {
                file.needs("sliding_window")?;
            }
            vec![uses; n_layers]
        }
        Windows::LastIfUsed => {
            let uses = file.flag("use_sliding_window", false)?;
            if uses && !is_named {
                file.needs("max_window_layers")?;
                file.needs("sliding_window")?;
            }
            let first = file.size_or("max_window_layers", n_layers)?;
            (0..n_layers).map(|layer| uses && layer >= first).collect()
        }
        Windows::Alternating => (0..n_layers).map(|layer| layer % 2 == 0).collect(),
        Windows::Pattern => {
            let pattern = file.size_or("sliding_window_pattern", 6)?;
            (0..n_layers)
                .map(|layer| !(layer + 1).is_multiple_of(pattern.max(1)))
                .collect()
        }
    };
    let has_window = named.unwrap_or(unnamed);
    decoder::check_layer_types(file, &has_window, n_layers)?;
    let needs_window = is_named || matches!(windows, Windows::Alternating | Windows::Pattern);
    if needs_window && has_window.contains(&true) {
        let has_width = file.has("sliding_window");
        file.check("sliding_window", has_width, || "a whole number")?;
        // transformers then has a window of width 0.
        let is_used = windows != Windows::LastIfUsed || file.flag("use_sliding_window", false)?;
        let supported = || "true, for these layer_types";
        file.check("use_sliding_window", is_used, supported)?;
    }
    Ok(has_window)
}
