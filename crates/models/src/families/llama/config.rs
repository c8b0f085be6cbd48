//! Reads a `config.json`.

use burn_attn::{
    BlockConfig, FeedForwardActivation, HeadsConfig, LayerPattern, NormConfig, NormPlacement,
    ProjectionBias, QkNormConfig, positions::PositionEncoding,
};
use serde_json::json;

use super::{FAMILIES, Family, experts, rotary};
use crate::{
    language_model::LanguageModelConfig,
    pretrained::{ConfigFile, PretrainedError},
};

/// The family and the configuration that a file describes.
pub(super) fn read(
    file: &mut ConfigFile,
) -> Result<(Family, LanguageModelConfig), PretrainedError> {
    let family = file.choice("model_type", &FAMILIES)?;
    if file.has("quantization_config") {
        return Err(file.unsupported("quantization_config", "floating-point weights"));
    }
    // The default that transformers has for a missing field differs from family to family, and is seldom right here.
    let has_to_be_there: &[&str] = match family {
        Family::Mistral => &["num_key_value_heads", "sliding_window"],
        Family::Gemma2 => &[
            "num_key_value_heads",
            "head_dim",
            "sliding_window",
            "attn_logit_softcapping",
            "final_logit_softcapping",
        ],
        Family::Gemma3 => &["num_key_value_heads", "head_dim", "sliding_window"],
        Family::GptOss => &[
            "num_key_value_heads",
            "head_dim",
            "sliding_window",
            "attention_bias",
        ],
        Family::Qwen3 => &["num_key_value_heads", "head_dim"],
        Family::Mixtral | Family::Qwen3Moe => &["num_key_value_heads"],
        Family::Llama | Family::Qwen2 | Family::Olmo2 => &[],
    };
    for field in ["rms_norm_eps"].iter().chain(has_to_be_there) {
        file.needs(field)?;
    }
    let n_layers = file.layers("num_hidden_layers")?;
    let mut max_len = file.positions("max_position_embeddings")?;
    let block = block(file, family)?;
    // Layers with a window, and layers without.
    let [near, far] = match family {
        Family::Gemma3 => rotary::of_two_kinds(file, max_len)?,
        _ => {
            let rotary = rotary::of_all_layers(file, family, max_len)?;
            max_len = rotary.max_len;
            [rotary.clone(), rotary]
        }
    };
    let window = window(file, family)?;
    let windows = windows(file, family, n_layers)?;
    let (experts, sparse) = experts::read(file, family, n_layers)?;
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
    let config = LanguageModelConfig::new(file.size("vocab_size")?)
        .with_d_model(file.size("hidden_size")?)
        .with_n_heads(file.size("num_attention_heads")?)
        .with_n_layers(n_layers)
        .with_d_ff(file.size("intermediate_size")?)
        .with_max_len(max_len)
        .with_block(first)
        .with_pattern(match differ {
            true => LayerPattern::Cycle(layers),
            false => LayerPattern::Uniform,
        })
        .with_scaled_embedding(family.is_gemma())
        .with_tied(file.flag("tie_word_embeddings", family.is_gemma())?)
        .with_logit_softcap(match family {
            Family::Gemma2 | Family::Gemma3 => file.number_if_any("final_logit_softcapping")?,
            _ => None,
        });
    match family {
        Family::Gemma2 => file.ignore("sliding_window_size"),
        Family::Llama => {
            file.only("rope_interleaved", json!(false))?;
            file.ignore("is_llama_config");
        }
        Family::Qwen2 => file.only("use_mrope", json!(false))?,
        Family::Qwen3Moe => {
            file.only("qkv_bias", json!(false))?;
            file.only("shared_expert_intermediate_size", json!(0))?;
            file.only("use_qk_norm", json!(true))?;
        }
        _ => {}
    }
    if family.is_gemma() {
        file.only("use_bidirectional_attention", json!(false))?;
        // How transformers makes its caches.
        file.ignore("cache_implementation");
    }
    // How training was split among machines.
    file.ignore("pretraining_tp");
    Ok((family, config))
}

