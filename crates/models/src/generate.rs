//! Search for the most probable output, token by token.

use burn::tensor::{Int, Tensor, TensorData};

use crate::seq2seq::{Memory, Seq2Seq};

/// How to search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// Token every output starts with.
    pub bos: u32,
    /// Token that ends an output.
    pub eos: u32,
    /// Longest output (tokens, without the two above).
    pub max_len: usize,
    /// Number of hypotheses kept side by side; 1 is greedy search.
    pub beam: usize,
    /// How much longer outputs are favoured: scores are divided by `((5 + len) / 6)^length_penalty`.
    pub length_penalty: f64,
}

/// One finished output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generation {
    /// The tokens between begin and end.
    pub tokens: Vec<u32>,
    /// Sum of the log-probabilities of the tokens and of the end (nats).
    pub log_probability: f64,
}

/// An output on its way.
#[derive(Clone, Debug)]
struct Hypothesis {
    /// Starts with the begin token.
    tokens: Vec<u32>,
    log_probability: f64,
}

/// The best output for every source of a batch, best by beam search (greedy with a beam of 1).
///
/// Ties go to the smaller token, so the result is repeatable. Where no hypothesis has ended by `max_len`, the best one is
/// returned as it stands.
///
/// # Shapes
///
/// - `source`: `[batch, len_source]`; `source_lengths`: `[batch]`
///
/// # Panics
///
/// When the beam is 0 or wider than the vocabulary, or `max_len` exceeds the positions of the model.
///
/// # Source
///
/// Length penalty: "Google's neural machine translation system" (arXiv:1609.08144), equation 14.
pub fn search(
    model: &Seq2Seq,
    source: Tensor<2, Int>,
    source_lengths: Tensor<1, Int>,
    options: &SearchOptions,
) -> Vec<Generation> {
    let [vocab_size, _] = model.embedding.weight.dims();
    assert!(
        options.beam >= 1 && options.beam <= vocab_size,
        "search: beam must be between 1 and the vocabulary's {vocab_size} tokens, got {}",
        options.beam
    );
    assert!(
        options.max_len <= model.max_len(),
        "search: max_len {} exceeds the model's {} positions",
        options.max_len,
        model.max_len()
    );
    let [batch, _] = source.dims();
    if batch == 0 {
        return Vec::new();
    }
    let memory = model.encode(source, source_lengths);
    let start = Hypothesis {
        tokens: vec![options.bos],
        log_probability: 0.0,
    };
    let mut beams = vec![
        Beam {
            live: vec![start],
            finished: Vec::new(),
        };
        batch
    ];
    for _ in 0..options.max_len {
        let rows = live_rows(&beams);
        if rows.is_empty() {
            break;
        }
        let log_probabilities = next_tokens(model, &memory, &beams, &rows);
        let mut rows = log_probabilities.chunks_exact(vocab_size);
        for beam in &mut beams {
            let count = beam.live.len();
            beam.advance(rows.by_ref().take(count), options);
        }
    }
    beams.into_iter().map(Beam::best).collect()
}

/// The hypotheses of one source.
#[derive(Clone, Debug)]
struct Beam {
    live: Vec<Hypothesis>,
    finished: Vec<Hypothesis>,
}

