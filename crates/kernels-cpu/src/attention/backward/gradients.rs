//! The inputs and outputs of the backward pass.

use crate::{
    InputError, Problem,
    attention::inputs::{Inputs, writable},
    extent::elements,
    options::exactly,
    view::{
        element::Element,
        rows::Rows,
        rows_mut::{HeadMut, RowsMut},
    },
};

/// What the forward pass computed, and the incoming gradients.
///
/// # Shapes
/// - output, output_gradient `[batch, heads_q, len_q, dim_v]`
/// - logsumexp, logsumexp_gradient `[batch, heads_q, len_q]`, contiguous
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a, T: Element> {
    /// The output of the forward pass.
    pub output: Rows<'a, T>,
    /// The logsumexp of the forward pass.
    pub logsumexp: &'a [T::Real],
    /// The gradient of the output.
    pub output_gradient: Rows<'a, T>,
    /// The gradient of the logsumexp, zero if absent.
    pub logsumexp_gradient: Option<&'a [T::Real]>,
}

/// Where the gradients are written; those that are absent are not computed.
///
/// # Shapes
/// Each gradient has the shape of its input. The gradients of q, k and v have any strides; the others are contiguous. The gradient of the
/// bias is summed over the dimensions that it repeats.
#[derive(Debug, Default)]
pub struct Gradients<'a, T: Element> {
    /// `[batch, heads_q, len_q, dim_qk]`
    pub q: Option<RowsMut<'a, T>>,
    /// `[batch, heads_kv, len_kv, dim_qk]`
    pub k: Option<RowsMut<'a, T>>,
    /// `[batch, heads_kv, len_kv, dim_v]`
    pub v: Option<RowsMut<'a, T>>,
    /// The shape of the bias.
    pub bias: Option<&'a mut [T::Real]>,
    /// The shape of the distance bias.
    pub distance_bias: Option<&'a mut [T::Real]>,
    /// `[heads_q]`
    pub sinks: Option<&'a mut [T::Real]>,
    /// The gradients of the numbers that the score function has captured: contiguous, one tensor after the other.
    pub captured: Option<&'a mut [T::Real]>,
}

impl<T: Element> Gradients<'_, T> {
    /// Sets all gradients to zero.
    pub(crate) fn clear(self, problem: &Problem) {
        let p = problem;
        for (gradient, sizes, dim) in [
            (self.q, p.query_sizes(), p.dim_qk),
            (self.k, p.key_sizes(), p.dim_qk),
            (self.v, p.key_sizes(), p.dim_v),
        ] {
            for mut head in heads(gradient, sizes, dim) {
                (0..head.rows()).for_each(|row| head.row(row).fill(T::default()));
            }
        }
        let others = [self.bias, self.distance_bias, self.sinks, self.captured];
        for gradient in others.into_iter().flatten() {
            gradient.fill(T::Real::default());
        }
    }

    pub(crate) fn validate(&self, inputs: &Inputs<'_, T>) -> Result<(), InputError> {
        let (p, options) = (&inputs.problem, &inputs.options);
        for (name, rows, sizes, dim) in [
            ("gradient of q", &self.q, p.query_sizes(), p.dim_qk),
            ("gradient of k", &self.k, p.key_sizes(), p.dim_qk),
            ("gradient of v", &self.v, p.key_sizes(), p.dim_v),
        ] {
            if let Some(rows) = rows {
                writable(name, rows, sizes, dim, p)?;
            }
        }
        let of_bias = options.bias.map_or(0, |bias| elements(bias.shape()));
        let of_distance = inputs.distance_bias.map_or(0, <[T::Real]>::len);
        let of_sinks = options.sinks.map_or(0, <[T::Real]>::len);
        let of_captured = inputs
            .captured()
            .map(|(parts, entries)| parts * entries)
            .sum();
        for (name, gradient, expected) in [
            ("gradient of the bias", &self.bias, of_bias),
            (
                "gradient of the distance bias",
                &self.distance_bias,
                of_distance,
            ),
            ("gradient of the sinks", &self.sinks, of_sinks),
            ("gradient of what is captured", &self.captured, of_captured),
        ] {
            if let Some(gradient) = gradient {
                exactly(name, gradient.len(), expected, p)?;
            }
        }
        Ok(())
    }
}

/// The heads of a gradient, if it is required.
pub(crate) fn heads<T: Send>(
    rows: Option<RowsMut<'_, T>>,
    sizes: [usize; 3],
    dim: usize,
) -> impl Iterator<Item = HeadMut<'_, T>> + Send {
    rows.into_iter()
        .flat_map(move |rows| rows.heads(sizes, dim))
}
