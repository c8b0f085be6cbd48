//! Every kind of row is its formula, and brings the same bits back.

use burn::module::Module;
use burn_attn_models::weights::{Table, ZEROS, same, save, transposed};
use burn_attn_tests::{
    devices,
    numbers::{filled, uniform},
    parameters,
};

use super::{Model, Written, contents, folder, load, model, write};

/// A tensor of any numbers.
pub fn any(seed: u64, shape: &[usize]) -> Written {
    (shape.to_vec(), uniform(seed, shape.iter().product()))
}

/// What the parameters of `model` are after `theirs` was loaded; writing them gives `theirs` back.
#[track_caller]
pub fn loaded(table: &Table, mut model: Model, theirs: &[(&str, Written)]) -> parameters::Named {
    let folder = folder();
    let [path, back] = ["theirs", "back"].map(|name| folder.path().join(name));
    write(&path, theirs);
    load(table, &path, &mut model);
    save(table, &model, &back).expect("written");
    assert!(
        contents(&back) == contents(&path),
        "other tensors came back"
    );
    parameters::values(&model)
}

/// The numbers of tensors, one after the other.
fn joined<'a>(tensors: impl IntoIterator<Item = &'a Written>) -> Vec<f32> {
    let numbers = tensors.into_iter().flat_map(|(_, numbers)| numbers);
    numbers.copied().collect()
}

/// The parameter at `path` has at every row and column the number that `formula` says.
#[track_caller]
pub fn assert_matrix(found: &parameters::Named, path: &str, formula: impl Fn(usize, usize) -> f32) {
    let data = &found[path];
    let shape = data.shape();
    let [rows, columns] = shape.dims();
    let numbers: Vec<f32> = data.iter().collect();
    for row in 0..rows {
        for column in 0..columns {
            let number = numbers[row * columns + column];
            assert_eq!(number, formula(row, column), "{path} at {row}, {column}");
        }
    }
}

#[track_caller]
pub fn assert_vector(found: &parameters::Named, path: &str, expected: &[f32]) {
    let numbers: Vec<f32> = found[path].iter().collect();
    assert_eq!(numbers, expected, "{path}");
}

#[test]
fn as_it_is_and_transposed() {
    let table = Table::new()
        .row("matrices.0", "a")
        .row("matrices.1", transposed("b"))
        .row("vectors.0", "c")
        .row("cubes.0", "d")
        .row("cubes.1", transposed("e"));
    let (a, b, c) = (any(1, &[3, 5]), any(2, &[7, 2]), any(3, &[11]));
    let (d, e) = (any(4, &[2, 3, 5]), any(5, &[2, 5, 3]));
    let theirs = [("a", a), ("b", b), ("c", c), ("d", d), ("e", e)];
    let ours = model(&[11], &[[3, 5], [2, 7]], &[[2, 3, 5], [2, 3, 5]]);
    let found = loaded(&table, ours, &theirs);
    let [(_, a), (_, b), (_, c), (_, d), (_, e)] = theirs.map(|(_, tensor)| tensor);
    assert_matrix(&found, "matrices.0", |row, column| a[row * 5 + column]);
    assert_matrix(&found, "matrices.1", |row, column| b[column * 2 + row]);
    assert_vector(&found, "vectors.0", &c);
    assert_vector(&found, "cubes.0", &d);
    let each = |[batch, row, column]: [usize; 3]| e[(batch * 5 + column) * 3 + row];
    let e: Vec<f32> = (0..30)
        .map(|at| each([at / 15, at / 5 % 3, at % 5]))
        .collect();
    assert_vector(&found, "cubes.1", &e);
}

#[test]
fn larger_than_what_is_moved_at_once() {
    // 2^18 numbers are: both tensors have more, one of them in rows that are longer still.
    let table = Table::new()
        .row("matrices.0", transposed("a"))
        .row("matrices.1", "b");
    let theirs = [("a", any(1, &[601, 499])), ("b", any(2, &[2, 300_007]))];
    let found = loaded(
        &table,
        model(&[], &[[499, 601], [2, 300_007]], &[]),
        &theirs,
    );
    let [(_, a), (_, b)] = theirs.map(|(_, tensor)| tensor);
    assert_matrix(&found, "matrices.0", |row, column| a[column * 499 + row]);
    assert_vector(&found, "matrices.1", &b);
}

