//! A plain implementation (product, softmax, product) in a given precision: its error is the measure for that of a kernel.

use core::f64::consts::LOG2_E;

use burn_attn_kernels_cpu::tiled::Real;

use super::{
    case::{Case, Tensors},
    number::Number,
};

/// What the plain implementation computed.
pub struct Plain {
    pub results: Tensors,
    /// The sums of the terms' magnitudes: a sum that cancels is no more precise than its terms are.
    pub magnitudes: Tensors,
    /// The errors of the gradients that do not come from rounding the terms of a sum. They come from rounding the stored output to
    /// half precision, which enters a dot product, and from rounding the argument of a softcap's derivative.
    pub inherited_errors: Tensors,
    /// Whether every sum over what is visible, and every gradient, stays in the range: otherwise the contract promises nothing.
    pub in_range: bool,
    /// For each row of queries, how many times as large the exponential makes an error of a score that is relative to its terms: the largest
    /// of these terms, or distance of a score from the largest, among scores that have a weight.
    pub exponents: Vec<f64>,
    /// The largest magnitude of a score or a logsumexp: the exponential turns a relative error of its argument into one
    /// this many times as large.
    pub largest_exponent: f64,
}

/// A tensor that is summed up term by term.
struct Sums {
    sums: Vec<f64>,
    magnitudes: Vec<f64>,
    inherited_errors: Vec<f64>,
    round: fn(f64) -> f64,
}

impl Sums {
    fn new<T: Number>(len: usize) -> Self {
        Self {
            sums: vec![0.0; len],
            magnitudes: vec![0.0; len],
            inherited_errors: vec![0.0; len],
            round: T::rounded_to_real,
        }
    }

    fn add(&mut self, index: usize, term: f64, magnitude: f64) {
        self.sums[index] = (self.round)(self.sums[index] + term);
        self.magnitudes[index] += magnitude;
    }

    /// As [`add`](Self::add), a term with an error that it inherits.
    fn add_gradient(&mut self, index: usize, term: f64, magnitude: f64, inherited_error: f64) {
        self.add(index, term, magnitude);
        self.inherited_errors[index] += inherited_error;
    }
}

