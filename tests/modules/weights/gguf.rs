//! Files of ggml and llama.cpp: numbers of every type that is read, from wherever a parameter's begin.

use std::fs::OpenOptions;

use burn_attn_models::weights::{Table, Weights, WeightsError, same, transposed};
use burn_attn_tests::golden;

use super::{Model, dtypes, file, load, model, sentence};

/// A tensor of a file: name, sizes with the fastest first, type, bytes.
pub struct Written<'a>(pub &'a str, pub Vec<u64>, pub u32, pub Vec<u8>);

/// A text or a name.
pub fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = text.as_ref();
    [&(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

/// A value of the metadata: name, type, bytes.
pub fn value(key: &str, kind: u32, bytes: &[u8]) -> Vec<u8> {
    [text(key), kind.to_le_bytes().into(), bytes.into()].concat()
}

/// The bytes of an array of the metadata: type, count, bytes.
pub fn array(kind: u32, count: u64, bytes: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &count.to_le_bytes(), bytes].concat()
}

/// What a file says of a tensor: name, sizes with the fastest first, type, place.
pub fn info(name: impl AsRef<[u8]>, sizes: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let rank = sizes.len() as u32;
    let sizes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
    [
        text(name),
        rank.to_le_bytes().into(),
        sizes,
        kind.to_le_bytes().into(),
        offset.to_le_bytes().into(),
    ]
    .concat()
}

/// All that comes before the numbers, without the padding.
pub fn header(version: u32, values: &[Vec<u8>], infos: &[Vec<u8>]) -> Vec<u8> {
    [
        b"GGUF".to_vec(),
        version.to_le_bytes().into(),
        (infos.len() as u64).to_le_bytes().into(),
        (values.len() as u64).to_le_bytes().into(),
        values.concat(),
        infos.concat(),
    ]
    .concat()
}

/// A file of version 3 with these tensors, one after the other.
pub fn gguf(alignment: u32, tensors: &[Written]) -> Vec<u8> {
    let aligned = |len: usize| len.next_multiple_of(alignment as usize);
    let names = [text("a"), text("be")].concat();
    let values = [
        value("general.name", 8, &text("tiny")),
        value("tokens", 9, &array(8, 2, &names)),
        value("general.alignment", 4, &alignment.to_le_bytes()),
    ];
    let (mut infos, mut numbers) = (Vec::new(), Vec::new());
    for Written(name, sizes, kind, of_tensor) in tensors {
        numbers.resize(aligned(numbers.len()), 0);
        infos.push(info(name, sizes, *kind, numbers.len() as u64));
        numbers.extend(of_tensor);
    }
    let mut bytes = header(3, &values, &infos);
    bytes.resize(aligned(bytes.len()), 0);
    [bytes, numbers].concat()
}

/// Factors of blocks, and what they are in f16.
const FACTORS: [(f32, [u8; 2]); 3] = [
    (0.5, [0x00, 0x38]),
    (1.0, [0x00, 0x3c]),
    (2.0, [0x00, 0x40]),
];

/// Blocks of 8-bit numbers, and what they are.
fn eight_bits(blocks: usize) -> (Vec<u8>, Vec<f32>) {
    let (mut packed, mut numbers) = (Vec::new(), Vec::new());
    for block in 0..blocks {
        let (factor, bytes) = FACTORS[block % 3];
        packed.extend(bytes);
        for at in block * 32..(block + 1) * 32 {
            let number = (at * 37 % 255) as i32 - 127;
            packed.push(number as i8 as u8);
            numbers.push(factor * number as f32);
        }
    }
    (packed, numbers)
}

/// Blocks of 4-bit numbers, and what they are.
fn four_bits(blocks: usize) -> (Vec<u8>, Vec<f32>) {
    let (mut packed, mut numbers) = (Vec::new(), Vec::new());
    for block in 0..blocks {
        let (factor, bytes) = FACTORS[block % 3];
        packed.extend(bytes);
        let halves: Vec<u8> = (block * 32..(block + 1) * 32)
            .map(|at| (at * 7 % 16) as u8)
            .collect();
        let (low, high) = halves.split_at(16);
        packed.extend(low.iter().zip(high).map(|(low, high)| low | high << 4));
        numbers.extend(halves.iter().map(|&half| factor * (f32::from(half) - 8.0)));
    }
    (packed, numbers)
}

/// The table of a model whose matrices are these tensors.
fn matrices<const N: usize>(names: [&str; N]) -> Table {
    let names = names.into_iter().enumerate();
    names.fold(Table::new(), |table, (at, name)| {
        table.row(format!("matrices.{at}"), name)
    })
}

/// A matrix of the model.
fn matrix(model: &Model, at: usize) -> Vec<f32> {
    model.matrices[at].val().into_data().iter().collect()
}

#[test]
fn every_type_is_read() {
    let numbers = [1.0f32, -2.5, 0.125, 96.0, -0.75, 3.0];
    let bytes = |dtype: &str| dtypes::bytes(&numbers, dtype);
    let (q8, of_q8) = eight_bits(2);
    let (q4, of_q4) = four_bits(2);
    for alignment in [32, 64] {
        let tensors = [
            Written("f32", vec![3, 2], 0, bytes("F32")),
            Written("f64", vec![3, 2], 28, bytes("F64")),
            Written("bf16", vec![3, 2], 30, bytes("BF16")),
            // 1, -2
            Written("f16", vec![2, 1], 1, vec![0x00, 0x3c, 0x00, 0xc0]),
            Written("q8", vec![32, 2], 8, q8.clone()),
            Written("q4", vec![32, 2], 2, q4.clone()),
        ];
        let (_folder, path) = file("model.gguf", gguf(alignment, &tensors));
        let mut model = model(
            &[],
            &[[2, 3], [2, 3], [2, 3], [1, 2], [2, 32], [2, 32], [32, 2]],
            &[],
        );
        let table = matrices(["f32", "f64", "bf16", "f16", "q8", "q4"]);
        let table = table.row("matrices.6", transposed("q8"));
        load(&table, &path, &mut model);
        for at in 0..3 {
            assert_eq!(matrix(&model, at), numbers);
        }
        assert_eq!(matrix(&model, 3), [1.0, -2.0]);
        assert_eq!(matrix(&model, 4), of_q8);
        assert_eq!(matrix(&model, 5), of_q4);
        let turned: Vec<f32> = (0..64).map(|at| of_q8[at % 2 * 32 + at / 2]).collect();
        assert_eq!(matrix(&model, 6), turned);
    }
}

/// Five experts of three rows of two blocks in one tensor: all but the first begin within it.
#[test]
fn blocks_are_read_from_any_row_on() {
    let ((q8, of_q8), (q4, of_q4)) = (eight_bits(30), four_bits(30));
    let tensors = [
        Written("q8", vec![64, 3, 5], 8, q8),
        Written("q4", vec![64, 3, 5], 2, q4),
    ];
    let (_folder, path) = file("model.gguf", gguf(32, &tensors));
    for (name, numbers) in [("q8", of_q8), ("q4", of_q4)] {
        let table = Table::new()
            .row("matrices.{expert}", same(name).stacked("expert"))
            .ignore("q*");
        let mut model = model(&[], &[[3, 64]; 5], &[]);
        load(&table, &path, &mut model);
        for expert in 0..5 {
            let expected = &numbers[expert * 192..][..192];
            assert_eq!(matrix(&model, expert), expected, "{name}, {expert}");
        }
    }
}

/// Three blocks in each row, so that neither what is decoded at a time nor what is moved at a time ends where the other does.
#[test]
fn more_blocks_than_are_decoded_at_a_time() {
    const ROWS: usize = 2741;
    let ((q8, of_q8), (q4, of_q4)) = (eight_bits(3 * ROWS), four_bits(3 * ROWS));
    let sizes = || vec![96, ROWS as u64];
    let tensors = [Written("q8", sizes(), 8, q8), Written("q4", sizes(), 2, q4)];
    let (_folder, path) = file("model.gguf", gguf(32, &tensors));
    let mut model = model(&[], &[[ROWS, 96]; 2], &[]);
    load(&matrices(["q8", "q4"]), &path, &mut model);
    assert!(matrix(&model, 0) == of_q8);
    assert!(matrix(&model, 1) == of_q4);
}

/// Where safetensors have the first byte of their header, a GGUF has how many tensors there are.
#[test]
fn as_many_tensors_as_a_brace_is() {
    let names: Vec<String> = (0..123).map(|at| format!("t.{at}")).collect();
    let tensors: Vec<Written> = names
        .iter()
        .map(|name| Written(name, vec![2], 0, vec![0; 8]))
        .collect();
    let bytes = gguf(32, &tensors);
    assert_eq!(bytes[8], b'{');
    let (_folder, path) = file("model.gguf", bytes);
    let weights = Weights::open(&path).unwrap();
    assert_eq!(weights.tensors().count(), 123);
    assert!(weights.tensors().all(|(_, shape)| shape == [2]));
}

#[test]
fn metadata_are_skipped() {
    let sizes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
    let kinds = (0..).zip(sizes).filter(|&(_, size)| size > 0);
    let mut values: Vec<Vec<u8>> = kinds
        .flat_map(|(kind, size)| {
            [
                value(&format!("one {kind}"), kind, &vec![0xff; size]),
                value(
                    &format!("three {kind}"),
                    9,
                    &array(kind, 3, &vec![0xff; 3 * size]),
                ),
                value(&format!("none {kind}"), 9, &array(kind, 0, &[])),
            ]
        })
        .collect();
    let texts = [text("a"), text("be"), text(b"\xff\n")].concat();
    values.push(value("texts", 9, &array(8, 3, &texts)));
    // Nobody looks at it.
    values.push(value("not UTF-8", 8, &text(b"\xff\xfe")));
    for version in [2, 3] {
        let mut bytes = header(version, &values, &[info("a", &[3], 0, 0)]);
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend([1.0f32, -2.5, 96.0].iter().flat_map(|n| n.to_le_bytes()));
        let (_folder, path) = file("model.gguf", bytes);
        let mut model = model(&[3], &[], &[]);
        load(&Table::new().row("vectors.0", "a"), &path, &mut model);
        let found: Vec<f32> = model.vectors[0].val().into_data().iter().collect();
        assert_eq!(found, [1.0, -2.5, 96.0]);
    }
}

#[test]
fn a_part_of_a_model_is_refused() {
    for (parts, is_refused) in [(1u16, false), (3, true)] {
        let count = value("split.count", 2, &parts.to_le_bytes());
        let mut bytes = header(3, &[count], &[info("a", &[3], 0, 0)]);
        bytes.resize(bytes.len().next_multiple_of(32) + 12, 0);
        let (_folder, path) = file("model-00001-of-00003.gguf", bytes);
        let error = Weights::open(&path).err().map(|error| error.to_string());
        assert_eq!(error.is_some(), is_refused, "{error:?}");
        let sentence = "it is one of 3 parts, which gguf-split --merge joins into one file";
        assert!(error.is_none_or(|error| error.ends_with(sentence)));
    }
}

#[test]
fn a_file_that_is_cut_off_after_it_was_opened() {
    let (q8, _) = eight_bits(4);
    let (_folder, path) = file("model.gguf", gguf(32, &[Written("a", vec![64, 2], 8, q8)]));
    let weights = Weights::open(&path).unwrap();
    let opened = OpenOptions::new().write(true).open(&path).unwrap();
    opened
        .set_len(opened.metadata().unwrap().len() - 37)
        .unwrap();
    let table = Table::new().row("matrices.0", "a");
    let result = weights.load(&table, &mut model(&[], &[[2, 64]], &[]));
    assert!(matches!(&result, Err(WeightsError::Numbers { name, .. }) if name == "a"));
    assert_eq!(
        sentence(result),
        "the numbers of tensor a cannot be read: the file has become shorter, and the last 37 bytes of the tensor are missing"
    );
}

/// `make_gguf.py` quantised the same numbers.
#[test]
fn what_ggml_wrote_is_what_it_reads() {
    let path = golden::path("weights").join("quantised.gguf");
    let mut model = model(&[], &[[3, 64]; 5], &[]);
    let table = matrices(["f16", "q8_0", "q4_0", "expected.q8_0", "expected.q4_0"]);
    load(&table, &path, &mut model);
    let [f16, q8, q4, of_q8, of_q4] = [0, 1, 2, 3, 4].map(|at| matrix(&model, at));
    assert_eq!((&q8, &q4), (&of_q8, &of_q4));
    let apart = |quantised: &[f32]| {
        let apart = f16.iter().zip(quantised).map(|(a, b)| (a - b).abs());
        apart.fold(0.0, f32::max)
    };
    assert!(0.0 < apart(&q8) && apart(&q8) < 0.02, "{}", apart(&q8));
    assert!(0.02 < apart(&q4) && apart(&q4) < 0.4, "{}", apart(&q4));
}

/// llama.cpp's own quantiser writes one tensor of most Q4_0 files in this type.
#[test]
fn six_bits_are_what_ggml_reads() {
    let path = golden::path("weights").join("quantised_k.gguf");
    let mut model = model(&[], &[[3, 512]; 2], &[]);
    load(&matrices(["q6_k", "expected.q6_k"]), &path, &mut model);
    let [found, expected] = [0, 1].map(|at| matrix(&model, at));
    assert!(expected.iter().any(|number| number.abs() > 1000.0));
    assert_eq!(found, expected);
}
