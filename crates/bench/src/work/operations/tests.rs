use super::*;

#[test]
fn gradients_are_two_and_a_half_forward_passes() {
    let operations = |pass| Work::Op(Op::new(pass, 512)).operations().unwrap();
    // Two products of 2 operations each: 4 · batch · heads · len² · dim.
    assert_eq!(
        operations(Pass::Forward),
        f64::from(4 * 2 * 8 * 512 * 512 * 64)
    );
    assert_eq!(operations(Pass::Backward), 2.5 * operations(Pass::Forward));
    assert_eq!(
        operations(Pass::Training),
        operations(Pass::Forward) + operations(Pass::Backward)
    );
}

#[test]
fn pairs_are_those_that_the_masks_show() {
    let plain = Op {
        batch: 1,
        heads: 1,
        ..Op::new(Pass::Forward, 5)
    };
    let pairs = |op: Op| op.visible_pairs();
    let causal = |len_q, len_kv| Op {
        causal: true,
        len_q,
        len_kv,
        ..plain.clone()
    };
    assert_eq!(pairs(plain.clone()), 25);
    assert_eq!(pairs(causal(5, 5)), 15);
    // The last query is at the last key.
    assert_eq!(pairs(causal(1, 5)), 5);
    assert_eq!(pairs(causal(2, 5)), 4 + 5);
    assert_eq!(pairs(causal(3, 2)), 1 + 2);
    // Itself and one before it.
    let window = Op {
        window: Some(1),
        ..plain.clone()
    };
    assert_eq!(pairs(window.clone()), 1 + 2 + 2 + 2 + 2);
    let lengths = Op {
        key_lengths: Some(vec![2]),
        ..plain.clone()
    };
    assert_eq!(pairs(lengths.clone()), 5 * 2);
    assert_eq!(
        pairs(Op {
            causal: true,
            ..lengths.clone()
        }),
        1 + 2 * 4
    );
    assert_eq!(
        pairs(Op {
            window: Some(1),
            ..lengths
        }),
        1 + 2 + 1
    );
    let many = Op {
        batch: 3,
        heads: 7,
        heads_kv: 1,
        ..window
    };
    assert_eq!(pairs(many), 3 * 7 * 9);
}

#[test]
fn operations_of_modules_and_models_are_those_of_their_layers() {
    let operations = |work: Work| work.operations().unwrap();
    let module = Module {
        kind: ModuleKind::Cross,
        batch: 2,
        len_q: 3,
        len_kv: 5,
        d_model: 8,
        heads: 2,
    };
    // Three products for each of four layers, and seven of attention; two operations for each multiply-add.
    let linear = 3 * 2 * 8 * 8 * (2 * 3 + 2 * 5) * 2;
    let attention = 7 * 2 * 3 * 5 * 8 * 2;
    assert_eq!(
        operations(Work::Module(module)),
        f64::from(linear + attention)
    );

    let decoding = Decoding {
        batch: 3,
        context: 1,
        tokens: 2,
        d_model: 8,
        heads: 2,
        layers: 5,
        window: None,
    };
    let attention = 2 * 2 * 8 * (2 + 3);
    let linear = 2 * (4 + 4 + 4) * 8 * 8 * 2;
    assert_eq!(
        operations(Work::Decoding(decoding.clone())),
        f64::from(3 * 5 * (linear + attention))
    );
    let windowed = Decoding {
        // Itself and one before it.
        window: Some(1),
        ..decoding
    };
    let attention = 2 * 2 * 8 * (2 + 2);
    assert_eq!(
        operations(Work::Decoding(windowed)),
        f64::from(3 * 5 * (linear + attention))
    );

    let step = Translation {
        batch: 2,
        len: 4,
        d_model: 8,
        heads: 2,
        layers: 1,
        vocabulary: 11,
        dropout: 0.0,
    };
    // Sentences of 2 and 4 tokens: the encoder and the cross-attention see these, the decoder 1 + 2 + 3 + 4 in each.
    let attention = 7 * 2 * 8 * (2 * 4 * (2 + 4) + 2 * 10);
    let weights = (4 + 8) * 8 * 8 + (8 + 8) * 8 * 8 + 11 * 8;
    let linear = 3 * 2 * 2 * 4 * weights;
    assert_eq!(
        operations(Work::Translation(step)),
        f64::from(attention + linear)
    );
}
