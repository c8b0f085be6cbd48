//! The activation between the linear layers of a feed-forward network, in one pass over memory.

use alloc::vec;

use pulp::WithSimd;

use crate::{
    linear::{
        activation::{Activation, ActivationForward, ForwardRows},
        activation_backward::{ActivationBackward, BackwardRows},
    },
    threads::parallel::{Execution, for_each},
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
    /// Width of a row of the result.
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
        let tasks = x.chunks_mut(task).map(|x| ForwardRows::InPlace { x, step });
        self.share_out(count, tasks, execution, |rows| self.forward(rows));
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
        let tasks = tasks.map(|(x, out)| ForwardRows::Gated { x, out });
        self.share_out(count, tasks, execution, |rows| self.forward(rows));
    }

    /// Replaces the gradient of the result of [`in_place`](Self::in_place) by that of `x`, as it was before, `[rows, columns]`, both
    /// contiguous. The gradient of the bias is the sum of the rows.
    ///
    /// # Panics
    /// As [`in_place`](Self::in_place), and when `x` and the gradient do not have as many numbers.
    ///
    /// # Cost
    /// Some 10 to 50 operations per number, an exponential or error function among them.
    pub fn backward_in_place(&self, x: &[f32], gradient: &mut [f32], execution: Execution) {
        self.check(gradient.len(), 1);
        check_same(x.len(), gradient.len());
        let (task, count) = (self.task(), gradient.len());
        let tasks = x.chunks(task).zip(gradient.chunks_mut(task));
        let tasks = tasks.map(|(x, gradient)| BackwardRows::InPlace { x, gradient });
        self.share_out(count, tasks, execution, |rows| {
            self.backward(rows, self.bias)
        });
    }

    /// Writes the gradient of `x`, `[rows, 2 · columns]`, from that of the result of [`gated`](Self::gated), `[rows, columns]`, all
    /// contiguous.
    ///
    /// # Panics
    /// As [`gated`](Self::gated).
    ///
    /// # Cost
    /// That of [`gated`](Self::gated) and of [`backward_in_place`](Self::backward_in_place): two passes over each row, the second of which
    /// finds it in the cache.
    pub fn backward_gated(
        &self,
        x: &[f32],
        gradient: &[f32],
        out: &mut [f32],
        execution: Execution,
    ) {
        self.check(gradient.len(), 2);
        check_same(x.len(), out.len());
        assert!(
            x.len() == 2 * gradient.len(),
            "{} numbers of gate and up do not fit {} of the gradient",
            x.len(),
            gradient.len()
        );
        let zeros = vec![
            0.0;
            if self.bias.is_empty() {
                2 * self.columns
            } else {
                0
            }
        ];
        let bias = if zeros.is_empty() { self.bias } else { &zeros };
        let (task, count) = (self.task(), gradient.len());
        let rows = x.chunks(2 * task).zip(gradient.chunks(task));
        let tasks = rows.zip(out.chunks_mut(2 * task));
        let tasks = tasks.map(|((x, gradient), out)| BackwardRows::Gated { x, gradient, out });
        self.share_out(count, tasks, execution, |rows| self.backward(rows, bias));
    }

    fn forward<'a>(&'a self, rows: ForwardRows<'a>) -> ActivationForward<'a> {
        ActivationForward {
            rows,
            bias: self.bias,
            columns: self.columns,
            activation: self.activation,
        }
    }

    fn backward<'a>(&self, rows: BackwardRows<'a>, bias: &'a [f32]) -> ActivationBackward<'a> {
        ActivationBackward {
            rows,
            bias,
            columns: self.columns,
            activation: self.activation,
        }
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

    fn share_out<T: Send, P: WithSimd<Output = ()>>(
        &self,
        numbers: usize,
        tasks: impl Iterator<Item = T> + Send,
        execution: Execution,
        kernel: impl Fn(T) -> P + Sync,
    ) {
        // A number costs as much as several operations, because it is read from memory and written back.
        let workers = execution.workers(numbers.div_ceil(self.task()), 16.0 * numbers as f64);
        for_each(workers, 0, tasks, |rows, _: &mut [f32]| {
            execution.dispatch(kernel(rows));
        });
    }
}

fn check_same(x: usize, gradient: usize) {
    assert!(
        x == gradient,
        "{x} numbers do not fit {gradient} of their gradient"
    );
}