/// How all layers are built.
fn block(file: &mut ConfigFile, family: Family) -> Result<BlockConfig, PretrainedError> {
    use FeedForwardActivation::{ClampedSwiGlu, GeGluTanh, SwiGlu};

    let epsilon = file.number("rms_norm_eps", 1e-6)?;
    let norm = NormConfig::rms_norm().with_epsilon(epsilon);
    let (norm, placement) = match family {
        Family::Gemma2 | Family::Gemma3 => (norm.with_unit_offset(), NormPlacement::Sandwich),
        Family::Olmo2 => (norm, NormPlacement::PostSublayer),
        _ => (norm, NormPlacement::Pre),
    };
    let activation = match family {
        Family::Gemma2 | Family::Gemma3 => {
            // The older name may stand beside the newer one, and is not read.
            file.ignore("hidden_act");
            file.choice("hidden_activation", &[("gelu_pytorch_tanh", GeGluTanh)])?
        }
        Family::GptOss => {
            for (field, value) in [("swiglu_alpha", 1.702), ("swiglu_limit", 7.0)] {
                if file.number(field, value)? != value {
                    return Err(file.unsupported(field, value.to_string()));
                }
            }
            file.choice("hidden_act", &[("silu", ClampedSwiGlu)])?
        }
        _ => file.choice("hidden_act", &[("silu", SwiGlu)])?,
    };
    let heads = HeadsConfig::new()
        .with_n_kv_heads(file.size_if_any("num_key_value_heads")?)
        .with_d_head(file.size_if_any("head_dim")?)
        .with_sinks(family == Family::GptOss)
        .with_qk_norm(match family {
            _ if family.is_qwen3() || family == Family::Gemma3 => {
                Some(QkNormConfig::Rms { epsilon })
            }
            Family::Olmo2 => Some(QkNormConfig::RmsAcrossHeads { epsilon }),
            _ => None,
        });
    let heads = match family.is_gemma() {
        true => {
            let scalar = file.number("query_pre_attn_scalar", 256.0)?;
            let softcap = match family {
                Family::Gemma2 => file.number_if_any("attn_logit_softcapping")?,
                // In the configuration of Gemma 3 too, whose attention does not read it.
                _ => {
                    file.ignore("attn_logit_softcapping");
                    None
                }
            };
            heads.with_scale(scalar.powf(-0.5)).with_softcap(softcap)
        }
        false => heads,
    };
    let bias = match family {
        // Whatever the file says: these families have no choice.
        Family::Qwen2 | Family::Mistral | Family::Mixtral => {
            file.ignore("attention_bias");
            match family {
                Family::Qwen2 => ProjectionBias::all().with_output(false),
                _ => ProjectionBias::none(),
            }
        }
        _ => match file.flag("attention_bias", false)? {
            true => ProjectionBias::all(),
            false => ProjectionBias::none(),
        },
    };
    let feed_forward_bias = match family {
        Family::Llama => file.flag("mlp_bias", false)?,
        _ => family == Family::GptOss,
    };
    Ok(BlockConfig::new()
        .with_norm(norm)
        .with_norm_placement(placement)
        .with_activation(activation)
        .with_bias(feed_forward_bias)
        .with_projection_bias(bias)
        .with_dropout(0.0)
        .with_attention_dropout(file.number_if_any("attention_dropout")?.unwrap_or(0.0))
        .with_heads(heads))
}

/// How far layers with a window look back. A published window counts the token itself.
fn window(file: &mut ConfigFile, family: Family) -> Result<Option<usize>, PretrainedError> {
    match family {
        Family::Llama | Family::Olmo2 => Ok(None),
        _ => {
            let window = file.size_if_any("sliding_window")?;
            Ok(window.map(|window| window.saturating_sub(1)))
        }
    }
}

/// Which layers have a window.
fn windows(
    file: &mut ConfigFile,
    family: Family,
    n_layers: usize,
) -> Result<Vec<bool>, PretrainedError> {
    let named = match family {
        Family::Llama | Family::Mistral | Family::Olmo2 | Family::Mixtral | Family::Qwen3Moe => {
            None
        }
        _ => file.choices(
            "layer_types",
            &[("sliding_attention", true), ("full_attention", false)],
        )?,
    };
    // Before version 5 of transformers, files had no list of layer types.
    let unnamed: Vec<bool> = match family {
        Family::Llama | Family::Olmo2 => vec![false; n_layers],
        Family::Mistral | Family::Mixtral => vec![file.has("sliding_window"); n_layers],
        Family::Qwen3Moe => {
            // A field of Qwen 3, which Qwen3-MoE does not read.
            file.ignore("max_window_layers");
            vec![file.flag("use_sliding_window", false)?; n_layers]
        }
        Family::Qwen2 | Family::Qwen3 => {
            let uses = file.flag("use_sliding_window", false)?;
            if uses && named.is_none() {
                file.needs("max_window_layers")?;
                file.needs("sliding_window")?;
            }
            let first = file.size_or("max_window_layers", n_layers)?;
            (0..n_layers).map(|layer| uses && layer >= first).collect()
        }
        Family::Gemma2 | Family::GptOss => (0..n_layers).map(|layer| layer % 2 == 0).collect(),
        Family::Gemma3 => {
            // What version 5 writes beside the list, and does not read.
            file.ignore("_sliding_window_pattern");
            let pattern = file.size_or("sliding_window_pattern", 6)?;
            (0..n_layers)
                .map(|layer| !(layer + 1).is_multiple_of(pattern.max(1)))
                .collect()
        }
    };
    let is_named = named.is_some();
    let windows = named.unwrap_or(unnamed);
    if windows.len() != n_layers {
        return Err(file.unsupported(
            "layer_types",
            format!("as many types as num_hidden_layers, {n_layers}"),
        ));
    }
    let needs_window = match family {
        Family::Gemma2 | Family::Gemma3 | Family::GptOss => true,
        _ => is_named,
    };
    if needs_window && windows.contains(&true) {
        if !file.has("sliding_window") {
            return Err(file.unsupported("sliding_window", "a whole number"));
        }
        // transformers then has a window of no width.
        if matches!(family, Family::Qwen2 | Family::Qwen3)
            && !file.flag("use_sliding_window", false)?
        {
            return Err(file.unsupported("use_sliding_window", "true, for these layer_types"));
        }
    }
    Ok(windows)
}
