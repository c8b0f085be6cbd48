//! The activation between the linear layers of a feed-forward network, in one pass over memory.

use super::{
    kernel::activation::{Activation, Pass, Stretch},
    parallel::{Execution, for_each},
};

/// Numbers that one task writes: enough to be worth a task, few enough to divide the work evenly.
const TASK: usize = 1 << 14;

/// `activation(x + bias)` of rows, or, gated, `activation(gate + bias) · (up + bias)` of rows `[gate | up]`.
///
/// ```
/// use burn_attn_kernels_cpu::tiled::{Activated, Activation, Execution};
///
/// let relu = Activated { bias: &[0.0, 2.0], columns: 2, activation: Activation::Relu };
/// let mut rows = [-3.0, -1.0, 5.0, 0.5];
/// relu.in_place(&mut rows, Execution::available());
/// assert_eq!(rows, [0.0, 1.0, 5.0, 2.5]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Activated<'a> {
    /// `[columns]`, gated `[2 · columns]`, or empty for none.
    pub bias: &'a [f32],
    /// Width of the rows that are written.
    pub columns: usize,
    /// The function.
    pub activation: Activation,
}

impl Activated<'_> {
    /// Replaces `[rows, columns]`, contiguous.
    ///
    /// # Panics
    /// The slice does not hold whole rows, or the bias is of another width.
    ///
    /// # Cost
    /// Some 10 to 30 operations per number, which take less time than reading and writing it.
    pub fn in_place(&self, x: &mut [f32], execution: Execution) {
        self.check(x.len(), 1);
        let (task, step, count) = (self.task(), self.columns, x.len());
        let stretches = x.chunks_mut(task).map(|x| Stretch::InPlace { x, step });
        self.share_out(count, stretches, execution);
    }

    /// Writes `[rows, columns]` from `[rows, 2 · columns]`, both contiguous.
    ///
    /// # Panics
    /// As [`in_place`](Self::in_place), and when the numbers of rows differ.
    ///
    /// # Cost
    /// As [`in_place`](Self::in_place).
    pub fn gated(&self, x: &[f32], out: &mut [f32], execution: Execution) {
        self.check(out.len(), 2);
        assert!(
            x.len() == 2 * out.len(),
            "{} numbers of gate and up do not fit {} of the output",
            x.len(),
            out.len()
        );
        let (task, count) = (self.task(), out.len());
        let tasks = x.chunks(2 * task).zip(out.chunks_mut(task));
        let tasks = tasks.map(|(x, out)| Stretch::Gated { x, out });
        self.share_out(count, tasks, execution);
    }

    /// Numbers of a task: whole rows.
    fn task(&self) -> usize {
        (TASK / self.columns).max(1) * self.columns
    }

    fn check(&self, numbers: usize, parts: usize) {
        let (columns, bias) = (self.columns, self.bias.len());
        assert!(
            columns > 0 && numbers.is_multiple_of(columns),
            "{numbers} numbers do not make rows of {columns}"
        );
        assert!(
            bias == 0 || bias == parts * columns,
            "a bias of {bias} numbers does not fit rows of {}",
            parts * columns
        );
    }

    fn share_out<'a>(
        &self,
        numbers: usize,
        tasks: impl Iterator<Item = Stretch<'a>> + Send,
        execution: Execution,
    ) {
        // A number costs as much as several operations, because it is read from memory and written back.
        let workers = execution.workers(numbers.div_ceil(self.task()), 16.0 * numbers as f64);
        for_each(workers, 0, tasks, |stretch, _: &mut [f32]| {
            execution.dispatch(Pass {
                stretch,
                bias: self.bias,
                columns: self.columns,
                activation: self.activation,
            });
        });
    }
}
