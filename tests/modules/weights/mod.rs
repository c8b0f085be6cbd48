//! Weights of other libraries by tables: every kind of row against its formula and backwards, whole models against their logits, and a sentence for
//! whatever does not fit or was made to do harm. `tests/golden/weights/make_weights.py` made the models.

mod dtypes;
mod gguf;
mod heads;
mod hostile;
mod hostile_gguf;
mod mistakes;
mod models;
mod permissions;
mod rows;
mod stacks;
mod strict;
mod tables;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use burn::{
    module::{Module, Param, ParamId},
    tensor::{Device, Tensor},
};
use burn_attn_models::weights::{Table, Weights, WeightsError};
use burn_attn_tests::devices;
use tempfile::TempDir;

/// A tensor of a file: shape and numbers.
type Written = (Vec<usize>, Vec<f32>);

/// Dtype, shape and bytes of the tensors of a file, by name.
pub type Contents = BTreeMap<String, (String, Vec<usize>, Vec<u8>)>;

/// Parameters of every rank, by their places.
#[derive(Module, Debug)]
struct Model {
    vectors: Vec<Param<Tensor<1>>>,
    matrices: Vec<Param<Tensor<2>>>,
    cubes: Vec<Param<Tensor<3>>>,
}

/// A parameter that must not be initialised.
fn lazy<const D: usize>(shape: [usize; D], device: &Device) -> Param<Tensor<D>> {
    Param::uninitialized(
        ParamId::new(),
        |_, _| panic!("a parameter was initialised to be replaced"),
        device.clone(),
        true,
        shape.into(),
    )
}

/// A model of such parameters.
fn model(vectors: &[usize], matrices: &[[usize; 2]], cubes: &[[usize; 3]]) -> Model {
    let device = devices::any();
    Model {
        vectors: vectors.iter().map(|&len| lazy([len], &device)).collect(),
        matrices: matrices.iter().map(|&shape| lazy(shape, &device)).collect(),
        cubes: cubes.iter().map(|&shape| lazy(shape, &device)).collect(),
    }
}

/// The bytes of a safetensors file, after what the format says: the header's length, the header, the numbers.
fn safetensors(header: &str, numbers: &[u8]) -> Vec<u8> {
    let len = (header.len() as u64).to_le_bytes();
    [&len, header.as_bytes(), numbers].concat()
}

/// A safetensors file of f32.
fn write(path: &Path, tensors: &[(&str, Written)]) {
    let tensors = tensors.iter().map(|(name, (shape, numbers))| {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        (*name, "F32", shape.clone(), bytes.collect())
    });
    write_as(path, tensors.collect());
}

/// A safetensors file of tensors of any dtype.
pub fn write_as(path: &Path, tensors: Vec<(&str, &str, Vec<usize>, Vec<u8>)>) {
    let mut numbers = Vec::new();
    let entries = tensors.into_iter().map(|(name, dtype, shape, bytes)| {
        let start = numbers.len();
        numbers.extend(bytes);
        let end = numbers.len();
        format!(
            "{name:?}:{{\"dtype\":{dtype:?},\"shape\":{shape:?},\"data_offsets\":[{start},{end}]}}"
        )
    });
    let header = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
    fs::write(path, safetensors(&header, &numbers)).expect("written");
}

/// Writes what [`contents`] has read.
pub fn write_contents(path: &Path, contents: &Contents) {
    let tensors = contents.iter().map(|(name, (dtype, shape, bytes))| {
        (name.as_str(), dtype.as_str(), shape.clone(), bytes.clone())
    });
    write_as(path, tensors.collect());
}

/// What is in a safetensors file.
pub fn contents(path: &Path) -> Contents {
    let bytes = fs::read(path).expect("read");
    let (len, rest) = bytes.split_at(8);
    let len = u64::from_le_bytes(len.try_into().expect("8 bytes")) as usize;
    let (header, numbers) = rest.split_at(len);
    let header: serde_json::Value = serde_json::from_slice(header).expect("a header");
    let tensors = header.as_object().expect("an object").iter();
    let tensors = tensors
        .filter(|(name, _)| *name != "__metadata__")
        .map(|(name, entry)| {
            let sizes = |key: &str| -> Vec<usize> {
                let sizes = entry[key].as_array().expect("sizes").iter();
                sizes
                    .map(|size| size.as_u64().expect("a size") as usize)
                    .collect()
            };
            let offsets = sizes("data_offsets");
            let bytes = numbers[offsets[0]..offsets[1]].to_vec();
            let dtype = entry["dtype"].as_str().expect("a dtype");
            (name.clone(), (dtype.to_string(), sizes("shape"), bytes))
        });
    tensors.collect()
}

/// A file of `tests/golden/weights`.
fn golden(file: &str) -> PathBuf {
    burn_attn_tests::golden::path("weights").join(file)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder to write to")
}

/// A file of these bytes. It is deleted with its folder.
fn file(name: &str, bytes: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = folder();
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("written");
    (folder, path)
}

/// A safetensors file of f32 numbers. It is deleted with its folder.
fn written(tensors: &[(&str, Written)]) -> (TempDir, PathBuf) {
    let folder = folder();
    let path = folder.path().join("model.safetensors");
    write(&path, tensors);
    (folder, path)
}

/// Loads a file that has to fit.
#[track_caller]
fn load<M: Module>(table: &Table, path: &Path, model: &mut M) {
    let not_loaded = Weights::open(path).and_then(|weights| weights.load(table, model));
    let not_loaded = not_loaded.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(not_loaded, Default::default());
}

/// What opening a file says behind its name.
#[track_caller]
fn refused(path: &Path) -> String {
    let error = Weights::open(path).expect_err("a file to refuse");
    assert!(matches!(error, WeightsError::File { .. }), "{error:?}");
    let sentence = error.to_string();
    println!("{sentence}");
    let (_, reason) = sentence
        .split_once(" cannot be read as weights: ")
        .expect("the beginning");
    reason.to_string()
}

/// The sentence of an error.
#[track_caller]
fn sentence<T: std::fmt::Debug>(result: Result<T, WeightsError>) -> String {
    let sentence = result.expect_err("a mistake").to_string();
    println!("{sentence}");
    sentence
}
