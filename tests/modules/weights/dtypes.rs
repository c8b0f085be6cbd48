//! Numbers of every type, and files of Burn's own.

use burn::{
    module::{Module, Param},
    nn::BatchNormConfig,
    tensor::{DType, Tensor},
};
use burn_attn_models::weights::{Table, Weights, in_f16, in_f32, save, transposed};
use burn_attn_tests::{compare, devices, numbers::filled, parameters};

use super::{contents, folder, load, model, rows::assert_matrix, write_as};

/// Bytes of f32 numbers as another dtype's, exact for those of [`exact`].
pub fn bytes(numbers: &[f32], dtype: &str) -> Vec<u8> {
    let upper = |number: &f32| (number.to_bits() >> 16) as u16;
    // Normal numbers have five bits of exponent, ten of fraction.
    let half = |number: &f32| {
        let bits = number.to_bits();
        let (sign, exponent, fraction) = (bits >> 31, (bits >> 23) & 0xff, bits & 0x7f_ffff);
        ((sign << 15) | ((exponent + 15 - 127) << 10) | (fraction >> 13)) as u16
    };
    let numbers = numbers.iter();
    match dtype {
        "F64" => numbers
            .flat_map(|&number| f64::from(number).to_le_bytes())
            .collect(),
        "F32" => numbers.flat_map(|number| number.to_le_bytes()).collect(),
        "BF16" => numbers
            .flat_map(|number| upper(number).to_le_bytes())
            .collect(),
        "F16" => numbers
            .flat_map(|number| half(number).to_le_bytes())
            .collect(),
        other => unreachable!("{other}"),
    }
}

/// Numbers that every dtype has.
fn exact() -> Vec<f32> {
    vec![1.0, -2.5, 0.125, 96.0, -0.75, 3.0]
}

#[test]
fn every_dtype_becomes_every_other() {
    let dtypes = [
        ("F64", DType::F64),
        ("F32", DType::F32),
        ("F16", DType::F16),
        ("BF16", DType::BF16),
    ];
    let table = Table::new().row("matrices.0", transposed(["a", "b"]));
    let folder = folder();
    for (from, _) in dtypes {
        let path = folder.path().join(from);
        // The two halves need not agree.
        let numbers = exact();
        let a = ("a", from, vec![1, 3], bytes(&numbers[..3], from));
        let b = ("b", "F32", vec![1, 3], bytes(&numbers[3..], "F32"));
        write_as(&path, vec![a, b]);
        for (to, dtype) in dtypes {
            let device = devices::any();
            let mut model = model(&[], &[], &[]);
            let value = Tensor::<2>::zeros([3, 2], (&device, dtype));
            model
                .matrices
                .push(Param::initialized(Default::default(), value));
            load(&table, &path, &mut model);
            assert_eq!(model.matrices[0].dtype(), dtype);
            let found = parameters::values(&model);
            assert_matrix(&found, "matrices.0", |row, column| {
                exact()[column * 3 + row]
            });
            // They are written in the dtype of the parameter.
            let back = folder.path().join("back");
            save(&table, &model, &back).expect("written");
            let (written, _, numbers) = &contents(&back)["a"];
            assert_eq!((written.as_str(), numbers), (to, &bytes(&exact()[..3], to)));
        }
    }
}

#[test]
fn clones_keep_the_precision_of_their_running_statistics() {
    let device = devices::any();
    let first = BatchNormConfig::new(5).init(&device);
    let half = in_f16(first.clone());
    let whole = in_f32(half.clone(), &device);
    let dtypes = [first, half, whole].map(|norm| norm.running_mean.value().dtype());
    assert_eq!(dtypes, [DType::F32, DType::F16, DType::F32]);
}

#[test]
fn a_burnpack_is_read_by_its_own_names() {
    let table = Table::new()
        .row("vectors.{at}", "vectors.{at}")
        .row("matrices.{at}", "matrices.{at}");
    let saved = filled(model(&[3, 5], &[[2, 7]], &[]), 1);
    let folder = folder();
    let path = folder.path().join("model.bpk");
    saved.clone().save_file(&path).expect("saved");
    let mut loaded = model(&[3, 5], &[[2, 7]], &[]);
    load(&table, &path, &mut loaded);
    assert!(parameters::values(&loaded) == parameters::values(&saved));

    // The file is gone when the numbers are needed.
    let weights = Weights::open(&path).expect("readable");
    std::fs::remove_file(&path).expect("removed");
    let before = loaded.clone();
    let sentence = super::sentence(weights.load(&table, &mut loaded));
    assert!(sentence.starts_with("the numbers of tensor vectors.0 cannot be read: "));
    compare::assert_same(&loaded.vectors[0].val(), &before.vectors[0].val());
}
