//! A training under way: what is shown of it, and how Ctrl-C ends it.

use std::ops::ControlFlow;

use burn::{
    module::{Module, ModuleDisplay},
    train::{InferenceStep, Interrupter, SequenceOutput, TrainStep},
};
use burn_attn_models::train::{Event, TokenBatch, TrainError, Trainer, TrainingData};
use serde::Serialize;

pub use crate::display::Kind;
use crate::{display::Display, error::Error, learner};

/// Runs a training of so many epochs to its end, until Ctrl-C, or until `evaluated`, which is called after each epoch, says that it is enough. Returns whether Ctrl-C
/// has left something to train.
///
/// # Errors
///
/// As [`Trainer::run`].
pub fn run<M, B, C, D>(
    trainer: &mut Trainer<M, C>,
    data: &D,
    kind: Kind,
    epochs: usize,
    mut evaluated: impl FnMut(&Trainer<M, C>) -> ControlFlow<()>,
) -> Result<bool, Error>
where
    M: Module + ModuleDisplay + Send,
    M: TrainStep<Input = B, Output = SequenceOutput>,
    M: InferenceStep<Input = B, Output = SequenceOutput>,
    B: TokenBatch,
    C: Serialize,
    D: TrainingData<Batch = B>,
{
    let interrupter = Interrupter::new();
    learner::stop_by_ctrl_c(interrupter.clone());
    let mut display = Display::new(kind, epochs, trainer.state.epoch, interrupter.clone());
    let mut is_stopped = false;
    let trained = trainer.run(data, |trainer, event| {
        display.show(trainer, event);
        let flow = match event {
            Event::Evaluated => evaluated(trainer),
            Event::Step => ControlFlow::Continue(()),
        };
        is_stopped = interrupter.should_stop() && flow.is_continue() && !trainer.state.finished;
        Ok(match is_stopped {
            true => ControlFlow::Break(()),
            false => flow,
        })
    });
    display.end();
    // From here on Ctrl-C is the second one, which ends the program.
    interrupter.stop(None);
    trained.map_err(|error: Error| match error.downcast_ref() {
        Some(TrainError::Diverged { .. }) => {
            format!("training stopped: {error}; try a lower --learning-rate").into()
        }
        _ => error,
    })?;
    Ok(is_stopped)
}
