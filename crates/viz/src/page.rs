//! A whole model's attention as one HTML file.

use std::fmt::Write;

use crate::AttentionMap;
use crate::color::{Background, Rgb, hex};
use crate::escape::{json, markup};
use crate::label::{label, printable};
use crate::limits::{MOST_TOKENS, left_out};

/// Weights are stored in the page as whole ten-thousandths: exact to four decimals, and shorter than decimals. -1 is hidden.
const UNITS: f32 = 10_000.0;
/// The most weights in a page, means over heads included: about 50 MB of text, which a browser opens in seconds.
const MOST_WEIGHTS: usize = 1 << 24;
const WRITES: &str = "a String takes every write";

/// A page to explore every layer and head of a model on one input.
///
/// The page is one HTML file that needs no network: an overview with a small heat map of every layer and head, and a large one of
/// the chosen head, with its tokens, the weight under the pointer, and lines from query to key. It follows the
/// reader's light or dark setting, fits a phone, and can be used with the keyboard. Weights are rounded to four decimals.
///
/// Keys that are [hidden](AttentionMap#hidden-keys) are hatched. Up to 64 keys, colours go from 0 to 1; beyond, to the largest weight of
/// each head, in rows that see more than 64 keys if there are any. The legend says so, and the reader may choose.
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

    /// The page as the text of an HTML file.
    ///
    /// # Limits
    /// A layer with more than 1024 queries or 1024 keys is left out, and so is one that would bring the page over 2²⁴
    /// weights, means over heads included. For each, the page says so in one sentence that names the layer and
    /// its sizes. To see such a layer, pass a slice of the tokens or fewer heads.
    ///
    /// # Cost
    /// About three bytes per weight, and about 30 kB for the rest.
    pub fn to_html(&self) -> String {
        let mut html = String::new();
        // The policy makes the browser refuse to load anything or to send a form. It does not cover links, and scripts
        // that open another page; there are none, and no text of the caller becomes markup.
        write!(
            html,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; form-action 'none'; base-uri 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{style}</style>\n\
             </head>\n<body>\n<header>\n<h1>{title}</h1>\n",
            title = markup(&self.title),
            style = include_str!("page.css"),
        )
        .expect(WRITES);
        self.write_header(&mut html);
        let (groups, left_out) = self.within_limits();
        for sentence in left_out {
            writeln!(html, "<p class=\"left-out\">{}</p>", markup(&sentence)).expect(WRITES);
        }
        html.push_str("</header>\n");
        html.push_str(include_str!("guide.html"));
        html.push_str(
            "<noscript><p class=\"note\">The heat maps are drawn by a script inside this file. With scripts turned \
             off, only the sentences above are shown.</p></noscript>\n\
             <main id=\"view\" hidden>\n<section id=\"overview\" aria-label=\"All layers and heads\"></section>\n\
             <section id=\"detail\" tabindex=\"-1\" aria-label=\"The chosen head\"></section>\n</main>\n\
             <script type=\"application/json\" id=\"attention-data\">",
        );
        write_data(&mut html, &groups);
        write!(
            html,
            "</script>\n<script>\n{}</script>\n</body>\n</html>\n",
            include_str!("page.js")
        )
        .expect(WRITES);
        html
    }

    fn write_header(&self, html: &mut String) {
        let sentences = [("Source", &self.source), ("Translation", &self.translation)];
        if sentences.iter().any(|(_, sentence)| sentence.is_some()) {
            html.push_str("<dl class=\"sentences\">\n");
            for (name, sentence) in sentences {
                if let Some(sentence) = sentence {
                    let sentence = markup(sentence);
                    writeln!(
                        html,
                        "<div><dt>{name}</dt><dd dir=\"auto\">{sentence}</dd></div>"
                    )
                    .expect(WRITES);
                }
            }
            html.push_str("</dl>\n");
        }
        if !self.metadata.is_empty() {
            html.push_str("<dl class=\"metadata\">\n");
            for (name, value) in &self.metadata {
                let (name, value) = (markup(name), markup(value));
                writeln!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>").expect(WRITES);
            }
            html.push_str("</dl>\n");
        }
    }

    /// The layers that a browser can draw, by group, and a sentence for each that is left out.
    fn within_limits(&self) -> (Vec<(&AttentionGroup, Vec<&AttentionMap>)>, Vec<String>) {
        let mut sentences = Vec::new();
        let mut weights = 0;
        let mut fits = |group: &AttentionGroup, map: &AttentionMap| {
            let (heads, queries, keys) = (map.heads(), map.queries().len(), map.keys().len());
            let with_it = weights + shown_heads(map) * queries * keys;
            let limit = if queries.max(keys) > MOST_TOKENS {
                format!("{MOST_TOKENS} queries × {MOST_TOKENS} keys")
            } else if with_it > MOST_WEIGHTS {
                format!(
                    "{MOST_WEIGHTS} weights, means over heads included, and would have {with_it} with this layer"
                )
            } else {
                weights = with_it;
                return true;
            };
            let name = format!("{}, {}", printable(&group.name), printable(map.title()));
            sentences.push(left_out(
                &name,
                map,
                heads,
                &format!("a page draws at most {limit}"),
            ));
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

fn write_data(out: &mut String, groups: &[(&AttentionGroup, Vec<&AttentionMap>)]) {
    write!(
        out,
        "{{\"units\":{UNITS},\"light\":{},\"dark\":{},\"groups\":[",
        colors(Background::Light),
        colors(Background::Dark)
    )
    .expect(WRITES);
    separated(out, groups, |out, (group, layers)| {
        let note = group.note.as_deref().unwrap_or("");
        write!(
            out,
            "\n{{\"name\":{},\"note\":{},\"written\":{},\"layers\":[",
            json(&group.name),
            json(note),
            tokens(group.written.as_deref().unwrap_or(&[]))
        )
        .expect(WRITES);
        separated(out, layers, |out, map| write_layer(out, map));
        out.push_str("]}");
    });
    out.push_str("]}");
}

/// The heads of `map`, and their mean if there are several.
fn shown_heads(map: &AttentionMap) -> usize {
    map.heads() + usize::from(map.heads() > 1)
}

fn write_layer(out: &mut String, map: &AttentionMap) {
    write!(
        out,
        "\n{{\"title\":{},\"causal\":{},\"queries\":{},\"keys\":{},\"heads\":[",
        json(&printable(map.title())),
        map.is_causal(),
        tokens(map.queries()),
        tokens(map.keys())
    )
    .expect(WRITES);
    let heads: Vec<usize> = (0..map.heads()).collect();
    separated(out, &heads, |out, &head| {
        write_head(out, &format!("head {}", head + 1), map, head);
    });
    if shown_heads(map) > map.heads() {
        out.push(',');
        write_head(out, "mean", &map.mean_over_heads(), 0);
    }
    out.push_str("]}");
}

fn write_head(out: &mut String, name: &str, map: &AttentionMap, head: usize) {
    write!(
        out,
        "\n{{\"name\":{},\"entropy\":{:.2},\"weights\":[",
        json(name),
        map.entropy(head)
    )
    .expect(WRITES);
    let rows: Vec<usize> = (0..map.queries().len()).collect();
    let keys: Vec<usize> = (0..map.keys().len()).collect();
    separated(out, &rows, |out, &i| {
        separated(out, &keys, |out, &j| {
            if map.is_hidden(head, i, j) {
                out.push_str("-1");
            } else {
                // Rounding first turns -0, and what rounds to it, into a plain 0.
                write!(out, "{}", (map.weight(head, i, j) * UNITS).round() as u32).expect(WRITES);
            }
        });
    });
    out.push_str("]}");
}

fn tokens(tokens: &[String]) -> String {
    let mut list = String::from("[");
    separated(&mut list, tokens, |list, token| {
        list.push_str(&json(&label(token)));
    });
    list.push(']');
    list
}

fn colors(background: Background) -> String {
    let mut list = String::from("[");
    separated(&mut list, background.stops(), |list, &stop: &Rgb| {
        list.push_str(&json(&hex(stop)));
    });
    list.push(']');
    list
}

/// Writes `items` with commas between them, as a JSON list has.
fn separated<T>(out: &mut String, items: &[T], mut write_item: impl FnMut(&mut String, &T)) {
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_item(out, item);
    }
}
