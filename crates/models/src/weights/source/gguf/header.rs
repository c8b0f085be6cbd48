//! The header of a GGUF file: metadata, names, shapes and places of tensors.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read, Take},
};

use serde_json::{Map, Value, json};

use crate::weights::{
    Reason, ensure,
    source::stored::{MAX_HEADER, MAX_NAME, check_count},
};

/// What the places of tensors are multiples of, unless the metadata say otherwise.
const ALIGNMENT: u64 = 32;
/// The largest alignment accepted, in bytes.
const MAX_ALIGNMENT: u64 = 1 << 20;
/// The most dimensions accepted; ggml's tensors have at most 4.
const MAX_RANK: u64 = 8;
/// The longest text of the metadata that is kept, in bytes; of longer ones, such as licences, the key is.
const MAX_TEXT: u64 = 1 << 10;
/// The most values accepted; published files have about a hundred.
const MAX_VALUES: usize = 1 << 16;

/// The types of values in the metadata.
const U32: u64 = 4;
const TEXT: u64 = 8;
const ARRAY: u64 = 9;
/// The bytes of a value of each type: u8, i8, u16, i16, u32, i32, f32, bool, text, array, u64, i64, f64. Texts and arrays say how many follow.
const SIZES: [u64; 13] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];

/// Where a tensor is, and what it holds.
pub(super) struct Info {
    pub(super) shape: Vec<usize>,
    pub(super) kind: u64,
    pub(super) offset: u64,
}

pub(super) struct Contents {
    /// The values of the metadata by key, with empty arrays in place of arrays and of long texts.
    pub(super) metadata: Map<String, Value>,
    pub(super) tensors: BTreeMap<String, Info>,
    /// Where the numbers begin.
    pub(super) start: u64,
    pub(super) alignment: u64,
}

pub(super) struct Header<'a> {
    /// The file up to the end of what may be read.
    file: Take<BufReader<&'a File>>,
    most: u64,
}

impl<'a> Header<'a> {
    pub(super) fn new(file: &'a File, len: u64) -> Self {
        let most = MAX_HEADER.min(len);
        let file = BufReader::new(file).take(most);
        Self { file, most }
    }

    pub(super) fn contents(mut self) -> Result<Contents, Reason> {
        // The magic has been read to find the format.
        self.skip(4)?;
        let version = self.number(4)? as u32;
        if (2..=3).contains(&version.swap_bytes()) {
            return Err("it is big-endian, and only little-endian GGUF is read".into());
        }
        ensure!(
            (2..=3).contains(&version),
            "it should be GGUF of version 2 or 3, but is of version {version}"
        );
        let [count, values] = [self.number(8)?, self.number(8)?];
        check_count(count)?;
        let mut alignment = None;
        let mut metadata = Map::new();
        for _ in 0..values {
            let key = self.name()?;
            let kind = self.number(4)?;
            if key == "general.alignment" {
                if alignment.is_some() {
                    return Err("its metadata have two values of general.alignment".into());
                }
                alignment = Some(self.alignment(kind)?);
                continue;
            }
            let value = self.value(kind)?;
            ensure!(
                metadata.len() < MAX_VALUES,
                "its metadata have more than {MAX_VALUES} values"
            );
            ensure!(
                metadata.insert(key.clone(), value).is_none(),
                "its metadata have two values of {}",
                key.escape_debug()
            );
        }
        let mut tensors = BTreeMap::new();
        for _ in 0..count {
            let name = self.name()?;
            let info = self.info(&name)?;
            ensure!(
                !tensors.contains_key(&name),
                "there are two tensors {}",
                name.escape_debug()
            );
            tensors.insert(name, info);
        }
        let alignment = alignment.unwrap_or(ALIGNMENT);
        Ok(Contents {
            metadata,
            tensors,
            start: (self.most - self.file.limit()).next_multiple_of(alignment),
            alignment,
        })
    }

    fn alignment(&mut self, kind: u64) -> Result<u64, Reason> {
        ensure!(
            kind == U32,
            "its general.alignment is of type {kind}, and should be of type {U32}, which is u32"
        );
        let alignment = self.number(4)?;
        ensure!(
            alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT,
            "its alignment is {alignment}, and should be a power of two of at most {MAX_ALIGNMENT}"
        );
        Ok(alignment)
    }

