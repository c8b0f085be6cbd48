//! JSON objects of something per tensor.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::{self, Formatter},
};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};

use super::stored::{MAX_NAME, MAX_TENSORS};

/// A value for every tensor. Where an object has a name twice, serde's own maps and the `safetensors` crate silently keep the last value.
pub(super) struct Unique<T>(pub(super) BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Unique<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(BTreeMap::new()))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Unique<T> {
    type Value = Self;

    fn expecting(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str("an object with the names of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let (count, len) = (self.0.len(), name.len());
            let reason = match self.0.entry(name) {
                _ if count == MAX_TENSORS => format!("it has more than {MAX_TENSORS} tensors"),
                _ if len > MAX_NAME => {
                    format!("it has a name of {len} bytes, and at most {MAX_NAME} are read")
                }
                Entry::Occupied(tensor) => {
                    format!("there are two tensors {}", tensor.key().escape_debug())
                }
                Entry::Vacant(tensor) => {
                    tensor.insert(map.next_value()?);
                    continue;
                }
            };
            return Err(A::Error::custom(reason));
        }
        Ok(self)
    }
}
