//! What a model saw in an image.

mod svg;
mod text;

use crate::{MapError, color::Rgb, error::product};

/// The longer side of a drawn image, at least (pixels): smaller images are enlarged.
const LEAST: usize = 280;
/// Between two panels (pixels).
const GAP: usize = 12;
/// The colour of the largest weight, which differs from white, black and each of the primary colours.
const COLOR: Rgb = [230, 97, 0];
/// How much of the colour the largest weight gets, and a class.
const MOST: f32 = 0.8;
/// Half the width of the line around a box (pixels).
const LINE: f32 = 1.5;
/// The colours of classes and boxes, which differ from each other with any kind of colour blindness but for the last three.
const COLORS: [Rgb; 10] = [
    [230, 159, 0],
    [86, 180, 233],
    [0, 158, 115],
    [240, 228, 66],
    [0, 114, 178],
    [213, 94, 0],
    [204, 121, 167],
    [150, 90, 220],
    [150, 80, 50],
    [160, 220, 90],
];

/// An image, and beside it panels with what a model saw in it: the attention of a query to its patches, boxes, classes of pixels.
///
/// # Example
/// ```
/// use burn_attn_viz::ImageMap;
///
/// // An image of 2 × 4 pixels in one row of two patches; the second one gets most of the weight.
/// let map = ImageMap::new([2, 4], vec![128; 2 * 4 * 3])?.attention([1, 2], vec![0.25, 0.75])?;
/// let png = map.to_png();
/// assert_eq!(&png[1..4], b"PNG");
/// # Ok::<(), burn_attn_viz::MapError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ImageMap {
    size: [usize; 2],
    pixels: Vec<u8>,
    /// The first one is the image.
    panels: Vec<Panel>,
    class_names: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Panel {
    layer: Layer,
    /// Left, top, right, bottom (pixels of the image), and which colour.
    boxes: Vec<([f32; 4], usize)>,
}

/// What is laid over the image.
#[derive(Clone, Debug, Default, PartialEq)]
enum Layer {
    #[default]
    Nothing,
    /// Weights of the patches of a grid.
    Attention(Grid),
    /// The class of every pixel, and that of the background.
    Classes(Vec<usize>, Option<usize>),
}

#[derive(Clone, Debug, PartialEq)]
struct Grid {
    size: [usize; 2],
    weights: Vec<f32>,
    least: f32,
    /// From the smallest to the largest weight.
    range: f32,
}

impl ImageMap {
    /// An image without further panels.
    ///
    /// # Shapes
    /// - `size`: height and width of the image
    /// - `pixels`: `[height, width, 3]`, row-major: red, green and blue
    ///
    /// # Errors
    /// A [`MapError`] if there are no pixels, or not as many.
    pub fn new(size: [usize; 2], pixels: Vec<u8>) -> Result<Self, MapError> {
        let [height, width] = size;
        if pixels.is_empty() || pixels.len() as u128 != product([height, width, 3]) {
            return Err(MapError::PixelCount {
                bytes: pixels.len(),
                height,
                width,
            });
        }
        Ok(Self {
            size,
            pixels,
            panels: vec![Panel::default()],
            class_names: Vec::new(),
        })
    }

