//! The activation between the linear layers of a feed-forward network, in one pass over memory.

use pulp::{Simd, WithSimd};

use crate::{
    linear::activation::{
        Activation, ClampedQuickGelu, Function, Gelu, GeluTanh, Identity, QuickGelu, Relu,
        ReluSquared, Silu,
    },
    simd::real::{MAX_LANES, Real},
    threads::parallel::{Execution, TASK, for_each},
};

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
        let tasks = x.chunks_mut(task).map(|x| Pass::InPlace { x, step });
        self.share_out(count, tasks, execution);
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
        check_gated(x.len(), out.len(), "output");
        let (task, count) = (self.task(), out.len());
        let tasks = x.chunks(2 * task).zip(out.chunks_mut(task));
        let tasks = tasks.map(|(x, out)| Pass::Gated { x, out });
        self.share_out(count, tasks, execution);
    }

    /// Replaces the gradient of the result of [`in_place`](Self::in_place) by that of `x`, the input before that call. Both are
    /// `[rows, columns]`, contiguous. The gradient of the bias is the sum of the rows.
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
        let tasks = tasks.map(|(x, gradient)| Pass::Backward { x, gradient });
        self.share_out(count, tasks, execution);
    }

    /// Writes the gradient of `x`, `[rows, 2 · columns]`, from that of the result of [`gated`](Self::gated), `[rows, columns]`, all
    /// contiguous.
    ///
    /// # Panics
    /// As [`gated`](Self::gated).
    ///
    /// # Cost
    /// The costs of [`gated`](Self::gated) and [`backward_in_place`](Self::backward_in_place) together. The second of two passes over each
    /// row finds the row in the cache.
    pub fn backward_gated(
        &self,
        x: &[f32],
        gradient: &[f32],
        out: &mut [f32],
        execution: Execution,
    ) {
        self.check(gradient.len(), 2);
        check_same(x.len(), out.len());
        check_gated(x.len(), gradient.len(), "gradient");
        let (task, count) = (self.task(), gradient.len());
        let rows = x.chunks(2 * task).zip(gradient.chunks(task));
        let tasks = rows.zip(out.chunks_mut(2 * task));
        let tasks = tasks.map(|((x, gradient), out)| Pass::GatedBackward { x, gradient, out });
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
        tasks: impl Iterator<Item = Pass<'a>> + Send,
        execution: Execution,
    ) {
        let activated = *self;
        // A number costs as much as several operations, because it is read from memory and written back.
        let workers = execution.workers(numbers.div_ceil(self.task()), 16.0 * numbers as f64);
        for_each(workers, 0, tasks, |pass, _: &mut [f32]| {
            execution.dispatch(ActivatedRows { activated, pass });
        });
    }
}

fn check_same(x: usize, gradient: usize) {
    assert!(
        x == gradient,
        "{x} numbers do not fit {gradient} of their gradient"
    );
}

fn check_gated(x: usize, of_result: usize, result: &str) {
    assert!(
        x == 2 * of_result,
        "{x} numbers of gate and up do not fit {of_result} of the {result}"
    );
}

/// Whole rows, and where the result goes.
pub(crate) enum Pass<'a> {
    /// `x = activation(x + bias)`; rows begin `step` numbers apart.
    InPlace { x: &'a mut [f32], step: usize },
    /// `out = activation(gate + bias) · (up + bias)`, where rows of `x` are `[gate | up]`.
    Gated { x: &'a [f32], out: &'a mut [f32] },
    /// `gradient = gradient · activation'(x + bias)`
    Backward {
        x: &'a [f32],
        gradient: &'a mut [f32],
    },
    /// The gradient of rows `[gate | up]` from that of the result of [`Gated`](Self::Gated).
    GatedBackward {
        x: &'a [f32],
        gradient: &'a [f32],
        out: &'a mut [f32],
    },
}

/// The activation of some rows.
pub(crate) struct ActivatedRows<'a, 'b> {
    pub(crate) activated: Activated<'b>,
    pub(crate) pass: Pass<'a>,
}

impl WithSimd for ActivatedRows<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // One loop for each function, so that the function is not chosen for every number.
        match self.activated.activation {
            Activation::Identity => simd.vectorize(Loop(self, Identity)),
            Activation::Relu => simd.vectorize(Loop(self, Relu)),
            Activation::ReluSquared => simd.vectorize(Loop(self, ReluSquared)),
            Activation::Gelu => simd.vectorize(Loop(self, Gelu)),
            Activation::GeluTanh => simd.vectorize(Loop(self, GeluTanh)),
            Activation::QuickGelu => simd.vectorize(Loop(self, QuickGelu)),
            Activation::Silu => simd.vectorize(Loop(self, Silu)),
            Activation::ClampedQuickGelu => simd.vectorize(Loop(self, ClampedQuickGelu)),
        }
    }
}

/// Some rows with one function.
struct Loop<'a, 'b, F>(ActivatedRows<'a, 'b>, F);

