//! A whole model's attention as one HTML file.

use std::fmt::Write;

use crate::AttentionMap;
use crate::color::{Background, hex};
use crate::escape::{json, markup};
use crate::label::{label, printable};
use crate::limits::{MOST_TOKENS, SLICE, left_out};

/// Weights are stored in the page as whole ten-thousandths: exact to four decimals, and shorter than decimals. -1 is hidden.
const UNITS: f32 = 10_000.0;
/// The most weights in a page, means over heads included: about 50 MB of text, which a browser opens in seconds.
const MOST_WEIGHTS: usize = 1 << 24;

const SCRIPT: &str = concat!(
    include_str!("elements.js"),
    include_str!("save.js"),
    include_str!("page.js")
);

/// A page to explore every layer and head of a model on one input.
///
/// The page is one HTML file that needs no network: an overview with a small heat map of every layer and head, and a large one of
/// the chosen head, with its tokens, the weight under the pointer, and lines from query to key. A second head may stand beside it, buttons
/// and the keyboard step through the queries, and the map can be saved as SVG or PNG. It follows the
/// reader's light or dark setting, fits a phone, and can be used with the keyboard. Weights are rounded to four decimals.
///
/// Keys that are [hidden](AttentionMap#hidden-keys) are hatched. In layers of up to 64 keys, colours go from 0 to 1; in larger ones, to the
/// largest weight of each head, in rows that see more than 64 keys if there are any. Two heads side by side have one scale, from 0 to 1 if
/// either layer has up to 64 keys. The legend says so, and the reader may choose.
///
/// # Example
/// ```
/// use burn_attn_viz::{AttentionGroup, AttentionMap, AttentionPage};
///
/// let tokens = || ["le", "chat", "dort"].map(String::from).to_vec();
/// let map = AttentionMap::new("layer 1", tokens(), tokens(), vec![1.0 / 3.0; 9])?;
///
/// let html = AttentionPage::new("What the encoder looks at")
///     .source("le chat dort")
///     .metadata("model", "untrained")
///     .group(AttentionGroup::new("Encoder self-attention", vec![map]))
///     .to_html();
/// assert!(html.starts_with("<!doctype html>"));
/// // std::fs::write("attention.html", html)?;
/// # Ok::<(), burn_attn_viz::MapError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct AttentionPage {
    title: String,
    source: Option<String>,
    translation: Option<String>,
    metadata: Vec<(String, String)>,
    groups: Vec<AttentionGroup>,
}

/// The layers of one kind of attention, such as the self-attention of the encoder.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct AttentionGroup {
    name: String,
    note: Option<String>,
    written: Option<Vec<String>>,
    layers: Vec<AttentionMap>,
}

impl AttentionGroup {
    /// A group of layers under a name, the first layer first.
    ///
    /// The title of each map names its layer within the group; a short one such as `layer 1` reads best.
    pub fn new(name: impl Into<String>, layers: Vec<AttentionMap>) -> Self {
        Self {
            name: name.into(),
            note: None,
            written: None,
            layers,
        }
    }

    /// Names each row after the token that the model wrote next as well, as in `abuelo ⇒ va`.
    ///
    /// For the self-attention of a decoder and for cross-attention: the query that reads `abuelo` is at work on `va`, so that without it
    /// the row seems to look at the wrong word. `written` has one token for each query, in their order.
    ///
    /// # Panics
    /// If a layer has another number of queries.
    pub fn written(mut self, written: Vec<String>) -> Self {
        for map in &self.layers {
            let (title, queries) = (map.title(), map.queries().len());
            assert!(
                queries == written.len(),
                "{} written tokens do not fit {title:?} of {queries} queries",
                written.len()
            );
        }
        self.written = Some(written);
        self
    }

    /// Adds a sentence that tells the reader what is special about this group.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// The name of the group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its layers, the first one first.
    pub fn layers(&self) -> &[AttentionMap] {
        &self.layers
    }
}

impl AttentionPage {
    /// An empty page with a title.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            source: None,
            translation: None,
            metadata: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Shows the sentence that the model read.
    pub fn source(mut self, sentence: impl Into<String>) -> Self {
        self.source = Some(sentence.into());
        self
    }

    /// Shows the sentence that the model wrote.
    pub fn translation(mut self, sentence: impl Into<String>) -> Self {
        self.translation = Some(sentence.into());
        self
    }

