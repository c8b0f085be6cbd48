//! The options `--html` and `--text`, which draw the attention of a model.

use std::{fmt, path::PathBuf, str::FromStr};

use burn_attn_viz::{AttentionGroup, AttentionMap, AttentionPage, TextOptions, render_text};
use clap::Args;
use example_common::{exit, files};

use crate::Error;

/// A layer and one of its heads, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
}

impl Head {
    /// The map of the layer. `option` is what gave the head.
    ///
    /// # Errors
    /// If there is no such layer or head.
    pub fn of<'m>(
        self,
        layers: &'m [AttentionMap],
        option: &str,
    ) -> Result<&'m AttentionMap, Error> {
        match layers.get(self.layer - 1) {
            Some(map) if self.head <= map.heads() => Ok(map),
            _ => Err(format!(
                "{option} {self}: the model has {} layers of {} heads",
                layers.len(),
                layers.first().map_or(0, AttentionMap::heads)
            )
            .into()),
        }
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (layer, head) = text.split_once(':').unwrap_or_default();
        match (layer.parse::<usize>(), head.parse::<usize>()) {
            (Ok(layer @ 1..), Ok(head @ 1..)) => Ok(Self { layer, head }),
            _ => Err("a layer and a head are two numbers from 1 on, as in 6:12".into()),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.layer, self.head)
    }
}

/// Where to draw the attention.
#[derive(Args, Clone, Debug, Default)]
pub struct Pictures {
    /// Write the attention of every layer and head as a page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the attention of one head, as in 6:12 for the twelfth head of layer 6
    #[arg(long, value_name = "LAYER:HEAD")]
    pub text: Option<Head>,
}

impl Pictures {
    /// Whether there is something to draw.
    pub fn are_wanted(&self) -> bool {
        self.html.is_some() || self.text.is_some()
    }

    /// Makes sure that the page can be written, before the model works for it.
    ///
    /// # Errors
    /// If it cannot.
    pub fn probe(&self) -> Result<(), Error> {
        Ok(self.html.as_deref().map_or(Ok(()), files::probe)?)
    }

    /// [`probe`](Self::probe) for pictures of the first of `texts`, each of which is a `what`.
    ///
    /// # Errors
    /// If the page cannot be written, or if there is no text for a picture.
    pub fn probe_for(&self, texts: &[String], what: &str) -> Result<(), Error> {
        if self.are_wanted() && texts.is_empty() {
            let problem =
                format!("--html and --text draw a {what} of the command line, and there is none");
            return Err(problem.into());
        }
        self.probe()
    }

    /// Draws: the page, and a head of `layers`.
    ///
    /// # Errors
    /// If the page cannot be written, or there is no such head.
    pub fn draw(&self, page: &AttentionPage, layers: &[AttentionMap]) -> Result<(), Error> {
        if let Some(head) = self.text {
            let map = head.of(layers, "--text")?;
            print!(
                "{}",
                render_text(map, head.head - 1, &TextOptions::default())
            );
        }
        if let Some(path) = &self.html {
            files::replace(path, page.to_html().as_bytes())?;
            exit::warn(&format!("the attention is in {}", path.display()));
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
        let page = AttentionPage::new(title)
            .source(text)
            .group(AttentionGroup::new("Self-attention", layers.clone()));
        self.draw(&page, &layers)
    }
}

#[cfg(test)]
mod tests;
