//! Reads `.safetensors` files: a little-endian u64 with the size of the JSON header, the header, the raw numbers.

use std::{collections::BTreeMap, fs, path::Path};

use burn::tensor::{Device, Int, Tensor, TensorData};
use serde::Deserialize;

/// A golden file in memory.
pub struct GoldenFile {
    entries: BTreeMap<String, Entry>,
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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/{name}.safetensors"));
        let mut bytes =
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (size, rest) = bytes.split_first_chunk().expect("8 bytes of header size");
        let header = &rest[..u64::from_le_bytes(*size) as usize];
        let mut entries: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(header).expect("the header is a JSON object");
        entries.remove("__metadata__");
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
        Self { entries, bytes }
    }

    /// The names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Number of numbers of a tensor.
    pub fn count(&self, name: &str) -> usize {
        self.entries[name].shape.iter().product()
    }

    /// The floats of a tensor.
    pub fn data(&self, name: &str) -> TensorData {
        let (entry, bytes) = self.raw(name, "F32");
        let numbers = bytes
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes));
        TensorData::new(numbers.collect(), entry.shape.clone())
    }

    /// A float tensor.
    pub fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        Tensor::from_data(self.data(name), device)
    }

    /// A list of lengths.
    pub fn lengths(&self, name: &str, device: &Device) -> Tensor<1, Int> {
        let (entry, bytes) = self.raw(name, "I64");
        let numbers = bytes
            .as_chunks()
            .0
            .iter()
            .map(|bytes| i64::from_le_bytes(*bytes) as i32);
        Tensor::from_data(
            TensorData::new(numbers.collect(), entry.shape.clone()),
            device,
        )
    }

    fn raw(&self, name: &str, dtype: &str) -> (&Entry, &[u8]) {
        let entry = self
            .entries
            .get(name)
            .unwrap_or_else(|| panic!("the golden file has no tensor {name}"));
        assert_eq!(entry.dtype, dtype, "{name}");
        let [start, end] = entry.data_offsets;
        (entry, &self.bytes[start..end])
    }
}
