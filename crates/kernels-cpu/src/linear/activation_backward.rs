//! The gradient of the activation of some rows of a feed-forward network.

use pulp::{Simd, WithSimd};

use crate::{
    linear::activation::{
        Activation, clamped_quick_gelu, each, erf, gelu, gelu_tanh, half_of_one_plus, identity,
        quick_gelu, relu, relu_squared, sigmoid, silu,
    },
    simd::real::Real,
};

/// Whole rows and their gradients.
pub(crate) enum BackwardRows<'a> {
    /// `gradient = gradient · activation'(x + bias)`
    InPlace {
        x: &'a [f32],
        gradient: &'a mut [f32],
    },
    /// The gradient of rows `[gate | up]` from that of `activation(gate + bias) · (up + bias)`.
    Gated {
        x: &'a [f32],
        gradient: &'a [f32],
        out: &'a mut [f32],
    },
}

/// The gradient of the activation of some rows.
pub(crate) struct ActivationBackward<'a> {
    pub(crate) rows: BackwardRows<'a>,
    /// The bias of a row of `x`; where there is none, zeros for gated rows, otherwise nothing.
    pub(crate) bias: &'a [f32],
    /// Numbers of a row of the activation.
    pub(crate) columns: usize,
    pub(crate) activation: Activation,
}

impl WithSimd for ActivationBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        macro_rules! run {
            ($function:ident, $derivative:ident) => {
                self.run(
                    simd,
                    #[inline(always)]
                    |x| $function(simd, x),
                    #[inline(always)]
                    |gradient, x| simd.mul_f32s(gradient, $derivative(simd, x)),
                    #[inline(always)]
                    |up| up,
                    #[inline(always)]
                    |gradient, _| gradient,
                )
            };
        }
        // Zeros are selected, not multiplied by 0, so that a NaN gradient does not leak through a derivative of 0.
        match self.activation {
            Activation::Identity => run!(identity, one),
            Activation::Relu => self.run(
                simd,
                #[inline(always)]
                |x| relu(simd, x),
                #[inline(always)]
                |gradient, x| where_positive(simd, gradient, x),
                #[inline(always)]
                |up| up,
                #[inline(always)]
                |gradient, _| gradient,
            ),
            Activation::ReluSquared => self.run(
                simd,
                #[inline(always)]
                |x| relu_squared(simd, x),
                #[inline(always)]
                |gradient, x| {
                    let gradient = simd.mul_f32s(gradient, simd.add_f32s(x, x));
                    where_positive(simd, gradient, x)
                },
                #[inline(always)]
                |up| up,
                #[inline(always)]
                |gradient, _| gradient,
            ),
            Activation::Gelu => run!(gelu, of_gelu),
            Activation::GeluTanh => run!(gelu_tanh, of_gelu_tanh),
            Activation::QuickGelu => run!(quick_gelu, of_quick_gelu),
            Activation::Silu => run!(silu, of_silu),
            Activation::ClampedQuickGelu => {
                let [low, zero, one, high] = [-LIMIT, 0.0, 1.0, LIMIT].map(|x| simd.splat_f32s(x));
                self.run(
                    simd,
                    #[inline(always)]
                    |x| clamped_quick_gelu(simd, x),
                    #[inline(always)]
                    |gradient, x| {
                        let gradient = simd.mul_f32s(gradient, of_quick_gelu(simd, x));
                        f32::select_less(simd, high, x, zero, gradient)
                    },
                    #[inline(always)]
                    |up| simd.add_f32s(within(simd, up, LIMIT), one),
                    #[inline(always)]
                    |gradient, up| {
                        let gradient = f32::select_less(simd, up, low, zero, gradient);
                        f32::select_less(simd, high, up, zero, gradient)
                    },
                )
            }
        }
    }
}

const LIMIT: f32 = Activation::LIMIT as f32;

impl ActivationBackward<'_> {
    /// `derivative` multiplies a gradient by the derivative of `activation`; `other` is what a gate is multiplied by, and `through` hands
    /// a gradient back through it.
    #[inline(always)]
    fn run<S: Simd>(
        self,
        simd: S,
        activation: impl Fn(S::f32s) -> S::f32s,
        derivative: impl Fn(S::f32s, S::f32s) -> S::f32s,
        other: impl Fn(S::f32s) -> S::f32s,
        through: impl Fn(S::f32s, S::f32s) -> S::f32s,
    ) {
        let columns = self.columns;
        match self.rows {
            BackwardRows::InPlace { x, gradient } if self.bias.is_empty() => {
                each::<S, _>(
                    gradient,
                    [x],
                    #[inline(always)]
                    |gradient, [x]| derivative(gradient, x),
                );
            }
            BackwardRows::InPlace { x, gradient } => {
                let rows = x.chunks_exact(columns);
                for (x, gradient) in rows.zip(gradient.chunks_exact_mut(columns)) {
                    each::<S, _>(
                        gradient,
                        [x, self.bias],
                        #[inline(always)]
                        |gradient, [x, bias]| derivative(gradient, simd.add_f32s(x, bias)),
                    );
                }
            }
            BackwardRows::Gated { x, gradient, out } => {
                let (gate_bias, up_bias) = self.bias.split_at(columns);
                let rows = x.chunks_exact(2 * columns);
                let rows = rows.zip(gradient.chunks_exact(columns));
                for ((x, gradient), out) in rows.zip(out.chunks_exact_mut(2 * columns)) {
                    let (gate, up) = x.split_at(columns);
                    let (out_gate, out_up) = out.split_at_mut(columns);
                    let operands = [gradient, gate, up, gate_bias, up_bias];
                    each::<S, _>(
                        out_gate,
                        operands,
                        #[inline(always)]
                        |_, [gradient, gate, up, gate_bias, up_bias]| {
                            let up = other(simd.add_f32s(up, up_bias));
                            derivative(simd.mul_f32s(gradient, up), simd.add_f32s(gate, gate_bias))
                        },
                    );
                    each::<S, _>(
                        out_up,
                        operands,
                        #[inline(always)]
                        |_, [gradient, gate, up, gate_bias, up_bias]| {
                            let gate = activation(simd.add_f32s(gate, gate_bias));
                            through(simd.mul_f32s(gradient, gate), simd.add_f32s(up, up_bias))
                        },
                    );
                }
            }
        }
    }
}

