//! How the image processors of the models differ.

use std::path::Path;

use crate::pretrained::object;

pub(super) const KINDS: &str =
    "the image processors of ViT, DeiT, BiT, CLIP, SigLIP, DETR and SegFormer";

/// The defaults of a kind of image processor.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// Whether a single number as the size means both sides, not the shorter one.
    pub(super) is_square: bool,
    /// Whether there is a centre crop. `None`: never, whatever the file says.
    pub(super) crops: Option<bool>,
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
        let (is_square, crops) = match name {
            "ViT" => (true, Some(false)),
            "DeiT" => (true, Some(true)),
            "Bit" | "CLIP" => (false, Some(true)),
            "Siglip" => (false, Some(false)),
            "Segformer" => (true, None),
            "Detr" => (false, None),
            _ => return None,
        };
        Some(Self {
            is_square,
            crops,
            of_detr: name == "Detr",
        })
    }

    /// The kind of the model in this folder, or else ViT's.
    pub(super) fn beside(folder: &Path) -> Self {
        let config = object(&folder.join("config.json"), "the configuration of a model").ok();
        let model = config
            .as_ref()
            .and_then(|config| config.get("model_type")?.as_str());
        let name = match model {
            Some("deit") => "DeiTImageProcessor",
            Some("dinov2") => "BitImageProcessor",
            Some("clip") => "CLIPImageProcessor",
            Some("siglip") => "SiglipImageProcessor",
            Some("segformer") => "SegformerImageProcessor",
            Some("detr") => "DetrImageProcessor",
            _ => "ViTImageProcessor",
        };
        Self::of(name).expect("all of them are known")
    }
}