impl<F: Function> WithSimd for Loop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(ActivatedRows { activated, pass }, _) = self;
        let Activated { bias, columns, .. } = activated;
        let no_bias = bias.is_empty();
        let (gate_bias, up_bias) = bias.split_at(if no_bias { 0 } else { bias.len() - columns });
        match pass {
            Pass::InPlace { x, step } => {
                // Rows side by side are one long row.
                let (step, columns) = match no_bias && step == columns {
                    true => (x.len(), x.len()),
                    false => (step, columns),
                };
                for row in x.chunks_mut(step) {
                    biased(
                        simd,
                        &mut row[..columns],
                        [],
                        [bias],
                        #[inline(always)]
                        |x, []| F::value(simd, x),
                    );
                }
            }
            Pass::Gated { x, out } => {
                let rows = x.chunks_exact(2 * columns);
                for (x, out) in rows.zip(out.chunks_exact_mut(columns)) {
                    let (gate, up) = x.split_at(columns);
                    biased(
                        simd,
                        out,
                        [gate, up],
                        [gate_bias, up_bias],
                        #[inline(always)]
                        |_, [gate, up]| simd.mul_f32s(F::value(simd, gate), F::up(simd, up)),
                    );
                }
            }
            Pass::Backward { x, gradient } => {
                let columns = if no_bias { x.len() } else { columns };
                let rows = x.chunks_exact(columns);
                for (x, gradient) in rows.zip(gradient.chunks_exact_mut(columns)) {
                    biased(
                        simd,
                        gradient,
                        [x],
                        [bias],
                        #[inline(always)]
                        |gradient, [x]| F::gradient(simd, gradient, x),
                    );
                }
            }
            Pass::GatedBackward { x, gradient, out } => {
                let rows = x.chunks_exact(2 * columns);
                let rows = rows.zip(gradient.chunks_exact(columns));
                for ((x, gradient), out) in rows.zip(out.chunks_exact_mut(2 * columns)) {
                    let (gate, up) = x.split_at(columns);
                    let (out_gate, out_up) = out.split_at_mut(columns);
                    let (operands, biases) = ([gate, up, gradient], [gate_bias, up_bias]);
                    biased(
                        simd,
                        out_gate,
                        operands,
                        biases,
                        #[inline(always)]
                        |_, [gate, up, gradient]| {
                            let gradient = simd.mul_f32s(gradient, F::up(simd, up));
                            F::gradient(simd, gradient, gate)
                        },
                    );
                    biased(
                        simd,
                        out_up,
                        operands,
                        biases,
                        #[inline(always)]
                        |_, [gate, up, gradient]| {
                            let gradient = simd.mul_f32s(gradient, F::value(simd, gate));
                            F::up_gradient(simd, gradient, up)
                        },
                    );
                }
            }
        }
    }
}

/// As [`each`], which adds no biases if they are empty.
#[inline(always)]
fn biased<S: Simd, const N: usize, const BIASES: usize>(
    simd: S,
    out: &mut [f32],
    operands: [&[f32]; N],
    biases: [&[f32]; BIASES],
    function: impl Fn(S::f32s, [S::f32s; N]) -> S::f32s,
) {
    if biases[0].is_empty() {
        each(simd, out, operands, [], function);
    } else {
        each(simd, out, operands, biases, function);
    }
}

/// `out = function(out, operands)`, number by number, where a bias is added to each of the first operands, or to `out` if there are none.
#[inline(always)]
fn each<S: Simd, const N: usize, const BIASES: usize>(
    simd: S,
    out: &mut [f32],
    operands: [&[f32]; N],
    biases: [&[f32]; BIASES],
    function: impl Fn(S::f32s, [S::f32s; N]) -> S::f32s,
) {
    let lanes = f32::lanes::<S>();
    let whole = out.len() / lanes * lanes;
    let (vectors, rest) = out.split_at_mut(whole);
    each_vector(simd, vectors, operands, biases, &function);
    if rest.is_empty() {
        return;
    }
    // The last numbers, which do not fill a vector.
    let padded = |numbers: &[f32]| {
        let mut padded = [0.0; MAX_LANES];
        padded[..numbers.len()].copy_from_slice(numbers);
        padded
    };
    let last = |numbers: &[f32]| padded(&numbers[whole..whole + rest.len()]);
    let mut numbers = padded(rest);
    each_vector(
        simd,
        &mut numbers[..lanes],
        operands.map(last).each_ref().map(|x| &x[..lanes]),
        biases.map(last).each_ref().map(|x| &x[..lanes]),
        &function,
    );
    rest.copy_from_slice(&numbers[..rest.len()]);
}

/// As [`each`], for whole vectors.
#[inline(always)]
fn each_vector<S: Simd, const N: usize, const BIASES: usize>(
    simd: S,
    out: &mut [f32],
    operands: [&[f32]; N],
    biases: [&[f32]; BIASES],
    function: &impl Fn(S::f32s, [S::f32s; N]) -> S::f32s,
) {
    let out = f32::vectors_mut::<S>(out);
    let count = out.len();
    let operands = operands.map(|operand| &f32::vectors::<S>(operand)[..count]);
    let biases = biases.map(|bias| &f32::vectors::<S>(bias)[..count]);
    for (at, place) in out.iter_mut().enumerate() {
        let (mut old, mut x) = ([*place], [*place; N]);
        for (x, operand) in x.iter_mut().zip(&operands) {
            *x = operand[at];
        }
        let biased = if N == 0 { &mut old[..] } else { &mut x };
        for (x, bias) in biased.iter_mut().zip(&biases) {
            *x = simd.add_f32s(*x, bias[at]);
        }
        *place = function(old[0], x);
    }
}
