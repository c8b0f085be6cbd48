//! What comes before the numbers of a GGUF file.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    io::{self, BufReader, Read},
};

use serde_json::{Map, Value, json};

use super::super::{MAX_HEADER, MAX_NAME, MAX_TENSORS};

/// What the places of tensors are multiples of, unless the metadata say otherwise.
const ALIGNMENT: u64 = 32;
/// The largest alignment accepted, in bytes.
const MAX_ALIGNMENT: u64 = 1 << 20;
/// The most dimensions accepted; ggml's tensors have at most 4.
const MAX_RANK: u32 = 8;
/// The longest text of the metadata that is kept, in bytes; longer ones, such as licences, are read past.
const MAX_TEXT: u64 = 1 << 10;
/// The most values kept; published files have about a hundred.
const MAX_VALUES: usize = 1 << 16;

/// The type of u32 in the metadata.
const U32: u32 = 4;
/// The type of texts in the metadata.
const TEXT: u32 = 8;
/// The type of arrays in the metadata.
const ARRAY: u32 = 9;

/// Where a tensor is, and what it holds.
pub(super) struct Info {
    pub(super) shape: Vec<usize>,
    pub(super) kind: u32,
    pub(super) offset: u64,
}

/// What was read.
pub(super) struct Contents {
    /// The values of the metadata by key, arrays empty, without long texts.
    pub(super) metadata: Map<String, Value>,
    pub(super) tensors: BTreeMap<String, Info>,
    /// Where the numbers begin.
    pub(super) start: u64,
    pub(super) alignment: u64,
}

/// A reader of the header.
pub(super) struct Header<'a> {
    file: BufReader<&'a File>,
    /// Bytes that may still be read.
    left: u64,
    read: u64,
}

impl<'a> Header<'a> {
    /// At the beginning of a file of so many bytes.
    pub(super) fn new(file: &'a File, len: u64) -> Self {
        Self {
            left: MAX_HEADER.min(len),
            file: BufReader::new(file),
            read: 0,
        }
    }

    /// Reads all of it.
    pub(super) fn contents(mut self) -> Result<Contents, String> {
        // The magic, which has brought the file here.
        self.skip(4)?;
        let version = self.u32()?;
        if (2..=3).contains(&version.swap_bytes()) {
            return Err("it is big-endian, and only little-endian GGUF is read".into());
        }
        if !(2..=3).contains(&version) {
            return Err(format!(
                "it should be GGUF of version 2 or 3, but is of version {version}"
            ));
        }
        let [count, values] = [self.u64()?, self.u64()?];
        if count > MAX_TENSORS as u64 {
            return Err(format!("it has more than {MAX_TENSORS} tensors"));
        }
        let mut alignment = None;
        let mut metadata = Map::new();
        for _ in 0..values {
            let key = self.name()?;
            let kind = self.u32()?;
            if key != "general.alignment" {
                let value = self.value(kind)?;
                if let Some(value) = value.filter(|_| metadata.len() < MAX_VALUES) {
                    metadata.insert(key, value);
                }
                continue;
            }
            if alignment.is_some() {
                return Err("its metadata have two values of general.alignment".into());
            }
            alignment = Some(self.alignment(kind)?);
        }
        let mut tensors = BTreeMap::new();
        for _ in 0..count {
            let name = self.name()?;
            let info = self.info(&name)?;
            match tensors.entry(name) {
                Entry::Occupied(entry) => {
                    let name = entry.key().escape_debug();
                    return Err(format!("there are two tensors {name}"));
                }
                Entry::Vacant(entry) => entry.insert(info),
            };
        }
        let alignment = alignment.unwrap_or(ALIGNMENT);
        Ok(Contents {
            metadata,
            tensors,
            start: self.read.next_multiple_of(alignment),
            alignment,
        })
    }

    /// The value of `general.alignment`, of this type.
    fn alignment(&mut self, kind: u32) -> Result<u64, String> {
        if kind != U32 {
            return Err(format!(
                "its general.alignment is of type {kind}, and should be of type {U32}, which is u32"
            ));
        }
        let alignment = u64::from(self.u32()?);
        match alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT {
            true => Ok(alignment),
            false => Err(format!(
                "its alignment is {alignment}, and should be a power of two of at most {MAX_ALIGNMENT}"
            )),
        }
    }

