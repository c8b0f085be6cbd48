//! Image preprocessing: resizing, a centre crop, rescaling, normalising.

use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use image::{
    DynamicImage, GrayImage, Rgb, RgbImage,
    imageops::{FilterType, replace},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    VisionError,
    kind::{KINDS, Kind},
};
use crate::pretrained::{ConfigFile, PretrainedError, Result, Wanted, folder_with, preprocessor};

const EXPECTED: &str = "the settings of an image processor";
/// The steps of a processor, and whether a size is of both sides; a null turns them off.
const FLAGS: [&str; 5] = [
    "do_resize",
    "do_center_crop",
    "do_rescale",
    "do_normalize",
    "default_to_square",
];
/// The longest side of an image for a DETR whose file does not say it.
const LONGEST: usize = 1333;
/// The most pixels of a processed image: more is a mistake, or an attack.
const MOST_PIXELS: u64 = 1 << 28;

/// The size that images are resized to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSize {
    /// This height and width (pixels), whatever the aspect ratio of the image.
    Exact([usize; 2]),
    /// The shorter side has this many pixels; the aspect ratio of the image stays.
    ShorterSide(usize),
    /// The shorter side has `shorter` pixels, unless the longer side would have more than `longer`: then the longer side has `longer`.
    Limits {
        /// Pixels of the shorter side.
        shorter: usize,
        /// Pixels of the longer side at most.
        longer: usize,
    },
}

/// Resizes, crops and normalises images, as the image processors for ViT, DeiT, BiT (DINOv2), CLIP, SigLIP, DETR and SegFormer of Hugging Face's `transformers` do.
///
/// The value of a resized pixel may differ from transformers' by 1/255, as PIL's and torchvision's differ. Behind what is transparent is white.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageProcessor {
    /// What images are resized to. Default: they are not.
    pub size: Option<ImageSize>,
    /// How pixels are interpolated; a reduced image is smoothed.
    pub filter: FilterType,
    /// Height and width of the centre crop after resizing (pixels); a smaller image is padded with black. Default: no crop.
    pub crop: Option<[usize; 2]>,
    /// What the values of a pixel, 0 to 255, are multiplied by.
    pub scale: f64,
    /// What is then subtracted in each channel: three, red, green and blue, or one, grey.
    pub mean: Vec<f64>,
    /// What each channel is then divided by.
    pub std: Vec<f64>,
}

