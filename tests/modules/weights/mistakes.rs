//! Tables that cannot be, and models that cannot be written.

use burn_attn_models::weights::{Table, Weights, ZEROS, same, save, transposed};
use burn_attn_tests::numbers::filled;

use super::{folder, model, sentence, strict::zeros, written};

/// A table with one mistake, for a model of two vectors and two matrices, is refused in this sentence.
#[track_caller]
fn refused(table: &Table, expected: &str) {
    let (_folder, path) = written(&[("a", zeros(&[1]))]);
    let mut ours = model(&[3, 5], &[[2, 3], [4, 3]], &[]);
    let error = Weights::open(&path).and_then(|weights| weights.load(table, &mut ours));
    let expected = format!("the table of weights is wrong: in the row of {expected}");
    assert_eq!(sentence(error), expected);
}

#[test]
fn mistakes_in_tables() {
    let row = |target, source| Table::new().row(target, source);
    refused(
        &row("vectors.0", same("a")).row("vectors.{at}", "b"),
        "vectors.{at} and b, there is another row for vectors.0",
    );
    refused(
        &Table::new().row(["vectors.1", "vectors.2"], "a"),
        "vectors.1, vectors.2 and a, the model has no parameter vectors.2",
    );
    refused(
        &row("vectors.0", transposed("a")),
        "vectors.0 and a, a parameter of shape [3] cannot be transposed",
    );
    refused(
        &row("vectors.1", same(["a", "b"])),
        "vectors.1 and a, b, 5 outputs cannot be divided among 2 tensors as [1, 1]",
    );
    refused(
        &row("vectors.0", same(["a", "b"]).shares([1, 1, 1])),
        "vectors.0 and a, b, 3 outputs cannot be divided among 2 tensors as [1, 1, 1]",
    );
    for (source, reason) in [
        (
            same("a").interleaved([1, 2]),
            "5 outputs cannot be divided into groups of [1, 2]",
        ),
        (
            same("a").scalar(),
            "parameters of shapes [[5]] are not one number",
        ),
        (
            same("a").interleaved([5]).gated(1),
            "of interleaved [5], rotary_pairs [] and gated Some(1), a source takes one",
        ),
        (
            same("a").interleaved([1, 2]).rotary_pairs([2]),
            "of interleaved [1, 2], rotary_pairs [2] and gated None, a source takes one",
        ),
    ] {
        refused(
            &row("vectors.1", source),
            &format!("vectors.1 and a, {reason}"),
        );
    }
    for d_heads in [vec![2], vec![1, 0], vec![5, 0]] {
        let expected = format!(
            "vectors.1 and a, [5] outputs cannot be divided into heads of {d_heads:?} with pairs of numbers"
        );
        refused(
            &row("vectors.1", same("a").rotary_pairs(d_heads)),
            &expected,
        );
    }
    for d_head in [0, 2] {
        let expected = format!(
            "vectors.1 and a, 5 outputs cannot be divided into heads of {d_head} with their gates"
        );
        refused(&row("vectors.1", same("a").gated(d_head)), &expected);
    }
    refused(
        &Table::new().row(["matrices.0", "matrices.1"], "a"),
        "matrices.0, matrices.1 and a, parameters of shapes [[2, 3], [4, 3]] do not lie side by side",
    );
    refused(
        &row("matrices.0", same(["a.{expert}", "b"])),
        "matrices.0 and a.{expert}, b, a placeholder that the target does not have has to be in all source names",
    );
    for (target, source) in [("matrices.0", "a"), ("matrices.{expert}", "a.{expert}")] {
        let expected = format!(
            "{target} and {source}, {{expert}} counts a stack: it has to be in all target names, and in no source name"
        );
        refused(&row(target, same(source).stacked("expert")), &expected);
    }
    refused(
        &row("matrices.{expert}", same("a").stacked("expert")),
        "matrices.{expert} and a, parameters of shapes [[2, 3], [4, 3]] are not a stack",
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
