//! Attention weights as maps, and the options that draw them: `--html`, `--svg`, `--text` and `--draw`.

use std::{fmt, num::NonZero, path::PathBuf, str::FromStr};

#[cfg(feature = "train")]
use burn::tensor::Device;
use burn::tensor::Tensor;
#[cfg(feature = "train")]
use burn_attn_models::{language_model::LanguageModel, text::labels, tokens::padded};
use burn_attn_viz::{
    AttentionGroup, AttentionMap, AttentionPage, SvgOptions, TextOptions, render_svg, render_text,
};
use clap::{ArgGroup, Args};
#[cfg(feature = "train")]
use tokenizers::Tokenizer;

use crate::{error::Error, exit, files};

/// A map of each layer, the first one called `layer 1`.
///
/// # Shapes
/// Each of `layers`: `[1, heads, queries, keys]`.
///
/// # Errors
/// If a weight is not finite, or a size is not the number of tokens.
pub fn maps(
    layers: Vec<Tensor<4>>,
    queries: &[String],
    keys: &[String],
) -> Result<Vec<AttentionMap>, Error> {
    let layers = (1..).zip(layers);
    layers
        .map(|(layer, weights)| {
            let weights: Vec<f32> = weights.into_data().iter::<f32>().collect();
            let title = format!("layer {layer}");
            AttentionMap::new(title, queries.to_vec(), keys.to_vec(), weights).map_err(|error| {
                format!("cannot draw the attention of layer {layer}: {error}").into()
            })
        })
        .collect()
}

/// Where to draw the attention, and which.
#[derive(Args, Clone, Debug, Default)]
#[command(group(ArgGroup::new("of one layer").multiple(true)))]
pub struct Pictures {
    /// Write the attention of every layer and head as a page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the attention of one layer or head as an SVG
    #[arg(long, value_name = "FILE", group = "of one layer")]
    pub svg: Option<PathBuf>,
    /// Print the attention of one layer or head
    #[arg(long, group = "of one layer")]
    pub text: bool,
    /// What --svg and --text draw: 6 is layer 6 with all its heads, 6:12 its twelfth head. Where there are several kinds of attention, the
    /// beginning of a name chooses one, as in encoder:6 or cross:6:12 [default: all heads of the last layer of the last kind]
    #[arg(long, value_name = "LAYER:HEAD", requires = "of one layer")]
    pub draw: Option<Choice>,
}

impl Pictures {
    /// Whether there is something to draw.
    pub fn are_wanted(&self) -> bool {
        self.html.is_some() || self.svg.is_some() || self.text
    }

    /// Prints a piece of a line at once. A reader that closes the pipe ends the program only if there is nothing to draw.
    ///
    /// # Panics
    /// As [`exit::print`].
    pub fn print(&self, piece: &str) {
        exit::print_and_go_on(piece, self.are_wanted());
    }

    /// Makes sure that the files can be written, before the model works for them.
    ///
    /// # Errors
    /// If one cannot, or if both are one.
    pub fn probe(&self) -> Result<(), Error> {
        self.probe_beside(None)
    }

    /// [`probe`](Self::probe) for pictures of what an input file has.
    ///
    /// # Errors
    /// If a file cannot be written, or if two of the three are one.
    pub fn probe_beside(&self, input: Option<&PathBuf>) -> Result<(), Error> {
        let outputs = [("--html", &self.html), ("--svg", &self.svg)];
        files::probe_outputs(&outputs, input)
    }

    /// [`probe_beside`](Self::probe_beside) for pictures of the first of `texts`, each of which is a `what`.
    ///
    /// # Errors
    /// If a file cannot be written, or if there is no text for a picture.
    pub fn probe_for(
        &self,
        texts: &[String],
        what: &str,
        input: Option<&PathBuf>,
    ) -> Result<(), Error> {
        if self.are_wanted() && texts.is_empty() {
            let options = [
                ("--html", self.html.is_some()),
                ("--svg", self.svg.is_some()),
                ("--text", self.text),
            ];
            let given = options.iter().filter(|(_, is_given)| *is_given);
            let given: Vec<_> = given.map(|(name, _)| *name).collect();
            let given = given.join(" and ");
            return Err(format!("{given}: there is no {what} on the command line to draw").into());
        }
        self.probe_beside(input)
    }

    /// Draws the page, and what was chosen of its layers and heads.
    ///
    /// # Errors
    /// If a file cannot be written, or there is no such layer or head.
    pub fn draw(&self, page: &AttentionPage) -> Result<(), Error> {
        let mut text = None;
        if self.svg.is_some() || self.text {
            let choice = self.draw.clone().unwrap_or_default();
            let (map, head) = choice.of(page.groups())?;
            if self.text {
                let heads = head.map_or(0..map.heads(), |head| head..head + 1);
                let texts = heads.map(|head| render_text(&map, head, &TextOptions::default()));
                text = Some(texts.collect::<Vec<_>>().join("\n"));
            }
            let options = SvgOptions::default().head(head);
            write(self.svg.as_ref(), || render_svg(&map, &options))?;
        }
        write(self.html.as_ref(), || page.to_html())?;
        // Last, because the reader of the lines may be gone.
        if let Some(text) = text {
            print!("{text}");
        }
        Ok(())
    }

