//! A translator in one file: words as tokens, an encoder that reads English, a decoder that writes Spanish, a minute of training.
//!
//! `cargo run --release -p tiny`

use std::collections::HashMap;

use burn::{
    module::Module,
    nn::{Embedding, EmbeddingConfig, Linear, LinearConfig, loss::CrossEntropyLossConfig},
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor},
};
use burn_attn::{
    AttentionMask, BlockConfig, LayerInput, NormPlacement, TransformerStack,
    TransformerStackConfig,
    positions::{Sinusoidal, SinusoidalConfig},
};
use burn_attn_models::tokens::padded;
use toy_corpus::{Pair, ToyCorpus};

const BATCH: usize = 32;
const D_MODEL: usize = 96;
// Tokens that are no words: padding, and the begin and the end of a sentence.
const PAD: u32 = 0;
const BEGIN: u32 = 1;
const END: u32 = 2;

#[derive(Module, Debug)]
struct Translator {
    embedding: Embedding,
    positions: Sinusoidal,
    encoder: TransformerStack,
    decoder: TransformerStack,
    head: Linear,
}

impl Translator {
    fn new(words: usize, device: &Device) -> Self {
        let block = BlockConfig::new().with_norm_placement(NormPlacement::Pre);
        let encoder = TransformerStackConfig::encoder(D_MODEL, 2 * D_MODEL, 4, 1);
        let decoder = TransformerStackConfig::decoder(D_MODEL, 2 * D_MODEL, 4, 1);
        Self {
            embedding: EmbeddingConfig::new(words, D_MODEL).init(device),
            positions: SinusoidalConfig::new(D_MODEL).init(device),
            encoder: encoder.with_block(block.clone()).init(device),
            decoder: decoder.with_causal(true).with_block(block).init(device),
            head: LinearConfig::new(D_MODEL, words).init(device),
        }
    }

    fn embed(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        self.positions.forward(self.embedding.forward(tokens))
    }

    /// What each English word means in its sentence: `[batch, len]` tokens → `[batch, len, d_model]`.
    fn read(&self, english: Tensor<2, Int>) -> Tensor<3> {
        let padding = AttentionMask::padding(english.clone(), PAD.into());
        let input = LayerInput::new(self.embed(english)).mask(padding);
        self.encoder.forward(input)
    }

    /// Logits of the word after each Spanish word: `[batch, len]` tokens → `[batch, len, words]`.
    fn write(
        &self,
        spanish: Tensor<2, Int>,
        memory: Tensor<3>,
        english: Tensor<2, Int>,
    ) -> Tensor<3> {
        let padding = AttentionMask::padding(english, PAD.into());
        let input = LayerInput::new(self.embed(spanish))
            .memory(memory)
            .memory_mask(padding);
        self.head.forward(self.decoder.forward(input))
    }
}

/// The words and marks of a sentence as numbers, which new ones get.
fn tokens(sentence: &str, vocabulary: &mut HashMap<String, u32>) -> Vec<u32> {
    let spaced = sentence.replace('.', " .").replace(',', " ,");
    let spaced = spaced.replace('?', " ?").replace('¿', "¿ ");
    let number = |word: &str| {
        let next = vocabulary.len() as u32;
        *vocabulary.entry(word.to_string()).or_insert(next)
    };
    spaced.split_whitespace().map(number).collect()
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    let first = first.map(|steps| steps.to_str().and_then(|steps| steps.parse::<usize>().ok()));
    let steps = match (first, arguments.next()) {
        (None, _) => 1500,
        (Some(Some(steps)), None) => steps,
        _ => {
            eprintln!("usage: tiny [STEPS]");
            std::process::exit(2);
        }
    };
    let corpus = ToyCorpus::generate(1);
    let special = ["<pad>", "<begin>", "<end>"].map(String::from);
    let mut vocabulary: HashMap<String, u32> = special.into_iter().zip(0..).collect();
    let mut pair = |pair: &Pair| {
        let spanish = tokens(&pair.target, &mut vocabulary);
        let spanish = [&[BEGIN], &spanish[..], &[END]].concat();
        (tokens(&pair.source, &mut vocabulary), spanish)
    };
    let (english, spanish): (Vec<_>, Vec<_>) = corpus.train.iter().map(&mut pair).unzip();
    let (unseen, expected): (Vec<_>, Vec<_>) = corpus.held_out.iter().map(pair).unzip();
    let words = vocabulary.len();

    // The backend is the device; `--features wgpu` makes it a GPU, and nothing below changes.
    let device = Device::default().autodiff();
    burn_attn::seed(&device, 1);
    let mut model = Translator::new(words, &device);
    let mut optimizer = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().with_pad_tokens(Some(vec![PAD as usize]));
    let loss = loss.init(&device);
    let batches = english.chunks(BATCH).zip(spanish.chunks(BATCH));
    for (step, (english, spanish)) in batches.cycle().take(steps).enumerate() {
        let (english, _) = padded(english, &device);
        let (spanish, _) = padded(spanish, &device);
        let [batch, len] = spanish.dims();
        // Each word is predicted from those before it.
        let memory = model.read(english.clone());
        let logits = model.write(spanish.clone().narrow(1, 0, len - 1), memory, english);
        let rows = batch * (len - 1);
        let next = spanish.narrow(1, 1, len - 1).reshape([rows]);
        let loss = loss.forward(logits.reshape([rows, words]), next);
        if step % (steps / 10).max(1) == 0 {
            let loss = loss.clone().into_scalar::<f32>();
            println!("step {step:4}  loss {loss:.4}");
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(1e-3, model, gradients);
    }

    // Translate sentences that it has never seen, the most probable word at a time.
    let (model, device) = (model.valid(), device.inner());
    let (english, _) = padded(&unseen, &device);
    let memory = model.read(english.clone());
    let mut spanish = Tensor::<2, Int>::full([unseen.len(), 1], BEGIN, &device);
    for len in 1..20 {
        let logits = model.write(spanish.clone(), memory.clone(), english.clone());
        let next = logits.narrow(1, len - 1, 1).argmax(2).squeeze_dim(2);
        spanish = Tensor::cat(vec![spanish, next], 1);
    }
    let written: Vec<u32> = spanish.try_into_vec_as().expect("tokens are numbers");
    let written: Vec<&[u32]> = written.chunks(20).collect();
    let right = written.iter().zip(&expected);
    let right = right.filter(|(written, expected)| written.starts_with(expected));
    let word: HashMap<u32, &String> = vocabulary.iter().map(|(word, &id)| (id, word)).collect();
    for (pair, written) in corpus.held_out.iter().zip(&written).take(5) {
        let words = written[1..].iter().take_while(|&&token| token != END);
        let words: Vec<&str> = words.map(|token| word[token].as_str()).collect();
        println!("{}\n    {}", pair.source, words.join(" "));
    }
    println!("{} of {} exactly right", right.count(), unseen.len());
}