    /// Adds a line of metadata, such as the checkpoint or the decoding method.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((name.into(), value.into()));
        self
    }

    /// Adds a group of layers below the ones already there.
    pub fn group(mut self, group: AttentionGroup) -> Self {
        self.groups.push(group);
        self
    }

    /// The groups, in the order in which they were added.
    pub fn groups(&self) -> &[AttentionGroup] {
        &self.groups
    }

    /// The page as the text of an HTML file.
    ///
    /// # Limits
    /// A layer with more than 1024 queries or 1024 keys is left out, and so is one that would bring the page over 2²⁴
    /// weights, means over heads included. For each, the page says so in one sentence that names the layer and
    /// its sizes. To see such a layer, pass a slice of the tokens or fewer heads.
    ///
    /// # Cost
    /// About three bytes per weight, and about 50 kB for the rest.
    pub fn to_html(&self) -> String {
        let (groups, left_out) = self.within_limits();
        let mut said = String::new();
        let sentences = [("Source", &self.source), ("Translation", &self.translation)];
        let sentences = sentences
            .into_iter()
            .filter_map(|(name, sentence)| Some((name, sentence.as_deref()?)));
        push_list(&mut said, "sentences", sentences);
        let metadata = self.metadata.iter();
        let metadata = metadata.map(|(name, value)| (name.as_str(), value.as_str()));
        push_list(&mut said, "metadata", metadata);
        for sentence in left_out {
            said += &format!("<p class=\"left-out\">{}</p>\n", markup(&sentence));
        }
        // The policy makes the browser refuse to load anything but what the page itself made, or to send a form. It does not cover links, and scripts
        // that open another page; there are none, and no text of the caller becomes markup.
        format!(
            include_str!("page.html"),
            title = markup(&self.title),
            style = include_str!("page.css"),
            said = said,
            guide = include_str!("guide.html"),
            data = data(&groups),
            script = SCRIPT,
        )
    }

    /// The layers that a browser can draw, by group, and a sentence for each that is left out.
    fn within_limits(&self) -> (Vec<(&AttentionGroup, Vec<&AttentionMap>)>, Vec<String>) {
        let mut sentences = Vec::new();
        let mut weights = 0;
        let mut fits = |group: &AttentionGroup, map: &AttentionMap| {
            let (queries, keys) = (map.queries().len(), map.keys().len());
            let with_it = weights + shown_heads(map) * queries * keys;
            let limit = if queries.max(keys) > MOST_TOKENS {
                format!("{MOST_TOKENS} queries × {MOST_TOKENS} keys; {SLICE}")
            } else if with_it > MOST_WEIGHTS {
                format!(
                    "{MOST_WEIGHTS} weights, means over heads included, and would have {with_it} with this layer; pass fewer heads or a slice of the tokens"
                )
            } else {
                weights = with_it;
                return true;
            };
            let name = format!("{}, {}", printable(&group.name), printable(map.title()));
            let limit = format!("a page draws at most {limit}");
            sentences.push(left_out(&name, map, map.heads(), &limit));
            false
        };
        let mut groups = Vec::new();
        for group in &self.groups {
            let layers = group.layers.iter().filter(|map| fits(group, map));
            groups.push((group, layers.collect()));
        }
        (groups, sentences)
    }
}

/// Names and texts as a list of definitions, or nothing if there are none.
fn push_list<'a>(html: &mut String, class: &str, items: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    *html += &format!("<dl class=\"{class}\">\n");
    for (name, text) in items {
        let (name, text) = (markup(name), markup(text));
        *html += &format!("<div><dt>{name}</dt><dd dir=\"auto\">{text}</dd></div>\n");
    }
    *html += "</dl>\n";
}

fn data(groups: &[(&AttentionGroup, Vec<&AttentionMap>)]) -> String {
    let colors = |background: Background| list(background.stops(), |&stop| json(&hex(stop)));
    let [light, dark] = [Background::Light, Background::Dark].map(colors);
    let mut data = format!("{{\"units\":{UNITS},\"light\":{light},\"dark\":{dark},\"groups\":[");
    separated(&mut data, groups, |out, (group, layers)| {
        let name = json(&printable(&group.name));
        let note = json(&printable(group.note.as_deref().unwrap_or("")));
        let written = tokens(group.written.as_deref().unwrap_or(&[]));
        *out += &format!("\n{{\"name\":{name},\"note\":{note},\"written\":{written},\"layers\":[");
        separated(out, layers, |out, map| push_layer(out, map));
        *out += "]}";
    });
    data + "]}"
}

/// The heads of `map`, and their mean if there are several.
fn shown_heads(map: &AttentionMap) -> usize {
    map.heads() + usize::from(map.heads() > 1)
}

fn push_layer(out: &mut String, map: &AttentionMap) {
    let (title, causal) = (json(&printable(map.title())), map.is_causal());
    let (queries, keys) = (tokens(map.queries()), tokens(map.keys()));
    *out += &format!(
        "\n{{\"title\":{title},\"causal\":{causal},\"queries\":{queries},\"keys\":{keys},\"heads\":["
    );
    separated(out, 0..map.heads(), |out, head| {
        push_head(out, &format!("head {}", head + 1), map, head);
    });
    if shown_heads(map) > map.heads() {
        *out += ",";
        push_head(out, "mean", &map.mean_over_heads(), 0);
    }
    *out += "]}";
}

fn push_head(out: &mut String, name: &str, map: &AttentionMap, head: usize) {
    let (name, entropy) = (json(name), map.entropy(head));
    // The sums of the rows as well: those of a thousand rounded weights would be off by hundredths.
    let sums: Vec<String> = (0..map.queries().len())
        .map(|i| {
            let sum: f64 = map.row(head, i).iter().map(|&w| f64::from(w)).sum();
            format!("{sum:.2}")
        })
        .collect();
    let sums = sums.join(",");
    *out +=
        &format!("\n{{\"name\":{name},\"entropy\":{entropy:.5},\"sums\":[{sums}],\"weights\":[");
    separated(out, 0..map.queries().len(), |out, i| {
        separated(out, 0..map.keys().len(), |out, j| {
            if map.is_hidden(head, i, j) {
                *out += "-1";
            } else {
                // Rounding first turns -0, and what rounds to it, into a plain 0.
                let units = (map.weight(head, i, j) * UNITS).round() as u32;
                write!(out, "{units}").expect("a String takes every write");
            }
        });
    });
    *out += "]}";
}

fn tokens(tokens: &[String]) -> String {
    list(tokens, |token| json(&label(token)))
}

/// `items` as a JSON list.
fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(","))
}

/// Appends `items` with commas between them, as a JSON list has.
fn separated<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut push_item: impl FnMut(&mut String, T),
) {
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_item(out, item);
    }
}