    /// Draws the layers of an encoder that has read a text.
    ///
    /// # Errors
    /// As [`draw`](Self::draw).
    pub fn draw_encoder(
        &self,
        title: &str,
        text: &str,
        layers: Vec<AttentionMap>,
    ) -> Result<(), Error> {
        let group = AttentionGroup::new("Self-attention", layers);
        self.draw(&AttentionPage::new(title).source(text).group(group))
    }

    /// Draws what a language model looked at when it read `tokens`, and what came after each.
    ///
    /// # Errors
    /// As [`draw`](Self::draw).
    #[cfg(feature = "train")]
    pub fn draw_language_model(
        &self,
        model: &LanguageModel,
        tokenizer: &Tokenizer,
        tokens: &[u32],
        device: &Device,
    ) -> Result<(), Error> {
        // The last token may have been chosen when the model had no position left to read it.
        let read = &tokens[..tokens.len().min(model.max_len())];
        let mut next = labels(tokenizer, &tokens[1..]);
        // No token has been written after the last one.
        next.resize(read.len(), "…".into());
        let labels = labels(tokenizer, read);
        let (ids, _) = padded(&[read], device);
        let layers = maps(model.attention(ids), &labels, &labels)?;
        let group = AttentionGroup::new("Self-attention", layers)
            .written(next)
            .note("In a prompt, the token after ⇒ was given, not written by the model.");
        self.draw(&AttentionPage::new("What the language model looks at").group(group))
    }
}

fn write(path: Option<&PathBuf>, picture: impl FnOnce() -> String) -> Result<(), Error> {
    if let Some(path) = path {
        files::replace(path, picture().as_bytes())?;
        exit::warn(&format!("the attention is in {}", path.display()));
    }
    Ok(())
}

/// A kind of attention, a layer, and one of its heads, both counted from 1. What is left out means the last kind, its last layer, and all heads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    kind: String,
    layer: Option<usize>,
    head: Option<usize>,
}

impl Choice {
    /// The layer and the head, both counted from 1, if both are named and no kind of attention is.
    pub fn layer_and_head(&self) -> Option<[usize; 2]> {
        let numbers = [self.layer?, self.head?];
        self.kind.is_empty().then_some(numbers)
    }

    /// The map of the layer, with the group's name added to its title, and the head, counted from 0.
    fn of(&self, groups: &[AttentionGroup]) -> Result<(AttentionMap, Option<usize>), Error> {
        let kind = self.kind.to_lowercase();
        let is_kind = |group: &&AttentionGroup| group.name().to_lowercase().starts_with(&kind);
        let Some(group) = groups.iter().rfind(is_kind) else {
            let names: Vec<_> = groups.iter().map(AttentionGroup::name).collect();
            let names = names.join(", ");
            return Err(format!("--draw {self}: the kinds of attention are {names}").into());
        };
        let (name, layers) = (group.name(), group.layers());
        let layer = self.layer.unwrap_or(layers.len()).checked_sub(1);
        match layer.and_then(|layer| layers.get(layer)) {
            Some(map) if self.head.is_none_or(|head| head <= map.heads()) => {
                let title = format!("{name}, {}", map.title());
                let head = self.head.map(|head| head - 1);
                Ok((map.clone().with_title(title), head))
            }
            _ => {
                let heads = layers.first().map_or(0, AttentionMap::heads);
                let number = |count, one: &str| match count {
                    1 => format!("1 {one}"),
                    _ => format!("{count} {one}s"),
                };
                let (maps, heads) = (number(layers.len(), "map"), number(heads, "head"));
                Err(format!("--draw {self}: {name} has {maps} of {heads}").into())
            }
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':').peekable();
        let kind = parts.next_if(|part| part.starts_with(char::is_alphabetic));
        let numbers: Result<Vec<NonZero<usize>>, _> = parts.map(str::parse).collect();
        match numbers.as_deref() {
            Ok(numbers @ ([] | [_] | [_, _])) => Ok(Self {
                kind: kind.unwrap_or_default().into(),
                layer: numbers.first().map(|number| number.get()),
                head: numbers.get(1).map(|number| number.get()),
            }),
            _ => Err(
                "layers and heads are numbers from 1 on, after a kind of attention if there is one: as in 6, 6:12 or cross:6:12"
                    .into(),
            ),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let kind = Some(self.kind.clone()).filter(|kind| !kind.is_empty());
        let numbers = [self.layer, self.head].into_iter().flatten();
        let parts = kind
            .into_iter()
            .chain(numbers.map(|number| number.to_string()));
        f.write_str(&parts.collect::<Vec<_>>().join(":"))
    }
}

#[cfg(test)]
mod tests;
