//! Reads GGUF, the format of ggml and llama.cpp: metadata, the names, types and places of all tensors, then their numbers.
//!
//! Source: `docs/gguf.md` of ggml, versions 2 and 3; the blocks of its quantised types are those of `ggml-common.h`.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
    sync::{Arc, Mutex},
};

use burn::tensor::{DType, f16};

use super::{FilePart, MAX_HEADER, MAX_TENSORS, Numbers, Stored, Tensors};

/// Numbers of a block of a quantised type.
const BLOCK: usize = 32;
/// Where the numbers of a tensor begin, unless the metadata say otherwise.
const ALIGNMENT: u64 = 32;

/// A type of blocks of 32 numbers with a factor in f16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantised {
    /// Numbers of 8 bits.
    Q8,
    /// Numbers of 4 bits, from −8 to 7: the low halves of 16 bytes, then the high ones.
    Q4,
}

impl Quantised {
    /// Bytes of a block.
    fn bytes(self) -> usize {
        match self {
            Self::Q8 => 2 + BLOCK,
            Self::Q4 => 2 + BLOCK / 2,
        }
    }

    /// The numbers of a block.
    fn decode(self, block: &[u8]) -> [f32; BLOCK] {
        let factor = f16::from_le_bytes([block[0], block[1]]).to_f32();
        let packed = &block[2..];
        std::array::from_fn(|at| {
            let number = match self {
                Self::Q8 => i32::from(packed[at] as i8),
                Self::Q4 if at < BLOCK / 2 => i32::from(packed[at] & 15) - 8,
                Self::Q4 => i32::from(packed[at - BLOCK / 2] >> 4) - 8,
            };
            factor * number as f32
        })
    }
}

/// What a tensor's numbers are.
#[derive(Clone, Copy)]
enum Kind {
    Float(DType),
    Quantised(Quantised),
    /// Of a type that is not read, and whose size is not known.
    Other,
}

/// The name of a type, and what it is.
fn kind(number: u32) -> (String, Kind) {
    let (name, kind) = match number {
        0 => ("F32", Kind::Float(DType::F32)),
        1 => ("F16", Kind::Float(DType::F16)),
        2 => ("Q4_0", Kind::Quantised(Quantised::Q4)),
        8 => ("Q8_0", Kind::Quantised(Quantised::Q8)),
        28 => ("F64", Kind::Float(DType::F64)),
        30 => ("BF16", Kind::Float(DType::BF16)),
        _ => return (format!("GGML type {number}"), Kind::Other),
    };
    (name.into(), kind)
}

/// The numbers of a quantised tensor as f32, from byte `first` on.
pub(super) fn read_blocks(
    kind: Quantised,
    file: Arc<Mutex<File>>,
    (start, len): (u64, u64),
    first: usize,
) -> Box<dyn Read> {
    let of_block = BLOCK * size_of::<f32>();
    let skipped = (first / of_block * kind.bytes()) as u64;
    Box::new(Blocks {
        kind,
        packed: FilePart {
            file,
            at: start + skipped,
            left: len.saturating_sub(skipped),
        },
        decoded: Vec::new(),
        at: 0,
        skip: first % of_block,
    })
}

struct Blocks {
    kind: Quantised,
    packed: FilePart,
    /// Numbers that were not handed on yet, from byte `at` on.
    decoded: Vec<u8>,
    at: usize,
    /// Bytes of the next block that nobody wants.
    skip: usize,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        /// Blocks decoded at a time.
        const MANY: u64 = 256;
        if self.at == self.decoded.len() {
            let bytes = self.kind.bytes();
            let mut packed = Vec::new();
            (&mut self.packed)
                .take(MANY * bytes as u64)
                .read_to_end(&mut packed)?;
            let blocks = packed.chunks_exact(bytes);
            let numbers = blocks.flat_map(|block| self.kind.decode(block));
            self.decoded = numbers.flat_map(f32::to_le_bytes).collect();
            self.at = self.skip.min(self.decoded.len());
            self.skip = 0;
        }
        let count = (&self.decoded[self.at..]).read(buffer)?;
        self.at += count;
        Ok(count)
    }
}

/// Where a tensor is, and what it holds.
struct Info {
    shape: Vec<usize>,
    kind: u32,
    offset: u64,
}

pub(super) fn open(path: &Path) -> Result<Tensors, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let file_len = file.metadata().map_err(|error| error.to_string())?.len();
    let mut header = Header {
        left: MAX_HEADER.min(file_len),
        file: BufReader::new(&file),
        read: 0,
    };
    let (infos, alignment) = header.tensors()?;
    let start = header.read.next_multiple_of(alignment);
    let len = file_len.saturating_sub(start);
    let file = Arc::new(Mutex::new(file));
    let mut places = Vec::new();
    let mut tensors = Tensors::new();
    for (name, info) in infos {
        let (dtype_name, kind) = kind(info.kind);
        let (dtype, bytes) = match kind {
            Kind::Float(dtype) => (Some(dtype), size(&info.shape, 1, dtype.size())),
            Kind::Quantised(kind) => (Some(DType::F32), size(&info.shape, BLOCK, kind.bytes())),
            Kind::Other => (None, Some(0)),
        };
        let Some(bytes) = bytes else {
            return Err(format!(
                "tensor {name} cannot be of {dtype_name} and shape {:?}",
                info.shape
            ));
        };
        let end = info.offset.checked_add(bytes).filter(|&end| end <= len);
        if end.is_none() || !info.offset.is_multiple_of(alignment) {
            return Err(format!(
                "tensor {name} of {bytes} bytes cannot lie at byte {} of {len}",
                info.offset
            ));
        }
        places.push((info.offset, bytes, name.clone()));
        let place = start + info.offset;
        let numbers = match kind {
            Kind::Quantised(kind) => Numbers::Blocks {
                kind,
                file: file.clone(),
                start: place,
                len: bytes,
            },
            Kind::Float(_) | Kind::Other => Numbers::File {
                file: file.clone(),
                start: place,
                len: bytes,
            },
        };
        let stored = Stored {
            shape: info.shape,
            dtype,
            dtype_name,
            numbers,
        };
        tensors.insert(name, stored);
    }
    places.sort_unstable();
    for pair in places.windows(2) {
        let [(first, bytes, name), (second, _, other)] = pair else {
            continue;
        };
        if first + bytes > *second {
            return Err(format!("tensors {name} and {other} overlap"));
        }
    }
    Ok(tensors)
}

