//! A trained model at work: sentences in, sentences out.

use std::path::Path;

use burn::module::Module;
use burn::tensor::Device;
use burn_attn_models::generate::{BeamOptions, beam_search};
use burn_attn_models::seq2seq::Seq2Seq;
use example_common::error::Error;
use example_common::text::printable;

use crate::batches;
use crate::checkpoint;
use crate::run_config::RunConfig;
use crate::sentence::{LONGEST, composed, key};
use crate::vocabulary::{BOS, EOS, Vocabulary};

/// Sentences translated at a time.
pub const BATCH: usize = 64;

/// The best checkpoint of a run, ready to translate.
pub struct Translator {
    /// The run.
    pub config: RunConfig,
    /// Its vocabulary.
    pub vocabulary: Vocabulary,
    /// Its model, without gradients.
    pub model: Seq2Seq,
    /// The name of the checkpoint.
    pub checkpoint: String,
    /// Hypotheses kept while searching; 1 is greedy.
    pub beam: usize,
}

impl Translator {
    /// Loads the best checkpoint of a folder.
    ///
    /// # Errors
    /// If there is none, it is broken, or the beam is wider than the vocabulary.
    pub fn load(out: &Path, device: &Device, beam: usize) -> Result<Self, Error> {
        let checkpoint = checkpoint::best(out)?;
        let vocabulary = checkpoint::vocabulary(&checkpoint)?;
        if !(1..=vocabulary.len()).contains(&beam) {
            return Err(format!(
                "--beam must be between 1 and the vocabulary's {} tokens, got {beam}",
                vocabulary.len()
            )
            .into());
        }
        let model = checkpoint.trained(checkpoint.config.model.init(device))?;
        Ok(Self {
            model: model.valid(),
            config: checkpoint.config,
            vocabulary,
            checkpoint: checkpoint.state.name(),
            beam,
        })
    }

    /// The ids of a sentence that can be translated.
    ///
    /// # Errors
    /// If it is empty or longer than the positions.
    pub fn encode(&self, sentence: &str) -> Result<Vec<u32>, Error> {
        let shown = printable(sentence, LONGEST);
        let refused =
            |problem: &str| -> Error { format!("cannot translate {shown:?}: {problem}").into() };
        if key(sentence).is_empty() {
            return Err(refused("it is empty"));
        }
        let tokens = self.vocabulary.encode(&composed(sentence))?;
        if !self.config.fits(tokens.len()) {
            let (len, most) = (tokens.len(), self.config.model.max_len - 1);
            return Err(refused(&format!(
                "it has {len} tokens, and this model reads at most {most} (--max-len when it was trained)"
            )));
        }
        Ok(tokens)
    }

    /// The translations of encoded sentences, as ids.
    ///
    /// # Errors
    /// If the model's logits are not numbers.
    pub fn translate(&self, sentences: &[impl AsRef<[u32]>]) -> Result<Vec<Vec<u32>>, Error> {
        search(&self.model, sentences, self.beam)
    }

    /// The translation of one sentence.
    pub fn translate_text(&self, sentence: &str) -> Result<String, Error> {
        let translations = self.translate(&[self.encode(sentence)?])?;
        self.text(&translations[0])
    }

    /// The text of a translation. Whatever a model writes, it is one line without control characters.
    pub fn text(&self, tokens: &[u32]) -> Result<String, Error> {
        let text = self.vocabulary.decode(tokens)?;
        Ok(text.replace(char::is_control, " "))
    }
}

/// The translations of encoded sentences by a model without gradients, as ids.
///
/// # Errors
/// If the model's logits are not numbers.
pub fn search(
    model: &Seq2Seq,
    sentences: &[impl AsRef<[u32]>],
    beam: usize,
) -> Result<Vec<Vec<u32>>, Error> {
    let device = model.embedding.weight.device();
    let sentences: Vec<&[u32]> = sentences.iter().map(AsRef::as_ref).collect();
    // Sentences of the same length together: no padding, and all end at about the same step.
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    order.sort_by_key(|&index| sentences[index].len());
    let mut translations = vec![Vec::new(); sentences.len()];
    for chunk in order.chunks(BATCH) {
        let rows = chunk.iter().map(|&index| sentences[index]);
        let longest = rows.clone().map(<[u32]>::len).max().unwrap_or(0);
        let (source, lengths) = batches::sources(rows, &device);
        let options = BeamOptions::new(beam, most_tokens(model, longest))
            .stop_tokens([EOS])
            .length_penalty(0.6);
        let start = model.start(source, &lengths);
        let prompts = vec![vec![BOS]; chunk.len()];
        let found = beam_search(model, start, &prompts, &options)?;
        for (&index, mut best) in chunk.iter().zip(found) {
            translations[index] = best.swap_remove(0).generation.tokens;
        }
    }
    Ok(translations)
}

/// Tokens after which the translation of a sentence of `longest` tokens is cut off.
pub fn most_tokens(model: &Seq2Seq, longest: usize) -> usize {
    (2 * longest + 20).min(model.max_len())
}