impl Beam {
    /// Replaces the live hypotheses by their best continuations, given the next token's log-probabilities of each.
    fn advance<'a>(&mut self, rows: impl Iterator<Item = &'a [f32]>, options: &SearchOptions) {
        let mut candidates = Vec::new();
        for (parent, row) in rows.enumerate() {
            let so_far = self.live[parent].log_probability;
            // No more than `beam + 1` continuations of one parent can matter: one of them may be the end.
            for token in best_tokens(row, options.beam + 1) {
                candidates.push((so_far + f64::from(row[token]), parent, token as u32));
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let mut live = Vec::with_capacity(options.beam);
        for (rank, (log_probability, parent, token)) in candidates.into_iter().enumerate() {
            let mut tokens = self.live[parent].tokens.clone();
            if token == options.eos {
                // An end outside the beam would not have been kept as a continuation either.
                if rank < options.beam {
                    self.finished.push(Hypothesis {
                        tokens,
                        log_probability,
                    });
                }
                continue;
            }
            if live.len() < options.beam {
                tokens.push(token);
                live.push(Hypothesis {
                    tokens,
                    log_probability,
                });
            }
        }
        self.live = live;
        // Sorting is stable: of equal scores the earlier ending stays ahead.
        self.finished
            .sort_by(|a, b| b.score(options).total_cmp(&a.score(options)));
        self.finished.truncate(options.beam);
        if self.is_done(options) {
            self.live.clear();
        }
    }

    /// Whether there are as many endings as wanted, and the best live hypothesis is no better than the worst of them.
    ///
    /// Counting endings alone would not do: after a confident step, improbable ends fill the beam.
    fn is_done(&self, options: &SearchOptions) -> bool {
        let (Some(worst), Some(live)) = (self.finished.last(), self.live.first()) else {
            return self.live.is_empty();
        };
        // A hypothesis that ended in this step is a token shorter than those that went on.
        let attainable = live.log_probability / options.penalty(live.tokens.len() - 1);
        self.finished.len() == options.beam && attainable <= worst.score(options)
    }

    /// The best finished hypothesis, or the best live one where none has finished.
    fn best(self) -> Generation {
        // Both are sorted, best first.
        let best = self.finished.into_iter().chain(self.live).next();
        best.map_or_else(Generation::default, |best| Generation {
            tokens: best.tokens[1..].to_vec(),
            log_probability: best.log_probability,
        })
    }
}

impl Hypothesis {
    /// What a finished hypothesis is judged by; its begin token stands for its end.
    fn score(&self, options: &SearchOptions) -> f64 {
        self.log_probability / options.penalty(self.tokens.len())
    }
}

impl SearchOptions {
    /// What the log-probability of an output of `len` tokens, the end included, is divided by.
    fn penalty(&self, len: usize) -> f64 {
        ((5.0 + len as f64) / 6.0).powf(self.length_penalty)
    }
}

/// Batch item of every live hypothesis.
fn live_rows(beams: &[Beam]) -> Vec<i32> {
    beams
        .iter()
        .enumerate()
        .flat_map(|(item, beam)| beam.live.iter().map(move |_| item as i32))
        .collect()
}

/// Log-probabilities of the next token of every live hypothesis, row after row.
fn next_tokens(model: &Seq2Seq, memory: &Memory, beams: &[Beam], rows: &[i32]) -> Vec<f32> {
    let device = memory.states.device();
    // All live hypotheses are of the same age.
    let tokens: Vec<i32> = beams
        .iter()
        .flat_map(|beam| &beam.live)
        .flat_map(|hypothesis| hypothesis.tokens.iter().map(|&token| token as i32))
        .collect();
    let len = tokens.len() / rows.len();
    let target = Tensor::from_data(TensorData::new(tokens, [rows.len(), len]), &device);
    let items = Tensor::from_data(TensorData::new(rows.to_vec(), [rows.len()]), &device);
    model
        .next_token(target, &memory.select(items))
        .into_data()
        .iter::<f32>()
        .collect()
}

/// Indices of the `count` largest numbers, largest first, smaller index first among equals.
fn best_tokens(row: &[f32], count: usize) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(count + 1);
    for (token, &value) in row.iter().enumerate() {
        if best.len() == count && best.last().is_some_and(|&last| value <= row[last]) {
            continue;
        }
        let at = best.partition_point(|&other| row[other] >= value);
        best.insert(at, token);
        best.truncate(count);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_tokens_come_largest_first_and_ties_by_index() {
        assert_eq!(best_tokens(&[0.1, 0.5, 0.5, 0.9, 0.2], 3), [3, 1, 2]);
        assert_eq!(best_tokens(&[2.0], 5), [0]);
    }

    fn options(beam: usize) -> SearchOptions {
        SearchOptions {
            bos: 0,
            eos: 1,
            max_len: 8,
            beam,
            length_penalty: 1.0,
        }
    }

    fn beam_of(tokens: &[u32]) -> Beam {
        Beam {
            live: vec![Hypothesis {
                tokens: tokens.to_vec(),
                log_probability: 0.0,
            }],
            finished: Vec::new(),
        }
    }

    #[test]
    fn a_beam_recovers_from_a_first_step_that_only_looked_best() {
        // Token 2 looks better at first, but all that follows it is unlikely.
        let mut beam = beam_of(&[0]);
        beam.advance(
            [[-9.0, -9.0, -0.4, -1.1].as_slice()].into_iter(),
            &options(2),
        );
        let rows = [[-9.0, -3.0, -3.0, -3.0], [-9.0, -0.1, -9.0, -9.0]];
        beam.advance(rows.iter().map(|row| row.as_slice()), &options(2));
        assert_eq!(beam.best().tokens, [3]);

        let mut greedy = beam_of(&[0]);
        greedy.advance(
            [[-9.0, -9.0, -0.4, -1.1].as_slice()].into_iter(),
            &options(1),
        );
        greedy.advance(rows[..1].iter().map(|row| row.as_slice()), &options(1));
        assert_eq!(greedy.best().tokens, [2]);
    }

    #[test]
    fn improbable_ends_do_not_stop_a_search() {
        // A confident first step: the end is in a beam of 2, but at a probability of e⁻⁸.
        let mut beam = beam_of(&[0]);
        beam.advance(
            [[-99.0, -8.0, -0.01, -9.0].as_slice()].into_iter(),
            &options(2),
        );
        let rows = [[-99.0, -8.0, -9.0, -0.01], [-99.0, -7.0, -9.0, -9.0]];
        beam.advance(rows.iter().map(|row| row.as_slice()), &options(2));
        let rows = [[-99.0, -0.01, -9.0, -9.0], [-99.0, -9.0, -9.0, -9.0]];
        beam.advance(rows.iter().map(|row| row.as_slice()), &options(2));
        assert_eq!(beam.best().tokens, [2, 3]);
    }

    #[test]
    fn an_unfinished_output_is_returned_as_it_stands() {
        assert_eq!(beam_of(&[0, 5, 6]).best().tokens, [5, 6]);
    }
}
