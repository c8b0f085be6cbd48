//! The figures of a run, for people and as JSON.

use std::path::Path;

use example_common::files::{self, FileError};
use example_common::text::printable;
use serde::Serialize;
use serde_json::json;

use crate::data::Example;
use crate::error::Error;
use crate::evaluate::Scores;
use crate::run_config::RunConfig;
use crate::sentence::LONGEST;
use crate::state::{CurvePoint, State};

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

/// Everything `--report` writes.
pub struct Report<'a> {
    /// What `held_out` is of: the sentences that were set aside, or the file of `--test`.
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
        Ok(files::replace(path, report.as_bytes()).map_err(FileError::of("write", path))?)
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
    Ok(files::replace(path, lines.as_bytes()).map_err(FileError::of("write", path))?)
}

/// Scores and sample translations, to be printed.
pub fn text(scores: &Scores, tested_on: &str) -> String {
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
    for sample in &scores.samples {
        let mark = if sample.right { "✓" } else { "✗" };
        let shown = |text: &str| printable(text, LONGEST);
        let (source, translation) = (shown(&sample.source), shown(&sample.translation));
        lines += &format!("\n  {source}\n    {mark} {translation}");
        if !sample.right {
            let reference = shown(&sample.reference);
            lines += &format!("\n    expected, for example: {reference}");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::TrainArgs;
    use crate::state::Accuracy;

    #[test]
    fn a_line_of_translations_has_the_sentence_and_all_its_references() {
        let example = Example {
            source: "Go.".into(),
            references: vec!["Ve.".into(), "Vete.".into()],
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("translations.tsv");
        write_translations(&path, &[example], &["Ve\ta\ncasa.".into()]).unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written, "Go.\tVe a casa.\tVe.\tVete.\n");
    }

    #[test]
    fn the_names_in_the_json_are_fixed() {
        let score = Score {
            sentences: 2,
            exact: 0.5,
            bleu: 12.5,
        };
        let config = TrainArgs::default().config().unwrap();
        let point = CurvePoint {
            epoch: 1,
            step: 9,
            train: 2.0,
            validation: 1.5,
            train_accuracy: Accuracy::default(),
            validation_accuracy: Accuracy {
                right: 3,
                tokens: 4,
            },
        };
        let scores = Scores {
            held_out: score.clone(),
            combinations: Some(score),
            translations: Vec::new(),
            samples: Vec::new(),
        };
        let state = State {
            seconds: 1.0,
            tokens: 2,
            step: 9,
            curve: vec![point],
            ..State::default()
        };
        let report = Report {
            tested_on: "test.tsv",
            scores: &scores,
            checkpoint: "epoch-0001",
            beam: 4,
            state: &state,
            parameters: 3,
            device: "flex",
            config: &config,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        report.write(&path).unwrap();
        let json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(json["held_out"]["exact"], 0.5);
        assert_eq!(json["held_out"]["bleu"], 12.5);
        assert_eq!(json["combinations"]["exact"], 0.5);
        assert_eq!(json["train"]["seconds"], 1.0);
        assert_eq!(json["train"]["tokens_per_second"], 2.0);
        assert_eq!(json["model"]["parameters"], 3);
        assert_eq!(json["device"], "flex");
        assert_eq!(json["checkpoint"], "epoch-0001");
        assert_eq!(json["tested_on"], "test.tsv");
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(json["beam"], 4);
        assert_eq!(json["train"]["steps"], 9);
        let point = &json["train"]["curve"][0];
        assert_eq!(point["train_loss"], 2.0);
        assert_eq!(point["train_accuracy"], serde_json::Value::Null);
        assert_eq!(point["validation_accuracy"], 0.75);
        assert_eq!(json["config"]["seed"], 1);
        assert_eq!(json["config"]["model"]["d_model"], 96);
    }
}
