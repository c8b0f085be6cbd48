//! The files of `transformers`: what they say of a CLIP or a SigLIP, and what its tensors are called.

use std::path::Path;

use burn_attn::{NormConfig, TransformerStackConfig};
use serde_json::json;

use super::{Clip, ClipConfig, ClipFamily, ClipText, ClipTextConfig, ClipVision, ClipVisionConfig};
use crate::{
    families::files::{ModelFiles, feed_forward, self_attention},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::{Table, same, transposed},
};

const FAMILIES: [ClipFamily; 2] = [ClipFamily::Clip, ClipFamily::Siglip];
const VISION: &str = "vision_model";
const TEXT: &str = "text_model";

/// Loads a model with a `model_type` of `clip` or `siglip` from a folder or a [name on the Hub](crate::pretrained).
///
/// Files, errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
///
/// # Source
///
/// PyTorch equivalents: those of [`Clip`].
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<Clip, PretrainedError> {
    let (config, files) = open(source, options, None)?;
    let table = config.family.table();
    files.load(Ok(()), |device| config.init_whole(device), &table)
}

impl ClipVision {
    /// Loads the encoder of images alone, as [`from_pretrained`] loads a whole model: from the files of one, or from its own, whose
    /// `model_type` is `clip_vision_model` or `siglip_vision_model`. It has a projection if the weights have one.
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, PretrainedError> {
        let (mut config, files) = open(source, options, Some(VISION))?;
        if !files.weights.has("visual_projection.weight") {
            config.vision.d_projection = None;
        }
        files.load(Ok(()), |device| config.init_vision(device), &Self::table())
    }

    /// As [`ClipFamily::table`], for the files of a whole model or of the encoder alone.
    pub fn table() -> Table {
        alone(vision_rows(), [VISION, TEXT]).ignore("text_projection.*")
    }
}

impl ClipText {
    /// Loads the encoder of texts alone, as [`ClipVision::from_pretrained`] that of images; in its own files, the `model_type` is `clip_text_model`
    /// or `siglip_text_model`.
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, PretrainedError> {
        let (mut config, files) = open(source, options, Some(TEXT))?;
        let family = config.family;
        if family == ClipFamily::Clip && !files.weights.has("text_projection.weight") {
            config.text.d_projection = None;
        }
        let table = Self::table(family);
        files.load(Ok(()), |device| config.init_text(device), &table)
    }

    /// As [`ClipFamily::table`], for the files of a whole model or of the encoder alone.
    pub fn table(family: ClipFamily) -> Table {
        alone(family.text_rows(), [TEXT, VISION]).ignore("visual_projection.*")
    }
}

impl ClipFamily {
    /// Its `model_type`.
    fn name(self) -> &'static str {
        match self {
            Self::Clip => "clip",
            Self::Siglip => "siglip",
        }
    }

    /// Which parameter of a [`Clip`] is which tensor of `transformers`; [`save`](crate::weights::save()) writes them back by it.
    pub fn table(self) -> Table {
        let scale = match self {
            Self::Clip => same("logit_scale").scalar(),
            Self::Siglip => same("logit_scale"),
        };
        Table::new()
            .part("vision", "", vision_rows())
            .part("text", "", self.text_rows())
            .row("logit_scale", scale)
            .row("logit_bias", "logit_bias")
    }

    fn text_rows(self) -> Table {
        let model = layers("final_layer_norm")
            .row("tokens.weight", "embeddings.token_embedding.weight")
            .row("positions.table", "embeddings.position_embedding.weight");
        let projection = match self {
            Self::Clip => "text_projection",
            Self::Siglip => "text_model.head",
        };
        Table::new()
            .part("", TEXT, model)
            .linear("projection", projection)
    }
}