/// Bytes of a tensor in blocks of `numbers` numbers and `bytes` bytes, which lie in its rows; `None` if there can be no such tensor.
fn size(shape: &[usize], numbers: usize, bytes: usize) -> Option<u64> {
    let row = shape.last().copied().unwrap_or(1);
    if !row.is_multiple_of(numbers) {
        return None;
    }
    let count = shape
        .iter()
        .try_fold(1usize, |count, &size| count.checked_mul(size))?;
    (count / numbers)
        .checked_mul(bytes)
        .map(|bytes| bytes as u64)
}

/// What comes before the numbers.
struct Header<'a> {
    file: BufReader<&'a File>,
    /// Bytes that may still be read.
    left: u64,
    read: u64,
}

impl Header<'_> {
    /// The tensors, and the alignment of their numbers.
    fn tensors(&mut self) -> Result<(BTreeMap<String, Info>, u64), String> {
        let [magic, version] = [self.u32()?, self.u32()?];
        if magic != u32::from_le_bytes(*b"GGUF") || !(2..=3).contains(&version) {
            return Err(format!(
                "it should be GGUF of version 2 or 3, but is of version {version}"
            ));
        }
        let [count, metadata] = [self.u64()?, self.u64()?];
        if count > MAX_TENSORS as u64 {
            return Err(format!("it has more than {MAX_TENSORS} tensors"));
        }
        let mut alignment = ALIGNMENT;
        for _ in 0..metadata {
            let key = self.text()?;
            let kind = self.u32()?;
            if key == "general.alignment" && kind == 4 {
                alignment = u64::from(self.u32()?);
                if !alignment.is_power_of_two() || alignment > 1 << 20 {
                    return Err(format!("its alignment is {alignment}"));
                }
            } else {
                self.skip_value(kind)?;
            }
        }
        let mut tensors = BTreeMap::new();
        for _ in 0..count {
            let name = self.text()?;
            let rank = self.u32()?;
            if rank > 8 {
                return Err(format!("tensor {name} has {rank} dimensions"));
            }
            let sizes = (0..rank).map(|_| self.u64());
            let sizes = sizes.collect::<Result<Vec<u64>, String>>()?;
            // The fastest first.
            let shape = sizes.iter().rev().map(|&size| usize::try_from(size));
            let shape = shape
                .collect::<Result<Vec<usize>, _>>()
                .map_err(|_| format!("tensor {name} has the sizes {sizes:?}"))?;
            let info = Info {
                shape,
                kind: self.u32()?,
                offset: self.u64()?,
            };
            match tensors.entry(name) {
                Entry::Occupied(entry) => {
                    return Err(format!("there are two tensors {}", entry.key()));
                }
                Entry::Vacant(entry) => entry.insert(info),
            };
        }
        Ok((tensors, alignment))
    }

    /// Reads past a value of the metadata.
    fn skip_value(&mut self, kind: u32) -> Result<(), String> {
        match kind {
            // u8, i8, bool; u16, i16; u32, i32, f32; u64, i64, f64
            0 | 1 | 7 => self.bytes::<1>().map(|_| ()),
            2 | 3 => self.bytes::<2>().map(|_| ()),
            4..=6 => self.bytes::<4>().map(|_| ()),
            10..=12 => self.bytes::<8>().map(|_| ()),
            8 => self.text().map(|_| ()),
            9 => {
                let (kind, count) = (self.u32()?, self.u64()?);
                if kind == 9 {
                    return Err("its metadata have arrays of arrays".into());
                }
                (0..count).try_for_each(|_| self.skip_value(kind))
            }
            _ => Err(format!("its metadata have a value of type {kind}")),
        }
    }

    fn text(&mut self) -> Result<String, String> {
        let len = self.u64()?;
        self.take(len)?;
        let mut text = vec![0; len as usize];
        let read = self.file.read_exact(&mut text);
        read.map_err(|error| error.to_string())?;
        String::from_utf8(text).map_err(|_| "a name in it is not UTF-8".into())
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

    /// Makes sure that so many bytes may be read: nothing is allocated for what is not there.
    fn take(&mut self, bytes: u64) -> Result<(), String> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                self.read += bytes;
                Ok(())
            }
            None => Err(format!("its header ends after {} bytes", self.read)),
        }
    }
}
