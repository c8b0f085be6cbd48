//! GGUF files that were made to do harm, and damaged ones: each has its sentence.

use burn_attn_models::weights::{Table, Weights};

use super::{
    file,
    gguf::{Written, array, gguf, header, info, text, value},
    model, sentence,
};

/// What opening a file of these bytes says.
#[track_caller]
fn refused(bytes: &[u8]) -> String {
    let (_folder, path) = file("model.gguf", bytes);
    super::refused(&path)
}

/// What opening a file with this value in its metadata says. It ends with the value.
#[track_caller]
fn refused_value(kind: u32, bytes: &[u8]) -> String {
    refused(&header(3, &[value("v", kind, bytes)], &[]))
}

/// What opening a file with this tensor says, which has a block of zeros behind the padding.
#[track_caller]
fn refused_info(info: Vec<u8>) -> String {
    let mut bytes = header(3, &[], &[info]);
    bytes.resize(bytes.len().next_multiple_of(32) + 32, 0);
    refused(&bytes)
}

/// Two numbers by two.
fn four(name: &str) -> Written<'_> {
    Written(name, vec![2, 2], 0, vec![0; 16])
}

#[test]
fn other_versions() {
    for version in [0, 1, 4, u32::MAX] {
        assert_eq!(
            refused(&header(version, &[], &[])),
            format!("it should be GGUF of version 2 or 3, but is of version {version}")
        );
    }
    for version in [2u32, 3] {
        assert_eq!(
            refused(&header(version.swap_bytes(), &[], &[])),
            "it is big-endian, and only little-endian GGUF is read"
        );
    }
}

