//! A heat map as a standalone SVG.

use crate::color::hex;
use crate::escape::markup;
use crate::label::{cut, label, printable, widest, width};
use crate::limits::{MOST_TOKENS, SLICE, left_out};
use crate::{AttentionMap, Background, ColorScale};

/// What [`render_svg`] draws, and how.
///
/// The default is a grid of all heads on white, on the colour scale from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SvgOptions {
    /// Draw this head alone, large; `None` draws a grid of all heads.
    pub head: Option<usize>,
    /// The weight that gets the strongest colour.
    pub scale: ColorScale,
    /// The background to draw on.
    pub background: Background,
}

impl SvgOptions {
    /// Sets [`head`](Self::head).
    pub fn head(self, head: impl Into<Option<usize>>) -> Self {
        let head = head.into();
        Self { head, ..self }
    }

    /// Sets [`scale`](Self::scale).
    pub fn scale(self, scale: ColorScale) -> Self {
        Self { scale, ..self }
    }

    /// Sets [`background`](Self::background).
    pub fn background(self, background: Background) -> Self {
        Self { background, ..self }
    }
}

/// Labels longer than this are cut; the tooltips of a single head keep them whole.
const LABEL_COLUMNS: usize = 14;
const HEADS_PER_ROW: usize = 4;
const MARGIN: usize = 16;
const LEGEND_STEPS: usize = 32;
/// The most squares: more than a browser shows in seconds, as many as one head of the most tokens has.
const MOST_SQUARES: usize = MOST_TOKENS * MOST_TOKENS;

/// `map` as a standalone SVG document: a heat map with token labels, a legend, and a title and description for readers who
/// cannot see it.
///
/// A single head has a tooltip on every cell. Where the key is [hidden](AttentionMap#hidden-keys), there is hatching instead. A row has the
/// name of its query alone: what the model wrote next, which [`AttentionGroup::written`](crate::AttentionGroup::written) adds to a
/// page, would not fit beside most heads.
///
/// # Limits
/// In place of a map with more than 1024 queries or 1024 keys, or of more than 2²⁰ weights in the heads to draw, the SVG has one sentence with its sizes. To see such a map, pass a slice of
/// the tokens, or draw one head.
///
/// # Panics
/// If [`SvgOptions::head`] is out of range.
///
/// # Example
/// ```
/// use burn_attn_viz::{AttentionMap, SvgOptions, render_svg};
///
/// let map = AttentionMap::new(
///     "layer 1",
///     vec!["je".into(), "dors".into()],
///     vec!["I".into(), "sleep".into()],
///     vec![0.9, 0.1, 0.3, 0.7],
/// )?;
/// let svg = render_svg(&map, &SvgOptions::default().head(0));
/// assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
/// assert!(svg.contains("<title>dors \u{200e}→ sleep\u{200e}: 0.7000</title>"));
/// # Ok::<(), burn_attn_viz::MapError>(())
/// ```
pub fn render_svg(map: &AttentionMap, options: &SvgOptions) -> String {
    let (title, heads) = match options.head {
        Some(head) => (map.head_title(head), head..head + 1),
        None => {
            let (title, heads) = (printable(map.title()), map.heads());
            (format!("{title}, {heads} heads"), 0..heads)
        }
    };
    let (queries, keys) = (map.queries().len(), map.keys().len());
    if queries.max(keys) > MOST_TOKENS || heads.len() * queries * keys > MOST_SQUARES {
        return too_large(map, &title, options.background, heads.len());
    }
    let top = options.scale.top(map, heads.clone());
    let panel = Panel::new(map, options, top);
    let per_row = heads.len().min(HEADS_PER_ROW);
    let rows = heads.len().div_ceil(per_row);
    let (panel_width, panel_height) = panel.size();
    // The legend and the title need some width even if the map is tiny.
    let total_width = (MARGIN + per_row * (panel_width + MARGIN))
        .max(280)
        .max(title_width(&title));
    let grid_top = 44;
    let legend_top = grid_top + rows * (panel_height + MARGIN);

    let (size, words) = (
        (total_width, legend_top + 56),
        description(map, heads.clone()),
    );
    let mut svg = begun(&title, options.background, size, panel.font, &words);
    for (place, head) in heads.enumerate() {
        let x = MARGIN + place % per_row * (panel_width + MARGIN);
        let y = grid_top + place / per_row * (panel_height + MARGIN);
        panel.draw(&mut svg, head, x, y);
    }
    svg + &legend(options.background, top, legend_top) + "</svg>\n"
}

