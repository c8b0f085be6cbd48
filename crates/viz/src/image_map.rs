//! Where on an image a model looked.

use crate::MapError;

/// Height or width of a drawn image, at least (pixels): smaller ones are enlarged.
const LEAST: usize = 280;
/// Between the image and the map (pixels).
const GAP: usize = 12;
/// The colour of the largest weight, which differs from white, black and each of the primary colours.
const COLOR: [u8; 3] = [230, 97, 0];
/// How much of the colour the largest weight gets.
const MOST: f32 = 0.8;

/// The attention of one query to the patches of an image, drawn on the image.
///
/// # Example
/// ```
/// use burn_attn_viz::ImageMap;
///
/// // An image of 2 × 4 pixels in one row of two patches; the second one gets most of the weight.
/// let map = ImageMap::new([2, 4], vec![128; 2 * 4 * 3], [1, 2], vec![0.25, 0.75])?;
/// let png = map.to_png();
/// assert_eq!(&png[1..4], b"PNG");
/// # Ok::<(), burn_attn_viz::MapError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ImageMap {
    size: [usize; 2],
    pixels: Vec<u8>,
    grid: [usize; 2],
    weights: Vec<f32>,
}

impl ImageMap {
    /// A map of the patches of an image.
    ///
    /// # Shapes
    /// - `size`: height and width of the image
    /// - `pixels`: `[height, width, 3]`, row-major: red, green and blue
    /// - `grid`: rows and columns of patches, which share the image equally
    /// - `weights`: `[rows, columns]`, row-major
    ///
    /// # Errors
    /// A [`MapError`] if the numbers do not fit, if there are no pixels or no patches, or if a weight is not finite or is negative.
    pub fn new(
        size: [usize; 2],
        pixels: Vec<u8>,
        grid: [usize; 2],
        weights: Vec<f32>,
    ) -> Result<Self, MapError> {
        let [height, width] = size;
        if pixels.is_empty() || pixels.len() != height * width * 3 {
            return Err(MapError::PixelCount {
                bytes: pixels.len(),
                height,
                width,
            });
        }
        let [rows, columns] = grid;
        if weights.is_empty() || weights.len() != rows * columns {
            return Err(MapError::PatchCount {
                weights: weights.len(),
                rows,
                columns,
            });
        }
        let is_weight = |weight: &f32| weight.is_finite() && *weight >= 0.0;
        if let Some(patch) = weights.iter().position(|weight| !is_weight(weight)) {
            return Err(MapError::PatchWeight {
                patch,
                weight: weights[patch],
            });
        }
        Ok(Self {
            size,
            pixels,
            grid,
            weights,
        })
    }

    /// `2 · height · width` pixels: the image, and beside it the image with the weights in colour, as a PNG. The largest weight has the strongest colour and the smallest one none;
    /// between the middles of patches, weights are interpolated. Images whose longer side is below 280 pixels are enlarged.
    pub fn to_png(&self) -> Vec<u8> {
        let ([height, width], grid) = (self.size, self.grid);
        let zoom = LEAST.div_ceil(height.max(width)).max(1);
        let [tall, wide] = [height * zoom, width * zoom];
        let weights = self.weights.iter().copied();
        let (least, top) = weights.fold((f32::INFINITY, 0.0f32), |(least, top), weight| {
            (least.min(weight), top.max(weight))
        });
        // Weights that differ by their rounding alone are equal.
        let is_flat = top - least <= 1e-6 * top;
        let range = if is_flat { f32::INFINITY } else { top - least };
        let mut drawn = Vec::with_capacity(tall * (2 * wide + GAP) * 3);
        for y in 0..tall {
            let pixel = |x: usize| {
                let at = ((y / zoom) * width + x / zoom) * 3;
                [0, 1, 2].map(|channel| self.pixels[at + channel])
            };
            drawn.extend((0..wide).flat_map(pixel));
            drawn.extend([255; GAP * 3]);
            let row = place(y, tall, grid[0]);
            drawn.extend((0..wide).flat_map(|x| {
                let weight = self.between(row, place(x, wide, grid[1]));
                let share = MOST * (weight - least).max(0.0) / range;
                let mixed = |(pixel, color): (u8, u8)| {
                    (f32::from(pixel) * (1.0 - share) + f32::from(color) * share).round() as u8
                };
                let pixel = pixel(x);
                [0, 1, 2].map(|channel| mixed((pixel[channel], COLOR[channel])))
            }));
        }
        encoded([tall, 2 * wide + GAP], &drawn)
    }

    /// The weight between four patches.
    fn between(&self, row: Place, column: Place) -> f32 {
        let at = |row: usize, column: usize| self.weights[row * self.grid[1] + column];
        let along = |row: usize| {
            at(row, column.first) * (1.0 - column.part) + at(row, column.second) * column.part
        };
        along(row.first) * (1.0 - row.part) + along(row.second) * row.part
    }
}

/// A place between the middles of two patches.
#[derive(Clone, Copy)]
struct Place {
    first: usize,
    second: usize,
    /// How far it is from the first to the second, 0 to 1.
    part: f32,
}

/// Where this one of `pixels` is among `patches` that share them.
fn place(pixel: usize, pixels: usize, patches: usize) -> Place {
    let at = (pixel as f32 + 0.5) * patches as f32 / pixels as f32 - 0.5;
    let at = at.clamp(0.0, patches as f32 - 1.0);
    let first = at as usize;
    Place {
        first,
        second: (first + 1).min(patches - 1),
        part: at - first as f32,
    }
}

/// These pixels, `[height, width, 3]`, as a PNG.
fn encoded([height, width]: [usize; 2], pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(pixels)?;
        writer.finish()
    });
    written.expect("memory takes all that is written");
    bytes
}

#[cfg(test)]
mod tests;
