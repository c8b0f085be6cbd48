//! The inputs of one call of the kernels.

use crate::{
    Broadcast, DistanceAxis, InputError, Options, Problem,
    attention::{
        function::{Captured, ScoreFunction, VisibleFunction},
        kernel::{scores::Scoring, softcap::Softcap},
    },
    compiled::Compiled,
    extent::elements,
    options::{at_least, exactly},
    view::{element::Element, rows::Rows, rows_mut::RowsMut},
};

/// The tensors and options of one call of the kernels.
///
/// # Shapes
/// - q `[batch, heads_q, len_q, dim_qk]`
/// - k `[batch, heads_kv, len_kv, dim_qk]`
/// - v `[batch, heads_kv, len_kv, dim_v]`
/// - distance bias `[heads_q, len_q + len_kv − 1]`, with query offsets `[heads_q, 2 · (len_q + len_kv) − 1]`
/// - the options: see [`Options`]
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, T: Element> {
    /// The seven sizes.
    pub problem: Problem,
    /// Queries.
    pub q: Rows<'a, T>,
    /// Keys.
    pub k: Rows<'a, T>,
    /// Values.
    pub v: Rows<'a, T>,
    /// Mask, bias, sinks, softcap, scale and dropout.
    pub options: Options<'a, T::Real>,
    /// Added to the scores: entry `i − j + len_kv − 1` of a head to the score of query `i` and key `j`; with query offsets entry
    /// `query_offsets[b] + i − j + len_q + len_kv − 1` to that of batch item `b`.
    pub distance_bias: Option<&'a [T::Real]>,
    /// Changes the scaled scores, before the softcap.
    pub score_function: Option<ScoreFunction<'a, T::Real>>,
    /// Hides the pairs that the function does not show.
    pub visible_function: Option<VisibleFunction<'a>>,
}

impl<'a, T: Element> Inputs<'a, T> {
    /// Plain attention over contiguous tensors: everything visible, no bias, the default scale.
    #[must_use]
    pub fn new(problem: Problem, q: &'a [T], k: &'a [T], v: &'a [T]) -> Self {
        Self {
            problem,
            q: Rows::contiguous(q, problem.heads_q, problem.len_q, problem.dim_qk),
            k: Rows::contiguous(k, problem.heads_kv, problem.len_kv, problem.dim_qk),
            v: Rows::contiguous(v, problem.heads_kv, problem.len_kv, problem.dim_v),
            options: Options::default(),
            distance_bias: None,
            score_function: None,
            visible_function: None,
        }
    }

    /// The options that act on scores, as kernels take them.
    pub(crate) fn scoring(&self) -> Scoring<'a, T::Real> {
        Scoring {
            problem: self.problem,
            options: self.options,
            distance_bias: self.distance_bias,
            softcap: self.options.softcap.map(Softcap::new),
            score_function: self
                .score_function
                .map(|function| (T::Real::score_loops(function.form), function.captured)),
            visible_function: self
                .visible_function
                .map(|function| (T::Real::visible_loops(function.form), function)),
        }
    }

    /// Checks every tensor and option against the problem.
    ///
    /// # Errors
    /// A size, a length, a shape or an option is impossible; the message names it and its value.
    pub fn validate(&self) -> Result<(), InputError> {
        let p = &self.problem;
        p.validate()?;
        for (name, rows, sizes, dim) in [
            ("q", &self.q, p.query_sizes(), p.dim_qk),
            ("k", &self.k, p.key_sizes(), p.dim_qk),
            ("v", &self.v, p.key_sizes(), p.dim_v),
        ] {
            at_least(name, rows.available(), rows.extent(sizes, dim), p)?;
        }
        self.options.validate(p)?;
        if let Some(distance) = self.distance_bias {
            let entries = elements([p.heads_q, self.distances()]);
            exactly("distance_bias", distance.len(), entries, p)?;
        }
        if let Some(function) = &self.score_function {
            let (actual, expected) = (function.captured.len(), function.form.captured());
            exactly("what the score function has captured", actual, expected, p)?;
            for (index, captured) in function.captured.iter().enumerate() {
                match captured {
                    Captured::Pairs(numbers) => {
                        broadcasts("score", index, numbers, p)?;
                        let shape @ [_, _, of_queries, of_keys] = numbers.shape();
                        if of_queries > 1 && of_keys > 1 {
                            return Err(InputError::CapturedPairs { index, shape });
                        }
                    }
                    Captured::Distances(numbers) => {
                        let entries = elements([p.heads_q, self.distances()]);
                        exactly("captured distances", numbers.len(), entries, p)?;
                    }
                }
            }
        }
        if let Some(function) = &self.visible_function {
            let (actual, expected) = (function.captured.len(), function.form.captured());
            exactly(
                "what the visible function has captured",
                actual,
                expected,
                p,
            )?;
            for (index, captured) in function.captured.iter().enumerate() {
                broadcasts("visible", index, captured, p)?;
            }
            if let Some(whole) = &function.whole {
                whole.validate(p)?;
            }
        }
        Ok(())
    }

    /// For each tensor that the score function has captured: the number of parts, one per batch item and head, and the entries of a part.
    pub(crate) fn captured(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let function = self.score_function.iter();
        let captured = function.flat_map(|function| function.captured);
        captured.map(|captured| match captured {
            Captured::Pairs(numbers) => {
                let [batch, heads, queries, keys] = numbers.shape();
                (batch * heads, queries * keys)
            }
            Captured::Distances(_) => (self.problem.heads_q, self.distances()),
        })
    }

    /// Number of entries of a distance bias for each head, 0 if there is no pair.
    pub(crate) fn distances(&self) -> usize {
        DistanceAxis::new(&self.problem, &self.options.mask).len()
    }
}

/// Refuses a captured tensor that does not broadcast to the scores.
fn broadcasts<T>(
    function: &'static str,
    index: usize,
    captured: &Broadcast<'_, T>,
    problem: &Problem,
) -> Result<(), InputError> {
    let checked = captured.validate(problem);
    checked.map_err(|error| InputError::Captured {
        function,
        index,
        error,
    })
}

/// Checks that rows can be written: that they are in their slice and do not overlap.
pub(crate) fn writable<T>(
    name: &'static str,
    rows: &RowsMut<'_, T>,
    sizes: [usize; 3],
    dim: usize,
    problem: &Problem,
) -> Result<(), InputError> {
    match rows.extent(sizes, dim) {
        Some(expected) => at_least(name, rows.available(), expected, problem),
        None => Err(InputError::Overlap {
            name,
            strides: rows.strides(),
            problem: *problem,
        }),
    }
}
