//! Fields of a `config.json` that say one thing of several.

use burn_attn::FeedForwardActivation;
use serde_json::Value;

use super::{Result, config_file::ConfigFile, fields::ACTIVATIONS};

impl ConfigFile {
    /// The meanings of a list of these texts, if the field is there and not null.
    pub(crate) fn choices<T: Clone>(
        &mut self,
        field: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<Vec<T>>> {
        let expected = format!("a list of {}", names(choices));
        self.parsed(field, &expected, |value| {
            let items = value.as_array()?.iter();
            items.map(|item| chosen(item, choices)).collect()
        })
    }

    /// The meaning of one of these texts; that of the first if the field is missing. Null is refused, as by transformers.
    pub(crate) fn choice<T: Clone>(&mut self, field: &str, choices: &[(&str, T)]) -> Result<T> {
        let expected = names(choices);
        let missing = choices[0].1.clone();
        self.parsed_or(field, &expected, |value| chosen(value, choices), missing)
    }

    /// One of these texts, in the field `name` or in the field with its older name; if it is in both, they have to agree: version 4 of transformers
    /// prefers the older name in most families, version 5 nowhere.
    pub(crate) fn kind(
        &mut self,
        [name, older]: [&str; 2],
        kinds: &[&'static str],
    ) -> Result<&'static str> {
        let choices: Vec<_> = kinds.iter().map(|kind| (*kind, *kind)).collect();
        if !self.has(name) {
            return self.choice(older, &choices);
        }
        let kind = self.choice(name, &choices)?;
        self.only(older, kind.into())?;
        Ok(kind)
    }

    /// The activation of a feed-forward network, or `missing` if the field is not there.
    pub(crate) fn activation(
        &mut self,
        field: &str,
        missing: FeedForwardActivation,
    ) -> Result<FeedForwardActivation> {
        match self.fields.contains_key(field) {
            true => self.choice(field, &ACTIVATIONS),
            false => Ok(missing),
        }
    }
}

/// The meaning of a text that is one of these.
fn chosen<T: Clone>(value: &Value, choices: &[(&str, T)]) -> Option<T> {
    let mut choices = choices.iter();
    let (_, choice) = choices.find(|(name, _)| value.as_str() == Some(name))?;
    Some(choice.clone())
}

fn names<T>(choices: &[(&str, T)]) -> String {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}
