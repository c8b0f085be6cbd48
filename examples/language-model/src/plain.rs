//! What there is to see without a terminal: Burn's own renderer would print a line for every step.

use std::{
    collections::{BTreeMap, HashMap},
    io::IsTerminal,
    time::{Duration, Instant},
};

use burn::train::{
    LearnerModel, LearnerSummary, SupervisedTraining,
    logger::{EvaluationProgressLogger, TrainingProgressLogger},
    metric::{MetricDefinition, MetricEntry, MetricId},
    renderer::{
        EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
        MetricsRendererTraining,
    },
};

/// How often a line says how far it is.
const EVERY: Duration = Duration::from_secs(30);

/// Leaves a terminal to the dashboard, and gives anything else a line now and then.
pub fn instead_of_the_dashboard<M: LearnerModel>(
    training: SupervisedTraining<M>,
) -> SupervisedTraining<M> {
    match std::io::stdout().is_terminal() {
        true => training,
        false => training.renderer(Box::new(Lines::default())),
    }
}

/// One line for each half minute, and one at the end of each part of an epoch, training and validation.
#[derive(Default)]
struct Lines {
    epochs: usize,
    epoch: usize,
    split: String,
    items: usize,
    said: Option<Instant>,
    names: HashMap<MetricId, String>,
    /// The newest values, by name.
    values: BTreeMap<String, String>,
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

    fn say(&self, what: &str) {
        let values = self
            .values
            .iter()
            .map(|(name, value)| format!(", {} {value}", name.to_lowercase()));
        println!(
            "epoch {}/{}: {what}{}",
            self.epoch,
            self.epochs,
            values.collect::<String>()
        );
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
    }

    fn update_split(&mut self, items: usize) {
        if self.said.is_none_or(|said| said.elapsed() > EVERY) {
            self.say(&format!("{} {items} of {}", self.split, self.items));
            self.said = Some(Instant::now());
        }
    }

    fn end_split(&mut self) {
        self.say(&self.split);
        self.said = Some(Instant::now());
    }

    fn update_epoch(&mut self, epoch: usize) {
        self.epoch = epoch + 1;
    }

    fn end(&mut self) {}

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
