//! Scenes of 96 × 96 pixels: one to five digits of different sizes among clutter, in light on a dark ground.

use std::ops::Range;

use example_common::fnv::Fnv;
use image::{
    DynamicImage, GrayImage,
    imageops::{FilterType, crop_imm, resize},
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    augmentation::augmented,
    mnist::{Mnist, SIDE as SCAN},
};

/// Height and width of a scene (pixels).
pub const SIDE: usize = 96;
/// Scenes of the test part.
pub const TEST: usize = 1_000;
/// The [`fingerprint`] of the test part, which was fixed before a model was trained.
pub const TEST_FINGERPRINT: &str = "f6ee331f058b5892";
/// Digits of a scene at most.
const MOST: usize = 5;
/// The longer side of a digit, cut out closely (pixels).
const SIZES: Range<u32> = 14..41;
/// How much the boxes of two digits overlap at most, as intersection over union.
const OVERLAP: f32 = 0.3;
/// Pieces of clutter, and their height and width (pixels).
const PIECES: usize = 8;
const PIECE: usize = 8;
/// A pixel is of a digit if it has at least this much of its ink.
const INK: u8 = 128;

/// Left, top, right and bottom (pixels).
pub type Corners = [f32; 4];

/// A digit in a scene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object {
    /// 0 to 9.
    pub digit: u8,
    /// Where it is: its ink touches all four sides.
    pub corners: Corners,
}

/// An image with what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// `SIDE × SIDE` pixels, row by row, 0 to 255.
    pub pixels: Vec<u8>,
    /// Its digits.
    pub objects: Vec<Object>,
    /// For every pixel 1 + the digit that it is of, or 0.
    pub classes: Vec<u8>,
}

/// Makes scenes of some scans: any number of them, each always the same.
#[derive(Clone, Debug)]
pub struct Scenes {
    /// The scans that are used.
    pub scans: Range<usize>,
    /// Whether scans are changed as in the training of the model that recognises them.
    pub augments: bool,
    /// The seed of all scenes.
    pub seed: u64,
}

impl Scenes {
    /// The scenes on which models are measured, of the test part of MNIST.
    pub fn test(mnist: &Mnist) -> Self {
        Self::unseen(0..mnist.len(), 0)
    }

    /// Scenes of scans that no model has seen.
    pub fn unseen(scans: Range<usize>, seed: u64) -> Self {
        Self {
            scans,
            augments: false,
            seed,
        }
    }

    /// The scene of this number.
    pub fn scene(&self, mnist: &Mnist, number: usize) -> Scene {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(number as u64);
        let mut scene = Scene {
            pixels: vec![0; SIDE * SIDE],
            objects: Vec::new(),
            classes: vec![0; SIDE * SIDE],
        };
        for _ in 0..PIECES {
            self.add_clutter(&mut scene, mnist, &mut random);
        }
        let digits = random.random_range(1..=MOST);
        // What has no place by now is left out.
        for _ in 0..4 * digits {
            if scene.objects.len() < digits {
                self.add_digit(&mut scene, mnist, &mut random);
            }
        }
        scene
    }

    fn add_clutter(&self, scene: &mut Scene, mnist: &Mnist, random: &mut impl Rng) {
        let scan = mnist.scan(random.random_range(self.scans.clone()));
        // The middle of scans, where the ink is.
        let [row, column] = [(); 2].map(|()| random.random_range(4..SCAN - 4 - PIECE));
        let [top, left] = [(); 2].map(|()| random.random_range(0..=SIDE - PIECE));
        for y in 0..PIECE {
            for x in 0..PIECE {
                let pixel = &mut scene.pixels[(top + y) * SIDE + left + x];
                *pixel = scan[(row + y) * SCAN + column + x].max(*pixel);
            }
        }
    }

    /// Adds a digit, unless its box and that of another overlap too much, as intersection over union.
    fn add_digit(&self, scene: &mut Scene, mnist: &Mnist, random: &mut impl Rng) {
        let index = random.random_range(self.scans.clone());
        let seed = random.random();
        let side = random.random_range(SIZES);
        let scan = match self.augments {
            true => augmented(mnist.scan(index), ChaCha8Rng::seed_from_u64(seed))
                .map(|pixel| pixel as u8)
                .collect(),
            false => mnist.scan(index).to_vec(),
        };
        let Some(digit) = sized(scan, side) else {
            return;
        };
        let [width, height] = [digit.width() as usize, digit.height() as usize];
        let left = random.random_range(0..=SIDE - width);
        let top = random.random_range(0..=SIDE - height);
        let corners = [left, top, left + width, top + height].map(|side| side as f32);
        let overlaps = |other: &Object| intersection_over_union(&other.corners, &corners) > OVERLAP;
        if scene.objects.iter().any(overlaps) {
            return;
        }
        let object = Object {
            digit: mnist.digits[index],
            corners,
        };
        scene.objects.push(object);
        for (x, y, pixel) in digit.enumerate_pixels() {
            let (at, ink) = ((top + y as usize) * SIDE + left + x as usize, pixel.0[0]);
            // Where two digits cross, the later one is in front.
            if ink >= INK {
                scene.classes[at] = 1 + object.digit;
            }
            scene.pixels[at] = ink.max(scene.pixels[at]);
        }
    }
}

impl Scene {
    /// The scene as an image.
    pub fn image(&self) -> DynamicImage {
        let image = GrayImage::from_raw(SIDE as u32, SIDE as u32, self.pixels.clone());
        image.expect("a byte for each pixel").into()
    }
}

/// The ink of a scan, cut out closely, with so many pixels on its longer side; nothing if there is no ink.
fn sized(scan: Vec<u8>, longer: u32) -> Option<GrayImage> {
    let ink = (0..).zip(&scan).filter(|(_, pixel)| **pixel >= INK);
    let [mut left, mut top, mut right, mut bottom] = [SCAN, SCAN, 0, 0];
    for (at, _) in ink {
        let (row, column): (usize, usize) = (at / SCAN, at % SCAN);
        (left, top) = (left.min(column), top.min(row));
        (right, bottom) = (right.max(column + 1), bottom.max(row + 1));
    }
    if left >= right {
        return None;
    }
    let [left, top, right, bottom] = [left, top, right, bottom].map(|side| side as u32);
    let (width, height) = (right - left, bottom - top);
    let scaled = |side: u32| (side * longer / width.max(height)).max(1);
    let scan = GrayImage::from_raw(SCAN as u32, SCAN as u32, scan)?;
    let close = crop_imm(&scan, left, top, width, height).to_image();
    let (width, height) = (scaled(width), scaled(height));
    Some(resize(&close, width, height, FilterType::Triangle))
}

/// Tells scenes from others.
pub fn fingerprint(scenes: &[Scene]) -> String {
    let mut hash = Fnv::default();
    for scene in scenes {
        hash.write(&scene.pixels);
        hash.write(&scene.classes);
        for object in &scene.objects {
            hash.write(&[object.digit]);
            hash.write(&object.corners.map(|side| side as u8));
        }
    }
    hash.to_hex()
}

/// The area that two boxes share, of the area that they cover together.
pub fn intersection_over_union(one: &Corners, other: &Corners) -> f32 {
    let area =
        |[left, top, right, bottom]: [f32; 4]| (right - left).max(0.0) * (bottom - top).max(0.0);
    let shared = area([
        one[0].max(other[0]),
        one[1].max(other[1]),
        one[2].min(other[2]),
        one[3].min(other[3]),
    ]);
    let union = area(*one) + area(*other) - shared;
    if union > 0.0 { shared / union } else { 0.0 }
}

#[cfg(test)]
mod tests;
