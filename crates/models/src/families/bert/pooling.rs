//! From the states of a text's tokens to one vector.

use burn::tensor::Tensor;

use crate::loss::wide;

/// How the states of a text become its vector.
///
/// # Source
///
/// "Sentence-BERT" (arXiv:1908.10084), section 3; the weighted mean is that of "SGPT" (arXiv:2202.08904). PyTorch equivalent: `Pooling` of
/// `sentence-transformers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pooling {
    /// The state of the first token, as in BGE.
    Cls,
    /// The largest number of every dimension.
    Max,
    /// The mean, as in MiniLM.
    Mean,
    /// The sum, divided by the square root of the number of tokens.
    MeanSqrtLen,
    /// The mean in which the token at position `i` counts `i + 1` times.
    WeightedMean,
    /// The state of the last token.
    LastToken,
}

impl Pooling {
    /// One vector per text.
    ///
    /// # Shapes
    ///
    /// - `states`: `[batch, len, d_model]`, of texts with `lengths` tokens
    /// - output: `[batch, d_model]`
    ///
    /// # Panics
    ///
    /// When the number of lengths is not the number of texts, or a length is zero or more than `len`.
    ///
    /// # Cost
    ///
    /// O(batch · len · d_model)
    pub fn pool(self, states: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
        let [batch, len, d_model] = states.dims();
        assert!(
            lengths.len() == batch && lengths.iter().all(|length| (1..=len).contains(length)),
            "Bert: lengths {lengths:?} do not fit states of {batch} texts of {len} tokens"
        );
        let dtype = states.dtype();
        if batch == 0 {
            return Tensor::zeros([0, d_model], (&states.device(), dtype));
        }
        let states = states.cast(wide(dtype));
        let vectors = lengths.iter().enumerate().map(|(text, &length)| {
            let of_text = states.clone().narrow(0, text, 1).narrow(1, 0, length);
            self.of_text(of_text, length).reshape([1, d_model])
        });
        Tensor::cat(vectors.collect(), 0).cast(dtype)
    }

    /// `[1, length, d_model]` to `[1, 1, d_model]`.
    fn of_text(self, states: Tensor<3>, length: usize) -> Tensor<3> {
        match self {
            Self::Cls => states.narrow(1, 0, 1),
            Self::LastToken => states.narrow(1, length - 1, 1),
            Self::Max => states.max_dim(1),
            Self::Mean => states.mean_dim(1),
            Self::MeanSqrtLen => states.sum_dim(1).mul_scalar((length as f64).sqrt().recip()),
            Self::WeightedMean => {
                let sum = (length * (length + 1) / 2) as f64;
                let shares: Vec<f64> = (1..=length).map(|weight| weight as f64 / sum).collect();
                let shares =
                    Tensor::<1>::from_data(shares.as_slice(), (&states.device(), states.dtype()));
                (states * shares.reshape([1, length, 1])).sum_dim(1)
            }
        }
    }
}

/// Vectors `[batch, d]` of length 1 in the same directions; those that are zero stay zero.
pub(crate) fn normalized(vectors: Tensor<2>) -> Tensor<2> {
    let dtype = vectors.dtype();
    let vectors = vectors.cast(wide(dtype));
    // The bound is under the root, whose gradient at zero is not finite.
    let squares = vectors.clone().square().sum_dim(1).clamp_min(1e-24);
    (vectors / squares.sqrt()).cast(dtype)
}