/// Attention and its gradients, every operation rounded to the precision of the kernels, every result to that of `T`.
///
/// f64 rounded to f32 after each operation is f32 arithmetic, bit for bit; elementary functions are rounded correctly.
pub fn plain<T: Number>(case: &Case) -> Plain {
    let p = case.problem;
    let round = T::rounded_to_real;
    let dot = |a: &[f64], b: &[f64]| {
        let products = a.iter().zip(b).map(|(a, b)| round(a * b));
        products.fold(0.0, |sum, product| round(sum + product))
    };
    let size_of_dot =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum::<f64>();
    let scale = case.scale.unwrap_or_else(|| p.default_scale());
    // A scale beyond the range would make magnitudes that are no numbers.
    let scale = Some(round(scale))
        .filter(|x| x.is_normal())
        .unwrap_or(scale);
    let mask = case.mask();
    let distance_bias = case.distance_bias();
    let entries = case.axis().len();

    let mut output = Sums::new::<T>(p.output_elements());
    let mut logsumexp = Sums::new::<T>(p.query_rows());
    logsumexp.sums.fill(f64::NEG_INFINITY);
    let mut of_query = Sums::new::<T>(p.query_elements());
    let mut of_key = Sums::new::<T>(p.key_elements());
    let mut of_value = Sums::new::<T>(p.value_elements());
    let mut of_bias = case
        .bias
        .as_ref()
        .map(|(_, data)| Sums::new::<T>(data.len()));
    let mut of_distance = distance_bias
        .as_ref()
        .map(|data| Sums::new::<T>(data.len()));
    let mut of_sinks = case.sinks.as_ref().map(|data| Sums::new::<T>(data.len()));

    let mut largest_exponent: f64 = 0.0;
    let mut exponents = vec![0.0; p.query_rows()];
    let mut in_range = true;
    let largest_real = T::Real::MAX.to_f64();
    // A weight, a softcap's derivative, or a product of them and a query or key may be 0 if it is below the smallest normal number.
    let least = T::Real::MIN_POSITIVE.to_f64() / T::EPSILON_OF_REAL;
    for row in 0..p.query_rows() {
        let (query, head) = (row % p.len_q, row / p.len_q % p.heads_q);
        let batch_item = row / p.len_q / p.heads_q;
        let key_row = |key| p.key_row(batch_item, p.kv_head(head), key);
        let q = &case.query[row * p.dim_qk..][..p.dim_qk];
        // The product without an extreme scale may leave the range.
        let is_extreme = scale.abs().log2().abs() > 60.0;
        let (of_queries, of_scores) = if is_extreme {
            (scale, 1.0)
        } else {
            (1.0, scale)
        };
        let scaled: Vec<f64> = q.iter().map(|x| round(of_queries * x)).collect();
        let k = |key| &case.key[key_row(key) * p.dim_qk..][..p.dim_qk];
        let v = |key| &case.value[key_row(key) * p.dim_v..][..p.dim_v];
        let bias_index = |key: usize| {
            let (shape, _) = case.bias.as_ref()?;
            let at = [batch_item, head, query, key];
            let nested = |index, (&size, at): (&usize, usize)| index * size + at % size;
            Some(shape.iter().zip(at).fold(0, nested))
        };
        let position = mask.position(&p, batch_item, query);
        let distance_index = |key| head * entries + case.axis().index(position, key);

        let mut dsoftcap = vec![1.0; p.len_kv];
        // The derivative of the softcap, computed without cancellation.
        let mut slopes = vec![1.0; p.len_kv];
        let mut errors_of_dsoftcap = vec![0.0; p.len_kv];
        let mut scores = vec![f64::NEG_INFINITY; p.len_kv];
        // The magnitudes of the terms of each score.
        let mut sizes = vec![0.0; p.len_kv];
        for key in 0..p.len_kv {
            if !mask.visible(&p, batch_item, head, query, key) {
                continue;
            }
            let mut score = round(of_scores * dot(&scaled, k(key)));
            let of_dot = (of_scores * size_of_dot(&scaled, k(key))).abs();
            sizes[key] = of_dot;
            if let Some(softcap) = case.softcap {
                // The ratio to an extreme softcap may leave the range.
                let is_extreme = softcap.log2().abs() > 60.0;
                let ratio = if is_extreme {
                    score / softcap
                } else {
                    round(score / softcap)
                };
                let tanh = if is_extreme {
                    ratio.tanh()
                } else {
                    round(ratio.tanh())
                };
                dsoftcap[key] = round(1.0 - round(tanh * tanh));
                slopes[key] = ratio.cosh().powi(-2);
                // The ratio of a score far below the softcap may be subnormal, or 0.
                if ratio * ratio >= f64::EPSILON {
                    score = round(softcap * tanh);
                }
                let [of_tanh, of_derivative] = softcap_errors::<T>(ratio, of_dot / softcap);
                let of_score = softcap * of_tanh / T::EPSILON_OF_REAL;
                sizes[key] = of_score.max(dsoftcap[key] * of_dot) + score.abs();
                errors_of_dsoftcap[key] = of_derivative;
            }
            // An element of the scaled query that is less than a normal number may be 0.
            sizes[key] += least * k(key).iter().map(|x| x.abs()).sum::<f64>();
            let mut of_biases = [0.0; 2];
            if let (Some((_, bias)), Some(index)) = (&case.bias, bias_index(key)) {
                score = round(score + bias[index]);
                of_biases[0] = bias[index].abs();
            }
            if let Some(bias) = &distance_bias {
                score = round(score + bias[distance_index(key)]);
                of_biases[1] = bias[distance_index(key)].abs();
            }
            scores[key] = score;
            let [dense, distance] = of_biases;
            if !of_biases.contains(&f64::INFINITY) {
                sizes[key] += dense + distance;
                let of_query = q
                    .iter()
                    .fold(0.0, |most: f64, x| most.max((scale * x).abs()));
                in_range &= fits([of_dot, dense, distance], largest_real)
                    && fits([of_query, of_query, 0.0], largest_real);
            }
        }
        let sink = case
            .sinks
            .as_ref()
            .map_or(f64::NEG_INFINITY, |sinks| sinks[head]);
        let largest = scores.iter().copied().fold(sink, f64::max);
        if largest == f64::NEG_INFINITY {
            continue;
        }
        let exp = |score: f64| round(round(score - largest).exp());
        let sum = scores
            .iter()
            .fold(exp(sink), |sum, &score| round(sum + exp(score)));
        logsumexp.sums[row] = round(largest + round(sum.ln()));
        // A score without a weight has no part in the errors. A score may be smaller than its terms.
        let scores_and_terms = scores.iter().zip(&sizes);
        let statistics = [(&sink, &0.0), (&logsumexp.sums[row], &0.0)];
        largest_exponent = scores_and_terms
            .chain(statistics)
            .filter(|(x, _)| {
                x.is_finite() && (**x - largest).exp() >= T::Real::MIN_POSITIVE.to_f64()
            })
            .fold(largest_exponent, |largest, (x, terms)| {
                largest.max(x.abs()).max(*terms)
            });
        // The rounding of its terms may give a score a weight that it does not have here.
        let scores_and_terms = scores.iter().chain([&sink]).zip(sizes.iter().chain([&0.0]));
        exponents[row] = scores_and_terms
            .filter(|(score, terms)| {
                let most = **score + 16.0 * T::EPSILON_OF_REAL * **terms;
                score.is_finite() && (most - largest).exp() >= T::Real::MIN_POSITIVE.to_f64()
            })
            .fold(0.0, |most: f64, (score, terms)| {
                most.max(largest - score).max(*terms)
            });
        let factor = |key| match case.dropout {
            Some(dropout) if dropout.keep(batch_item, head, query, key) => {
                round(dropout.kept_scale())
            }
            Some(_) => 0.0,
            None => 1.0,
        };
        let weights: Vec<f64> = scores
            .iter()
            .map(|&score| round(exp(score) / sum))
            .collect();
        // The logsumexp has two terms, the largest score and a logarithm, and each score is a sum itself.
        let of_scores = weights
            .iter()
            .zip(&sizes)
            .map(|(weight, size)| weight * size);
        logsumexp.magnitudes[row] = largest.abs() + sum.ln() + of_scores.sum::<f64>();
        // The exponential of the largest score is 1: if the others add up to less than a unit in the last place, they may be lost.
        let smaller = scores
            .iter()
            .chain([&sink])
            .filter(|score| **score < largest);
        let others: f64 = smaller.map(|score| (score - largest).exp()).sum();
        if others < T::EPSILON_OF_REAL {
            logsumexp.magnitudes[row] += others / T::EPSILON_OF_REAL;
        }
        let of_row = row * p.dim_v..(row + 1) * p.dim_v;
        let visible = || (0..p.len_kv).filter(|&key| scores[key] != f64::NEG_INFINITY);
        for key in visible() {
            let weight = round(weights[key] * factor(key));
            for (d, v) in v(key).iter().enumerate() {
                output.add(
                    of_row.start + d,
                    round(weight * v),
                    (weight + least) * v.abs(),
                );
            }
        }
        // The gradients start from the output as it is stored.
        let stored: Vec<f64> = output.sums[of_row.clone()]
            .iter()
            .map(|&x| T::rounded(x))
            .collect();
        let incoming = &case.output_gradient[of_row];
        let mean = dot(incoming, &stored);
        let of_logsumexp = case
            .logsumexp_gradient
            .as_ref()
            .map_or(0.0, |data| data[row]);
        let rounding = |x: &f64| match T::EPSILON > T::EPSILON_OF_REAL {
            true => T::EPSILON / 2.0 * x.abs() + T::SMALLEST / 2.0,
            false => 0.0,
        };
        let roundings: Vec<f64> = stored.iter().map(rounding).collect();
        let error_of_mean = size_of_dot(incoming, &roundings);
        let size_of_delta = size_of_dot(incoming, &stored) + of_logsumexp.abs();
        for key in visible() {
            let of_weight = round(factor(key) * dot(incoming, v(key)));
            let of_score = round(weights[key] * round(round(of_weight - mean) + of_logsumexp));
            let size = (weights[key] + least)
                * (factor(key) * size_of_dot(incoming, v(key)) + size_of_delta);
            let error = weights[key] * error_of_mean;
            if let (Some(sums), Some(index)) = (&mut of_bias, bias_index(key)) {
                sums.add_gradient(index, of_score, size, error);
            }
            if let Some(sums) = &mut of_distance {
                sums.add_gradient(distance_index(key), of_score, size, error);
            }
            let of_dot = round(round(of_score * dsoftcap[key]) * scale);
            let error = error * slopes[key] + size * errors_of_dsoftcap[key];
            let error = error * scale.abs();
            let size = size * (slopes[key] + least) * scale.abs();
            // The scale may come last, after a product that has rounded to 0.
            let flushed = least * scale.abs();
            for d in 0..p.dim_qk {
                let (q, k) = (q[d], k(key)[d]);
                of_query.add_gradient(
                    row * p.dim_qk + d,
                    round(of_dot * k),
                    size * k.abs() + flushed,
                    error * k.abs(),
                );
                of_key.add_gradient(
                    key_row(key) * p.dim_qk + d,
                    round(of_dot * q),
                    size * q.abs() + flushed,
                    error * q.abs(),
                );
            }
            let weight = round(weights[key] * factor(key));
            for (d, x) in incoming.iter().enumerate() {
                of_value.add(
                    key_row(key) * p.dim_v + d,
                    round(weight * x),
                    (weight + least) * x.abs(),
                );
            }
        }
        if let Some(sums) = &mut of_sinks {
            let weight = round(exp(sink) / sum);
            sums.add_gradient(
                head,
                round(weight * round(of_logsumexp - mean)),
                (weight + least) * size_of_delta,
                weight * error_of_mean,
            );
        }
    }
    for tensor in [&mut output, &mut of_query, &mut of_key, &mut of_value] {
        tensor.sums.iter_mut().for_each(|x| *x = T::rounded(*x));
    }
    let all = [
        ("output", Some(output)),
        ("logsumexp", Some(logsumexp)),
        ("query gradient", Some(of_query)),
        ("key gradient", Some(of_key)),
        ("value gradient", Some(of_value)),
        ("bias gradient", of_bias),
        ("distance bias gradient", of_distance),
        ("sinks gradient", of_sinks),
    ];
    let mut plain = Plain {
        results: Tensors::new(),
        magnitudes: Tensors::new(),
        inherited_errors: Tensors::new(),
        in_range,
        exponents,
        largest_exponent,
    };
    for (name, sums) in all {
        let Some(sums) = sums else { continue };
        plain.results.push((name, sums.sums));
        let most = match name {
            // A sink may be the largest number.
            "logsumexp" => f64::MAX,
            "output" | "query gradient" | "key gradient" | "value gradient" => T::LARGEST / 4.0,
            _ => largest_real / 4.0,
        };
        plain.in_range &= sums.magnitudes.iter().all(|&magnitude| magnitude < most);
        plain.magnitudes.push((name, sums.magnitudes));
        plain.inherited_errors.push((name, sums.inherited_errors));
    }
    plain
}

/// How much a softcap's tanh and its derivative may change if their argument's terms, of the size `terms`, are rounded.
///
/// If the scale is large and the terms cancel, the rounding may be larger than 1: the change is no multiple of the derivative.
fn softcap_errors<T: Number>(argument: f64, terms: f64) -> [f64; 2] {
    const ROUNDINGS: f64 = 16.0;
    let rounding = ROUNDINGS * T::EPSILON_OF_REAL * terms;
    let least = (argument.abs() - rounding).max(-rounding);
    let most = argument.abs() + rounding;
    let derivative = |x: f64| x.cosh().powi(-2);
    let of_tanh = (most.tanh() - least.tanh()) / (2.0 * ROUNDINGS);
    [of_tanh, derivative(least.max(0.0)) - derivative(most)]
}

/// Whether the sum of a score's terms, in units of log 2, fits into the range, or one term is so large that the others do not count.
fn fits(terms: [f64; 3], largest: f64) -> bool {
    let sum: f64 = terms.iter().sum();
    let most = terms.iter().copied().fold(0.0, f64::max);
    LOG2_E * sum <= largest || sum - most <= most * f64::EPSILON
}
