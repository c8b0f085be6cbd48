//! Whatever does not fit is said at once, and the model stays as it was.

use burn::{
    module::{Lora, Module, Param},
    nn::BatchNormConfig,
    tensor::{DType, Tensor},
};
use burn_attn_models::weights::{
    Mismatch, Missing, NotLoaded, Table, Weights, WeightsError, WrongDType, WrongShape, save,
    transposed,
};
use burn_attn_tests::{devices, numbers::filled, parameters};

use super::{
    Model, contents, folder, lazy, load, model, rows::assert_vector, sentence, write, write_as,
    written,
};

pub fn zeros(shape: &[usize]) -> super::Written {
    (shape.to_vec(), vec![0.0; shape.iter().product()])
}

fn mismatch<T: std::fmt::Debug>(result: Result<T, WeightsError>) -> Mismatch {
    match result {
        Err(WeightsError::Mismatch(mismatch)) => *mismatch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_that_is_wrong_in_one_sentence() {
    let table = Table::new()
        .row("vectors.{at}", "v.{at}")
        .row("matrices.0", transposed(["q", "k"]).shares([2, 1]))
        .row("matrices.1", "m")
        .tied("head", "v.1");
    let folder = folder();
    let path = folder.path().join("model.safetensors");
    let zeros = |name, dtype, shape: &[usize]| {
        let width = if dtype == "I64" { 8 } else { 4 };
        (
            name,
            dtype,
            shape.to_vec(),
            vec![0; shape.iter().product::<usize>() * width],
        )
    };
    let one = (
        "head",
        "F32",
        vec![5],
        [1.0f32; 5]
            .iter()
            .flat_map(|one| one.to_le_bytes())
            .collect(),
    );
    write_as(
        &path,
        vec![
            // v.0 is missing.
            zeros("v.1", "F32", &[5]),
            one,
            // Together as wide as they should be.
            zeros("q", "F32", &[3, 7]),
            zeros("k", "F32", &[3, 7]),
            zeros("m", "I64", &[2, 2]),
            zeros("v.2", "F32", &[3]),
            zeros("other.weight", "F32", &[3]),
        ],
    );
    let mut ours = filled(model(&[3, 5], &[[7, 6], [2, 2]], &[[2, 3, 5]]), 1);
    let before = parameters::values(&ours);
    let weights = Weights::open(&path).expect("readable");
    let error = weights.load(&table, &mut ours).expect_err("a mistake");
    assert_eq!(
        error.to_string(),
        "the weights do not fit the model: missing: v.0 [3]; of another shape: q is [3, 7] instead of [4, 7], \
         k is [3, 7] instead of [2, 7]; of another dtype: m holds I64, but matrices.1 F32; unexpected: other.weight, v.2; \
         tied but not equal: head and v.1; parameters without a row in the table: cubes.0"
    );
    let WeightsError::Mismatch(mismatch) = error else {
        panic!("{error:?}");
    };
    assert_eq!(
        mismatch.missing,
        [Missing {
            name: "v.0".into(),
            shape: vec![3]
        }]
    );
    let needed = |name: &str, needed| WrongShape {
        name: name.into(),
        found: vec![3, 7],
        needed,
    };
    assert_eq!(
        mismatch.shapes,
        [needed("q", vec![4, 7]), needed("k", vec![2, 7])]
    );
    let dtype = WrongDType {
        name: "m".into(),
        found: "I64".into(),
        parameter: "matrices.1".into(),
        needed: DType::F32,
    };
    assert_eq!(mismatch.dtypes, [dtype]);
    assert_eq!(mismatch.unexpected, ["other.weight", "v.2"]);
    assert_eq!(mismatch.untied, [("head".to_string(), "v.1".to_string())]);
    assert_eq!(mismatch.unlisted, ["cubes.0"]);
    assert!(parameters::values(&ours) == before, "the model has changed");
}

#[test]
fn what_was_not_loaded_is_said_where_that_is_allowed() {
    let table = Table::new()
        .row("vectors.0", ["a", "b"])
        .row("vectors.1", "c")
        .row("vectors.2", "d");
    let c = (vec![3], vec![1.0, 2.0, 3.0]);
    // Only a tensor that is loaded has to have a shape.
    let (_folder, path) = written(&[("a", zeros(&[3])), ("c", c), ("e", zeros(&[7]))]);
    let mut ours = filled(model(&[4, 3, 5], &[[2, 2]], &[]), 1);
    let before = parameters::values(&ours);
    let weights = Weights::open(&path).expect("readable");

    let strict = mismatch(weights.load(&table, &mut ours));
    let missing = strict.missing.iter().map(|missing| missing.name.as_str());
    assert!(missing.eq(["b", "d"]));

    let not_loaded = weights.clone().partial(true).load(&table, &mut ours);
    let expected = NotLoaded {
        parameters: ["vectors.0", "vectors.2", "matrices.0"]
            .map(String::from)
            .into(),
        tensors: ["a", "e"].map(String::from).into(),
    };
    assert_eq!(not_loaded, Ok(expected));
    let after = parameters::values(&ours);
    for (path, numbers) in &before {
        assert_eq!(&after[path] == numbers, path != "vectors.1", "{path}");
    }
    assert_vector(&after, "vectors.1", &[1.0, 2.0, 3.0]);

    // Shapes are never allowed to differ.
    let mut other = filled(model(&[4, 2, 5], &[[2, 2]], &[]), 1);
    let wrong = mismatch(weights.partial(true).load(&table, &mut other));
    assert_eq!(wrong.shapes.len(), 1);
}

#[test]
fn names_can_be_ignored_and_changed() {
    let table = Table::new()
        .row("vectors.0", "layer.0.norm.weight")
        .ignore("*position_ids")
        .rename("*.gamma", "*.weight");
    let gamma = (vec![2], vec![3.0, 4.0]);
    let (_folder, path) = written(&[
        ("bert.layer.0.norm.gamma", gamma),
        ("bert.position_ids", zeros(&[1, 7])),
        ("bert.pooler.weight", zeros(&[2, 2])),
    ]);
    let weights = Weights::open(&path).expect("readable");
    let mut ours = model(&[2], &[], &[]);
    let wrong = mismatch(weights.load(&table, &mut ours));
    assert_eq!(
        wrong.unexpected,
        ["bert.layer.0.norm.gamma", "bert.pooler.weight"]
    );

    let weights = weights.rename("bert.*", "*").ignore("pooler.*");
    assert_eq!(weights.load(&table, &mut ours), Ok(NotLoaded::default()));
    assert_vector(&parameters::values(&ours), "vectors.0", &[3.0, 4.0]);

    // What a row takes is not ignored.
    let weights = weights.ignore("*");
    assert_eq!(weights.load(&table, &mut ours), Ok(NotLoaded::default()));

    let both = weights.clone().rename("*.*", "x");
    assert_eq!(
        sentence(both.load(&table, &mut ours)),
        "the table of weights is wrong: *.* cannot be renamed to x, which does not have as many *"
    );
    let both = weights
        .rename("*.weight", "x.*")
        .rename("*position_ids", "x.poo*ler");
    assert!(both.load(&table, &mut ours).is_err());
}

#[test]
fn two_tensors_of_one_name_after_renaming() {
    let table = Table::new()
        .row("vectors.0", "norm.weight")
        .rename("*.gamma", "*.weight");
    let (_folder, path) = written(&[("norm.gamma", zeros(&[2])), ("norm.weight", zeros(&[2]))]);
    let weights = Weights::open(&path).expect("readable");
    assert_eq!(
        sentence(weights.load(&table, &mut model(&[2], &[], &[]))),
        "the weights have norm.weight twice: as norm.gamma and as norm.weight"
    );
}

#[test]
fn tied_tensors_stand_in_for_each_other() {
    let table = Table::new().row("vectors.0", "wte").tied("head", "wte");
    let folder = folder();
    let path = folder.path().join("model.safetensors");
    let numbers = (vec![2], vec![1.0, 2.0]);
    for tensors in [
        vec![("wte", numbers.clone())],
        vec![("head", numbers.clone())],
        vec![("wte", numbers.clone()), ("head", numbers.clone())],
    ] {
        write(&path, &tensors);
        let mut ours = model(&[2], &[], &[]);
        load(&table, &path, &mut ours);
        assert_vector(&parameters::values(&ours), "vectors.0", &[1.0, 2.0]);
        save(&table, &ours, &path).expect("written");
        assert!(contents(&path).keys().eq(["wte"]));
    }
    let mut other = numbers.clone();
    other.1[1] = 2.5;
    write(&path, &[("wte", numbers), ("head", other)]);
    let weights = Weights::open(&path).expect("readable");
    let wrong = mismatch(weights.load(&table, &mut model(&[2], &[], &[])));
    assert_eq!(wrong.untied, [("head".to_string(), "wte".to_string())]);
}

#[test]
fn parameters_keep_what_they_are() {
    let table = Table::new().row("vectors.{at}", "v.{at}");
    let names = ["v.0", "v.1", "v.2", "v.3"];
    let (_folder, path) = written(&names.map(|name| (name, (vec![2], vec![1.0, 2.0]))));
    for (backend, device) in devices::cpu() {
        for device in [device.clone(), device.clone().autodiff()] {
            println!("{backend}");
            let wide = Tensor::<1>::zeros([2], (&device, DType::F64));
            // ndarray has no halves.
            let other = if backend == "ndarray" {
                DType::F32
            } else {
                DType::F16
            };
            let half = Tensor::<1>::zeros([2], (&device, other));
            let ours = Model {
                vectors: vec![
                    lazy([2], &device),
                    lazy([2], &device).set_require_grad(false),
                    Param::from_tensor(wide),
                    Param::from_tensor(half).set_require_grad(false),
                ],
                matrices: vec![],
                cubes: vec![],
            };
            let mut loaded = ours.clone();
            load(&table, &path, &mut loaded);
            let trained = device.is_autodiff();
            let dtypes = [DType::F32, DType::F32, DType::F64, other];
            let is_trained = [trained, false, trained, false];
            for (at, (before, after)) in ours.vectors.iter().zip(&loaded.vectors).enumerate() {
                assert_eq!(after.id, before.id, "{at}");
                assert_eq!(after.device(), device, "{at}");
                assert_eq!(after.dtype(), dtypes[at], "{at}");
                assert_eq!(after.is_require_grad(), is_trained[at], "{at}");
                assert_eq!(
                    after.val().into_data().iter::<f32>().collect::<Vec<_>>(),
                    [1.0, 2.0]
                );
            }
            assert!(!ours.vectors[0].is_initialized() && !ours.vectors[1].is_initialized());
            // Training goes on as it was set.
            let trains = loaded
                .train()
                .vectors
                .into_iter()
                .map(|param| param.is_require_grad());
            assert_eq!(trains.collect::<Vec<_>>(), [true, false, true, false]);
        }
    }
}

#[test]
fn a_file_that_is_cut_off_meanwhile() {
    // Running statistics too, which clones share.
    let names = ["gamma", "beta", "running_mean", "running_var"];
    let table = names
        .iter()
        .fold(Table::new(), |table, &name| table.row(name, name));
    let (_folder, path) = written(&names.map(|name| (name, zeros(&[5]))));
    let weights = Weights::open(&path).expect("readable");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("opened");
    let len = file.metadata().expect("metadata").len();
    file.set_len(len - 4).expect("cut off");
    let mut ours = filled(BatchNormConfig::new(5).init(&devices::any()), 1);
    let before = parameters::values(&ours);
    let sentence = sentence(weights.load(&table, &mut ours));
    assert!(sentence.starts_with("the numbers of tensor running_var cannot be read: "));
    assert!(parameters::values(&ours) == before, "the model has changed");
}

#[test]
fn an_adapter_has_no_row() {
    let table = Table::new().linear("", "");
    let (_folder, path) = written(&[("weight", zeros(&[5, 3]))]);
    let device = devices::any();
    let linear = burn::nn::LinearConfig::new(3, 5)
        .with_bias(false)
        .init(&device);
    let mut adapted = linear.apply_lora(Lora::new(1, 1.0));
    let weights = Weights::open(&path).expect("readable");
    let unlisted = mismatch(weights.load(&table, &mut adapted)).unlisted;
    assert!(
        unlisted.len() == 2 && unlisted.iter().all(|path| path.starts_with("weight.")),
        "{unlisted:?}"
    );
}
