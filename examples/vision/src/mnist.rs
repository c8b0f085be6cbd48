//! MNIST (LeCun, Cortes and Burges), 70,000 scans of handwritten digits of 28 × 28 pixels, in its own files.

use std::{fs, path::Path};

use example_common::{error::Error, files::FileError, fnv::Fnv};
use image::{DynamicImage, GrayImage};

/// Height and width of a scan (pixels).
pub const SIDE: usize = 28;
/// Bytes of a scan.
const PIXELS: usize = SIDE * SIDE;

/// Scans and which digits they are.
pub struct Mnist {
    pixels: Vec<u8>,
    /// The digits, 0 to 9.
    pub digits: Vec<u8>,
}

impl Mnist {
    /// The 60,000 scans for training.
    pub fn training(folder: &Path) -> Result<Self, Error> {
        Self::read(folder, "train")
    }

    /// The 10,000 scans for tests.
    pub fn test(folder: &Path) -> Result<Self, Error> {
        Self::read(folder, "t10k")
    }

    fn read(folder: &Path, part: &str) -> Result<Self, Error> {
        let (images, side) = (format!("{part}-images-idx3-ubyte"), SIDE as u32);
        let pixels = numbers(&folder.join(images), &[side, side])?;
        let labels = folder.join(format!("{part}-labels-idx1-ubyte"));
        let digits = numbers(&labels, &[])?;
        let unfit = |problem: String| Error::from(format!("{}: {problem}", labels.display()));
        let scans = pixels.len() / PIXELS;
        if digits.len() != scans {
            return Err(unfit(format!("{} digits for {scans} scans", digits.len())));
        }
        if let Some(other) = digits.iter().find(|&&digit| digit > 9) {
            return Err(unfit(format!("{other} is no digit")));
        }
        Ok(Self { pixels, digits })
    }

    /// Scans that are all the same, of the digits 0 to 9 in turn.
    #[cfg(test)]
    pub fn of(scans: usize, pixel: impl Fn(usize) -> u8) -> Self {
        Self {
            pixels: (0..scans * PIXELS).map(|at| pixel(at % PIXELS)).collect(),
            digits: (0..scans).map(|scan| (scan % 10) as u8).collect(),
        }
    }

    /// Number of scans.
    pub fn len(&self) -> usize {
        self.digits.len()
    }

    /// The pixels of a scan, row by row, 0 to 255.
    pub fn scan(&self, index: usize) -> &[u8] {
        &self.pixels[index * PIXELS..][..PIXELS]
    }

    /// A scan as an image.
    pub fn image(&self, index: usize) -> DynamicImage {
        let (side, pixels) = (SIDE as u32, self.scan(index).to_vec());
        let image = GrayImage::from_raw(side, side, pixels);
        image.expect("a byte for each pixel").into()
    }

    /// Tells data apart.
    pub fn fingerprint(&self) -> String {
        let mut hash = Fnv::default();
        hash.write(&self.pixels);
        hash.write(&self.digits);
        hash.to_hex()
    }
}

/// The numbers of a file of the format IDX: bytes, in so many dimensions behind the first.
fn numbers(path: &Path, dims: &[u32]) -> Result<Vec<u8>, Error> {
    let name = path.display();
    let bytes = match fs::read(path) {
        Err(_) if !path.exists() => {
            return Err(format!(
                "{name} is not there: in the folder of the repository, `cargo xtask fetch mnist` fetches it"
            )
            .into());
        }
        bytes => bytes.map_err(FileError::of("read", path))?,
    };
    let unfit = |problem: &str| {
        format!(
            "{name} {problem}: remove the folder, and in that of the repository `cargo xtask fetch mnist` fetches it again"
        )
    };
    let word = |index: usize| {
        let word = bytes.get(4 * index..4 * index + 4)?;
        Some(u32::from_be_bytes(word.try_into().ok()?))
    };
    // Two zeros, the type of bytes, and the number of dimensions.
    let magic = 0x0800 + 1 + dims.len() as u32;
    let header: Option<Vec<u32>> = (0..2 + dims.len()).map(word).collect();
    let count = match header.as_deref() {
        Some([kind, count, found @ ..]) if *kind == magic && *count > 0 && found == dims => {
            *count as usize
        }
        _ => return Err(unfit("is not a file of MNIST").into()),
    };
    let size = count * dims.iter().product::<u32>() as usize;
    let body = &bytes[4 * (2 + dims.len())..];
    match body.len() == size {
        true => Ok(body.to_vec()),
        false => Err(unfit(&format!("has {} bytes of {size}", body.len())).into()),
    }
}

#[cfg(test)]
mod tests;