impl ImageProcessor {
    /// What `preprocessor_config.json` says, in a folder or of a [name on the Hub](crate::pretrained), or the `image_processor` of
    /// `processor_config.json`, which comes first. If it does not name its kind, that is the kind for the `model_type` of the `config.json` beside it, or else ViT's.
    ///
    /// # Errors
    ///
    /// When the file is missing, has a setting that is not supported, or does not say what the processor needs: `size` if it
    /// resizes, `crop_size` if it crops, `image_mean` and `image_std` if it normalises. Without `resample`, pixels are interpolated as the kind does.
    /// When the file does not name its kind and `config.json` cannot be read, or of a name on the Hub is not there.
    pub fn from_pretrained(source: impl AsRef<Path>) -> Result<Self, PretrainedError> {
        let folder = folder_with(source.as_ref(), Wanted::Preprocessor)?;
        let (path, mut fields) = preprocessor(&folder, "image_processor", EXPECTED)?;
        for flag in FLAGS {
            let nulls = fields.get_mut(flag).filter(|value| value.is_null());
            if let Some(value) = nulls {
                *value = false.into();
            }
        }
        let mut file = ConfigFile::of_fields(path, "vision", fields);
        let mut kind = None;
        for field in ["image_processor_type", "feature_extractor_type"] {
            let named = file.parsed(field, KINDS, |value| Kind::of(value.as_str()?))?;
            kind = kind.or(named);
        }
        let kind = match kind {
            Some(kind) => kind,
            None => Kind::beside(&folder_with(source.as_ref(), Wanted::Config)?)?,
        };
        // Fields of names, and of the form of results; whatever `do_convert_rgb` says, images get the colours of the model.
        file.ignore("processor_class data_format input_data_format return_tensors device");
        file.ignore("disable_grouping do_convert_rgb image_seq_length _valid_processor_keys _valid_kwargs_names");
        // Fields of labels.
        file.ignore("reduce_labels do_reduce_labels");
        // A field of KOSMOS-2, in which true makes both sides those of `size`.
        file.only("use_square_size", json!(false))?;
        if kind.of_detr {
            // Images are padded to the size of the largest of a batch, and here a batch has one. The last two are fields of labels.
            file.ignore("do_pad pad_and_return_pixel_mask format do_convert_annotations");
            file.only("pad_size", json!(null))?;
        } else {
            file.only("do_pad", json!(false))?;
        }
        let to_square = file.flag("default_to_square", kind.is_square)? && !kind.of_detr;
        let mut size = size(&mut file, "size", to_square)?;
        if kind.of_detr {
            let is_number = file.number_if_any("size").is_ok();
            let longer = file.size_if_any("max_size")?.unwrap_or(LONGEST);
            size = match size {
                Some(ImageSize::ShorterSide(_)) if !is_number => {
                    let supported = "{\"height\", \"width\"}, {\"shortest_edge\", \"longest_edge\"} or one number";
                    return Err(file.unsupported("size", supported));
                }
                Some(ImageSize::ShorterSide(shorter)) => {
                    Some(ImageSize::Limits { shorter, longer })
                }
                size => size,
            };
        }
        let crop = size_of_crop(&mut file)?;
        let supported = "2 (bilinear) or 3 (bicubic)";
        let named = file.parsed("resample", supported, |value| match value.as_u64()? {
            2 => Some(FilterType::Triangle),
            3 => Some(FilterType::CatmullRom),
            _ => None,
        })?;
        let does_resize = file.flag("do_resize", true)?;
        file.check("size", size.is_some() || !does_resize, || SIZES)?;
        let does_crop = file.flag("do_center_crop", kind.crops == Some(true))?;
        file.check("crop_size", crop.is_some() || !does_crop, || SIZES)?;
        let scale = match file.flag("do_rescale", true)? {
            true => file.number("rescale_factor", 1.0 / 255.0)?,
            false => 1.0,
        };
        file.ignore("rescale_factor");
        let normalizes = file.flag("do_normalize", true)?;
        for field in ["image_mean", "image_std"] {
            let is_there = file.has(field);
            file.check(field, is_there || !normalizes, || NUMBERS)?;
        }
        let mean = channels(&mut file, "image_mean", 0.0)?;
        let std = channels(&mut file, "image_std", 1.0)?;
        let n_channels = mean.len();
        let fits = !normalizes || (std.len() == n_channels && !std.contains(&0.0));
        file.check("image_std", fits, || {
            format!("{n_channels} numbers other than 0, as image_mean has")
        })?;
        file.finish()?;
        let (mean, std) = match normalizes {
            true => (mean, std),
            false => (vec![0.0; n_channels], vec![1.0; n_channels]),
        };
        Ok(Self {
            size: size.filter(|_| does_resize),
            filter: named.unwrap_or(kind.filter),
            crop: crop.filter(|_| does_crop && kind.crops.is_some()),
            scale,
            mean,
            std,
        })
    }

    /// The input of the model, `[1, channels, height, width]`: [`cropped`](Self::cropped) and normalised.
    ///
    /// # Errors
    ///
    /// As [`cropped`](Self::cropped).
    ///
    /// # Panics
    ///
    /// When `mean` and `std` are not both of one or of three channels.
    ///
    /// # Cost
    ///
    /// The cost of [`cropped`](Self::cropped), and a few operations for each value of the result.
    pub fn forward(&self, image: &DynamicImage, device: &Device) -> Result<Tensor<4>, VisionError> {
        let n_channels = self.mean.len();
        assert!(
            matches!(n_channels, 1 | 3) && self.std.len() == n_channels,
            "ImageProcessor: {n_channels} means and {} standard deviations are not of 1 or 3 channels",
            self.std.len()
        );
        let image = self.cropped(image)?;
        let [height, width] = [image.height(), image.width()].map(|side| side as usize);
        let bytes = image.into_bytes();
        let values = (0..n_channels).flat_map(|channel| {
            let (mean, std) = (self.mean[channel], self.std[channel]);
            let bytes = bytes.iter().skip(channel).step_by(n_channels);
            bytes.map(move |&byte| ((f64::from(byte) * self.scale - mean) / std) as f32)
        });
        let data = TensorData::new(values.collect::<Vec<f32>>(), [1, n_channels, height, width]);
        Ok(Tensor::from_data(data, device))
    }

