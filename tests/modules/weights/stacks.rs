//! Parameters of ours that the other library keeps in one tensor.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use burn_attn_models::weights::{Table, Weights, same, transposed};
use burn_attn_tests::parameters;

use super::{
    folder, load, model,
    rows::{any, assert_matrix, assert_vector, loaded},
    write,
};

/// gpt-oss again, where ours has parameters of its own for every expert: three of each kind, of two rows.
#[test]
fn experts_that_they_keep_in_one_tensor() {
    let table = Table::new()
        .row(
            "matrices.{expert}",
            same("gate_up_proj").interleaved([1, 1]).stacked("expert"),
        )
        .row("cubes.{expert}", transposed("down_proj").stacked("expert"))
        .row(
            "vectors.{expert}",
            same(["q", "v"]).shares([3, 2]).stacked("expert"),
        );
    let theirs = [
        ("down_proj", any(1, &[3, 2, 7, 5])),
        ("gate_up_proj", any(2, &[3, 2, 10])),
        ("q", any(3, &[3, 3])),
        ("v", any(4, &[3, 2])),
    ];
    let found = loaded(
        &table,
        model(&[5; 3], &[[2, 10]; 3], &[[2, 5, 7]; 3]),
        &theirs,
    );
    let [(_, (_, down)), (_, (_, gate_up)), (_, (_, q)), (_, (_, v))] = theirs;
    for expert in 0..3 {
        assert_matrix(&found, &format!("matrices.{expert}"), |row, column| {
            gate_up[expert * 20 + row * 10 + column % 5 * 2 + column / 5]
        });
        let expected = (0..70).map(|at| {
            let (batch, row, column) = (at / 35, at / 7 % 5, at % 7);
            down[expert * 70 + batch * 35 + column * 5 + row]
        });
        assert_vector(
            &found,
            &format!("cubes.{expert}"),
            &expected.collect::<Vec<f32>>(),
        );
        let parts = [
            &q[expert * 3..expert * 3 + 3],
            &v[expert * 2..expert * 2 + 2],
        ];
        assert_vector(&found, &format!("vectors.{expert}"), &parts.concat());
    }
}

/// A stack in one of many layers, of one expert, and one whose tensor has another number of them.
#[test]
fn stacks_in_layers() {
    let table = || {
        Table::new().row(
            "layers.{layer}.{expert}",
            same("h.{layer}").stacked("expert"),
        )
    };
    #[derive(Module, Debug)]
    struct Layers {
        layers: Vec<Vec<Param<Tensor<1>>>>,
    }
    let layers = |counts: &[usize]| {
        let layers = counts
            .iter()
            .map(|&count| model(&vec![2; count], &[], &[]).vectors);
        Layers {
            layers: layers.collect(),
        }
    };
    let folder = folder();
    let path = folder.path().join("theirs");
    let theirs = [("h.0", any(1, &[1, 2])), ("h.1", any(2, &[3, 2]))];
    write(&path, &theirs);
    let mut ours = layers(&[1, 3]);
    load(&table(), &path, &mut ours);
    let found = parameters::values(&ours);
    let [(_, (_, first)), (_, (_, second))] = theirs;
    assert_vector(&found, "layers.0.0", &first);
    for expert in 0..3 {
        assert_vector(
            &found,
            &format!("layers.1.{expert}"),
            &second[expert * 2..][..2],
        );
    }
    let weights = Weights::open(&path).expect("weights");
    let error = weights
        .load(&table(), &mut layers(&[1, 2]))
        .expect_err("there are 3");
    assert_eq!(
        error.to_string(),
        "the weights do not fit the model: of another shape: h.1 is [3, 2] instead of [2, 2]"
    );
}