    /// What follows the name of a tensor.
    fn info(&mut self, name: &str) -> Result<Info, String> {
        let name = name.escape_debug();
        let rank = self.u32()?;
        if rank > MAX_RANK {
            return Err(format!(
                "tensor {name} has {rank} dimensions, and at most {MAX_RANK} are read"
            ));
        }
        let sizes = (0..rank).map(|_| self.u64());
        let sizes = sizes.collect::<Result<Vec<u64>, String>>()?;
        // The fastest first.
        let shape = sizes.iter().rev().map(|&size| usize::try_from(size));
        let shape = shape
            .collect::<Result<Vec<usize>, _>>()
            .map_err(|_| format!("tensor {name} has the sizes {sizes:?}"))?;
        Ok(Info {
            shape,
            kind: self.u32()?,
            offset: self.u64()?,
        })
    }

    /// A value of the metadata; an empty array for any, none for a long text.
    fn value(&mut self, kind: u32) -> Result<Option<Value>, String> {
        let value = match kind {
            0 => json!(u8::from_le_bytes(self.bytes()?)),
            1 => json!(i8::from_le_bytes(self.bytes()?)),
            2 => json!(u16::from_le_bytes(self.bytes()?)),
            3 => json!(i16::from_le_bytes(self.bytes()?)),
            U32 => json!(self.u32()?),
            5 => json!(i32::from_le_bytes(self.bytes()?)),
            6 => json!(decimal(f32::from_le_bytes(self.bytes()?))),
            7 => json!(u8::from_le_bytes(self.bytes()?) != 0),
            TEXT => return self.text(),
            ARRAY => {
                let (kind, count) = (self.u32()?, self.u64()?);
                // Its place is known, so that nobody takes a default for it.
                return self.skip_values(kind, count).map(|()| Some(json!([])));
            }
            10 => json!(self.u64()?),
            11 => json!(i64::from_le_bytes(self.bytes()?)),
            12 => json!(f64::from_le_bytes(self.bytes()?)),
            _ => return Err(format!("its metadata have a value of unknown type {kind}")),
        };
        Ok(Some(value))
    }

    /// A text of the metadata; none if it is long, or not UTF-8.
    fn text(&mut self) -> Result<Option<Value>, String> {
        let len = self.u64()?;
        if len > MAX_TEXT {
            return self.skip(len).map(|()| None);
        }
        let text = self.vec(len)?;
        Ok(String::from_utf8(text).ok().map(Value::String))
    }

    /// Reads past `count` values of an array.
    fn skip_values(&mut self, kind: u32, count: u64) -> Result<(), String> {
        let size = match kind {
            // u8, i8, bool
            0 | 1 | 7 => 1,
            // u16, i16
            2 | 3 => 2,
            // u32, i32, f32
            4..=6 => 4,
            // u64, i64, f64
            10..=12 => 8,
            TEXT => {
                return (0..count).try_for_each(|_| {
                    let len = self.u64()?;
                    self.skip(len)
                });
            }
            ARRAY => return Err("its metadata have arrays of arrays".into()),
            _ => return Err(format!("its metadata have a value of unknown type {kind}")),
        };
        // A product that overflows is more than any file has, and so is the largest number.
        self.skip(count.saturating_mul(size))
    }

    /// A name of a tensor or of a value.
    fn name(&mut self) -> Result<String, String> {
        let len = self.u64()?;
        if len > MAX_NAME as u64 {
            return Err(format!(
                "it has a name of {len} bytes, and at most {MAX_NAME} are read"
            ));
        }
        String::from_utf8(self.vec(len)?).map_err(|error| {
            let name = error.as_bytes().escape_ascii();
            format!("the name {name} in it is not UTF-8")
        })
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N as u64)?;
        let mut bytes = [0; N];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(|error| error.to_string()).map(|()| bytes)
    }

    fn vec(&mut self, len: u64) -> Result<Vec<u8>, String> {
        self.take(len)?;
        let mut bytes = vec![0; len as usize];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(|error| error.to_string()).map(|()| bytes)
    }

    /// Reads past so many bytes.
    fn skip(&mut self, bytes: u64) -> Result<(), String> {
        self.take(bytes)?;
        let mut skipped = Read::by_ref(&mut self.file).take(bytes);
        let count = io::copy(&mut skipped, &mut io::sink()).map_err(|error| error.to_string())?;
        match count == bytes {
            true => Ok(()),
            false => Err("the file became shorter while it was read".into()),
        }
    }

    /// Makes sure that so many bytes may be read: nothing is allocated for what is not there.
    fn take(&mut self, bytes: u64) -> Result<(), String> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                self.read += bytes;
                Ok(())
            }
            None => Err(format!(
                "its header needs {bytes} more bytes, but there are at most {}",
                self.left
            )),
        }
    }
}

/// The shortest decimal number that is this one in f32: what was 1e-6 before it was written is 1e-6 again.
fn decimal(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}