#[test]
fn files_that_end_early() {
    let whole = gguf(32, &[four("a"), four("b")]);
    for len in 4..whole.len() {
        refused(&whole[..len]);
    }
    assert_eq!(
        refused(&whole[..20]),
        "its header needs 8 more bytes, but there are at most 4"
    );
    let mut many = whole;
    many[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(
        refused(&many),
        format!("it has {} tensors, and at most 250000 are read", u64::MAX)
    );
    many[8..16].copy_from_slice(&3u64.to_le_bytes());
    many[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    // What follows the metadata is taken for more of them.
    refused(&many);
}

#[test]
fn metadata_that_are_not_what_they_say() {
    let needs = |needed: u64, left: usize| {
        format!("its header needs {needed} more bytes, but there are at most {left}")
    };
    for kind in [13, 14, u32::MAX] {
        let unknown = format!("its metadata have a value of unknown type {kind}");
        assert_eq!(refused_value(kind, &[0; 64]), unknown);
        assert_eq!(refused_value(9, &array(kind, 1, &[0; 64])), unknown);
    }
    for count in [0, 1, u64::MAX] {
        assert_eq!(
            refused_value(9, &array(9, count, &array(0, 1, &[7]))),
            "its metadata have arrays of arrays"
        );
    }
    // Their sizes overflow, or are just too large.
    for (kind, count) in [(0, u64::MAX), (10, u64::MAX / 8 + 1), (12, u64::MAX)] {
        let said = refused_value(9, &array(kind, count, &[0; 5]));
        assert_eq!(said, needs(u64::MAX, 5));
    }
    assert_eq!(refused_value(9, &array(2, 7, &[0; 13])), needs(14, 13));
    assert_eq!(refused_value(11, &[0; 7]), needs(8, 7));
    let texts = [text("a"), text("be")].concat();
    assert_eq!(
        refused_value(9, &array(8, u64::MAX, &texts)),
        needs(8, 0),
        "the third text is not there"
    );
    for len in [4, u64::MAX] {
        let long = [&len.to_le_bytes()[..], b"abc"].concat();
        assert_eq!(refused_value(8, &long), needs(len, 3));
    }
}

#[test]
fn names_that_nobody_gives() {
    let long = "a".repeat(1 << 16);
    let said = "it has a name of 65537 bytes, and at most 65536 are read";
    assert_eq!(refused_info(info(format!("{long}a"), &[2], 0, 0)), said);
    let key = value(&format!("{long}a"), 0, &[7]);
    assert_eq!(refused(&header(3, &[key], &[])), said);
    // One less is read, and refused for its place.
    let said = refused_info(info(&long, &[2], 0, 64));
    assert!(said.ends_with("a of 8 bytes cannot lie at byte 64 of 32"));
    assert_eq!(
        refused_info(info(b"a\xff", &[2], 0, 0)),
        "the name a\\xff in it is not UTF-8"
    );
    assert_eq!(
        refused_info(info("a\nb", &[2], 0, 64)),
        "tensor a\\nb of 8 bytes cannot lie at byte 64 of 32"
    );
    assert_eq!(
        refused(&gguf(32, &[four("a\n"), four("a\n")])),
        "there are two tensors a\\n"
    );
}

#[test]
fn tensors_that_cannot_be() {
    assert_eq!(
        refused_info(info("a", &[1; 9], 0, 0)),
        "tensor a has 9 dimensions, and at most 8 are read"
    );
    assert_eq!(
        refused_info(info("q", &[33, 2], 8, 0)),
        "tensor q cannot be of Q8_0 and shape [2, 33]"
    );
    let huge = u64::MAX / 4;
    assert_eq!(
        refused_info(info("q", &[huge, 2], 0, 0)),
        format!("tensor q cannot be of F32 and shape [2, {huge}]")
    );
    assert_eq!(
        refused_info(info("a", &[0, u64::MAX, u64::MAX], 0, 0)),
        format!(
            "tensor a cannot be of F32 and shape [{}, {}, 0]",
            u64::MAX,
            u64::MAX
        )
    );
}

#[test]
fn tensors_of_no_number() {
    let tensors = [
        Written("a", vec![0, 3], 0, vec![]),
        Written("b", vec![32, 0], 8, vec![]),
    ];
    let (_folder, path) = file("model.gguf", gguf(32, &tensors));
    let weights = Weights::open(&path).unwrap();
    let shapes: Vec<(&str, &[usize])> = weights.tensors().collect();
    assert_eq!(shapes, [("a", &[3, 0][..]), ("b", &[0, 32][..])]);
    let table = Table::new().row("matrices.0", "a").row("matrices.1", "b");
    let mut model = model(&[], &[[3, 2], [5, 32]], &[]);
    let said = sentence(weights.load(&table, &mut model));
    assert!(
        said.ends_with(
            "of another shape: a is [3, 0] instead of [3, 2], b is [0, 32] instead of [5, 32]"
        ),
        "{said}"
    );
}

#[test]
fn tensors_in_the_wrong_place() {
    assert_eq!(
        refused_info(info("a", &[2], 0, 8)),
        "tensor a lies at byte 8, which is no multiple of the alignment of 32"
    );
    assert_eq!(
        refused_info(info("a", &[2], 0, u64::MAX - 31)),
        format!(
            "tensor a of 8 bytes cannot lie at byte {} of 32",
            u64::MAX - 31
        )
    );
    assert_eq!(
        refused(&gguf(32, &[Written("a", vec![9], 0, vec![0; 32])])),
        "tensor a of 36 bytes cannot lie at byte 0 of 32"
    );
    assert_eq!(
        refused(&gguf(
            32,
            &[Written("a", vec![9], 0, vec![0; 32]), four("b")]
        )),
        "tensors a and b overlap"
    );
}

#[test]
fn alignments_of_another_size_or_type() {
    let aligned = |kind: u32, bytes: &[u8]| value("general.alignment", kind, bytes);
    for alignment in [0u32, 3, 48, 1 << 21, u32::MAX] {
        assert_eq!(
            refused(&header(3, &[aligned(4, &alignment.to_le_bytes())], &[])),
            format!(
                "its alignment is {alignment}, and should be a power of two of at most 1048576"
            )
        );
    }
    for (kind, bytes) in [(5, 32i32.to_le_bytes().to_vec()), (10, vec![0; 8])] {
        assert_eq!(
            refused(&header(3, &[aligned(kind, &bytes)], &[])),
            format!(
                "its general.alignment is of type {kind}, and should be of type 4, which is u32"
            )
        );
    }
    let of_32 = || aligned(4, &32u32.to_le_bytes());
    assert_eq!(
        refused(&header(3, &[of_32(), of_32()], &[])),
        "its metadata have two values of general.alignment"
    );
}

/// A value that was lost would be a default.
#[test]
fn metadata_of_two_values_or_too_many() {
    let number = |key: &str| value(key, 4, &7u32.to_le_bytes());
    assert_eq!(
        refused(&header(3, &[number("llama.a"), number("llama.a")], &[])),
        "its metadata have two values of llama.a"
    );
    let many: Vec<_> = (0..65_537).map(|at| number(&at.to_string())).collect();
    assert_eq!(
        refused(&header(3, &many, &[])),
        "its metadata have more than 65536 values"
    );
}

#[test]
fn types_that_are_not_read_are_named() {
    let named = [
        (3, "Q4_1"),
        (6, "Q5_0"),
        (7, "Q5_1"),
        (9, "Q8_1"),
        (10, "Q2_K"),
        (11, "Q3_K"),
        (12, "Q4_K"),
        (13, "Q5_K"),
        (15, "Q8_K"),
        (16, "IQ2_XXS"),
        (23, "IQ4_XS"),
        (24, "I8"),
        (27, "I64"),
        (29, "IQ1_M"),
        (34, "TQ1_0"),
        (35, "TQ2_0"),
        (39, "MXFP4"),
        (5, "GGML type 5"),
        (77, "GGML type 77"),
    ];
    let table = Table::new().row("matrices.0", "a");
    for (kind, name) in named {
        let tensors = [Written("a", vec![256, 1], kind, vec![0; 210])];
        let (_folder, path) = file("model.gguf", gguf(32, &tensors));
        let mut model = model(&[], &[[1, 256]], &[]);
        let loaded = Weights::open(&path).and_then(|weights| weights.load(&table, &mut model));
        let said = sentence(loaded);
        assert!(
            said.ends_with(&format!("a holds {name}, but matrices.0 F32")),
            "{said}"
        );
    }
}
