//! The figures of a run, for people and as JSON.

use std::path::Path;

use example_common::{files, text::printable};
use serde::Serialize;

use crate::data::Example;
use crate::error::Error;
use crate::evaluate::Scores;
use crate::run_config::RunConfig;
use crate::sentence::LONGEST;
use crate::state::CurvePoint;

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
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// The version of this program.
    pub version: &'static str,
    /// What `held_out` is of: the sentences that were set aside, or the file of `--test`.
    pub tested_on: &'a str,
    /// Sentences never seen.
    pub held_out: &'a Score,
    /// Combinations of words never seen; `null` for a corpus without such a split.
    pub combinations: Option<&'a Score>,
    /// The checkpoint that translated.
    pub checkpoint: &'a str,
    /// Hypotheses kept while searching; 1 is greedy.
    pub beam: usize,
    /// How training went.
    pub train: TrainFigures,
    /// The model.
    pub model: ModelFigures,
    /// Where it was computed.
    pub device: &'a str,
    /// The whole configuration of the run, with its seed and the corpus.
    pub config: &'a RunConfig,
}

/// How training went, over all parts of a resumed run.
#[derive(Debug, Serialize)]
pub struct TrainFigures {
    /// Seconds of training, without reading data and evaluation.
    pub seconds: f64,
    /// Tokens read and predicted per second, without padding.
    pub tokens_per_second: f64,
    /// Steps of all epochs.
    pub steps: usize,
    /// What was measured at the end of every epoch.
    pub curve: Vec<EpochFigures>,
}

/// What was measured at the end of an epoch.
#[derive(Debug, Serialize)]
pub struct EpochFigures {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// The step after which it was measured.
    pub step: usize,
    /// Mean training loss (nats per token, smoothed, with dropout).
    pub train_loss: f64,
    /// Validation loss (nats per token, not smoothed).
    pub validation_loss: f64,
    /// The fraction of tokens predicted correctly; `null` for an epoch of an older version.
    pub train_accuracy: Option<f64>,
    /// The same of the validation part.
    pub validation_accuracy: Option<f64>,
}

impl From<&CurvePoint> for EpochFigures {
    fn from(point: &CurvePoint) -> Self {
        Self {
            epoch: point.epoch,
            step: point.step,
            train_loss: point.train,
            validation_loss: point.validation,
            train_accuracy: point.train_accuracy.fraction(),
            validation_accuracy: point.validation_accuracy.fraction(),
        }
    }
}

/// The model's size.
#[derive(Debug, Serialize)]
pub struct ModelFigures {
    /// Trained parameters.
    pub parameters: usize,
}

impl Report<'_> {
    /// Writes the report as JSON.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(self).expect("plain data has a JSON form");
        files::replace(path, (json + "\n").as_bytes()).map_err(Error::file("write", path))
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
    files::replace(path, lines.as_bytes()).map_err(Error::file("write", path))
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
        let report = Report {
            version: "1",
            tested_on: "test.tsv",
            held_out: &score,
            combinations: Some(&score),
            checkpoint: "epoch-0001",
            beam: 4,
            train: TrainFigures {
                seconds: 1.0,
                tokens_per_second: 2.0,
                steps: 9,
                curve: vec![EpochFigures::from(&point)],
            },
            model: ModelFigures { parameters: 3 },
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
        assert_eq!((&json["version"], &json["beam"]), (&"1".into(), &4.into()));
        assert_eq!(json["train"]["steps"], 9);
        let point = &json["train"]["curve"][0];
        assert_eq!(point["train_loss"], 2.0);
        assert_eq!(point["train_accuracy"], serde_json::Value::Null);
        assert_eq!(point["validation_accuracy"], 0.75);
        assert_eq!(json["config"]["seed"], 1);
        assert_eq!(json["config"]["model"]["d_model"], 96);
    }
}
