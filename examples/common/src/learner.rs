//! What Burn's learner prints where there is no dashboard: Burn's renderer would print a line for every step. And how Ctrl-C stops a training.

use std::{
    collections::{BTreeMap, HashMap},
    io::IsTerminal,
    time::{Duration, Instant},
};

use burn::train::{
    Interrupter, LearnerModel, LearnerSummary, SupervisedTraining,
    logger::{EvaluationProgressLogger, TrainingProgressLogger},
    metric::{MetricDefinition, MetricEntry, MetricId},
    renderer::{
        EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
        MetricsRendererTraining, default_renderer,
    },
};
use indicatif::ProgressBar;

use crate::{exit, input::bar};

/// The time between two progress lines.
const EVERY: Duration = Duration::from_secs(30);

/// The first Ctrl-C makes `interrupter` say that a training should stop, which it does after the step under way; the second ends the program.
/// If no handler can be set, the first ends it. While Burn's dashboard is shown, no Ctrl-C arrives, because it reads every key itself: there `q` and
/// then `s` stop the training.
pub fn stop_by_ctrl_c(interrupter: Interrupter) {
    let _ = ctrlc::set_handler(move || {
        if interrupter.should_stop() {
            std::process::exit(exit::STOPPED.into());
        }
        interrupter.stop(Some("Ctrl-C"));
    });
}

/// Burn's dashboard on a terminal, and a line now and then on anything else.
pub fn renderer(interrupter: Interrupter) -> Box<dyn MetricsRenderer> {
    match std::io::stdout().is_terminal() {
        true => default_renderer(interrupter, None),
        false => Box::new(Lines::default()),
    }
}

/// Gives a terminal a progress bar, and anything else a line now and then.
pub fn without_dashboard<M: LearnerModel>(
    training: SupervisedTraining<M>,
) -> SupervisedTraining<M> {
    training.renderer(Box::new(Lines::default()))
}

/// One line for each half minute, or a progress bar where both streams are a terminal, and one line at the end of each part of an epoch, training and validation.
struct Lines {
    /// Not drawn where standard error is no terminal.
    bar: ProgressBar,
    epochs: usize,
    epoch: usize,
    split: String,
    items: usize,
    said: Option<Instant>,
    names: HashMap<MetricId, String>,
    /// The newest values, by name.
    values: BTreeMap<String, String>,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            bar: bar(0, "{wide_bar} {msg} {pos} of {len}, {eta} left"),
            epochs: 0,
            epoch: 0,
            split: String::new(),
            items: 0,
            said: None,
            names: HashMap::new(),
            values: BTreeMap::new(),
        }
    }
}

impl Lines {
    fn note(&mut self, state: MetricState) {
        let (MetricState::Numeric(entry, _) | MetricState::Generic(entry)) = state;
        let MetricEntry {
            metric_id,
            serialized_entry,
        } = entry;
        let name = self.names.get(&metric_id);
        if let Some(name) = name.filter(|&name| name != "Learning Rate") {
            // "epoch 4.2 - batch 4.1"
            let text = serialized_entry.formatted;
            let value = text.strip_prefix("epoch ").unwrap_or(&text);
            let value = value.split(" - ").next().unwrap_or(value);
            self.values.insert(name.clone(), value.to_string());
        }
    }

    fn print(&self, what: &str) {
        let values = self
            .values
            .iter()
            .map(|(name, value)| format!(", {} {value}", name.to_lowercase()));
        let values: String = values.collect();
        self.bar.suspend(|| {
            exit::println(&format!(
                "epoch {}/{}: {what}{values}",
                self.epoch, self.epochs
            ))
        });
    }
}

impl MetricsRendererTraining for Lines {
    fn update_train(&mut self, state: MetricState) {
        self.note(state);
    }

    fn update_valid(&mut self, state: MetricState) {
        self.note(state);
    }

    fn on_train_end(
        &mut self,
        _: Option<LearnerSummary>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        Ok(())
    }
}

impl TrainingProgressLogger for Lines {
    fn start(&mut self, epochs: usize, first: usize, _: Option<usize>, _: Option<&str>) {
        (self.epochs, self.epoch) = (epochs, first);
        self.said = Some(Instant::now());
    }

    fn start_split(&mut self, split: &str, items: usize) {
        (self.split, self.items) = (split.to_lowercase(), items);
        self.values.clear();
        self.bar.set_length(items as u64);
        self.bar.set_message(format!(
            "epoch {}/{}: {}",
            self.epoch, self.epochs, self.split
        ));
        self.bar.reset();
    }

    fn update_split(&mut self, items: usize) {
        self.bar.set_position(items as u64);
        let is_seen = !self.bar.is_hidden() && std::io::stdout().is_terminal();
        if !is_seen && self.said.is_none_or(|said| said.elapsed() > EVERY) {
            self.print(&format!("{} {items} of {}", self.split, self.items));
            self.said = Some(Instant::now());
        }
    }

    fn end_split(&mut self) {
        self.print(&self.split);
        self.said = Some(Instant::now());
    }

    fn update_epoch(&mut self, epoch: usize) {
        self.epoch = epoch + 1;
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    fn log_event_training(&mut self, _: String) {}
}

/// The learner evaluates nothing after training.
impl MetricsRendererEvaluation for Lines {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
}

impl EvaluationProgressLogger for Lines {
    fn start_global_progress(&mut self, _: usize) {}

    fn start_test(&mut self, _: &str, _: usize) {}

    fn update_test_progress(&mut self, _: usize) {}

    fn end_test(&mut self) {}

    fn end_global_progress(&mut self) {}

    fn log_event_evaluation(&mut self, _: String) {}
}

impl MetricsRenderer for Lines {
    fn manual_close(&mut self) {}

    fn register_metric(&mut self, definition: MetricDefinition) {
        self.names
            .insert(definition.metric_id, definition.name.to_string());
    }
}
