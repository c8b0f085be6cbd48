//! The options `--html` and `--text`, which draw the attention of a model.

use std::{fmt, path::PathBuf, str::FromStr};

use burn_attn_viz::{AttentionMap, AttentionPage, TextOptions, render_text};
use clap::Args;
use example_common::{
    exit,
    files::{self, FileError},
};

use crate::Error;

/// A layer and one of its heads, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(':');
        let numbers =
            numbers.and_then(|(layer, head)| Some((layer.parse().ok()?, head.parse().ok()?)));
        match numbers {
            Some((layer @ 1.., head @ 1..)) => Ok(Self { layer, head }),
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
        match &self.html {
            Some(path) => Ok(files::probe(path).map_err(FileError::of("write", path))?),
            None => Ok(()),
        }
    }

    /// Draws: the page, and a head of `layers`.
    ///
    /// # Errors
    /// If the page cannot be written, or there is no such head.
    pub fn draw(&self, page: &AttentionPage, layers: &[AttentionMap]) -> Result<(), Error> {
        if let Some(head) = self.text {
            print!("{}", drawn(head, layers)?);
        }
        if let Some(path) = &self.html {
            files::replace(path, page.to_html().as_bytes())
                .map_err(FileError::of("write", path))?;
            exit::warn(&format!("the attention is in {}", path.display()));
        }
        Ok(())
    }
}

fn drawn(Head { layer, head }: Head, layers: &[AttentionMap]) -> Result<String, Error> {
    match layers.get(layer - 1) {
        Some(map) if head <= map.heads() => Ok(render_text(map, head - 1, &TextOptions::default())),
        _ => Err(Error::Option(format!(
            "--text {layer}:{head}: the model has {} layers of {} heads",
            layers.len(),
            layers.first().map_or(0, AttentionMap::heads)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_two_numbers_from_1() {
        assert_eq!("6:12".parse(), Ok(Head { layer: 6, head: 12 }));
        for text in ["", "6", "0:1", "1:0", "6:", "a:b", "1:2:3", "-1:2"] {
            assert!(text.parse::<Head>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_head_that_is_not_there_is_refused() {
        let map = AttentionMap::new(
            "layer 1",
            vec!["a".into()],
            vec!["b".into()],
            vec![1.0, 1.0],
        );
        let layers = [map.unwrap()];
        assert!(drawn(Head { layer: 1, head: 2 }, &layers).is_ok());
        for head in [Head { layer: 2, head: 1 }, Head { layer: 1, head: 3 }] {
            assert_eq!(
                drawn(head, &layers).unwrap_err().to_string(),
                format!("--text {head}: the model has 1 layers of 2 heads")
            );
        }
    }
}