fn vision_rows() -> Table {
    let pooling = Table::new()
        .row("probe", "probe")
        .row(
            ["attention.query.weight", "attention.key_value.weight"],
            transposed("attention.in_proj_weight"),
        )
        .row(
            ["attention.query.bias", "attention.key_value.bias"],
            "attention.in_proj_bias",
        )
        .linear("attention.output", "attention.out_proj")
        .norm("norm", "layernorm")
        .part("feed_forward", "mlp", feed_forward(["fc1", "fc2"]));
    let model = layers("post_layernorm")
        .convolution("patches", "embeddings.patch_embedding")
        .row("class_token", "embeddings.class_embedding")
        .row("positions", "embeddings.position_embedding.weight")
        .norm("input_norm", "pre_layrnorm")
        .part("pooling", "head", pooling);
    Table::new()
        .part("", VISION, model)
        .linear("projection", "visual_projection")
}

/// The layers and the norm after them.
fn layers(norm: &str) -> Table {
    let projections = ["q_proj", "k_proj", "v_proj", "out_proj"];
    let layer = Table::new()
        .part("self_attention", "self_attn", self_attention(projections))
        .norm("self_attention_residual.norm", "layer_norm1")
        .part("feed_forward", "mlp", feed_forward(["fc1", "fc2"]))
        .norm("feed_forward_residual.norm", "layer_norm2");
    Table::new()
        .layers("encoder.layers", "encoder.layers", layer)
        .norm("encoder.norm", norm)
        // 0, 1, 2 and so on.
        .ignore("embeddings.position_ids")
}

/// The table of the encoder that is called `own` in a whole model, for files of a whole model or of this encoder alone. In files of the encoder
/// alone, the names of tensors may begin with `own` or not.
fn alone(rows: Table, [own, other]: [&str; 2]) -> Table {
    let parts = "embeddings.* encoder.* pre_layrnorm.* post_layernorm.* final_layer_norm.* head.*";
    let table = rows.may_lack(own, parts);
    table.ignore(&format!("{other}.*")).ignore("logit_*")
}

/// The configuration and the other files of a whole model, or of the encoder that is called `alone`; the configuration of the other encoder may be
/// missing.
fn open(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
    alone: Option<&str>,
) -> Result<(ClipConfig, ModelFiles)> {
    let read = |file: &mut ConfigFile| read(file, alone);
    let valid = |(config, is_whole): &(ClipConfig, bool)| match is_whole {
        true => config.check(),
        false => config.check_parts(),
    };
    let ((config, _), files) = ModelFiles::open(source, options, "CLIP", read, valid)?;
    Ok((config, files))
}

/// What a file describes, and whether that is a whole model.
fn read(file: &mut ConfigFile, alone: Option<&str>) -> Result<(ClipConfig, bool)> {
    let whole = FAMILIES.map(|family| (family.name().to_owned(), (family, None)));
    let parts = alone.into_iter().flat_map(|part| {
        FAMILIES.map(|family| (format!("{}_{part}", family.name()), (family, Some(part))))
    });
    let kinds: Vec<_> = whole.into_iter().chain(parts).collect();
    let kinds = kinds.iter().map(|(name, kind)| (name.as_str(), *kind));
    let (family, part) = file.choice("model_type", &kinds.collect::<Vec<_>>())?;
    let mut none = file.empty();
    let config = match part {
        None => whole_model(file, family)?,
        Some(VISION) => ClipConfig::new(family, vision(file, family)?, text(&mut none, family)?),
        Some(_) => ClipConfig::new(family, vision(&mut none, family)?, text(file, family)?),
    };
    Ok((config, part.is_none()))
}

