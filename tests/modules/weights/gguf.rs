//! Files of ggml and llama.cpp: numbers of every type that is read, and a sentence for what is not, or was made to do harm.

use std::fs;

use burn_attn_models::weights::{Table, Weights, WeightsError, transposed};
use burn_attn_tests::golden;

use super::{Model, folder, load, model, sentence};

/// A tensor of a file: name, sizes with the fastest first, type, bytes.
struct Written<'a>(&'a str, Vec<u64>, u32, Vec<u8>);

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// A file of version 3 with these tensors, one after the other.
fn gguf(alignment: u32, tensors: &[Written]) -> Vec<u8> {
    let mut bytes = [b"GGUF".as_slice(), &3u32.to_le_bytes()].concat();
    bytes.extend((tensors.len() as u64).to_le_bytes());
    // A text, an array of texts, and a number.
    bytes.extend(3u64.to_le_bytes());
    bytes.extend(
        [
            text("general.name"),
            8u32.to_le_bytes().into(),
            text("tiny"),
        ]
        .concat(),
    );
    bytes.extend(
        [
            text("tokens"),
            9u32.to_le_bytes().into(),
            8u32.to_le_bytes().into(),
        ]
        .concat(),
    );
    bytes.extend([2u64.to_le_bytes().into(), text("a"), text("be")].concat());
    bytes.extend([text("general.alignment"), 4u32.to_le_bytes().into()].concat());
    bytes.extend(alignment.to_le_bytes());
    let mut numbers = Vec::new();
    for Written(name, sizes, kind, of_tensor) in tensors {
        numbers.resize(numbers.len().next_multiple_of(alignment as usize), 0);
        bytes.extend(text(name));
        bytes.extend((sizes.len() as u32).to_le_bytes());
        sizes
            .iter()
            .for_each(|size| bytes.extend(size.to_le_bytes()));
        bytes.extend(kind.to_le_bytes());
        bytes.extend((numbers.len() as u64).to_le_bytes());
        numbers.extend(of_tensor);
    }
    bytes.resize(bytes.len().next_multiple_of(alignment as usize), 0);
    [bytes, numbers].concat()
}

/// A half in f16.
const HALF: [u8; 2] = [0x00, 0x38];

/// Two blocks of 8-bit numbers, and what they are.
fn eight_bits() -> (Vec<u8>, Vec<f32>) {
    let numbers: Vec<i8> = (0..64).map(|i| (i * 37 % 255 - 127) as i8).collect();
    let blocks = numbers.chunks(32).flat_map(|block| {
        let block = block.iter().map(|&number| number as u8);
        HALF.into_iter().chain(block)
    });
    (
        blocks.collect(),
        numbers
            .iter()
            .map(|&number| 0.5 * f32::from(number))
            .collect(),
    )
}

/// Two blocks of 4-bit numbers, and what they are.
fn four_bits() -> (Vec<u8>, Vec<f32>) {
    let numbers: Vec<u8> = (0..64).map(|i| (i * 7 % 16) as u8).collect();
    let blocks = numbers.chunks(32).flat_map(|block| {
        let (low, high) = block.split_at(16);
        let packed = low.iter().zip(high).map(|(low, high)| low | high << 4);
        HALF.into_iter().chain(packed.collect::<Vec<u8>>())
    });
    (
        blocks.collect(),
        numbers
            .iter()
            .map(|&number| 0.5 * (f32::from(number) - 8.0))
            .collect(),
    )
}

/// A matrix of the model.
fn matrix(model: &Model, at: usize) -> Vec<f32> {
    model.matrices[at].val().into_data().iter().collect()
}

