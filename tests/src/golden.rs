//! Files of `tests/golden`: their paths, and a reader of the tensors in `.safetensors` files: a little-endian u64 with the size of the JSON
//! header, the header, the raw numbers.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;
use serde_json::Value;

/// The file or folder `tests/golden/{name}`.
pub fn path(name: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name)
}

/// A golden file in memory.
pub struct GoldenFile {
    entries: BTreeMap<String, Entry>,
    config: Value,
    bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

impl GoldenFile {
    /// Reads `tests/golden/{name}.safetensors`.
    pub fn open(name: &str) -> Self {
        let path = path(format!("{name}.safetensors"));
        let mut bytes =
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (size, rest) = bytes.split_first_chunk().expect("8 bytes of header size");
        let header = &rest[..u64::from_le_bytes(*size) as usize];
        let mut entries: BTreeMap<String, Value> =
            serde_json::from_slice(header).expect("the header is a JSON object");
        let metadata = entries.remove("__metadata__").unwrap_or_default();
        let config = metadata["config"].as_str().map_or(Value::Null, |config| {
            serde_json::from_str(config).expect("the options are a JSON object")
        });
        let entries = entries
            .into_iter()
            .map(|(name, entry)| {
                (
                    name,
                    serde_json::from_value(entry).expect("a tensor's entry"),
                )
            })
            .collect();
        bytes.drain(..8 + header.len());
        Self {
            entries,
            config,
            bytes,
        }
    }

    /// The options that the file was made with, a JSON object.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// The names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Number of numbers of a tensor.
    pub fn count(&self, name: &str) -> usize {
        self.entries[name].shape.iter().product()
    }

    /// The numbers of a tensor, in its own type.
    pub fn data(&self, name: &str) -> TensorData {
        let entry = self
            .entries
            .get(name)
            .unwrap_or_else(|| panic!("the golden file has no tensor {name}"));
        let [start, end] = entry.data_offsets;
        let (bytes, shape) = (&self.bytes[start..end], entry.shape.clone());
        match entry.dtype.as_str() {
            "F32" => TensorData::new(each(bytes, f32::from_le_bytes), shape),
            "F64" => TensorData::new(each(bytes, f64::from_le_bytes), shape),
            "I64" => TensorData::new(each(bytes, i64::from_le_bytes), shape),
            "U8" => TensorData::new(bytes.to_vec(), shape),
            "BOOL" => TensorData::new(each(bytes, |[byte]| byte != 0), shape),
            dtype => panic!("{name} is of dtype {dtype}"),
        }
    }

    /// A float tensor.
    pub fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        Tensor::from_data(self.data(name), device)
    }

    /// A list of lengths.
    pub fn lengths(&self, name: &str) -> Vec<usize> {
        let lengths = self.data(name);
        lengths
            .iter::<u32>()
            .map(|length| length as usize)
            .collect()
    }
}

fn each<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| number(bytes))
        .collect()
}
