//! What generation requires of a model.

use burn::tensor::Tensor;

/// A model that predicts the next token of a sequence.
///
/// It works on a batch of rows. Between steps it keeps a state: caches of keys and values, or just the tokens so far. Each model
/// creates its states in its own way: a decoder-only model starts from nothing, an encoder–decoder from its memory.
///
/// Prompts with a common beginning read it once if the model has [`read_in_common`](Self::read_in_common).
///
/// # Example
///
/// A model whose tokens follow each other like the hours on a clock. Its state is only a count.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use burn_attn_models::generate::{Autoregressive, GenerateOptions, generate};
///
/// struct Clock(Device);
///
/// impl Autoregressive for Clock {
///     type State = Vec<usize>;
///
///     fn vocab_size(&self) -> usize {
///         12
///     }
///
///     fn max_len(&self) -> Option<usize> {
///         None
///     }
///
///     fn lengths(&self, state: &Vec<usize>) -> Vec<usize> {
///         state.clone()
///     }
///
///     fn advance(&self, state: &mut Vec<usize>, tokens: &[&[u32]]) -> Tensor<2> {
///         let mut logits = vec![0.0f32; tokens.len() * 12];
///         for (row, tokens) in tokens.iter().enumerate() {
///             state[row] += tokens.len();
///             let hour = tokens[tokens.len() - 1] as usize;
///             logits[row * 12 + (hour + 1) % 12] = 9.0;
///         }
///         Tensor::from_data(TensorData::new(logits, [tokens.len(), 12]), &self.0)
///     }
///
///     fn reorder(&self, state: &mut Vec<usize>, rows: &[usize]) {
///         *state = rows.iter().map(|&row| state[row]).collect();
///     }
///
///     fn join(&self, state: &mut Vec<usize>, other: Vec<usize>) {
///         state.extend(other);
///     }
/// }
///
/// let clock = Clock(Device::default());
/// let prompts = [vec![9, 10], vec![3]];
/// let outputs = generate(&clock, vec![0, 0], &prompts, &GenerateOptions::new(4).stop_tokens([0]))?;
/// assert_eq!(outputs[0].tokens, [11]);
/// assert_eq!(outputs[1].tokens, [4, 5, 6, 7]);
/// # Ok::<(), burn_attn_models::generate::GenerateError>(())
/// ```
pub trait Autoregressive {
    /// What the model keeps for each row between steps.
    type State;

    /// Number of tokens in the vocabulary.
    fn vocab_size(&self) -> usize;

    /// Whether the model has logits. Generation refuses one that has not, before it reads a token. Default: true.
    fn has_logits(&self) -> bool {
        true
    }

    /// The most tokens that a row can hold, if there is a limit.
    fn max_len(&self) -> Option<usize>;

    /// How many tokens each row has read.
    fn lengths(&self, state: &Self::State) -> Vec<usize>;

    /// Lets every row read one or more tokens, and returns the logits of the token that follows in each row.
    ///
    /// # Shapes
    ///
    /// - `tokens`: one slice per row; their lengths may differ
    /// - output: `[rows, vocab_size]`
    ///
    /// # Panics
    ///
    /// The models of this crate panic when the number of slices is not the number of rows, a slice is empty, a token is outside the
    /// vocabulary, or a row would exceed [`max_len`](Self::max_len).
    fn advance(&self, state: &mut Self::State, tokens: &[&[u32]]) -> Tensor<2>;

    /// Lets every row of a state read the same tokens, once for all rows; returns whether it did. Generation asks for it where no row has read
    /// anything, and all prompts begin with the same 16 tokens or more. Default: false, and every row reads them by itself.
    fn read_in_common(&self, _state: &mut Self::State, _tokens: &[u32]) -> bool {
        false
    }

    /// Replaces row `r` by what row `rows[r]` was: drops rows that are not listed, and repeats those listed twice.
    fn reorder(&self, state: &mut Self::State, rows: &[usize]);

    /// Appends the rows of `other`, another state of this model, to those of `state`.
    fn join(&self, state: &mut Self::State, other: Self::State);
}
