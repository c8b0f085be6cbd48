//! How good the translations are of sentences that training never saw.

use example_common::error::Error;
use example_common::exit::warn;
use serde::Serialize;

use crate::bleu::corpus_bleu;
use crate::data::{Example, Split};
use crate::sentence::key;
use crate::translator::Translator;

/// How good the translations of one split are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Source sentences.
    pub sentences: usize,
    /// The fraction translated exactly as one of the references.
    pub exact: f64,
    /// sacreBLEU's BLEU, from 0 to 100.
    pub bleu: f64,
}

/// The scores of a run.
pub struct Scores {
    /// Sentences never seen.
    pub held_out: Score,
    /// Combinations never seen, if the corpus sets some aside.
    pub combinations: Option<Score>,
    /// The translations of the sentences never seen, in their order.
    pub translations: Vec<String>,
}

/// Translates everything that was held out.
pub fn evaluate(translator: &Translator, split: &Split) -> Result<Scores, Error> {
    let translations = translate(translator, &split.held_out)?;
    let combinations = match split.combinations.as_slice() {
        [] => None,
        some => Some(score(&translate(translator, some)?, some)),
    };
    Ok(Scores {
        held_out: score(&translations, &split.held_out),
        combinations,
        translations,
    })
}

/// Whether a translation is one of the references. Sentences with the same [`key`] are equal.
pub fn is_right(translation: &str, example: &Example) -> bool {
    let translation = key(translation);
    let mut references = example.references.iter();
    references.any(|reference| key(reference) == translation)
}

/// Translates the sources; one that is longer than the positions counts as not translated.
fn translate(translator: &Translator, examples: &[Example]) -> Result<Vec<String>, Error> {
    let sources = translator.vocabulary.encode_all(
        examples
            .iter()
            .map(|example| example.source.as_str())
            .collect(),
    )?;
    let fitting: Vec<usize> = (0..sources.len())
        .filter(|&index| translator.config.fits(sources[index].len()))
        .collect();
    let too_long = sources.len() - fitting.len();
    if too_long > 0 {
        warn(&format!(
            "{too_long} of {} sentences are longer than the {} positions of --max-len and count as not translated",
            sources.len(),
            translator.config.model.max_len
        ));
    }
    let batch: Vec<&Vec<u32>> = fitting.iter().map(|&index| &sources[index]).collect();
    let found = translator.translate(&batch)?;
    let mut translations = vec![String::new(); sources.len()];
    for (index, tokens) in fitting.into_iter().zip(found) {
        translations[index] = translator.vocabulary.decode(&tokens)?;
    }
    Ok(translations)
}

/// Exact matches with any reference, and BLEU against all of them.
fn score(translations: &[String], examples: &[Example]) -> Score {
    let keys = |texts: &[String]| -> Vec<String> { texts.iter().map(|text| key(text)).collect() };
    let references = examples.iter().map(|example| keys(&example.references));
    let pairs = translations.iter().zip(examples);
    let exact = pairs.filter(|(text, example)| is_right(text, example));
    Score {
        sentences: examples.len(),
        exact: exact.count() as f64 / examples.len().max(1) as f64,
        bleu: corpus_bleu(&keys(translations), &references.collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests;
