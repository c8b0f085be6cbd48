//! Image files, and what the commands that look at them have in common.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_attn_models::vision::{ImageProcessor, ImageSize};
use burn_attn_viz::{ImageMap, TextOptions};
use clap::Args;
use example_common::{
    devices::{self, DeviceArg},
    error::Error,
    exit,
    files::{self, FileError},
};
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};

/// The most characters of the name of a class that are printed.
pub const LONGEST: usize = 60;

/// Options of the commands that look at images.
#[derive(Args)]
pub struct ImageArgs {
    /// The images: PNG, JPEG, WebP, BMP or PNM
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<PathBuf>,
    /// The digits are dark on a light ground; the model has seen light ones on a dark ground
    #[arg(long)]
    invert: bool,
    /// Draw what the model saw, beside the image, into a PNG; for one image
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Draw the same into an SVG, whose patches say their weights; for one image
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print what the model saw in the terminal
    #[arg(long)]
    text: bool,
    /// The model: a folder that `train` saved, or, but for `detect`, transformers [default: the one that this repository has]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
}

/// A model that looks at images.
pub trait Looks: Sized {
    /// The folder of the model that this repository has, in that of the example.
    const MODEL: &str;

    /// The model in a folder.
    fn load(folder: &Path, device: &Device) -> Result<Self, Error>;

    /// What an image becomes before the model sees it.
    fn processor(&self) -> &ImageProcessor;

    /// What is in an image, in one line, and, if wanted, a picture of it.
    fn look(&self, image: DynamicImage, draw: bool) -> Result<(String, Option<ImageMap>), Error>;
}

/// The model in a folder, or that of this repository.
pub fn model<M: Looks>(folder: Option<&Path>, device: &Device) -> Result<M, Error> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(M::MODEL);
    let folder = folder.unwrap_or(&own);
    if !folder.is_dir() {
        return Err(format!("{} is not the folder of a model", folder.display()).into());
    }
    M::load(folder, device)
}

impl ImageArgs {
    /// Prints what a model sees in each image, and why an image cannot be read; returns the exit code.
    pub fn run<M: Looks>(&self) -> Result<u8, Error> {
        let outputs = [("--picture", &self.picture), ("--svg", &self.svg)];
        let count = self.images.len();
        if count > 1
            && let Some((option, _)) = outputs.iter().find(|(_, path)| path.is_some())
        {
            return Err(format!("{option} draws one image, but there are {count}").into());
        }
        files::probe_outputs(&outputs, &self.images)?;
        let device = devices::choose(self.device)?.device;
        let model: M = model(self.model.as_deref(), &device)?;
        let mut code = 0;
        for path in &self.images {
            if let Err(error) = self.look(&model, path) {
                exit::warn(&format!("error: {error}"));
                code = 1;
            }
        }
        Ok(code)
    }

    fn look(&self, model: &impl Looks, path: &Path) -> Result<(), Error> {
        let mut image = read(path)?;
        let name = path.display();
        if self.invert {
            image.invert();
        }
        let (width, height) = (image.width(), image.height());
        if let Some(ImageSize::Exact([rows, columns])) = model.processor().size
            && u64::from(width) * rows as u64 != u64::from(height) * columns as u64
        {
            exit::warn(&format!(
                "{name}: {width} × {height} pixels are distorted to {columns} × {rows}"
            ));
        }
        if is_light(&image) && self.model.is_none() {
            let invert = if self.invert { "without" } else { "with" };
            exit::warn(&format!(
                "{name}: most of it is light, but the model has seen light digits on a dark ground: try {invert} --invert"
            ));
        }
        let draw = self.picture.is_some() || self.svg.is_some() || self.text;
        let (text, map) = model.look(image, draw)?;
        if let Some((file, map)) = self.picture.as_ref().zip(map.as_ref()) {
            files::replace(file, &map.to_png())?;
        }
        if let Some((file, map)) = self.svg.as_ref().zip(map.as_ref()) {
            files::replace(file, map.to_svg().as_bytes())?;
        }
        println!("{name}: {text}");
        let drawn = map.filter(|_| self.text);
        let drawn = drawn.map(|map| map.to_text(&TextOptions::default()));
        if let Some(drawn) = drawn.filter(|drawn| !drawn.is_empty()) {
            println!("{}", drawn.trim_end());
        }
        Ok(())
    }
}

/// An image to draw on.
pub fn map_of(image: &DynamicImage) -> Result<ImageMap, Error> {
    let size = [image.height() as usize, image.width() as usize];
    Ok(ImageMap::new(size, image.to_rgb8().into_raw())?)
}

/// Whether more than half of the light that an image could have is there.
fn is_light(image: &DynamicImage) -> bool {
    let grey = image.to_luma8();
    let light: u64 = grey.pixels().map(|pixel| u64::from(pixel.0[0])).sum();
    2 * light > 255 * u64::from(image.width()) * u64::from(image.height())
}

/// Reads a PNG, JPEG, WebP, BMP or PNM, turned as its EXIF data says.
///
/// # Errors
///
/// If it cannot be read, or has transparent pixels.
pub fn read(path: &Path) -> Result<DynamicImage, Error> {
    let name = path.display();
    let reader = ImageReader::open(path).map_err(FileError::of("read", path))?;
    let reader = reader
        .with_guessed_format()
        .map_err(FileError::of("read", path))?;
    let unreadable = |error| format!("{name} is not an image that can be read: {error}");
    let mut decoder = reader.into_decoder().map_err(unreadable)?;
    let mut limits = Limits::default();
    limits.reserve(decoder.total_bytes()).map_err(unreadable)?;
    let orientation = decoder.orientation().map_err(unreadable)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
    image.apply_orientation(orientation);
    let is_transparent = image.color().has_alpha()
        && image
            .to_luma_alpha8()
            .pixels()
            .any(|pixel| pixel.0[1] < 255);
    if is_transparent {
        return Err(format!("{name} has transparent pixels: give it a background").into());
    }
    let mut pixels = image
        .as_bytes()
        .chunks(image.color().bytes_per_pixel().into());
    let first = pixels.next();
    match pixels.all(|pixel| Some(pixel) == first) {
        true => Err(format!("{name} has the same colour everywhere").into()),
        false => Ok(image),
    }
}