#[test]
fn several_side_by_side() {
    let linear = same(["q", "k", "v"]).shares([3, 1, 1]);
    // `weight` and `bias`, as `linear` names them.
    let table = Table::new().part(
        "matrices",
        "",
        Table::new().row("0", transposed(["q.w", "k.w", "v.w"]).shares([3, 1, 1])),
    );
    let table = table
        .row("vectors.0", linear)
        .row("matrices.1", ["gate", "up"]);
    let weights = [any(1, &[6, 5]), any(2, &[2, 5]), any(3, &[2, 5])];
    let biases = [any(4, &[6]), any(5, &[2]), any(6, &[2])];
    let inner = [any(7, &[3, 7]), any(8, &[3, 7])];
    let names = ["q.w", "k.w", "v.w", "q", "k", "v", "gate", "up"];
    let tensors = weights.iter().chain(&biases).chain(&inner).cloned();
    let theirs: Vec<_> = names.into_iter().zip(tensors).collect();
    let found = loaded(&table, model(&[10], &[[5, 10], [3, 14]], &[]), &theirs);
    let stacked = joined(&weights);
    assert_matrix(&found, "matrices.0", |row, column| {
        stacked[column * 5 + row]
    });
    assert_vector(&found, "vectors.0", &joined(&biases));
    assert_matrix(&found, "matrices.1", |row, column| {
        inner[column / 7].1[row * 7 + column % 7]
    });
}

#[test]
fn parts_of_one() {
    // GPT-2's packed projection for three layers of ours, the last one narrower.
    let table = Table::new()
        .row(["matrices.0", "matrices.1", "matrices.2"], "c_attn.weight")
        .row(["vectors.0", "vectors.1", "vectors.2"], "c_attn.bias");
    let theirs = [
        ("c_attn.weight", any(1, &[5, 17])),
        ("c_attn.bias", any(2, &[17])),
    ];
    let ours = model(&[7, 7, 3], &[[5, 7], [5, 7], [5, 3]], &[]);
    let found = loaded(&table, ours, &theirs);
    let [(_, weight), (_, bias)] = theirs.map(|(_, tensor)| tensor);
    for (index, start) in [0, 7, 14].into_iter().enumerate() {
        assert_matrix(&found, &format!("matrices.{index}"), |row, column| {
            weight[row * 17 + start + column]
        });
        let end = (start + 7).min(17);
        assert_vector(&found, &format!("vectors.{index}"), &bias[start..end]);
    }
}

#[test]
fn parts_of_several() {
    // The borders of ours lie within theirs.
    let table = Table::new().row(
        ["matrices.0", "matrices.1"],
        transposed(["a", "b", "c"]).shares([2, 1, 2]),
    );
    let theirs = [
        ("a", any(1, &[4, 3])),
        ("b", any(2, &[2, 3])),
        ("c", any(3, &[4, 3])),
    ];
    let stacked = joined(theirs.iter().map(|(_, tensor)| tensor));
    let found = loaded(&table, model(&[], &[[3, 5], [3, 5]], &[]), &theirs);
    assert_matrix(&found, "matrices.0", |row, column| {
        stacked[column * 3 + row]
    });
    assert_matrix(&found, "matrices.1", |row, column| {
        stacked[(column + 5) * 3 + row]
    });
}