fn whole_model(file: &mut ConfigFile, family: ClipFamily) -> Result<ClipConfig> {
    // Fields for random initialisation, and fields of the Hub.
    file.ignore("initializer_factor logit_scale_init_value _commit_hash");
    let mut part = |name: &str| {
        // If the older one is there, transformers reads nothing of the other.
        let older = match family {
            ClipFamily::Clip => file.part(&format!("{name}_config_dict"))?,
            ClipFamily::Siglip => None,
        };
        let part = file.part(&format!("{name}_config"))?;
        Ok::<_, PretrainedError>(older.or(part).unwrap_or_else(|| file.empty()))
    };
    let (mut of_vision, mut of_text) = (part("vision")?, part("text")?);
    let vision = vision(&mut of_vision, family)?;
    let text = text(&mut of_text, family)?;
    of_vision.finish()?;
    of_text.finish()?;
    let mut config = ClipConfig::new(family, vision, text);
    if family == ClipFamily::Clip {
        let width = file.size_or("projection_dim", 512)?;
        config.vision.d_projection = Some(width);
        config.text.d_projection = Some(width);
    }
    Ok(config)
}

fn vision(file: &mut ConfigFile, family: ClipFamily) -> Result<ClipVisionConfig> {
    let (patch_size, d_projection) = match family {
        ClipFamily::Clip => (32, Some(projection_dim(file)?)),
        ClipFamily::Siglip => {
            file.only("vision_use_head", json!(true))?;
            (16, None)
        }
    };
    Ok(ClipVisionConfig {
        image_size: file.size_or("image_size", 224)?,
        patch_size: file.size_or("patch_size", patch_size)?,
        n_channels: file.size_or("num_channels", 3)?,
        encoder: encoder(file, family, VISION, [768, 3072, 12])?,
        d_projection,
    })
}

fn text(file: &mut ConfigFile, family: ClipFamily) -> Result<ClipTextConfig> {
    let (vocab_size, max_len, sizes) = match family {
        ClipFamily::Clip => (49_408, 77, [512, 2048, 8]),
        ClipFamily::Siglip => (32_000, 64, [768, 3072, 12]),
    };
    let encoder = encoder(file, family, TEXT, sizes)?;
    let (end_token, d_projection) = match family {
        // The first configurations said 2, which is another token: transformers then takes the largest one.
        ClipFamily::Clip => (
            Some(file.size_or("eos_token_id", 49_407)?).filter(|&token| token != 2),
            projection_dim(file)?,
        ),
        ClipFamily::Siglip => {
            let width = file.size_if_any("projection_size")?;
            (None, width.unwrap_or(encoder.d_model))
        }
    };
    Ok(ClipTextConfig {
        vocab_size: file.size_or("vocab_size", vocab_size)?,
        max_len: file.size_or("max_position_embeddings", max_len)?,
        end_token,
        encoder: encoder.with_causal(family == ClipFamily::Clip),
        d_projection: Some(d_projection),
    })
}

/// The width of a projection in files of one encoder.
fn projection_dim(file: &mut ConfigFile) -> Result<usize> {
    let width = file.size_if_any("projection_dim")?;
    Ok(width.unwrap_or(512))
}

/// What both encoders have. `d_model`, `d_ff` and `n_heads` are the meanings of missing fields.
fn encoder(
    file: &mut ConfigFile,
    family: ClipFamily,
    part: &str,
    [d_model, d_ff, n_heads]: [usize; 3],
) -> Result<TransformerStackConfig, PretrainedError> {
    file.only("model_type", json!(format!("{}_{part}", family.name())))?;
    // Fields for random initialisation, fields of models with a head, and fields without effect.
    file.ignore("initializer_factor tie_word_embeddings dropout no_head");
    let epsilon = file.number("layer_norm_eps", family.epsilon())?;
    let block = family.block();
    let activation = file.activation("hidden_act", block.activation)?;
    let block = block
        .with_norm(NormConfig::layer_norm().with_epsilon(epsilon))
        .with_activation(activation)
        .with_attention_dropout(file.number("attention_dropout", 0.0)?);
    let stack = TransformerStackConfig::encoder(
        file.size_or("hidden_size", d_model)?,
        file.size_or("intermediate_size", d_ff)?,
        file.size_or("num_attention_heads", n_heads)?,
        file.layers_or("num_hidden_layers", 12)?,
    );
    Ok(stack.with_block(block))
}
