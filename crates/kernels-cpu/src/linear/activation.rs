//! The activation of some rows of a feed-forward network.

use pulp::{Simd, WithSimd};

use crate::simd::real::{MAX_LANES, Real, polynomial};

/// The activation function of a feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x`
    Identity,
    /// `max(x, 0)`
    Relu,
    /// `max(x, 0)²`
    ReluSquared,
    /// `x · (1 + erf(x / √2)) / 2`
    Gelu,
    /// `x · (1 + tanh(√(2 / π) · (x + 0.044715 · x³))) / 2`
    GeluTanh,
    /// `x · sigmoid(1.702 · x)`
    QuickGelu,
    /// `x · sigmoid(x)`
    Silu,
    /// `QuickGelu` of `min(x, 7)`. If it is a gate, the number that it multiplies is clamped to ±7, and then 1 is added to it.
    ClampedQuickGelu,
}

impl Activation {
    /// The limit of [`ClampedQuickGelu`](Self::ClampedQuickGelu).
    pub const LIMIT: f64 = 7.0;
    /// The factor of [`QuickGelu`](Self::QuickGelu).
    pub const QUICK: f64 = 1.702;
}

/// Whole rows, and where their activation goes.
pub(crate) enum ForwardRows<'a> {
    /// `x = activation(x + bias)`; rows begin `step` numbers apart.
    InPlace { x: &'a mut [f32], step: usize },
    /// `out = activation(gate + bias) · (up + bias)`, where rows of `x` are `[gate | up]`.
    Gated { x: &'a [f32], out: &'a mut [f32] },
}

/// The activation of some rows.
pub(crate) struct ActivationForward<'a> {
    pub(crate) rows: ForwardRows<'a>,
    /// The bias of a row of `x`, or empty.
    pub(crate) bias: &'a [f32],
    /// Numbers of a row that is written.
    pub(crate) columns: usize,
    pub(crate) activation: Activation,
}

impl WithSimd for ActivationForward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // One loop for each function, so that the choice is not made for every number.
        macro_rules! run {
            ($function:ident) => {
                self.run(
                    simd,
                    #[inline(always)]
                    |x| $function(simd, x),
                    #[inline(always)]
                    |up| up,
                )
            };
        }
        match self.activation {
            Activation::Identity => run!(identity),
            Activation::Relu => run!(relu),
            Activation::ReluSquared => run!(relu_squared),
            Activation::Gelu => run!(gelu),
            Activation::GeluTanh => run!(gelu_tanh),
            Activation::QuickGelu => run!(quick_gelu),
            Activation::Silu => run!(silu),
            Activation::ClampedQuickGelu => self.run(
                simd,
                #[inline(always)]
                |x| clamped_quick_gelu(simd, x),
                #[inline(always)]
                |up| {
                    let limit = Activation::LIMIT as f32;
                    let (low, high) = (simd.splat_f32s(-limit), simd.splat_f32s(limit));
                    simd.add_f32s(f32::bound(simd, up, low, high), simd.splat_f32s(1.0))
                },
            ),
        }
    }
}

impl ActivationForward<'_> {
    #[inline(always)]
    fn run<S: Simd>(
        self,
        simd: S,
        activation: impl Fn(S::f32s) -> S::f32s,
        other: impl Fn(S::f32s) -> S::f32s,
    ) {
        let columns = self.columns;
        match self.rows {
            ForwardRows::InPlace { x, step } if self.bias.is_empty() && step == columns => {
                each::<S, _>(
                    x,
                    [],
                    #[inline(always)]
                    |x, []| activation(x),
                );
            }
            ForwardRows::InPlace { x, step } if self.bias.is_empty() => {
                for row in x.chunks_mut(step) {
                    each::<S, _>(
                        &mut row[..columns],
                        [],
                        #[inline(always)]
                        |x, []| activation(x),
                    );
                }
            }
            ForwardRows::InPlace { x, step } => {
                for row in x.chunks_mut(step) {
                    each::<S, _>(
                        &mut row[..columns],
                        [self.bias],
                        #[inline(always)]
                        |x, [bias]| activation(simd.add_f32s(x, bias)),
                    );
                }
            }
            ForwardRows::Gated { x, out } => {
                let rows = x.chunks_exact(2 * columns);
                for (row, out) in rows.zip(out.chunks_exact_mut(columns)) {
                    let (gate, up) = row.split_at(columns);
                    if self.bias.is_empty() {
                        each::<S, _>(
                            out,
                            [gate, up],
                            #[inline(always)]
                            |_, [gate, up]| simd.mul_f32s(activation(gate), other(up)),
                        );
                        continue;
                    }
                    let (of_gate, of_up) = self.bias.split_at(columns);
                    each::<S, _>(
                        out,
                        [gate, up, of_gate, of_up],
                        #[inline(always)]
                        |_, [gate, up, of_gate, of_up]| {
                            let gate = activation(simd.add_f32s(gate, of_gate));
                            simd.mul_f32s(gate, other(simd.add_f32s(up, of_up)))
                        },
                    );
                }
            }
        }
    }
}