#[test]
fn every_type_is_read() {
    let numbers = [1.0f32, -2.5, 0.125, 96.0, -0.75, 3.0];
    let upper = |number: &f32| ((number.to_bits() >> 16) as u16).to_le_bytes();
    let (q8, of_q8) = eight_bits();
    let (q4, of_q4) = four_bits();
    for alignment in [32, 64] {
        let tensors = [
            Written(
                "f32",
                vec![3, 2],
                0,
                numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
            ),
            Written(
                "f64",
                vec![3, 2],
                28,
                numbers
                    .iter()
                    .flat_map(|&n| f64::from(n).to_le_bytes())
                    .collect(),
            ),
            Written(
                "bf16",
                vec![3, 2],
                30,
                numbers.iter().flat_map(upper).collect(),
            ),
            // 1, -2
            Written("f16", vec![2, 1], 1, vec![0x00, 0x3c, 0x00, 0xc0]),
            Written("q8", vec![32, 2], 8, q8.clone()),
            Written("q4", vec![32, 2], 2, q4.clone()),
        ];
        let folder = folder();
        let path = folder.path().join("model.gguf");
        fs::write(&path, gguf(alignment, &tensors)).unwrap();
        let mut model = model(
            &[],
            &[[2, 3], [2, 3], [2, 3], [1, 2], [2, 32], [2, 32], [32, 2]],
            &[],
        );
        let names = ["f32", "f64", "bf16", "f16", "q8", "q4"]
            .into_iter()
            .enumerate();
        let table = names.fold(Table::new(), |table, (at, name)| {
            table.row(format!("matrices.{at}"), name)
        });
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

#[track_caller]
fn refused(bytes: &[u8]) -> String {
    let folder = folder();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    let error = Weights::open(&path).expect_err("a file to refuse");
    assert!(matches!(error, WeightsError::File { .. }), "{error:?}");
    let sentence = error.to_string();
    let (_, reason) = sentence.split_once(" cannot be read as weights: ").unwrap();
    reason.to_string()
}

#[test]
fn damaged_files_have_a_sentence() {
    let four = |name| Written(name, vec![2, 2], 0, vec![0; 16]);
    let whole = gguf(32, &[four("a"), four("b")]);
    // Wherever it ends.
    for len in 9..whole.len() {
        refused(&whole[..len]);
    }
    let mut newer = whole.clone();
    newer[4] = 4;
    assert_eq!(
        refused(&newer),
        "it should be GGUF of version 2 or 3, but is of version 4"
    );
    let mut many = whole;
    many[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(refused(&many), "it has more than 250000 tensors");
    assert_eq!(
        refused(&gguf(32, &[four("a"), four("a")])),
        "there are two tensors a"
    );
    assert_eq!(
        refused(&gguf(32, &[Written("q", vec![33, 2], 8, vec![0; 99])])),
        "tensor q cannot be of Q8_0 and shape [2, 33]"
    );
    assert_eq!(
        refused(&gguf(32, &[Written("q", vec![u64::MAX / 4, 2], 0, vec![])])),
        format!("tensor q cannot be of F32 and shape [2, {}]", u64::MAX / 4)
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
    assert_eq!(refused(&gguf(48, &[four("a")])), "its alignment is 48");
}

#[test]
fn a_type_that_is_not_read_is_named() {
    let folder = folder();
    let path = folder.path().join("model.gguf");
    // Q6_K, whose blocks have 256 numbers.
    let tensors = [Written("a", vec![256, 1], 14, vec![0; 210])];
    fs::write(&path, gguf(32, &tensors)).unwrap();
    let table = Table::new().row("matrices.0", "a");
    let mut model = model(&[], &[[1, 256]], &[]);
    let said = sentence(Weights::open(&path).and_then(|weights| weights.load(&table, &mut model)));
    assert!(said.contains("GGML type 14"), "{said}");
}

/// `make_gguf.py` quantised the same numbers.
#[test]
fn what_ggml_wrote_is_what_it_reads() {
    let path = golden::path("weights").join("quantised.gguf");
    let mut model = model(&[], &[[3, 64]; 5], &[]);
    let names = ["f16", "q8_0", "q4_0", "expected.q8_0"]
        .into_iter()
        .enumerate();
    let table = names.fold(Table::new(), |table, (at, name)| {
        table.row(format!("matrices.{at}"), name)
    });
    let table = table.row("matrices.4", "expected.q4_0");
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