/// The gradient where `x` is above 0, or no number; 0 elsewhere.
#[inline(always)]
fn where_positive<S: Simd>(simd: S, gradient: S::f32s, x: S::f32s) -> S::f32s {
    let smallest = simd.splat_f32s(f32::from_bits(1));
    f32::select_less(simd, x, smallest, simd.splat_f32s(0.0), gradient)
}

#[inline(always)]
fn one<S: Simd>(simd: S, _: S::f32s) -> S::f32s {
    simd.splat_f32s(1.0)
}

/// `x` between `±limit`. NaN stays NaN in emulated vectors, too, where [`Real::bound`] drops it.
#[inline(always)]
fn within<S: Simd>(simd: S, x: S::f32s, limit: f32) -> S::f32s {
    let (low, high) = (simd.splat_f32s(-limit), simd.splat_f32s(limit));
    let x = f32::select_less(simd, x, low, low, x);
    f32::select_less(simd, high, x, high, x)
}

/// `Φ(x) + x · φ(x)`, the distribution function and the density of the normal distribution.
#[inline(always)]
fn of_gelu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    use core::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};
    // Beyond, the density is below the smallest number, and ∞ · 0 is none.
    let bounded = within(simd, x, 14.5);
    let distribution = half_of_one_plus(
        simd,
        simd.splat_f32s(1.0),
        erf(simd, simd.mul_f32s(bounded, simd.splat_f32s(FRAC_1_SQRT_2))),
    );
    let square = simd.mul_f32s(bounded, bounded);
    let exponent = simd.mul_f32s(square, simd.splat_f32s(-0.5 * LOG2_E));
    let density = simd.mul_f32s(
        f32::exp2_of_negative(simd, exponent),
        simd.splat_f32s(0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2),
    );
    simd.mul_add_e_f32s(bounded, density, distribution)
}

/// With `(1 + tanh(u)) / 2 = sigmoid(2 · u)`.
#[inline(always)]
fn of_gelu_tanh<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // Twice the formula's.
    const FACTOR: f32 = 2.0 * core::f32::consts::FRAC_2_SQRT_PI * core::f32::consts::FRAC_1_SQRT_2;
    const CUBE: f32 = 0.044715 * FACTOR;
    let splat = |number| simd.splat_f32s(number);
    // Beyond, the sigmoid is 0 or 1.
    let x = within(simd, x, 10.2);
    let square = simd.mul_f32s(x, x);
    let y = simd.mul_f32s(simd.mul_add_e_f32s(square, splat(CUBE), splat(FACTOR)), x);
    let slope = simd.mul_add_e_f32s(square, splat(3.0 * CUBE), splat(FACTOR));
    of_sigmoid(simd, y, simd.mul_f32s(x, slope))
}

#[inline(always)]
fn of_quick_gelu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    of_swish(
        simd,
        simd.mul_f32s(x, simd.splat_f32s(Activation::QUICK as f32)),
    )
}

#[inline(always)]
fn of_silu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    of_swish(simd, x)
}

/// The derivative of `x · sigmoid(factor · x)`, where `y = factor · x`.
#[inline(always)]
fn of_swish<S: Simd>(simd: S, y: S::f32s) -> S::f32s {
    // Beyond, the sigmoid is 0 or 1.
    let y = within(simd, y, 95.0);
    of_sigmoid(simd, y, y)
}

/// The derivative of `x · sigmoid(y)`, where `slope = x · y'`: `s · (1 + slope · (1 − s))`.
#[inline(always)]
fn of_sigmoid<S: Simd>(simd: S, y: S::f32s, slope: S::f32s) -> S::f32s {
    // 1 − s without cancellation.
    let (numerator, complement, denominator) = sigmoid(simd, y);
    let s = simd.div_f32s(numerator, denominator);
    let rest = simd.div_f32s(complement, denominator);
    simd.mul_f32s(s, simd.mul_add_e_f32s(slope, rest, simd.splat_f32s(1.0)))
}
