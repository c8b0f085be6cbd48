//! The activation between the linear layers of a feed-forward network, in one pass over memory.

use pulp::{Simd, WithSimd};

use crate::{
    linear::activation::{
        Activation, ClampedQuickGelu, Function, Gelu, GeluTanh, Identity, QuickGelu, Relu,
        ReluSquared, Silu,
    },
    simd::real::{MAX_LANES, Real},
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
        // One program for each function, so that the choice is not made for every number.
        match self.activated.activation {
            Activation::Identity => self.with(simd, Identity),
            Activation::Relu => self.with(simd, Relu),
            Activation::ReluSquared => self.with(simd, ReluSquared),
            Activation::Gelu => self.with(simd, Gelu),
            Activation::GeluTanh => self.with(simd, GeluTanh),
            Activation::QuickGelu => self.with(simd, QuickGelu),
            Activation::Silu => self.with(simd, Silu),
            Activation::ClampedQuickGelu => self.with(simd, ClampedQuickGelu),
        }
    }
}

impl ActivatedRows<'_, '_> {
    #[inline(always)]
    fn with<S: Simd, F: Function>(self, simd: S, function: F) {
        if self.activated.bias.is_empty() {
            simd.vectorize(Loop::<F, false>(self, function));
        } else {
            simd.vectorize(Loop::<F, true>(self, function));
        }
    }
}

/// Some rows with one function.
///
/// Passed to `vectorize`, which does not inline it: the compiler has the constants of one function at a time to keep in registers.
struct Loop<'a, 'b, F, const BIAS: bool>(ActivatedRows<'a, 'b>, F);

impl<F: Function, const BIAS: bool> WithSimd for Loop<'_, '_, F, BIAS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(ActivatedRows { activated, pass }, _) = self;
        let Activated { bias, columns, .. } = activated;
        // Without a bias, an operand of the same length stands in its place, unread.
        let bias_or = |row| if BIAS { bias } else { row };
        match pass {
            Pass::InPlace { x, step } => {
                // Rows side by side are one long row.
                let (step, columns) = match !BIAS && step == columns {
                    true => (x.len(), x.len()),
                    false => (step, columns),
                };
                for row in x.chunks_mut(step) {
                    let row = &mut row[..columns];
                    if BIAS {
                        each::<S, _>(
                            row,
                            [bias],
                            #[inline(always)]
                            |x, [bias]| F::value(simd, simd.add_f32s(x, bias)),
                        );
                    } else {
                        each::<S, _>(
                            row,
                            [],
                            #[inline(always)]
                            |x, []| F::value(simd, x),
                        );
                    }
                }
            }
            Pass::Gated { x, out } => {
                let rows = x.chunks_exact(2 * columns);
                for (x, out) in rows.zip(out.chunks_exact_mut(columns)) {
                    let [(gate, up), (gate_bias, up_bias)] =
                        [x, bias_or(x)].map(|row| row.split_at(columns));
                    each::<S, _>(
                        out,
                        [gate, up, gate_bias, up_bias],
                        #[inline(always)]
                        |_, [gate, up, gate_bias, up_bias]| {
                            let gate = F::value(simd, plus::<S, BIAS>(simd, gate, gate_bias));
                            simd.mul_f32s(gate, F::up(simd, plus::<S, BIAS>(simd, up, up_bias)))
                        },
                    );
                }
            }
            Pass::Backward { x, gradient } => {
                let columns = if BIAS { columns } else { x.len() };
                let rows = x.chunks_exact(columns);
                for (x, gradient) in rows.zip(gradient.chunks_exact_mut(columns)) {
                    each::<S, _>(
                        gradient,
                        [x, bias_or(x)],
                        #[inline(always)]
                        |gradient, [x, bias]| {
                            F::gradient(simd, gradient, plus::<S, BIAS>(simd, x, bias))
                        },
                    );
                }
            }
            Pass::GatedBackward { x, gradient, out } => {
                let rows = x.chunks_exact(2 * columns);
                let rows = rows.zip(gradient.chunks_exact(columns));
                for ((x, gradient), out) in rows.zip(out.chunks_exact_mut(2 * columns)) {
                    let [(gate, up), (gate_bias, up_bias)] =
                        [x, bias_or(x)].map(|row| row.split_at(columns));
                    let (out_gate, out_up) = out.split_at_mut(columns);
                    let operands = [gradient, gate, up, gate_bias, up_bias];
                    each::<S, _>(
                        out_gate,
                        operands,
                        #[inline(always)]
                        |_, [gradient, gate, up, gate_bias, up_bias]| {
                            let up = F::up_in_backward(simd, plus::<S, BIAS>(simd, up, up_bias));
                            F::gradient(
                                simd,
                                simd.mul_f32s(gradient, up),
                                plus::<S, BIAS>(simd, gate, gate_bias),
                            )
                        },
                    );
                    each::<S, _>(
                        out_up,
                        operands,
                        #[inline(always)]
                        |_, [gradient, gate, up, gate_bias, up_bias]| {
                            let gate = F::value(simd, plus::<S, BIAS>(simd, gate, gate_bias));
                            F::up_gradient(
                                simd,
                                simd.mul_f32s(gradient, gate),
                                plus::<S, BIAS>(simd, up, up_bias),
                            )
                        },
                    );
                }
            }
        }
    }
}

#[inline(always)]
fn plus<S: Simd, const BIAS: bool>(simd: S, x: S::f32s, bias: S::f32s) -> S::f32s {
    if BIAS { simd.add_f32s(x, bias) } else { x }
}

/// `out = function(out, operands)`, number by number.
#[inline(always)]
fn each<S: Simd, const N: usize>(
    out: &mut [f32],
    operands: [&[f32]; N],
    function: impl Fn(S::f32s, [S::f32s; N]) -> S::f32s,
) {
    let lanes = f32::lanes::<S>();
    let whole = out.len() / lanes * lanes;
    let vectors = operands.map(|operand| &f32::vectors::<S>(operand)[..whole / lanes]);
    for (at, place) in f32::vectors_mut::<S>(out).iter_mut().enumerate() {
        let mut x = [*place; N];
        for (x, operand) in x.iter_mut().zip(&vectors) {
            *x = operand[at];
        }
        *place = function(*place, x);
    }
    let rest = &mut out[whole..];
    if rest.is_empty() {
        return;
    }
    let end = whole + rest.len();
    let mut x = [padded::<S>(rest); N];
    for (x, operand) in x.iter_mut().zip(&operands) {
        *x = padded::<S>(&operand[whole..end]);
    }
    let mut numbers = [0.0; MAX_LANES];
    f32::vectors_mut::<S>(&mut numbers)[0] = function(padded::<S>(rest), x);
    rest.copy_from_slice(&numbers[..rest.len()]);
}

/// A vector of numbers that do not fill it.
#[inline(always)]
fn padded<S: Simd>(numbers: &[f32]) -> S::f32s {
    let mut padded = [0.0; MAX_LANES];
    padded[..numbers.len()].copy_from_slice(numbers);
    f32::vectors::<S>(&padded)[0]
}