#[test]
fn heads_with_their_query_key_and_value_together() {
    const HEADS: usize = 3;
    const D_HEAD: usize = 2;
    let table = Table::new()
        .row("matrices.0", transposed("weight").interleaved([D_HEAD; 3]))
        .row(
            ["vectors.0", "vectors.1", "vectors.2"],
            same("bias").interleaved([D_HEAD; 3]),
        );
    let theirs = [("weight", any(1, &[18, 5])), ("bias", any(2, &[18]))];
    let found = loaded(&table, model(&[6, 6, 6], &[[5, 18]], &[]), &theirs);
    let [(_, weight), (_, bias)] = theirs.map(|(_, tensor)| tensor);
    let theirs = |part: usize, head: usize, index: usize| (head * 3 + part) * D_HEAD + index;
    assert_matrix(&found, "matrices.0", |row, column| {
        let (part, head, index) = (
            column / (HEADS * D_HEAD),
            column / D_HEAD % HEADS,
            column % D_HEAD,
        );
        weight[theirs(part, head, index) * 5 + row]
    });
    for part in 0..3 {
        let expected: Vec<f32> = (0..6)
            .map(|at| bias[theirs(part, at / D_HEAD, at % D_HEAD)])
            .collect();
        assert_vector(&found, &format!("vectors.{part}"), &expected);
    }
}

#[test]
fn groups_of_queries_with_their_key_and_value() {
    // Two groups of three queries, one key and one value, as Falcon and InternLM 2 pack grouped heads.
    let table = Table::new().row("matrices.0", transposed("wqkv").interleaved([6, 2, 2]));
    let theirs = [("wqkv", any(1, &[20, 3]))];
    let found = loaded(&table, model(&[], &[[3, 20]], &[]), &theirs);
    let [(_, (_, weight))] = theirs;
    let theirs = |column: usize| match column {
        0..12 => column / 6 * 10 + column % 6,
        12..16 => (column - 12) / 2 * 10 + 6 + column % 2,
        _ => (column - 16) / 2 * 10 + 8 + column % 2,
    };
    assert_matrix(&found, "matrices.0", |row, column| {
        weight[theirs(column) * 3 + row]
    });
}

#[test]
fn experts_whose_gate_and_up_alternate() {
    // gpt-oss: [experts, d_model, 2 * d_ff], gate and up in turns.
    let table = Table::new().row("cubes.0", same("gate_up_proj").interleaved([1, 1]));
    let theirs = [("gate_up_proj", any(1, &[2, 3, 10]))];
    let found = loaded(&table, model(&[], &[], &[[2, 3, 10]]), &theirs);
    let [(_, (_, numbers))] = theirs;
    let expected = (0..60).map(|at| numbers[at / 10 * 10 + at % 5 * 2 + at % 10 / 5]);
    assert_vector(&found, "cubes.0", &expected.collect::<Vec<f32>>());
}

#[test]
fn experts_in_tensors_of_their_own() {
    let table = Table::new()
        .row(
            "cubes.0",
            transposed(["experts.{expert}.w1", "experts.{expert}.w3"]),
        )
        .row("matrices.0", "experts.{expert}.bias");
    let names = |kind: &str| [0, 1, 2].map(|expert| format!("experts.{expert}.{kind}"));
    let [w1, w3, bias] = ["w1", "w3", "bias"].map(names);
    let mut theirs = Vec::new();
    for expert in 0..3 {
        let seed = expert as u64;
        theirs.push((w1[expert].as_str(), any(10 + seed, &[5, 2])));
        theirs.push((w3[expert].as_str(), any(20 + seed, &[5, 2])));
        theirs.push((bias[expert].as_str(), any(30 + seed, &[7])));
    }
    let found = loaded(&table, model(&[], &[[3, 7]], &[[3, 2, 10]]), &theirs);
    let expected = (0..60).map(|at| {
        let (expert, row, column) = (at / 20, at / 10 % 2, at % 10);
        let (_, (_, numbers)) = &theirs[expert * 3 + column / 5];
        numbers[column % 5 * 2 + row]
    });
    assert_vector(&found, "cubes.0", &expected.collect::<Vec<f32>>());
    assert_matrix(&found, "matrices.0", |expert, column| {
        theirs[expert * 3 + 2].1.1[column]
    });
}

