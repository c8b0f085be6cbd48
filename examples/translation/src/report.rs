//! The figures of a run, for people and as JSON.

use std::path::Path;

use example_common::error::Error;
use example_common::files;
use example_common::text::printable;
use serde_json::json;

use crate::data::Example;
use crate::evaluate::{Score, Scores, is_right};
use crate::run_config::RunConfig;
use crate::sentence::LONGEST;
use burn_attn_models::train::{CurvePoint, State};

/// Everything `--report` writes.
pub struct Report<'a> {
    /// Where the sentences of `held_out` are from: those that were set aside, or the file of `--test`.
    pub tested_on: &'a str,
    /// How good the translations are.
    pub scores: &'a Scores,
    /// The checkpoint that translated.
    pub checkpoint: &'a str,
    /// Hypotheses kept while searching; 1 is greedy.
    pub beam: usize,
    /// How training went, over all parts of a resumed run.
    pub state: &'a State,
    /// Trained parameters of the model.
    pub parameters: usize,
    /// Where it was computed.
    pub device: &'a str,
    /// The whole configuration of the run, with its seed and the corpus.
    pub config: &'a RunConfig,
}

impl Report<'_> {
    /// Writes the report as JSON.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let epoch = |point: &CurvePoint| {
            json!({
                "epoch": point.epoch,
                "step": point.step,
                "train_loss": point.train,
                "validation_loss": point.validation,
                "train_accuracy": point.train_accuracy.fraction(),
                "validation_accuracy": point.validation_accuracy.fraction(),
            })
        };
        let report = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "tested_on": self.tested_on,
            "held_out": self.scores.held_out,
            // `null` for a corpus without such a split.
            "combinations": self.scores.combinations,
            "checkpoint": self.checkpoint,
            "beam": self.beam,
            "train": {
                "seconds": self.state.seconds,
                "tokens_per_second": self.state.tokens_per_second(),
                "steps": self.state.step,
                "curve": self.state.curve.iter().map(epoch).collect::<Vec<_>>(),
            },
            "model": { "parameters": self.parameters },
            "device": self.device,
            "config": self.config,
        });
        let report = format!("{report:#}\n");
        Ok(files::replace(path, report.as_bytes())?)
    }
}

/// Writes the translations of the sentences never seen, a line each: source, translation and all references, with tabs between them.
pub fn write_translations(
    path: &Path,
    examples: &[Example],
    translations: &[String],
) -> Result<(), Error> {
    let mut lines = String::new();
    for (example, translation) in examples.iter().zip(translations) {
        let columns = [&example.source, translation]
            .into_iter()
            .chain(&example.references);
        // A model may write any character, and these would end the column or the line.
        let columns: Vec<String> = columns
            .map(|text| text.replace(['\t', '\n', '\r'], " "))
            .collect();
        lines += &columns.join("\t");
        lines.push('\n');
    }
    Ok(files::replace(path, lines.as_bytes())?)
}

/// Scores and a handful of the translations of `held_out`, to be printed.
pub fn text(scores: &Scores, held_out: &[Example], tested_on: &str) -> String {
    let show = |name: &str, score: &Score| {
        format!(
            "{name}: {:.1} % of {} sentences exactly right, BLEU {:.1}\n",
            100.0 * score.exact,
            score.sentences,
            score.bleu
        )
    };
    let mut lines = show(tested_on, &scores.held_out);
    if let Some(combinations) = &scores.combinations {
        lines += &show("held-out combinations of words, never seen", combinations);
    }
    // Spread over the split, so that they are not all of one kind.
    let stride = (held_out.len() / 5).max(1);
    let samples = held_out.iter().zip(&scores.translations).step_by(stride);
    for (example, translation) in samples.take(5) {
        let shown = |text: &str| printable(text, LONGEST);
        let (source, translated) = (shown(&example.source), shown(translation));
        if is_right(translation, example) {
            lines += &format!("\n  {source}\n    ✓ {translated}");
        } else {
            let reference = shown(&example.references[0]);
            lines += &format!("\n  {source}\n    ✗ {translated}");
            lines += &format!("\n    expected, for example: {reference}");
        }
    }
    lines
}

#[cfg(test)]
mod tests;
