//! How the image processors of the models differ.

use std::path::Path;

use image::imageops::FilterType;
use serde_json::Value;

use crate::pretrained::{MODEL_CONFIG, Result, object_if_any};

pub(super) const KINDS: &str =
    "the image processors of ViT, DeiT, BiT, CLIP, SigLIP, DETR and SegFormer";

/// The defaults of a kind of image processor.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// Whether a single number as the size means both sides, not the shorter one.
    pub(super) is_square: bool,
    /// Whether there is a centre crop. `None`: never, whatever the file says.
    pub(super) crops: Option<bool>,
    /// How pixels are interpolated.
    pub(super) filter: FilterType,
    /// Whether it is the processor of DETR, which pads images of several sizes.
    pub(super) of_detr: bool,
}

impl Kind {
    /// By a name such as `ViTImageProcessorFast` or `ViTFeatureExtractor`.
    pub(super) fn of(name: &str) -> Option<Self> {
        let name = name.trim_end_matches("Fast").trim_end_matches("Pil");
        let name = name
            .strip_suffix("ImageProcessor")
            .or(name.strip_suffix("FeatureExtractor"))?;
        let (is_square, crops, filter) = match name {
            "ViT" => (true, Some(false), FilterType::Triangle),
            "DeiT" => (true, Some(true), FilterType::CatmullRom),
            "Bit" | "CLIP" => (false, Some(true), FilterType::CatmullRom),
            "Siglip" => (false, Some(false), FilterType::CatmullRom),
            "Segformer" => (true, None, FilterType::Triangle),
            "Detr" => (false, None, FilterType::Triangle),
            _ => return None,
        };
        Some(Self {
            is_square,
            crops,
            filter,
            of_detr: name == "Detr",
        })
    }

    /// The kind of the model in this folder, or else ViT's.
    pub(super) fn beside(folder: &Path) -> Result<Self> {
        let config = object_if_any(&folder.join("config.json"), MODEL_CONFIG)?;
        let model = config.get("model_type").and_then(Value::as_str);
        let name = match model {
            Some("deit") => "DeiTImageProcessor",
            Some("dinov2") => "BitImageProcessor",
            Some("clip" | "clip_vision_model") => "CLIPImageProcessor",
            Some("siglip" | "siglip_vision_model") => "SiglipImageProcessor",
            Some("segformer") => "SegformerImageProcessor",
            Some("detr") => "DetrImageProcessor",
            _ => "ViTImageProcessor",
        };
        Ok(Self::of(name).expect("all of them are known"))
    }
}