    /// An image after resizing and the centre crop, in the channels of the model: colours become grey for a model of one channel.
    ///
    /// # Errors
    ///
    /// When the image has no pixels, a side would have none after resizing, or there would be more than 2²⁸: after the crop, after resizing, or when
    /// only the rows are resized.
    ///
    /// # Cost
    ///
    /// Some operations for each pixel of the image and of the result, and 16 bytes of memory for each pixel of the image or of the resized one, whichever has more.
    pub fn cropped(&self, image: &DynamicImage) -> Result<DynamicImage, VisionError> {
        let resized = self.resized(image)?;
        let Some([height, width]) = self.crop else {
            return Ok(resized);
        };
        // Rounded towards 0, also where the crop is larger.
        let before = |side: u32, crop: usize| (i64::from(side) - crop as i64) / 2;
        let (left, above) = (
            before(resized.width(), width),
            before(resized.height(), height),
        );
        let (height, width) = (height as u32, width as u32);
        let mut cropped = match self.mean.len() {
            1 => DynamicImage::new_luma8(width, height),
            _ => DynamicImage::new_rgb8(width, height),
        };
        replace(&mut cropped, &resized, -left, -above);
        Ok(cropped)
    }

    fn resized(&self, image: &DynamicImage) -> Result<DynamicImage, VisionError> {
        let (width, height) = (image.width(), image.height());
        let [to_height, to_width] = match self.size {
            None => [height.into(), width.into()],
            Some(ImageSize::Exact(size)) => size.map(|pixels| pixels as u64),
            Some(ImageSize::ShorterSide(pixels)) => {
                let shorter = u64::from(width.min(height)).max(1);
                [height, width].map(|side| u64::from(side) * pixels as u64 / shorter)
            }
            Some(ImageSize::Limits { shorter, longer }) => {
                let least = f64::from(width.min(height)).max(1.0);
                let most = f64::from(width.max(height));
                // As the reference rounds.
                let (size, scale) = match most / least * shorter as f64 > longer as f64 {
                    true => {
                        let size = longer as f64 * least / most;
                        (size.round_ties_even(), size)
                    }
                    false => (shorter as f64, shorter as f64),
                };
                [height, width].map(|side| match f64::from(side) {
                    // If the shorter side stays as it is, the longer one does too.
                    side if size == least => side as u64,
                    side if side == least => size as u64,
                    side => (scale * side / least) as u64,
                })
            }
        };
        let crop = self.crop.unwrap_or([0; 2]).map(|side| side as u64);
        let steps = [
            ("the image with resized rows", [height.into(), to_width]),
            ("the resized image", [to_height, to_width]),
            ("the crop", crop),
        ];
        let mut steps = steps.into_iter();
        let is_too_large = |[rows, columns]: [u64; 2]| rows.saturating_mul(columns) > MOST_PIXELS;
        let too_large = steps.find(|(_, size)| is_too_large(*size));
        let reason = match too_large {
            _ if width == 0 || height == 0 => Some("it has no pixels".into()),
            _ if to_width == 0 || to_height == 0 => Some("a side would have no pixels".into()),
            Some((step, [rows, columns])) => Some(format!(
                "{step}, {columns} × {rows}, would have more than {MOST_PIXELS} pixels"
            )),
            None => None,
        };
        if let Some(reason) = reason {
            return Err(VisionError::Size {
                width,
                height,
                to_width,
                to_height,
                reason,
            });
        }
        let [to_height, to_width] = [to_height as u32, to_width as u32];
        let opaque = (image.color().has_alpha()).then(|| before_white(image).into());
        let image = opaque.as_ref().unwrap_or(image);
        let image = match self.mean.len() {
            1 => DynamicImage::ImageLuma8(grey(image)),
            _ => DynamicImage::ImageRgb8(image.to_rgb8()),
        };
        Ok(match [to_height, to_width] == [height, width] {
            true => image,
            false => {
                // Rows first, rounded to bytes, as in PIL and torchvision.
                let rows = image.resize_exact(to_width, height, self.filter);
                rows.resize_exact(to_width, to_height, self.filter)
            }
        })
    }
}

