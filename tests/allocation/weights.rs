//! Loading and writing weights needs memory for one tensor besides the model.

use burn::{
    module::{Module, Param, ParamId},
    tensor::{Device, Tensor},
};
use burn_attn_models::weights::{Table, Weights, save, transposed};
use burn_attn_tests::{devices, numbers::alone};

use crate::peak;

/// Rows and columns of a matrix.
const SIZES: [usize; 2] = [1009, 1013];
const COUNT: usize = 5;
const TENSOR: usize = SIZES[0] * SIZES[1] * size_of::<f32>();
/// What is moved at once, read and converted, and what is small.
const BESIDES: usize = 3 << 20;

#[derive(Module, Debug)]
struct Model {
    matrices: Vec<Param<Tensor<2>>>,
}

/// A model without numbers yet.
fn model(device: &Device) -> Model {
    let matrices = (0..COUNT).map(|_| {
        let make = |device: &Device, _| Tensor::ones(SIZES, device);
        Param::uninitialized(ParamId::new(), make, device.clone(), true, SIZES.into())
    });
    Model {
        matrices: matrices.collect(),
    }
}

#[test]
fn one_tensor_besides_the_model() {
    let _alone = alone();
    let device = devices::any();
    let folder = tempfile::tempdir().expect("a folder to write to");
    let path = folder.path().join("model.safetensors");
    let same = Table::new().row("matrices.{at}", "m.{at}");
    let turned = Table::new().row("matrices.{at}", transposed("m.{at}"));
    for (name, table) in [("the same", same), ("transposed", turned)] {
        let mut whole = model(&device);
        for matrix in &whole.matrices {
            let _ = matrix.val();
        }
        let written = peak(|| save(&table, &whole, &path).expect("written"));
        println!("{name}: {written} bytes to write tensors of {TENSOR}");
        // Burn copies a tensor twice to bring it here from flex.
        assert!(written <= 3 * TENSOR + BESIDES, "ours and theirs");

        let mut fresh = model(&device);
        let read = peak(|| {
            let weights = Weights::open(&path).expect("readable");
            weights.load(&table, &mut fresh).expect("loaded");
        });
        println!("{name}: {read} bytes to read {COUNT} tensors of {TENSOR}");
        assert!(read >= COUNT * TENSOR, "the model itself");
        assert!(
            read <= (COUNT + 1) * TENSOR + BESIDES,
            "one besides the model"
        );

        // A model with numbers keeps them until it has others.
        let again = peak(|| {
            let weights = Weights::open(&path).expect("readable");
            weights.load(&table, &mut whole).expect("loaded");
        });
        println!("{name}: {again} bytes to read them again");
        assert!(
            again <= (COUNT + 1) * TENSOR + BESIDES,
            "one besides both models"
        );
    }
}
