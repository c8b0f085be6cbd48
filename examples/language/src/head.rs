//! One head of a model, as an option names it.

use std::{fmt, str::FromStr};

use burn_attn_viz::AttentionMap;

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

#[cfg(test)]
mod tests;
