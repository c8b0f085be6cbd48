//! How far a training is: Burn's dashboard in a terminal, elsewhere a line now and then.

use std::sync::Arc;

use burn::{
    module::Module,
    train::{
        Interrupter,
        metric::{
            MetricDefinition, MetricEntry, MetricId, NumericAttributes, NumericEntry,
            SerializedEntry,
        },
        renderer::{MetricState, MetricsRenderer},
    },
};
use burn_attn_models::train::{Event, Trainer};

use crate::learner;

/// The metrics, and whether a larger value is better.
const METRICS: [(&str, bool); 4] = [
    ("Loss", false),
    (PERPLEXITY, false),
    ("Accuracy", true),
    ("Learning Rate", false),
];
const PERPLEXITY: &str = "Perplexity";

/// What a model is trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Tokens of a text, whose perplexity is shown.
    Text,
    /// Anything else.
    Other,
}

/// Shows a training.
pub struct Display {
    renderer: Box<dyn MetricsRenderer>,
    /// Whether the steps of the epoch under way are shown.
    in_epoch: bool,
    kind: Kind,
}

impl Display {
    /// Begins with `done` of `epochs` epochs. The dashboard stops the training by `interrupter`.
    pub fn new(kind: Kind, epochs: usize, done: usize, interrupter: Interrupter) -> Self {
        let mut renderer = learner::renderer(interrupter);
        let shown = |&(name, _): &(&str, bool)| kind == Kind::Text || name != PERPLEXITY;
        for (name, higher_is_better) in METRICS.into_iter().filter(shown) {
            renderer.register_metric(MetricDefinition {
                metric_id: id(name),
                name: Arc::new(name.into()),
                description: None,
                attributes: NumericAttributes {
                    unit: None,
                    higher_is_better,
                }
                .into(),
            });
        }
        renderer.start(epochs, done + 1, None, None);
        Self {
            renderer,
            in_epoch: false,
            kind,
        }
    }

    /// Shows a step, or the end of an epoch.
    pub fn show<M: Module, C>(&mut self, trainer: &Trainer<M, C>, event: Event) {
        let renderer = &mut self.renderer;
        if !self.in_epoch {
            renderer.start_split("train", trainer.epoch_steps());
            self.in_epoch = true;
        }
        let state = &trainer.state;
        match (event, state.curve.last()) {
            (Event::Evaluated, Some(point)) => {
                renderer.update_train(metric("Loss", point.train));
                renderer.end_split();
                renderer.start_split("valid", 1);
                let accuracy = point.validation_accuracy.fraction().unwrap_or_default();
                renderer.update_valid(metric("Loss", point.validation));
                if self.kind == Kind::Text {
                    renderer.update_valid(metric(PERPLEXITY, point.validation.exp()));
                }
                renderer.update_valid(metric("Accuracy", 100.0 * accuracy));
                renderer.update_split(1);
                renderer.end_split();
                renderer.update_epoch(point.epoch);
                self.in_epoch = false;
            }
            _ => {
                if let Some(loss) = trainer.loss() {
                    renderer.update_train(metric("Loss", loss));
                }
                renderer.update_train(metric("Learning Rate", trainer.learning_rate()));
                renderer.update_split(state.step_in_epoch);
            }
        }
    }

    /// Leaves the terminal.
    pub fn end(mut self) {
        self.renderer.end();
    }
}

fn id(name: &str) -> MetricId {
    MetricId::new(Arc::new(name.into()))
}

fn metric(name: &str, value: f64) -> MetricState {
    let text = match value > 0.0 && value < 0.01 {
        true => format!("epoch {value:.2e}"),
        false => format!("epoch {value:.3}"),
    };
    let entry = MetricEntry::new(id(name), SerializedEntry::new(text, value.to_string()));
    MetricState::Numeric(entry, Some(NumericEntry::Value(value)))
}
