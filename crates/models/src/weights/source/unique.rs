//! JSON objects of something per tensor.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::{self, Formatter},
    marker::PhantomData,
};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};

use super::{MAX_NAME, MAX_TENSORS};

/// A value for every tensor. Where an object has a name twice, serde's own maps and the `safetensors` crate silently keep the last value.
pub(super) struct Unique<T>(pub(super) BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Unique<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueVisitor(PhantomData))
    }
}

struct UniqueVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for UniqueVisitor<T> {
    type Value = Unique<T>;

    fn expecting(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str("an object with the names of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique<T>, A::Error> {
        let wrong = |reason: String| Err(A::Error::custom(reason));
        let mut values = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if values.len() == MAX_TENSORS {
                return wrong(format!("it has more than {MAX_TENSORS} tensors"));
            }
            if name.len() > MAX_NAME {
                let len = name.len();
                return wrong(format!(
                    "it has a name of {len} bytes, and at most {MAX_NAME} are read"
                ));
            }
            match values.entry(name) {
                Entry::Occupied(entry) => {
                    return wrong(format!(
                        "there are two tensors {}",
                        entry.key().escape_debug()
                    ));
                }
                Entry::Vacant(entry) => entry.insert(map.next_value()?),
            };
        }
        Ok(Unique(values))
    }
}