#[test]
fn zeros_that_the_other_library_does_not_store() {
    // Whisper's key has no bias; sinks at 0 are in no file.
    let table = Table::new()
        .row("vectors.0", same(["q.bias", ZEROS, "v.bias"]))
        .row("vectors.1", ZEROS);
    let theirs = [("q.bias", any(1, &[5])), ("v.bias", any(2, &[5]))];
    let found = loaded(&table, model(&[15, 3], &[], &[]), &theirs);
    let [(_, (_, q)), (_, (_, v))] = theirs;
    assert_vector(&found, "vectors.0", &[q, vec![0.0; 5], v].concat());
    assert_vector(&found, "vectors.1", &[0.0; 3]);
}

#[test]
fn norms_that_add_one() {
    let table = Table::new().row("vectors.0", same("norm.weight").plus_one());
    // Halves of small integers: one more or less is exact.
    let weight = vec![-0.5, 0.0, 1.5, -1.0, 3.0];
    let found = loaded(
        &table,
        model(&[5], &[], &[]),
        &[("norm.weight", (vec![5], weight.clone()))],
    );
    let expected: Vec<f32> = weight.iter().map(|number| number + 1.0).collect();
    assert_vector(&found, "vectors.0", &expected);
}

#[test]
fn numbers_without_an_axis() {
    let table = Table::new().row("vectors.0", same("scale").scalar());
    let found = loaded(
        &table,
        model(&[1], &[], &[]),
        &[("scale", (vec![], vec![2.5]))],
    );
    assert_vector(&found, "vectors.0", &[2.5]);
}

#[test]
fn linear_layers_and_norms_in_numbered_layers() {
    #[derive(Module, Debug)]
    struct Stack {
        layers: Vec<Layer>,
    }
    #[derive(Module, Debug)]
    struct Layer {
        linear: burn::nn::Linear,
        without_bias: burn::nn::Linear,
        norm: burn_attn::Norm,
    }
    let device = devices::any();
    let linear = |bias| {
        burn::nn::LinearConfig::new(3, 5)
            .with_bias(bias)
            .init(&device)
    };
    let layers = (0..12).map(|_| Layer {
        linear: linear(true),
        without_bias: linear(false),
        norm: burn_attn::NormConfig::layer_norm().init(7, &device),
    });
    let saved = filled(
        Stack {
            layers: layers.collect(),
        },
        1,
    );
    let layer = Table::new()
        .linear("linear", "self.dense")
        .linear("without_bias", "out")
        .norm("norm", "LayerNorm");
    let table = Table::new().part("layers.{layer}", "encoder.layer.{layer}", layer);
    let folder = folder();
    let path = folder.path().join("stack.safetensors");
    save(&table, &saved, &path).expect("written");
    let written = contents(&path);
    let shape = |name: &str| written[name].1.clone();
    assert_eq!(written.len(), 12 * 5);
    assert_eq!(shape("encoder.layer.11.self.dense.weight"), [5, 3]);
    assert_eq!(shape("encoder.layer.11.self.dense.bias"), [5]);
    assert_eq!(shape("encoder.layer.0.out.weight"), [5, 3]);
    assert_eq!(shape("encoder.layer.0.LayerNorm.weight"), [7]);
    assert_eq!(shape("encoder.layer.0.LayerNorm.bias"), [7]);
    let mut fresh = filled(saved.clone(), 2);
    load(&table, &path, &mut fresh);
    assert!(parameters::values(&fresh) == parameters::values(&saved));
}

#[test]
fn two_parameters_of_one_tensor() {
    // Ours are apart, theirs are not.
    let table = Table::new()
        .row("matrices.0", "wte.weight")
        .row("matrices.1", transposed("wte.weight"));
    let theirs = [("wte.weight", any(1, &[3, 5]))];
    let found = loaded(&table, model(&[], &[[3, 5], [5, 3]], &[]), &theirs);
    let [(_, (_, numbers))] = theirs;
    assert_matrix(&found, "matrices.0", |row, column| {
        numbers[row * 5 + column]
    });
    assert_matrix(&found, "matrices.1", |row, column| {
        numbers[column * 5 + row]
    });
}
