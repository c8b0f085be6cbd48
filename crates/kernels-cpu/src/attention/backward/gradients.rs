//! The inputs and outputs of the backward pass.

use crate::{
    Problem,
    attention::inputs::{Inputs, KernelError, exactly, writable},
    extent::elements,
    view::{element::Element, rows::Rows, rows_mut::RowsMut},
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
/// Each has the shape of its input. Those of q, k and v have any strides, the others are contiguous. The gradient of the bias is summed over
/// the dimensions that it repeats.
#[derive(Debug)]
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
}

impl<T: Element> Default for Gradients<'_, T> {
    fn default() -> Self {
        Self {
            q: None,
            k: None,
            v: None,
            bias: None,
            distance_bias: None,
            sinks: None,
        }
    }
}

impl<T: Element> Gradients<'_, T> {
    /// Sets all to zero.
    pub(crate) fn clear(self, problem: &Problem) {
        let Problem {
            batch,
            heads_q,
            heads_kv,
            len_q,
            len_kv,
            dim_qk,
            dim_v,
        } = *problem;
        for (gradient, heads, len, dim) in [
            (self.q, heads_q, len_q, dim_qk),
            (self.k, heads_kv, len_kv, dim_qk),
            (self.v, heads_kv, len_kv, dim_v),
        ] {
            let heads = gradient
                .into_iter()
                .flat_map(|rows| rows.heads([batch, heads, len], dim));
            for mut head in heads {
                (0..head.rows()).for_each(|row| head.row(row).fill(T::default()));
            }
        }
        for gradient in [self.bias, self.distance_bias, self.sinks]
            .into_iter()
            .flatten()
        {
            gradient.fill(T::Real::default());
        }
    }

    pub(crate) fn validate(&self, inputs: &Inputs<'_, T>) -> Result<(), KernelError> {
        let problem = &inputs.problem;
        let length = |name, actual: Option<usize>, expected| match actual {
            Some(actual) => exactly(name, actual, expected, problem),
            None => Ok(()),
        };
        let of_bias = inputs.bias.map_or(0, |bias| elements(bias.shape()));
        let of_distance = inputs.distance_bias.map_or(0, <[T::Real]>::len);
        let of_sinks = inputs.sinks.map_or(0, <[T::Real]>::len);
        let Problem {
            batch,
            heads_q,
            heads_kv,
            len_q,
            len_kv,
            dim_qk,
            dim_v,
        } = *problem;
        for (name, rows, sizes, dim) in [
            ("gradient of q", &self.q, [batch, heads_q, len_q], dim_qk),
            ("gradient of k", &self.k, [batch, heads_kv, len_kv], dim_qk),
            ("gradient of v", &self.v, [batch, heads_kv, len_kv], dim_v),
        ] {
            if let Some(rows) = rows {
                writable(name, rows, sizes, dim, problem)?;
            }
        }
        length(
            "gradient of the bias",
            self.bias.as_ref().map(|x| x.len()),
            of_bias,
        )?;
        length(
            "gradient of the distance bias",
            self.distance_bias.as_ref().map(|x| x.len()),
            of_distance,
        )?;
        length(
            "gradient of the sinks",
            self.sinks.as_ref().map(|x| x.len()),
            of_sinks,
        )
    }
}
