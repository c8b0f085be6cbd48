//! A file that is cut off or something else is an error, and the module stays as it was.

use std::{fs, path::Path};

use burn::{
    module::Module,
    nn::LinearConfig,
    tensor::{Device, Tensor},
};
use burn_attn::{SelfAttention, SelfAttentionConfig, SelfAttentionInput};
use burn_attn_tests::{
    compare::assert_same,
    devices,
    numbers::{filled, tensor},
};
use burn_store::{BurnpackStore, ModuleSnapshot, SafetensorsStore};

/// The formats: how to write a module, and how to read one, with the error as text.
const BURNPACK: &str = "bpk";
const SAFETENSORS: &str = "safetensors";

fn is_burnpack(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == BURNPACK)
}

fn save<M: Module>(module: &M, path: &Path) {
    if is_burnpack(path) {
        let store = &mut BurnpackStore::from_file(path);
        module.save_into(store).expect("saved");
    } else {
        let store = &mut SafetensorsStore::from_file(path);
        module.save_into(store).expect("saved");
    }
}

fn load<M: Module>(module: &mut M, path: &Path) -> Result<(), String> {
    let result = if is_burnpack(path) {
        let loaded = module.load_from(&mut BurnpackStore::from_file(path));
        loaded.map_err(|error| error.to_string())
    } else {
        let loaded = module.load_from(&mut SafetensorsStore::from_file(path));
        loaded.map_err(|error| error.to_string())
    };
    result.map(drop)
}

fn attention(device: &Device, seed: u64) -> SelfAttention {
    filled(SelfAttentionConfig::new(15, 3).init(device), seed)
}

fn forward(module: &SelfAttention, device: &Device) -> Tensor<3> {
    module.forward(SelfAttentionInput::new(tensor([2, 7, 15], 3, device)))
}

/// Reads what `write` puts into a file in every format, and sees that nothing happens to the module.
fn check_refused(write: impl Fn(&Path)) {
    let device = devices::any();
    let folder = tempfile::tempdir().expect("a folder to write to");
    for format in [BURNPACK, SAFETENSORS] {
        let path = folder.path().join("weights").with_extension(format);
        write(&path);
        let mut module = attention(&device, 2);
        let before = forward(&module, &device);
        let error = load(&mut module, &path).expect_err("the file is not what it should be");
        assert!(!error.is_empty());
        assert_same(&forward(&module, &device), &before);
    }
}

#[test]
fn a_file_cut_off_anywhere() {
    let device = devices::any();
    let module = attention(&device, 1);
    // In the header, in the numbers and right before the end.
    for keep in [0.0, 0.01, 0.1, 0.5, 0.9, 1.0] {
        check_refused(|path| {
            save(&module, path);
            let bytes = fs::read(path).expect("read");
            let len = (bytes.len() as f64 * keep) as usize;
            fs::write(path, &bytes[..len.min(bytes.len() - 1)]).expect("written");
        });
    }
}

#[test]
fn a_file_of_something_else() {
    check_refused(|path| {
        fs::write(path, "Attention is all you need. ".repeat(100)).expect("written")
    });
}

#[test]
fn the_file_of_another_module() {
    let other = LinearConfig::new(5, 7).init(&devices::any());
    check_refused(|path| save(&filled(other.clone(), 1), path));
}

#[test]
fn no_file() {
    check_refused(|_| ());
}