/// The colours of an image in front of white, rounded as PIL rounds them.
fn before_white(image: &DynamicImage) -> RgbImage {
    let image = image.to_rgba8();
    let (width, height) = image.dimensions();
    let colours = image.pixels().flat_map(|pixel| {
        let [colours @ .., alpha] = pixel.0.map(u32::from);
        colours.map(|colour| ((colour * alpha + 255 * (255 - alpha) + 127) / 255) as u8)
    });
    RgbImage::from_raw(width, height, colours.collect()).expect("three bytes for each pixel")
}

/// Grey as PIL makes it (ITU-R 601-2).
fn grey(image: &DynamicImage) -> GrayImage {
    if !image.color().has_color() {
        return image.to_luma8();
    }
    let image = image.to_rgb8();
    let (width, height) = image.dimensions();
    let grey = |pixel: &Rgb<u8>| {
        let [red, green, blue] = pixel.0.map(u32::from);
        ((red * 19_595 + green * 38_470 + blue * 7_471 + (1 << 15)) >> 16) as u8
    };
    let bytes = image.pixels().map(grey).collect();
    GrayImage::from_raw(width, height, bytes).expect("a byte for each pixel")
}

const SIZES: &str = "{\"height\", \"width\"}, {\"shortest_edge\"}, with or without \"longest_edge\", or one number, from 1 to 65535";

/// A size: of both sides, of the shorter one, or a number that stands for either.
fn size(file: &mut ConfigFile, field: &str, to_square: bool) -> Result<Option<ImageSize>> {
    file.parsed(field, SIZES, |value| {
        let side = |value: &Value| {
            u16::deserialize(value)
                .ok()
                .filter(|&side| side > 0)
                .map(usize::from)
        };
        if let Some(side) = side(value) {
            return Some(match to_square {
                true => ImageSize::Exact([side; 2]),
                false => ImageSize::ShorterSide(side),
            });
        }
        let sides = value.as_object()?;
        match (sides.len(), sides.get("shortest_edge")) {
            (1, Some(shorter)) => Some(ImageSize::ShorterSide(side(shorter)?)),
            (2, Some(shorter)) => Some(ImageSize::Limits {
                shorter: side(shorter)?,
                longer: side(sides.get("longest_edge")?)?,
            }),
            (2, None) => Some(ImageSize::Exact([
                side(sides.get("height")?)?,
                side(sides.get("width")?)?,
            ])),
            _ => None,
        }
    })
}

fn size_of_crop(file: &mut ConfigFile) -> Result<Option<[usize; 2]>> {
    match size(file, "crop_size", true)? {
        Some(ImageSize::ShorterSide(_) | ImageSize::Limits { .. }) => {
            Err(file.unsupported("crop_size", "{\"height\", \"width\"} or one number"))
        }
        Some(ImageSize::Exact(size)) => Ok(Some(size)),
        None => Ok(None),
    }
}

const NUMBERS: &str = "one or three numbers";

/// A number for each channel.
fn channels(file: &mut ConfigFile, field: &str, missing: f64) -> Result<Vec<f64>> {
    let numbers = file.parsed(field, NUMBERS, |value| {
        let numbers = match value.as_f64() {
            Some(number) => vec![number; 3],
            None => Vec::deserialize(value).ok()?,
        };
        matches!(numbers.len(), 1 | 3).then_some(numbers)
    })?;
    Ok(numbers.unwrap_or_else(|| vec![missing; 3]))
}