/// The width of a document that shows this title whole, margins included.
fn title_width(title: &str) -> usize {
    // Bold letters of the common monospaced fonts are 8.4 pixels wide at this size.
    2 * MARGIN + width(title) * 9
}

/// The start of a document of this size: the title, the description, and the background.
fn begun(
    title: &str,
    background: Background,
    (width, height): (usize, usize),
    font: usize,
    description: &str,
) -> String {
    let ink = match background {
        Background::Light => "#1b2530",
        Background::Dark => "#dfe7ee",
    };
    let (name, lines, paper) = hatching(background);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"{font}\" \
         fill=\"{ink}\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <defs><pattern id=\"{name}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect width=\"6\" height=\"6\" fill=\"{paper}\"/><rect width=\"2\" height=\"6\" fill=\"{lines}\"/></pattern></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n\
         <text x=\"{MARGIN}\" y=\"28\" font-size=\"14\" font-weight=\"bold\">{}</text>\n",
        markup(title),
        markup(description),
        markup(title),
    )
}

/// A document that says what is left out, and why.
fn too_large(map: &AttentionMap, title: &str, background: Background, heads: usize) -> String {
    // One head of a map with no more tokens always fits.
    let remedy = match map.queries().len().max(map.keys().len()) > MOST_TOKENS {
        true => SLICE,
        false => "draw one head",
    };
    let limit = format!(
        "an SVG draws at most {MOST_TOKENS} queries × {MOST_TOKENS} keys, and {MOST_SQUARES} weights; {remedy}"
    );
    let sentence = left_out(&printable(map.title()), map, heads, &limit);
    let total_width = (2 * MARGIN + width(&sentence) * 8).max(title_width(title));
    let size = (total_width, 72);
    let svg = begun(title, background, size, 12, &sentence);
    let sentence = markup(&sentence);
    format!("{svg}<text x=\"{MARGIN}\" y=\"52\">{sentence}</text>\n</svg>\n")
}

/// The picture in words: its size, and the strongest look of every head.
fn description(map: &AttentionMap, heads: impl Iterator<Item = usize>) -> String {
    let (queries, keys) = (map.queries(), map.keys());
    let mut words = format!(
        "Heat map of attention weights: {} queries in rows, {} keys in columns.",
        queries.len(),
        keys.len()
    );
    for head in heads {
        let peak = |i: usize| map.weight(head, i, map.strongest_key(head, i));
        let query =
            (1..queries.len()).fold(0, |best, i| if peak(i) > peak(best) { i } else { best });
        words += &format!(
            " Head {}: the largest weight is {:.2}, from “{}” to “{}”; mean entropy {:.2} bits.",
            head + 1,
            map.maximum(head),
            label(&queries[query]),
            label(&keys[map.strongest_key(head, query)]),
            map.entropy(head)
        );
    }
    words
}

/// The heat map of one head with its labels.
struct Panel<'a> {
    map: &'a AttentionMap,
    background: Background,
    top: f32,
    single: bool,
    queries: Vec<String>,
    keys: Vec<String>,
    cell: usize,
    font: usize,
    label_left: usize,
    label_top: usize,
}

impl<'a> Panel<'a> {
    fn new(map: &'a AttentionMap, options: &SvgOptions, top: f32) -> Self {
        let single = options.head.is_some();
        let (cell, font) = if single { (30, 13) } else { (14, 10) };
        let short = |token: &String| cut(&label(token), LABEL_COLUMNS);
        let queries: Vec<String> = map.queries().iter().map(short).collect();
        let keys: Vec<String> = map.keys().iter().map(short).collect();
        // The common monospaced fonts are 0.6 em wide; a little more leaves some space.
        let extent = |labels: &[String]| widest(labels) * font * 62 / 100 + 8;
        let head_title = if single { 0 } else { font + 8 };
        Self {
            label_left: extent(&queries),
            label_top: extent(&keys) + head_title,
            map,
            background: options.background,
            top,
            single,
            queries,
            keys,
            cell,
            font,
        }
    }

    fn size(&self) -> (usize, usize) {
        (
            (self.label_left + self.keys.len() * self.cell).max(self.font * 5),
            self.label_top + self.queries.len() * self.cell,
        )
    }