/// `out = function(out, operands)`, number by number.
#[inline(always)]
pub(crate) fn each<S: Simd, const N: usize>(
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

#[inline(always)]
pub(crate) fn identity<S: Simd>(_: S, x: S::f32s) -> S::f32s {
    x
}

#[inline(always)]
pub(crate) fn relu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let zero = simd.splat_f32s(0.0);
    f32::select_less(simd, x, zero, zero, x)
}

#[inline(always)]
pub(crate) fn relu_squared<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let x = relu(simd, x);
    simd.mul_f32s(x, x)
}

#[inline(always)]
pub(crate) fn gelu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let factor = simd.splat_f32s(core::f32::consts::FRAC_1_SQRT_2);
    half_of_one_plus(simd, x, erf(simd, simd.mul_f32s(x, factor)))
}

#[inline(always)]
pub(crate) fn gelu_tanh<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    const FACTOR: f32 = core::f32::consts::FRAC_2_SQRT_PI * core::f32::consts::FRAC_1_SQRT_2;
    let square = simd.mul_f32s(x, x);
    let factor = simd.mul_add_e_f32s(
        square,
        simd.splat_f32s(0.044715 * FACTOR),
        simd.splat_f32s(FACTOR),
    );
    half_of_one_plus(simd, x, <f32 as Real>::tanh(simd, simd.mul_f32s(factor, x)))
}

/// `x · (1 + y) / 2`
#[inline(always)]
pub(crate) fn half_of_one_plus<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s {
    let half = simd.splat_f32s(0.5);
    simd.mul_f32s(x, simd.mul_add_e_f32s(y, half, half))
}

#[inline(always)]
pub(crate) fn quick_gelu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    swish(
        simd,
        x,
        simd.mul_f32s(x, simd.splat_f32s(Activation::QUICK as f32)),
    )
}

#[inline(always)]
pub(crate) fn clamped_quick_gelu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let limit = simd.splat_f32s(Activation::LIMIT as f32);
    quick_gelu(simd, f32::select_less(simd, limit, x, limit, x))
}

#[inline(always)]
pub(crate) fn silu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    swish(simd, x, x)
}

/// `x · sigmoid(y)`
#[inline(always)]
fn swish<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s {
    let (numerator, _, denominator) = sigmoid(simd, y);
    simd.mul_f32s(x, simd.div_f32s(numerator, denominator))
}

/// The numerators of `sigmoid(y)` and of `sigmoid(−y)`, and their denominator.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(simd: S, y: S::f32s) -> (S::f32s, S::f32s, S::f32s) {
    let (zero, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
    // With exp(−|y|), which never overflows.
    let negative = f32::select_less(simd, y, zero, y, simd.neg_f32s(y));
    let log2_e = simd.splat_f32s(core::f32::consts::LOG2_E);
    let e = f32::exp2_of_negative(simd, simd.mul_f32s(negative, log2_e));
    let numerator = f32::select_less(simd, y, zero, e, one);
    let complement = f32::select_less(simd, y, zero, one, e);
    (numerator, complement, simd.add_f32s(one, e))
}

/// The error function, never beyond ±1: relative error below 4e-7.
#[inline(always)]
pub(crate) fn erf<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // x · P(x²) / Q(x²), minimax in the relative error (1.9e-8) up to the bound, where f32 has rounded to 1.
    const NUMERATOR: [f64; 6] = [
        1.128_379_145_740_915_1,
        0.190_591_860_781_631_42,
        0.052_769_048_509_621_13,
        0.003_772_470_352_758_687_8,
        0.000_284_842_056_415_121_97,
        2.046_045_480_138_368_5e-6,
    ];
    const DENOMINATOR: [f64; 6] = [
        1.0,
        0.502_240_369_362_084_9,
        0.114_181_939_835_529_18,
        0.014_983_036_165_100_563,
        0.001_163_839_121_735_308_7,
        3.804_788_611_546_258_8e-5,
    ];
    let bounded = f32::bound(simd, x, simd.splat_f32s(-3.925), simd.splat_f32s(3.925));
    let square = simd.mul_f32s(bounded, bounded);
    let numerator = polynomial::<f32, S>(simd, square, &NUMERATOR);
    let denominator = polynomial::<f32, S>(simd, square, &DENOMINATOR);
    let ratio = simd.div_f32s(simd.mul_f32s(bounded, numerator), denominator);
    f32::bound(simd, ratio, simd.splat_f32s(-1.0), simd.splat_f32s(1.0))
}
