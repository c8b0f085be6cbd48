//! The colours of weights: one hue, equal steps of lightness.
//!
//! A single-hue sequential scale reads the same with any kind of colour blindness and in greyscale, because only the
//! lightness carries the number.

use crate::AttentionMap;

/// The background that a picture is drawn on; a weight of 0 always takes a colour close to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// White paper: larger weights are darker.
    #[default]
    Light,
    /// A dark screen: larger weights are brighter.
    Dark,
}

/// The weight that gets the strongest colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorScale {
    /// Always 1, so that pictures can be compared with each other.
    #[default]
    Unit,
    /// The largest weight in the picture, so that a spread-out head still shows its structure.
    Maximum,
}

/// A colour as red, green and blue.
pub(crate) type Rgb = [u8; 3];

// Nine equal steps of lightness in OKLCH: 0.985 down to 0.33 at hue 252, and 0.24 up to 0.97 at hue 240. They are written
// out rather than computed, since `cos` and `powf` may differ in the last bit between platforms.
const LIGHT: [Rgb; 9] = [
    [247, 250, 254],
    [201, 226, 255],
    [154, 201, 254],
    [103, 175, 253],
    [61, 148, 238],
    [15, 122, 215],
    [2, 98, 177],
    [0, 75, 139],
    [1, 54, 101],
];
const DARK: [Rgb; 9] = [
    [23, 33, 40],
    [23, 57, 79],
    [21, 83, 120],
    [27, 110, 158],
    [51, 138, 191],
    [87, 166, 218],
    [130, 194, 239],
    [178, 221, 253],
    [237, 247, 254],
];

impl Background {
    /// The steps of the colour scale, from a weight of 0 to the top of the scale.
    pub(crate) fn stops(self) -> &'static [Rgb; 9] {
        match self {
            Background::Light => &LIGHT,
            Background::Dark => &DARK,
        }
    }

    /// The colour at `share` of the scale; a share outside 0 to 1 takes the nearer end.
    pub(crate) fn shade(self, share: f32) -> Rgb {
        let stops = self.stops();
        let position = share.clamp(0.0, 1.0) * (stops.len() - 1) as f32;
        let below = (position as usize).min(stops.len() - 2);
        let rest = position - below as f32;
        std::array::from_fn(|channel| {
            let [from, to] = [below, below + 1].map(|stop| f32::from(stops[stop][channel]));
            (from + (to - from) * rest).round() as u8
        })
    }

    /// The text colour that stays legible on [`shade`](Self::shade) of the same share.
    pub(crate) fn ink(self, share: f32) -> Rgb {
        // Near the switch, dark and bright letters have equal contrast.
        let (near_zero, switch, near_top) = match self {
            Background::Light => ([16, 24, 32], 0.62, [255, 255, 255]),
            Background::Dark => ([230, 237, 243], 0.44, [10, 16, 22]),
        };
        if share < switch { near_zero } else { near_top }
    }
}

impl ColorScale {
    /// The weight at the top of the scale for these heads of `map`; never 0, so that it can be divided by.
    pub(crate) fn top(self, map: &AttentionMap, heads: impl Iterator<Item = usize>) -> f32 {
        match self {
            ColorScale::Unit => 1.0,
            ColorScale::Maximum => {
                let maximum = heads.map(|head| map.maximum(head)).fold(0.0, f32::max);
                if maximum > 0.0 { maximum } else { 1.0 }
            }
        }
    }
}

/// `#rrggbb`, as CSS and SVG write it.
pub(crate) fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests;
