//! A heat map for the terminal.

use std::iter::repeat_n;

use crate::label::{cut, fit, label, widest, width};
use crate::{AttentionMap, Background};

/// How [`render_text`] draws.
///
/// The default is 80 columns of shade blocks without colour, which also reads well in a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextOptions {
    /// The widest line, in terminal columns. A last column holds the sum of the keys that do not fit.
    pub max_width: usize,
    /// Draw cells as percentages on 24-bit ANSI colours made for this background, instead of as shade blocks.
    pub color: Option<Background>,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            max_width: 80,
            color: None,
        }
    }
}

impl TextOptions {
    /// Sets [`max_width`](Self::max_width).
    pub fn max_width(self, max_width: usize) -> Self {
        Self { max_width, ..self }
    }

    /// Sets [`color`](Self::color).
    pub fn color(self, background: Background) -> Self {
        let color = Some(background);
        Self { color, ..self }
    }
}

/// Labels of queries take no more columns than this.
const QUERY_COLUMNS: usize = 16;
/// Labels of keys take no more columns than this, and no fewer than the percentage `100`.
const KEY_COLUMNS: std::ops::RangeInclusive<usize> = 3..=8;

/// One head of `map` as a heat map in text: a row per query, a column per key.
///
/// If the keys do not fit into [`TextOptions::max_width`], their columns first become narrower. Then one column with the sum of their
/// weights replaces the last keys, and a line says how many they are. At least one key is always
/// drawn. Every line ends with a newline.
///
/// A cell is blank where the key is [hidden](AttentionMap#hidden-keys). A row has the name of its query alone: what the model wrote next, which
/// [`AttentionGroup::written`](crate::AttentionGroup::written) adds to a page, would take too much of the line.
///
/// # Panics
/// If `head` is out of range.
///
/// # Example
/// ```
/// use burn_attn_viz::{AttentionMap, TextOptions, render_text};
///
/// let map = AttentionMap::new(
///     "layer 1",
///     vec!["je".into(), "dors".into()],
///     vec!["I".into(), "sleep".into()],
///     vec![0.9, 0.1, 0.3, 0.7],
/// )?;
/// assert_eq!(
///     render_text(&map, 0, &TextOptions::default()),
///     "\
/// layer 1, head 1 of 1: rows are queries, columns are keys
///      I     sleep
/// je   █████ ░░░░░
/// dors ▒▒▒▒▒ ▓▓▓▓▓
/// weight: · <0.05  ░ <0.25  ▒ <0.5  ▓ <0.75  █ ≥0.75; blank is hidden
/// "
/// );
/// # Ok::<(), burn_attn_viz::MapError>(())
/// ```
pub fn render_text(map: &AttentionMap, head: usize, options: &TextOptions) -> String {
    let title = map.head_title(head);
    let labels = |tokens: &[String]| tokens.iter().map(|token| label(token)).collect::<Vec<_>>();
    let (queries, keys) = (labels(map.queries()), labels(map.keys()));
    let query_columns = widest(&queries).min(QUERY_COLUMNS);
    let available = options.max_width.saturating_sub(query_columns);
    let layout = Layout::new(keys.len(), widest(&keys), available);
    let (shown, rest) = (layout.shown, layout.left_out);

    let mut text = String::new();
    let mut line = |line: &str| {
        text += line;
        text.push('\n');
    };
    let short = |line: &str| cut(line, options.max_width.max(1));
    let heading = format!("{title}: rows are queries, columns are keys");
    line(&short(&heading));

    let mut header = " ".repeat(query_columns);
    for key in &keys[..shown] {
        header += &format!(" {}", fit(key, layout.columns));
    }
    if rest > 0 {
        header += &format!(" {}", fit(&sum_label(rest), layout.sum_columns));
    }
    line(header.trim_end());

    for (i, query) in queries.iter().enumerate() {
        let seen = |j: usize| (!map.is_hidden(head, i, j)).then(|| map.weight(head, i, j));
        let mut cells: Vec<Option<f32>> = (0..shown).map(seen).collect();
        if rest > 0 {
            // Hidden only if all of them are.
            let left_out = (shown..keys.len()).filter_map(seen);
            cells.push(left_out.reduce(|sum, weight| sum + weight));
        }
        let mut row = fit(query, query_columns);
        let columns = repeat_n(layout.columns, shown).chain([layout.sum_columns]);
        for (weight, columns) in cells.into_iter().zip(columns) {
            row.push(' ');
            match (weight, options.color) {
                (None, _) => row.extend(repeat_n(' ', columns)),
                (Some(weight), Some(background)) => row += &colored(weight, columns, background),
                (Some(weight), None) => row.extend(repeat_n(block(weight), columns)),
            }
        }
        line(row.trim_end());
    }

    let legend = format!("weight: {SHARES}; blank is hidden");
    line(&short(match options.color {
        Some(_) => "weight in percent; blank is hidden",
        None => &legend,
    }));
    if rest > 0 {
        let all = keys.len();
        let fit =
            format!("{shown} of {all} keys fit; column +{rest} is the sum of the other {rest}");
        line(&short(&fit));
    }
    text
}

/// How the keys share the columns of a line.
struct Layout {
    /// Columns of one key, without the space before it.
    columns: usize,
    /// Keys with one column each.
    shown: usize,
    /// Keys summed up in the last column.
    left_out: usize,
    /// Columns of the sum, without the space before it.
    sum_columns: usize,
}

impl Layout {
    fn new(keys: usize, widest_key: usize, available: usize) -> Self {
        let (narrowest, broadest) = KEY_COLUMNS.into_inner();
        let wanted = widest_key.clamp(narrowest, broadest);
        let columns = (available / keys)
            .saturating_sub(1)
            .clamp(narrowest, wanted);
        let sum_columns = |shown: usize| columns.max(width(&sum_label(keys - shown)));
        let fits = |shown: &usize| shown * (columns + 1) + 1 + sum_columns(*shown) <= available;
        let shown = match available / (columns + 1) {
            places if keys <= places => keys,
            places => (1..places).rev().find(fits).unwrap_or(1),
        };
        Self {
            columns,
            shown,
            left_out: keys - shown,
            sum_columns: sum_columns(shown),
        }
    }
}

/// What the column is called that sums up so many keys.
fn sum_label(left_out: usize) -> String {
    format!("+{left_out}")
}

/// What the characters of [`block`] mean.
pub(crate) const SHARES: &str = "· <0.05  ░ <0.25  ▒ <0.5  ▓ <0.75  █ ≥0.75";

/// A character that is the darker the nearer a share is to 1.
pub(crate) fn block(share: f32) -> char {
    match share {
        ..0.05 => '·',
        ..0.25 => '░',
        ..0.5 => '▒',
        ..0.75 => '▓',
        _ => '█',
    }
}

fn colored(weight: f32, columns: usize, background: Background) -> String {
    let [red, green, blue] = background.shade(weight);
    let [ink_red, ink_green, ink_blue] = background.ink(weight);
    let percent = weight * 100.0;
    format!(
        "\x1b[48;2;{red};{green};{blue};38;2;{ink_red};{ink_green};{ink_blue}m{percent:^columns$.0}\x1b[0m"
    )
}
