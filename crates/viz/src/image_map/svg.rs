//! The panels as an SVG.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{COLOR, Drawn, GAP, Grid, ImageMap, LINE, Layer, MOST, Panel, class_color, encoded};
use crate::color::hex;

impl ImageMap {
    /// The panels side by side as a standalone SVG document, the image first, as large as those of [`to_png`](Self::to_png). A patch has one colour, and a tooltip
    /// with its row and column, from 1, and its weight. The pixels of the image, and those of classes, are PNGs in the document.
    pub fn to_svg(&self) -> String {
        let Drawn {
            tall, wide, whole, ..
        } = self.drawn();
        // Different images in one page need different names.
        let hash = |hash: u32, number: u32| (hash ^ number).wrapping_mul(16_777_619);
        let numbers = self.pixels.iter().map(|&byte| u32::from(byte));
        let hash = numbers
            .chain([self.size[0] as u32])
            .fold(2_166_136_261, hash);
        let name = format!("image-{hash:08x}");
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"{tall}\" viewBox=\"0 0 {whole} {tall}\" role=\"img\">\n\
             <title>What a model saw in an image</title>\n<desc>{}</desc>\n<defs><g id=\"{name}\">{}</g></defs>\n",
            self.description(),
            self.embedded(&Layer::Nothing),
        );
        for (index, panel) in self.panels.iter().enumerate() {
            let x = index * (wide + GAP);
            svg += &format!("<svg x=\"{x}\" width=\"{wide}\" height=\"{tall}\">\n");
            svg += &match &panel.layer {
                Layer::Classes(..) => self.embedded(&panel.layer),
                Layer::Nothing | Layer::Attention(_) => format!("<use href=\"#{name}\"/>\n"),
            };
            if let Layer::Attention(grid) = &panel.layer {
                svg += &patches(grid, [tall, wide]);
            }
            svg += &self.boxes(panel);
            svg += "</svg>\n";
        }
        svg + "</svg>\n"
    }

    /// The picture in words.
    fn description(&self) -> String {
        let [height, width] = self.size;
        let panels = self.panels[1..].iter().map(|panel| match &panel.layer {
            Layer::Nothing => String::new(),
            Layer::Attention(grid) => format!("; beside it, {}", grid.title()),
            Layer::Classes(..) => "; beside it, the classes of its pixels".into(),
        });
        let panels: String = panels.collect();
        format!("An image {height} pixels high and {width} wide{panels}.")
    }

    /// The image with what is laid over it, as a PNG in an element.
    fn embedded(&self, layer: &Layer) -> String {
        let [height, width] = self.size;
        let Drawn { tall, wide, .. } = self.drawn();
        let places = (0..height).flat_map(|y| (0..width).map(move |x| [y, x]));
        let pixels: Vec<u8> = places
            .flat_map(|at| self.under_boxes(layer, at, 1))
            .collect();
        let png = STANDARD.encode(encoded(self.size, &pixels));
        format!(
            "<image width=\"{wide}\" height=\"{tall}\" style=\"image-rendering: pixelated\" href=\"data:image/png;base64,{png}\"/>\n"
        )
    }

    fn boxes(&self, panel: &Panel) -> String {
        let zoom = self.drawn().zoom as f32;
        let boxes = panel.boxes.iter().map(|(corners, color)| {
            let [left, top, right, bottom] = corners.map(|side| side * zoom);
            let (width, height) = (right - left, bottom - top);
            let (color, line) = (hex(class_color(*color)), 2.0 * LINE);
            format!(
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{line}\"/>\n"
            )
        });
        boxes.collect()
    }
}

/// The patches of an image of this height and width.
fn patches(grid: &Grid, [tall, wide]: [usize; 2]) -> String {
    let [rows, columns] = grid.size;
    let (height, width) = (tall as f32 / rows as f32, wide as f32 / columns as f32);
    let patches = grid.weights.iter().enumerate().map(|(patch, &weight)| {
        let (row, column) = (patch / columns, patch % columns);
        let (x, y) = (column as f32 * width, row as f32 * height);
        let share = MOST * grid.share(weight);
        let (row, column) = (row + 1, column + 1);
        format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill-opacity=\"{share:.3}\">\
             <title>row {row}, column {column}: {weight:.4}</title></rect>\n"
        )
    });
    let patches: String = patches.collect();
    format!("<g fill=\"{}\">\n{patches}</g>\n", hex(COLOR))
}
