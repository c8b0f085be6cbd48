//! Tables that cannot be, and models that cannot be written.

use burn_attn_models::weights::{Table, Weights, ZEROS, same, save, transposed};
use burn_attn_tests::numbers::filled;

use super::{Model, folder, model, sentence, strict::zeros, write};

/// What a table with one mistake says.
#[track_caller]
fn table_error(table: &Table, mut ours: Model) -> String {
    let folder = folder();
    let path = folder.path().join("model.safetensors");
    write(&path, &[("a", zeros(&[1]))]);
    let error = Weights::open(&path).and_then(|weights| weights.load(table, &mut ours));
    let sentence = sentence(error);
    let start = "the table of weights is wrong: in the row of ";
    sentence
        .strip_prefix(start)
        .expect("a mistake in the table")
        .to_string()
}

#[test]
fn mistakes_in_tables() {
    let two = || model(&[3, 5], &[[2, 3], [4, 3]], &[]);
    let row = |target, source| Table::new().row(target, source);
    let twice = row("vectors.0", same("a")).row("vectors.{at}", "b");
    assert_eq!(
        table_error(&twice, two()),
        "vectors.{at} and b, there is another row for vectors.0"
    );
    let split = Table::new().row(["vectors.1", "vectors.2"], "a");
    assert_eq!(
        table_error(&split, two()),
        "vectors.1, vectors.2 and a, the model has no parameter vectors.2"
    );
    let turned = row("vectors.0", transposed("a"));
    assert_eq!(
        table_error(&turned, two()),
        "vectors.0 and a, a parameter of shape [3] cannot be transposed"
    );
    let shares = row("vectors.1", same(["a", "b"]));
    assert_eq!(
        table_error(&shares, two()),
        "vectors.1 and a, b, 5 outputs cannot be divided among 2 tensors as [1, 1]"
    );
    let three = row("vectors.0", same(["a", "b"]).shares([1, 1, 1]));
    assert_eq!(
        table_error(&three, two()),
        "vectors.0 and a, b, 3 outputs cannot be divided among 2 tensors as [1, 1, 1]"
    );
    let groups = row("vectors.1", same("a").interleaved([1, 2]));
    assert_eq!(
        table_error(&groups, two()),
        "vectors.1 and a, 5 outputs cannot be divided into groups of [1, 2]"
    );
    let number = row("vectors.1", same("a").scalar());
    assert_eq!(
        table_error(&number, two()),
        "vectors.1 and a, parameters of shapes [[5]] are not one number"
    );
    for d_heads in [vec![2], vec![1, 0], vec![5, 0]] {
        let pairs = row("vectors.1", same("a").rotary_pairs(d_heads.clone()));
        assert_eq!(
            table_error(&pairs, two()),
            format!(
                "vectors.1 and a, [5] outputs cannot be divided into heads of {d_heads:?} with pairs of numbers"
            )
        );
    }
    for d_head in [0, 2] {
        let gates = row("vectors.1", same("a").gated(d_head));
        assert_eq!(
            table_error(&gates, two()),
            format!(
                "vectors.1 and a, 5 outputs cannot be divided into heads of {d_head} with their gates"
            )
        );
    }
    let orders = "of interleaved [5], rotary_pairs [] and gated Some(1), a source takes one";
    let both = row("vectors.1", same("a").interleaved([5]).gated(1));
    assert_eq!(
        table_error(&both, two()),
        format!("vectors.1 and a, {orders}")
    );
    let orders = "of interleaved [1, 2], rotary_pairs [2] and gated None, a source takes one";
    let both = row("vectors.1", same("a").interleaved([1, 2]).rotary_pairs([2]));
    assert_eq!(
        table_error(&both, two()),
        format!("vectors.1 and a, {orders}")
    );
    let apart = Table::new().row(["matrices.0", "matrices.1"], "a");
    assert_eq!(
        table_error(&apart, two()),
        "matrices.0, matrices.1 and a, parameters of shapes [[2, 3], [4, 3]] do not lie side by side"
    );
    let experts = row("matrices.0", same(["a.{expert}", "b"]));
    assert_eq!(
        table_error(&experts, two()),
        "matrices.0 and a.{expert}, b, a placeholder that the target does not have has to be in all source names"
    );
    for (target, source) in [("matrices.0", "a"), ("matrices.{expert}", "a.{expert}")] {
        let expected = format!(
            "{target} and {source}, {{expert}} counts a stack: it has to be in all target names, and in no source name"
        );
        let stack = row(target, same(source).stacked("expert"));
        assert_eq!(table_error(&stack, two()), expected);
    }
    let stack = row("matrices.{expert}", same("a").stacked("expert"));
    assert_eq!(
        table_error(&stack, two()),
        "matrices.{expert} and a, parameters of shapes [[2, 3], [4, 3]] are not a stack"
    );
}

#[test]
fn what_cannot_be_written() {
    let folder = folder();
    let path = folder.path().join("model.safetensors");
    let ours = || filled(model(&[4], &[[2, 2], [2, 2]], &[]), 1);
    let table = Table::new()
        .row("vectors.0", ["a", ZEROS])
        .row("matrices.0", "w");
    assert_eq!(
        sentence(save(&table, &ours(), &path)),
        "the weights do not fit the model: parameters without a row in the table: matrices.1"
    );
    let tied = table.row("matrices.1", transposed("w"));
    assert_eq!(
        sentence(save(&tied, &ours(), &path)),
        "parameter vectors.0 cannot be written: it is not 0 where the other library has no tensor"
    );
    let table = Table::new()
        .row("vectors.0", "a")
        .row("matrices.0", "w")
        .row("matrices.1", transposed("w"));
    assert_eq!(
        sentence(save(&table, &ours(), &path)),
        "parameter matrices.1 cannot be written: it differs from matrices.0, and both are w"
    );
    assert!(!path.exists());
    let table = Table::new()
        .row("vectors.0", "a")
        .row("matrices.{at}", "w.{at}");
    let nowhere = folder.path().join("nowhere/model.safetensors");
    let sentence = sentence(save(&table, &ours(), &nowhere));
    assert!(sentence.starts_with(&format!("{} cannot be written: ", nowhere.display())));
    let mut quantized = ours();
    let scheme = burn::tensor::quantization::QuantScheme::default();
    let weight = quantized.matrices[0].clone();
    quantized.matrices[0] = weight.map(|weight| weight.quantize_dynamic(&scheme));
    let error = save(&table, &quantized, &path)
        .expect_err("a mistake")
        .to_string();
    assert!(
        error.starts_with("parameter matrices.0 cannot be written: it holds QFloat"),
        "{error}"
    );
}
