//! The panels in the terminal.

use std::collections::BTreeSet;

use super::{Grid, ImageMap, Layer, Panel, class_color};
use crate::{
    TextOptions,
    color::Rgb,
    label::{printable, width as width_of},
    text::{SHARES, block},
};

/// What stands for classes whose names are longer.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

impl ImageMap {
    /// The panels beside the image, one below the other; the image itself is not drawn. A patch takes two columns of a line. Where that is wider than
    /// [`TextOptions::max_width`], a character has the largest weight of several patches, or the class of one of several pixels.
    ///
    /// Without colours, a class is its [name](Self::class_names) if that is one character, else a letter, from the 53rd class on `?`; the background is `·`.
    pub fn to_text(&self, options: &TextOptions) -> String {
        let panels = self.panels[1..].iter().map(|panel| {
            let (mut title, cells, legend) = match &panel.layer {
                Layer::Nothing => return String::new(),
                Layer::Attention(grid) => grid.cells(options),
                Layer::Classes(classes, background) => self.cells(classes, *background, options),
            };
            title += &boxes(panel);
            format!("{title}\n{cells}{legend}\n")
        });
        panels.collect::<Vec<_>>().join("\n")
    }

    /// The title, the lines and the legend of the classes of the pixels.
    fn cells(
        &self,
        classes: &[usize],
        background: Option<usize>,
        options: &TextOptions,
    ) -> (String, String, String) {
        let [height, width] = self.size;
        let lines = Lines::new(self.size, options.max_width);
        let middle = |at: usize, of: usize, pixels: usize| (2 * at + 1) * pixels / (2 * of);
        let class = |row: usize, column: usize| {
            let row = middle(row, lines.rows, height);
            classes[row * width + middle(column, lines.columns, width)]
        };
        let places = (0..lines.rows).flat_map(|row| (0..lines.columns).map(move |at| (row, at)));
        let all: BTreeSet<usize> = places.map(|(row, column)| class(row, column)).collect();
        let drawn: Vec<usize> = all
            .into_iter()
            .filter(|class| Some(*class) != background)
            .collect();
        let name = |class: usize| match self.class_names.get(class) {
            Some(name) => printable(name),
            None => format!("class {class}"),
        };
        let are_characters = drawn.iter().all(|&class| width_of(&name(class)) == 1);
        let symbol = |class: usize| {
            let Some(place) = drawn.iter().position(|other| *other == class) else {
                return "·".into();
            };
            match options.color {
                Some(_) => colored(class_color(class)),
                None if are_characters => name(class),
                None => LETTERS.chars().nth(place).unwrap_or('?').into(),
            }
        };
        let text = lines.text(|row, column| symbol(class(row, column)));
        let meanings = drawn
            .iter()
            .map(|&class| match are_characters && options.color.is_none() {
                true => name(class),
                false => format!("{} {}", symbol(class), name(class)),
            });
        let legend = match drawn.is_empty() {
            true => "none".into(),
            false => meanings.collect::<Vec<String>>().join(", "),
        };
        let title = format!("classes of an image {height} pixels high and {width} wide");
        (title, text, format!("classes: {legend}"))
    }
}

/// Where the boxes of a panel are.
fn boxes(panel: &Panel) -> String {
    let boxes = panel.boxes.iter().map(|(corners, _)| {
        let [left, top, right, bottom] = corners.map(f32::round);
        format!("; box from {left}, {top} to {right}, {bottom}")
    });
    boxes.collect()
}

impl Grid {
    /// What the panel shows.
    pub(super) fn title(&self) -> String {
        let [rows, columns] = self.size;
        let top = self.weights.iter().copied().fold(0.0, f32::max);
        let least = self.least;
        format!("attention to {rows} × {columns} patches, weights from {least:.4} to {top:.4}")
    }

    /// The title, the lines and the legend.
    fn cells(&self, options: &TextOptions) -> (String, String, String) {
        let [rows, columns] = self.size;
        let lines = Lines::new(self.size, options.max_width);
        let text = lines.text(|row, column| {
            let row = covered(row, lines.rows, rows);
            let patches = row.flat_map(|row| {
                covered(column, lines.columns, columns).map(move |column| row * columns + column)
            });
            let weight = patches.map(|patch| self.weights[patch]).fold(0.0, f32::max);
            let share = self.share(weight);
            match options.color {
                Some(background) => colored(background.shade(share)),
                None => block(share).to_string(),
            }
        });
        let legend = match options.color {
            Some(_) => "from the smallest weight to the largest one".into(),
            None => format!("from the smallest weight (0) to the largest one (1): {SHARES}"),
        };
        (self.title(), text, legend)
    }
}

/// The characters that an image becomes.
struct Lines {
    rows: usize,
    columns: usize,
}

impl Lines {
    /// A cell of `size` takes two columns, because a character is twice as high as it is wide.
    fn new([rows, columns]: [usize; 2], max_width: usize) -> Self {
        let wide = (2 * columns).min(max_width.max(1));
        Self {
            rows: (rows * wide).div_ceil(2 * columns),
            columns: wide,
        }
    }

    fn text(&self, cell: impl Fn(usize, usize) -> String) -> String {
        let line = |row| {
            let cells: String = (0..self.columns).map(|column| cell(row, column)).collect();
            cells + "\n"
        };
        (0..self.rows).map(line).collect()
    }
}

/// Which of `cells` the character at a place among `of` covers, at least one.
fn covered(at: usize, of: usize, cells: usize) -> std::ops::Range<usize> {
    at * cells / of..((at + 1) * cells).div_ceil(of)
}

fn colored([red, green, blue]: Rgb) -> String {
    format!("\x1b[48;2;{red};{green};{blue}m \x1b[0m")
}
