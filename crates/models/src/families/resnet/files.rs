//! What the configuration of a model says of its ResNet, and what the tensors of a ResNet are called.

use serde_json::{Value, json};

use super::ResNetConfig;
use crate::{
    pretrained::{ConfigFile, Result},
    weights::Table,
};

/// The most layers of all stages accepted in a file: ResNet-152 has 50.
const MOST_LAYERS: usize = 1000;

/// What the tensors of a ResNet are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResNetNames {
    /// As in `ResNetBackbone` of `transformers`: `encoder.stages.0.layers.0.layer.0.convolution.weight`.
    Transformers,
    /// As in `timm` and `torchvision`: `layer1.0.conv1.weight`.
    Timm,
}

impl ResNetNames {
    /// Which parameter of a [`ResNet`](super::ResNet) is which tensor.
    pub fn table(self) -> Table {
        let table = match self {
            Self::Transformers => {
                let conv = conv("convolution", "normalization");
                let layer = Table::new()
                    .part("convolutions.{index}", "layer.{index}", conv.clone())
                    .part("shortcut", "shortcut", conv.clone());
                let stem = Table::new().part("stem", "embedder.embedder", conv);
                stem.layers("stages.{stage}", "encoder.stages.{stage}.layers", layer)
            }
            Self::Timm => {
                let layer = (1..=3).fold(Table::new(), |layer, number| {
                    let part = conv(&format!("conv{number}"), &format!("bn{number}"));
                    layer.part(&format!("convolutions.{}", number - 1), "", part)
                });
                let layer = layer.part("shortcut", "downsample", conv("0", "1"));
                let stem = Table::new().part("stem", "", conv("conv1", "bn1"));
                (1..=4).fold(stem, |table, number| {
                    let stage = format!("stages.{}", number - 1);
                    table.layers(&stage, &format!("layer{number}"), layer.clone())
                })
            }
        };
        // The number of batches in the statistics, and a head for classes.
        table.ignore("*.num_batches_tracked fc.*")
    }
}

fn conv(convolution: &str, norm: &str) -> Table {
    Table::new()
        .row("convolution.weight", format!("{convolution}.weight"))
        .norm("", norm)
        .row("mean", format!("{norm}.running_mean"))
        .row("variance", format!("{norm}.running_var"))
}

/// What the configuration of a model says of its backbone, and what the tensors of that are called.
pub(in crate::families) fn backbone(file: &mut ConfigFile) -> Result<(ResNetConfig, ResNetNames)> {
    use ResNetNames::{Timm, Transformers};

    // Whether training begins with published weights.
    file.ignore("use_pretrained_backbone");
    file.only("dilation", json!(false))?;
    if let Some(mut part) = file.part("backbone_config")? {
        // transformers then reads none of these fields.
        file.ignore("use_timm_backbone backbone backbone_kwargs num_channels");
        part.needs("model_type")?;
        let names = part.choice(
            "model_type",
            &[("resnet", Transformers), ("timm_backbone", Timm)],
        )?;
        let config = match names {
            Transformers => of_transformers(&mut part)?,
            Timm => of_timm(&mut part)?,
        };
        part.finish()?;
        return Ok((config, names));
    }
    if !file.flag("use_timm_backbone", true)? {
        file.only("backbone backbone_kwargs", json!(null))?;
        file.ignore("num_channels");
        return Ok((ResNetConfig::new(), Transformers));
    }
    let config = of_timm(file)?;
    if let Some(mut options) = file.object("backbone_kwargs")? {
        options.only("in_chans", json!(config.n_channels))?;
        check_outputs(&mut options, ("layer", 4))?;
        options.finish()?;
    }
    Ok((config, Timm))
}

fn of_timm(file: &mut ConfigFile) -> Result<ResNetConfig> {
    let bottleneck = |depths: [usize; 4]| ResNetConfig::new().with_depths(depths);
    let models = [
        ("resnet50", bottleneck([3, 4, 6, 3])),
        ("resnet18", ResNetConfig::basic([2, 2, 2, 2])),
        ("resnet34", ResNetConfig::basic([3, 4, 6, 3])),
        ("resnet101", bottleneck([3, 4, 23, 3])),
        ("resnet152", bottleneck([3, 8, 36, 3])),
    ];
    let config = file.choice("backbone", &models)?;
    // Norms are frozen in any case.
    file.ignore("freeze_batch_norm_2d use_pretrained_backbone");
    file.ignore("stage_names tie_word_embeddings use_timm_backbone");
    file.only("features_only", json!(true))?;
    file.only("output_stride", json!(32))?;
    check_outputs(file, ("layer", 4))?;
    Ok(config.with_n_channels(file.size_or("num_channels", 3)?))
}

fn of_transformers(file: &mut ConfigFile) -> Result<ResNetConfig> {
    // Names of outputs, and what version 4 writes into every file.
    file.ignore("stage_names tie_word_embeddings");
    file.only("hidden_act", json!("relu"))?;
    file.only(
        "downsample_in_first_stage downsample_in_bottleneck",
        json!(false),
    )?;
    let default = ResNetConfig::new();
    let widths = file.sizes_or("hidden_sizes", default.widths)?;
    let depths = file.sizes_or("depths", default.depths)?;
    let is_supported = depths.iter().sum::<usize>() <= MOST_LAYERS;
    let most = || format!("at most {MOST_LAYERS} layers");
    file.check("depths", is_supported, most)?;
    check_outputs(file, ("stage", depths.len()))?;
    Ok(ResNetConfig::new()
        .with_n_channels(file.size_or("num_channels", 3)?)
        .with_d_stem(file.size_or("embedding_size", 64)?)
        .with_widths(widths)
        .with_depths(depths)
        .with_bottleneck(file.choice("layer_type", &[("bottleneck", true), ("basic", false)])?))
}

/// Refuses a backbone whose last stage is not one of its outputs, the last of which is what a model reads.
fn check_outputs(file: &mut ConfigFile, (stage, last): (&str, usize)) -> Result<()> {
    let mut check = |field, names: [Value; 2]| {
        let has = |list: &Value| {
            let list = list.as_array()?;
            names.iter().any(|name| list.contains(name)).then_some(())
        };
        let expected = format!("a list with {}, the last of its depths", names[0]);
        file.parsed(field, &expected, has).map(|_| ())
    };
    let name = json!(format!("{stage}{last}"));
    check("out_features", [name.clone(), name])?;
    check("out_indices", [json!(last), json!(-1)])
}