    /// A panel with the attention of one query to the patches of the image. The largest weight has the strongest colour and the smallest one none; between the
    /// middles of patches, weights are interpolated.
    ///
    /// # Shapes
    /// - `grid`: rows and columns of patches, which share the image equally
    /// - `weights`: `[rows, columns]`, row-major
    ///
    /// # Errors
    /// A [`MapError`] if there are no patches or not as many weights, or if a weight is not finite or is negative.
    pub fn attention(self, grid: [usize; 2], weights: Vec<f32>) -> Result<Self, MapError> {
        let [rows, columns] = grid;
        if weights.is_empty() || weights.len() as u128 != product(grid) {
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
        let least = weights.iter().copied().fold(f32::INFINITY, f32::min);
        let top = weights.iter().copied().fold(0.0, f32::max);
        // Weights that differ by their rounding alone are equal.
        let is_flat = top - least <= 1e-6 * top;
        Ok(self.panel(Layer::Attention(Grid {
            size: grid,
            weights,
            least,
            range: if is_flat { f32::INFINITY } else { top - least },
        })))
    }

    /// A panel with every pixel in the [colour](class_color) of its class, `[height, width]`, row-major. Pixels of the class `background` have none.
    ///
    /// # Errors
    /// A [`MapError`] if there is not one class for each pixel.
    pub fn classes(self, classes: Vec<usize>, background: Option<usize>) -> Result<Self, MapError> {
        let [height, width] = self.size;
        if classes.len() != height * width {
            return Err(MapError::ClassCount {
                classes: classes.len(),
                height,
                width,
            });
        }
        Ok(self.panel(Layer::Classes(classes, background)))
    }

    /// What the classes are called, from class 0, in [`to_text`](Self::to_text). Those without a name are `class 3`.
    pub fn class_names(mut self, names: Vec<String>) -> Self {
        self.class_names = names;
        self
    }

    /// Draws a box on the last panel, and on the image itself: left, top, right and bottom (pixels of the image). `color` is one of ten [colours](class_color),
    /// which repeat. What is beyond the image is not drawn.
    ///
    /// # Errors
    /// A [`MapError`] if a corner is not finite, or if the right side is left of the left one or the bottom above the top.
    pub fn boxed(mut self, corners: [f32; 4], color: usize) -> Result<Self, MapError> {
        let [left, top, right, bottom] = corners;
        if corners.iter().any(|side| !side.is_finite()) || right < left || bottom < top {
            return Err(MapError::BoxCorners(corners));
        }
        let last = self.panels.len() - 1;
        for panel in if last > 0 { vec![0, last] } else { vec![0] } {
            self.panels[panel].boxes.push((corners, color));
        }
        Ok(self)
    }

    fn panel(mut self, layer: Layer) -> Self {
        self.panels.push(Panel {
            layer,
            boxes: Vec::new(),
        });
        self
    }

    /// The panels side by side as a PNG, the image first. Images whose longer side is below 280 pixels are enlarged.
    pub fn to_png(&self) -> Vec<u8> {
        let Drawn {
            zoom,
            tall,
            wide,
            whole,
        } = self.drawn();
        let mut drawn = Vec::with_capacity(tall * whole * 3);
        for y in 0..tall {
            for (index, panel) in self.panels.iter().enumerate() {
                if index > 0 {
                    drawn.extend([255; GAP * 3]);
                }
                drawn.extend((0..wide).flat_map(|x| self.pixel(panel, [y, x], zoom)));
            }
        }
        encoded([tall, whole], &drawn)
    }

    fn drawn(&self) -> Drawn {
        let [height, width] = self.size;
        let zoom = LEAST.div_ceil(height.max(width)).max(1);
        let (tall, wide) = (height * zoom, width * zoom);
        Drawn {
            zoom,
            tall,
            wide,
            whole: self.panels.len() * (wide + GAP) - GAP,
        }
    }

    /// The pixel of a panel at a place of the enlarged image.
    fn pixel(&self, panel: &Panel, [y, x]: [usize; 2], zoom: usize) -> Rgb {
        let [row, column] = [y, x].map(|at| at as f32 + 0.5);
        let is_on = |(corners, _): &&([f32; 4], usize)| {
            let [left, top, right, bottom] = corners.map(|side| side * zoom as f32);
            // How far it is outside of the box.
            let beyond = (left - column)
                .max(column - right)
                .max(top - row)
                .max(row - bottom);
            beyond.abs() <= LINE
        };
        if let Some((_, color)) = panel.boxes.iter().rev().find(is_on) {
            return class_color(*color);
        }
        self.under_boxes(&panel.layer, [y, x], zoom)
    }

    /// The pixel of the image at a place of the enlarged one, with what is laid over it.
    fn under_boxes(&self, layer: &Layer, [y, x]: [usize; 2], zoom: usize) -> Rgb {
        let [height, width] = self.size;
        let at = (y / zoom) * width + x / zoom;
        let pixel = [0, 1, 2].map(|channel| self.pixels[at * 3 + channel]);
        let (color, share) = match layer {
            Layer::Nothing => return pixel,
            Layer::Classes(classes, background) if Some(classes[at]) == *background => {
                return pixel;
            }
            Layer::Classes(classes, _) => (class_color(classes[at]), MOST),
            Layer::Attention(grid) => {
                let row = place(y, height * zoom, grid.size[0]);
                let weight = grid.between(row, place(x, width * zoom, grid.size[1]));
                (COLOR, MOST * grid.share(weight))
            }
        };
        let mixed = |channel: usize| {
            let (pixel, color) = (f32::from(pixel[channel]), f32::from(color[channel]));
            (pixel * (1.0 - share) + color * share).round() as u8
        };
        [0, 1, 2].map(mixed)
    }
}

/// The colour of a class of pixels: red, green and blue. After ten classes they repeat.
pub fn class_color(class: usize) -> [u8; 3] {
    COLORS[class % COLORS.len()]
}

/// How large everything is drawn (pixels).
struct Drawn {
    /// Pixels of the picture for one of the image, along each side.
    zoom: usize,
    /// Height of every panel.
    tall: usize,
    /// Width of a panel.
    wide: usize,
    /// Width of all panels.
    whole: usize,
}

impl Grid {
    /// Where a weight is between the smallest and the largest one, 0 to 1.
    fn share(&self, weight: f32) -> f32 {
        (weight - self.least).max(0.0) / self.range
    }

    /// The weight between four patches.
    fn between(&self, row: Place, column: Place) -> f32 {
        let at = |row: usize, column: usize| self.weights[row * self.size[1] + column];
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