    /// The shape, the type and the place of a tensor, which follow its name.
    fn info(&mut self, name: &str) -> Result<Info, Reason> {
        let name = name.escape_debug();
        let rank = self.number(4)?;
        ensure!(
            rank <= MAX_RANK,
            "tensor {name} has {rank} dimensions, and at most {MAX_RANK} are read"
        );
        let sizes = (0..rank).map(|_| self.number(8));
        let sizes = sizes.collect::<Result<Vec<u64>, Reason>>()?;
        // The file has the fastest dimension first.
        let shape = sizes.iter().rev().map(|&size| usize::try_from(size));
        let shape: Result<_, _> = shape.collect();
        Ok(Info {
            shape: shape.map_err(|_| format!("tensor {name} has the sizes {sizes:?}"))?,
            kind: self.number(4)?,
            offset: self.number(8)?,
        })
    }

    /// A value of the metadata; an empty array for any array, and for a text that is long or not UTF-8: the key stays, so that a default does not
    /// take its place.
    fn value(&mut self, kind: u64) -> Result<Value, Reason> {
        if kind == TEXT {
            let len = self.number(8)?;
            if len > MAX_TEXT {
                return self.skip(len).map(|()| json!([]));
            }
            let text = String::from_utf8(self.bytes(len)?);
            return Ok(text.map_or(json!([]), Value::String));
        }
        if kind == ARRAY {
            let (kind, count) = (self.number(4)?, self.number(8)?);
            match kind {
                TEXT => (0..count).try_for_each(|_| self.value(TEXT).map(drop))?,
                ARRAY => return Err("its metadata have arrays of arrays".into()),
                // A product that overflows is more than any file has, and so is the largest number.
                _ => self.skip(count.saturating_mul(size(kind)?))?,
            }
            return Ok(json!([]));
        }
        let number = self.number(size(kind)?)?;
        Ok(match kind {
            1 => json!(number as i8),
            3 => json!(number as i16),
            5 => json!(number as i32),
            6 => json!(decimal(f32::from_bits(number as u32))),
            7 => json!(number != 0),
            11 => json!(number as i64),
            12 => json!(f64::from_bits(number)),
            _ => json!(number),
        })
    }

    /// A name of a tensor or of a value.
    fn name(&mut self) -> Result<String, Reason> {
        let len = self.number(8)?;
        ensure!(
            len <= MAX_NAME as u64,
            "it has a name of {len} bytes, and at most {MAX_NAME} are read"
        );
        String::from_utf8(self.bytes(len)?).map_err(|error| {
            let name = error.as_bytes().escape_ascii();
            format!("the name {name} in it is not UTF-8").into()
        })
    }

    /// A number of up to 8 bytes.
    fn number(&mut self, size: u64) -> Result<u64, Reason> {
        let mut number = [0; 8];
        self.has(size)?;
        self.file.read_exact(&mut number[..size as usize])?;
        Ok(u64::from_le_bytes(number))
    }

    fn bytes(&mut self, len: u64) -> Result<Vec<u8>, Reason> {
        self.has(len)?;
        let mut bytes = vec![0; len as usize];
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Reason> {
        self.has(bytes)?;
        let mut skipped = Read::by_ref(&mut self.file).take(bytes);
        match io::copy(&mut skipped, &mut io::sink())? == bytes {
            true => Ok(()),
            false => Err("the file became shorter while it was read".into()),
        }
    }

    /// Checks that this many bytes are left, before memory is allocated for them.
    fn has(&self, bytes: u64) -> Result<(), String> {
        let left = self.file.limit();
        ensure!(
            bytes <= left,
            "its header needs {bytes} more bytes, but there are at most {left}"
        );
        Ok(())
    }
}

fn size(kind: u64) -> Result<u64, String> {
    let size = SIZES.get(kind as usize).copied();
    size.ok_or_else(|| format!("its metadata have a value of unknown type {kind}"))
}

/// The shortest decimal number that is this one in f32: what was 1e-6 before it was written is 1e-6 again.
fn decimal(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}
