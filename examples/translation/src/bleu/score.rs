//! N-gram precisions, their smoothing and the brevity penalty.

use std::collections::HashMap;

use super::tokenize::tokenize_13a;

/// The longest n-gram that is counted.
const MAX_ORDER: usize = 4;

/// The counts of a corpus, summed over its segments.
#[derive(Default)]
struct Counts {
    /// N-grams of the hypotheses found in a reference, clipped, by order minus one.
    correct: [usize; MAX_ORDER],
    /// N-grams of the hypotheses, by order minus one.
    total: [usize; MAX_ORDER],
    /// Tokens in the hypotheses.
    hypothesis_len: usize,
    /// Tokens in the closest references.
    reference_len: usize,
}

/// The BLEU of a corpus, from 0 to 100, equal to sacreBLEU's default.
///
/// `references[i]` holds every reference of `hypotheses[i]`. With hypothesis length `h`, the summed length `r` of the
/// references closest in length (the shorter of two as close), and the clipped precisions `p_n`:
/// `BLEU = 100 · min(1, exp(1 − r / h)) · (p_1 p_2 p_3 p_4)^(1/4)`. The k-th order without a match counts as
/// `1 / 2^k` matches (smoothing `exp`); an order without any n-gram, or no match at all, makes it 0.
/// An empty corpus has BLEU 0.
///
/// # Panics
/// If the two slices differ in length, or a hypothesis has no reference.
///
/// # Cost
/// `O(tokens)` operations and memory, four n-grams per token of one segment at a time.
///
/// # Source
/// Papineni et al., 2002, "BLEU: a method for automatic evaluation of machine translation"; tokenizer, smoothing and
/// clipping as in `sacrebleu.metrics.BLEU()` of sacreBLEU 2.6 (Post, 2018).
pub fn corpus_bleu(hypotheses: &[String], references: &[Vec<String>]) -> f64 {
    assert_eq!(
        hypotheses.len(),
        references.len(),
        "corpus_bleu: one list of references per hypothesis"
    );
    let mut counts = Counts::default();
    for (hypothesis, references) in hypotheses.iter().zip(references) {
        assert!(
            !references.is_empty(),
            "corpus_bleu: the hypothesis {hypothesis:?} has no reference"
        );
        counts.add(hypothesis, references);
    }
    counts.bleu()
}

impl Counts {
    fn add(&mut self, hypothesis: &str, references: &[String]) {
        let hypothesis = tokenize_13a(hypothesis);
        let references: Vec<Vec<String>> =
            references.iter().map(|text| tokenize_13a(text)).collect();
        let len = hypothesis.len();
        self.hypothesis_len += len;
        self.reference_len += references
            .iter()
            .map(Vec::len)
            .min_by_key(|&candidate| (candidate.abs_diff(len), candidate))
            .unwrap_or(0);
        for order in 1..=MAX_ORDER {
            let mut allowed: HashMap<&[String], usize> = HashMap::new();
            for reference in &references {
                for (gram, count) in count_grams(reference, order) {
                    let most = allowed.entry(gram).or_default();
                    *most = count.max(*most);
                }
            }
            for (gram, count) in count_grams(&hypothesis, order) {
                self.total[order - 1] += count;
                self.correct[order - 1] += count.min(allowed.get(gram).copied().unwrap_or(0));
            }
        }
    }

    fn bleu(&self) -> f64 {
        // Without a matching word no order matches; without a 4-gram its precision is 0, and so is the mean.
        if self.correct[0] == 0 || self.total[MAX_ORDER - 1] == 0 {
            return 0.0;
        }
        let mut smoothing = 1.0;
        let mut sum_of_logs = 0.0;
        for (&correct, &total) in self.correct.iter().zip(&self.total) {
            let matches = if correct == 0 {
                smoothing *= 2.0;
                1.0 / smoothing
            } else {
                correct as f64
            };
            sum_of_logs += (100.0 * matches / total as f64).ln();
        }
        let (hypothesis_len, reference_len) =
            (self.hypothesis_len as f64, self.reference_len as f64);
        let brevity_penalty = if hypothesis_len < reference_len {
            (1.0 - reference_len / hypothesis_len).exp()
        } else {
            1.0
        };
        brevity_penalty * (sum_of_logs / MAX_ORDER as f64).exp()
    }
}

/// How often each n-gram of one order occurs.
fn count_grams(tokens: &[String], order: usize) -> HashMap<&[String], usize> {
    let mut counts = HashMap::new();
    for gram in tokens.windows(order) {
        *counts.entry(gram).or_default() += 1;
    }
    counts
}