    fn draw(&self, svg: &mut String, head: usize, x: usize, y: usize) {
        let (cell, font) = (self.cell, self.font);
        let (left, above) = (x + self.label_left, y + self.label_top);
        if !self.single {
            let (y, head) = (y + font, head + 1);
            *svg +=
                &format!("<text x=\"{left}\" y=\"{y}\" font-weight=\"bold\">head {head}</text>\n");
        }
        // Half a cell plus about a third of the letters' height centres them on their row or column.
        let centre = cell / 2 + font / 3;
        for (j, key) in self.keys.iter().enumerate() {
            let (x, y, key) = (left + j * cell + centre, above - 5, markup(key));
            *svg += &format!("<text transform=\"translate({x} {y}) rotate(-90)\">{key}</text>\n");
        }
        for (i, query) in self.queries.iter().enumerate() {
            let (x, y, query) = (left - 5, above + i * cell + centre, markup(query));
            *svg += &format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{query}</text>\n");
        }
        let (width, height) = (self.keys.len() * cell, self.queries.len() * cell);
        let fill = hex(self.background.shade(0.0));
        *svg += &rect((left, above), (width, height), &fill, "/>");
        let hatched = format!("url(#{})", hatching(self.background).0);
        let keys: Vec<usize> = (0..self.keys.len()).collect();
        for i in 0..self.queries.len() {
            let y = above + i * cell;
            let is_hidden = |j| self.map.is_hidden(head, i, j);
            // One rectangle for neighbours that are hidden.
            for run in keys.chunk_by(|&j, &next| is_hidden(j) == is_hidden(next)) {
                if is_hidden(run[0]) {
                    let size = (run.len() * cell, cell);
                    *svg += &rect((left + run[0] * cell, y), size, &hatched, "/>");
                    continue;
                }
                for &j in run {
                    *svg += &self.cell((head, i, j), (left + j * cell, y));
                }
            }
        }
    }

    fn cell(&self, (head, i, j): (usize, usize, usize), place: (usize, usize)) -> String {
        let weight = self.map.weight(head, i, j);
        let fill = hex(self.background.shade(weight / self.top));
        let size = (self.cell - 1, self.cell - 1);
        if !self.single {
            return rect(place, size, &fill, "/>");
        }
        let query = markup(&label(&self.map.queries()[i]));
        let key = markup(&label(&self.map.keys()[j]));
        // The marks keep the order of the parts where a token is written from right to left.
        let tooltip =
            format!("><title>{query} \u{200e}→ {key}\u{200e}: {weight:.4}</title></rect>");
        rect(place, size, &fill, &tooltip)
    }
}

/// A line with a rectangle, whose element ends with `end`.
fn rect((x, y): (usize, usize), (width, height): (usize, usize), fill: &str, end: &str) -> String {
    format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"{end}\n"
    )
}

/// The name of the pattern of hidden keys, and its lines and ground: one name for each background, so that a document may hold both.
fn hatching(background: Background) -> (&'static str, &'static str, &'static str) {
    match background {
        Background::Light => ("hidden-light", "#c3ccd5", "#ffffff"),
        Background::Dark => ("hidden-dark", "#3f4f5c", "#0f151a"),
    }
}

fn legend(background: Background, top: f32, y: usize) -> String {
    let step = 4;
    let mut svg = String::new();
    for place in 0..LEGEND_STEPS {
        let fill = hex(background.shade(place as f32 / (LEGEND_STEPS - 1) as f32));
        svg += &rect((MARGIN + place * step, y), (step, 10), &fill, "/>");
    }
    let end = MARGIN + LEGEND_STEPS * step;
    // Two digits of a weight below 0.1 as well, which two decimals would round to 0.
    let decimals = (1.0 - top.log10().floor()).max(2.0) as usize;
    svg + &format!(
        "<text x=\"{MARGIN}\" y=\"{0}\" font-size=\"11\">0</text>\n\
         <text x=\"{end}\" y=\"{0}\" font-size=\"11\" text-anchor=\"end\">{top:.decimals$}</text>\n\
         <text x=\"{1}\" y=\"{2}\" font-size=\"11\">weight</text>\n\
         <text x=\"{MARGIN}\" y=\"{3}\" font-size=\"11\">rows: queries, columns: keys; hatched: hidden</text>\n",
        y + 22,
        end + 8,
        y + 10,
        y + 40,
    )
}
