//! What the learner's checkpoints need beyond Burn's: nothing is deleted once something could not be saved, and errors are not lost.

use std::sync::{Arc, Mutex, PoisonError};

use burn::train::{
    Interrupter,
    checkpoint::{
        Checkpoint, Checkpointer, CheckpointerError, CheckpointingAction, CheckpointingStrategy,
    },
    logger::TrainingProgressLogger,
    metric::store::{Aggregate, Direction, EventStoreClient, Split},
};

use crate::folder::{Folder, Run};

/// The first error, and whether training was stopped. The dashboard makes the learner forget both before it returns.
#[derive(Clone, Default)]
pub struct End(Arc<Mutex<Ending>>);

#[derive(Clone, Default)]
struct Ending {
    error: Option<String>,
    stopped: bool,
    /// What an error stops.
    interrupter: Option<Interrupter>,
}

impl End {
    /// The first error, and whether training was stopped.
    pub fn of_training(&self) -> (Option<String>, bool) {
        self.with(|end| (end.error.clone(), end.stopped))
    }

    /// Stops training by `interrupter` when there is an error.
    pub fn stop_by(&self, interrupter: Interrupter) {
        self.with(|end| end.interrupter = Some(interrupter));
    }

    fn fail(&self, error: String) {
        self.with(|end| {
            if let Some(interrupter) = &end.interrupter {
                interrupter.stop(Some(&error));
            }
            end.error.get_or_insert(error);
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Ending) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A checkpointer that deletes nothing once one of those with the same [`End`] has failed: the older checkpoint may be the last good one.
pub struct Guarded<C> {
    /// What saves and deletes.
    pub inner: C,
    /// Shared by the checkpointers of a run.
    pub end: End,
}

impl<R: Checkpoint, C: Checkpointer<R>> Checkpointer<R> for Guarded<C> {
    fn save(&self, epoch: usize, record: R) -> Result<(), CheckpointerError> {
        let saved = self.inner.save(epoch, record);
        saved.inspect_err(|error| {
            self.end.fail(format!(
                "the checkpoint of epoch {epoch} is not saved: {error}"
            ));
        })
    }

    fn delete(&self, epoch: usize) -> Result<(), CheckpointerError> {
        match self.end.of_training() {
            (Some(_), _) => Ok(()),
            (None, _) => self.inner.delete(epoch),
        }
    }

    fn restore(&self, epoch: usize) -> Result<R, CheckpointerError> {
        self.inner.restore(epoch)
    }
}

/// Keeps the checkpoints of the best epoch and of the newest two, from which a run is resumed, and writes down which is the best.
pub struct BestAndNewest {
    /// The folder of the run.
    pub folder: Folder,
    /// What is written there.
    pub run: Run,
    /// The name of the metric of which the lowest is the best.
    pub metric: String,
    /// Where an error goes.
    pub end: End,
}

impl CheckpointingStrategy for BestAndNewest {
    fn checkpointing(
        &mut self,
        epoch: usize,
        store: &EventStoreClient,
    ) -> Vec<CheckpointingAction> {
        let (mean, lowest) = (Aggregate::Mean, Direction::Lowest);
        let loss = store.find_metric(&self.metric, epoch, mean, &Split::Valid);
        let best = store.find_epoch(&self.metric, mean, lowest, &Split::Valid);
        // The newest checkpoint, from which a run is resumed, stays one that can still learn.
        let finite = loss.is_some_and(f64::is_finite);
        let Some(best) = best.filter(|_| finite) else {
            self.end.fail(
                "the loss on the held-out text is no longer a number: try a lower --learning-rate"
                    .into(),
            );
            return Vec::new();
        };
        self.run.best = Some(best);
        if let Err(error) = self.folder.note(&self.run) {
            self.end.fail(error.to_string());
        }
        let older = self.folder.epochs().into_iter();
        // The one before stays until the next: this one may not be on the disk yet.
        let older = older.filter(|&older| older + 1 < epoch && older != best);
        std::iter::once(CheckpointingAction::Save)
            .chain(older.map(CheckpointingAction::Delete))
            .collect()
    }
}

/// Looks at the end of training for what stopped it.
pub struct Watch {
    /// What the learner is stopped by.
    pub interrupter: Interrupter,
    /// Where it is noted.
    pub end: End,
}

impl TrainingProgressLogger for Watch {
    fn start(&mut self, _: usize, _: usize, _: Option<usize>, _: Option<&str>) {}

    fn update_epoch(&mut self, _: usize) {}

    fn start_split(&mut self, _: &str, _: usize) {}

    fn update_split(&mut self, _: usize) {}

    fn end_split(&mut self) {}

    fn end(&mut self) {
        if let Some(error) = self.interrupter.error() {
            self.end.fail(error.to_string());
        }
        let is_stopped = self.interrupter.interruption().is_some();
        self.end.with(|end| end.stopped = is_stopped);
    }

    fn log_event_training(&mut self, _: String) {}
}
