//! Image files.

use std::path::Path;

use example_common::{error::Error, files::FileError};
use image::{DynamicImage, ImageDecoder, ImageReader};

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
