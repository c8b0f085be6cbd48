//! Rows for heads whose numbers have another order in the source.

use burn_attn_models::weights::{Table, transposed};

use super::{
    model,
    rows::{any, assert_matrix, loaded},
};

#[test]
fn rotary_pairs_beside_each_other() {
    // llama.cpp: two heads of 6 queries, one of 2 keys with a width of its own, 5 values that are not rotated.
    let theirs = transposed(["q", "k", "v"]).shares([12, 2, 5]);
    let table = Table::new().row("matrices.0", theirs.rotary_pairs([6, 2, 0]));
    let theirs = [
        ("q", any(1, &[12, 3])),
        ("k", any(2, &[2, 3])),
        ("v", any(3, &[5, 3])),
    ];
    let found = loaded(&table, model(&[], &[[3, 19]], &[]), &theirs);
    let [q, k, v] = theirs.map(|(_, (_, numbers))| numbers);
    assert_matrix(&found, "matrices.0", |row, column| match column {
        0..12 => {
            let (head, half, pair) = (column / 6, column % 6 / 3, column % 3);
            q[(head * 6 + pair * 2 + half) * 3 + row]
        }
        12..14 => k[(column - 12) * 3 + row],
        _ => v[(column - 14) * 3 + row],
    });
}

#[test]
fn queries_with_their_gates() {
    // Qwen3-Next: two heads of 3 queries, each before its gate, then one head of keys and one of values.
    let theirs = transposed(["q", "k", "v"]).shares([4, 1, 1]).gated(3);
    let table = Table::new().row(["matrices.0", "matrices.1"], theirs);
    let theirs = [
        ("q", any(1, &[12, 5])),
        ("k", any(2, &[3, 5])),
        ("v", any(3, &[3, 5])),
    ];
    let found = loaded(&table, model(&[], &[[5, 12], [5, 6]], &[]), &theirs);
    let [q, k, v] = theirs.map(|(_, (_, numbers))| numbers);
    let of_head = |column: usize| column / 3 * 6 + column % 3;
    assert_matrix(&found, "matrices.0", |row, column| match column {
        0..6 => q[of_head(column) * 5 + row],
        6..9 => k[(column - 6) * 5 + row],
        _ => v[(column - 9) * 5 + row],
    });
    assert_matrix(&found, "matrices.1", |row, column| {
        q[(of_head(column) + 3) * 5 + row]
    });
}
