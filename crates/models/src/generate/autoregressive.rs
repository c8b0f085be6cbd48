//! What generation asks of a model.

use burn::tensor::Tensor;

/// A model that says how probable each token is as the next one of a sequence.
///
/// It works on a batch of rows at a time and keeps what it knows about each between steps, its state: caches of keys and values, or just
/// the tokens so far. How a state starts is the model's own business: a decoder-only model starts from nothing, an encoder–decoder from
/// its memory.
///
/// A state that is cloned or repeated with [`reorder`](Self::reorder) after it has read the start that several prompts share lets
/// all of them continue from there.
///
/// # Example
///
/// A model whose tokens follow each other like the hours of a clock, so that its state is only a count.
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
/// let outputs = generate(&clock, vec![0, 0], &prompts, &GenerateOptions::new(4).stop_tokens([0]));
/// assert_eq!(outputs[0].tokens, [11]);
/// assert_eq!(outputs[1].tokens, [4, 5, 6, 7]);
/// ```
pub trait Autoregressive {
    /// What the model keeps about every row between steps.
    type State;

    /// Number of tokens in the vocabulary.
    fn vocab_size(&self) -> usize;

    /// Most tokens a row can hold, if there is a limit.
    fn max_len(&self) -> Option<usize>;

    /// How many tokens every row has read.
    fn lengths(&self, state: &Self::State) -> Vec<usize>;

    /// Lets every row read more tokens, of each row at least one, and returns the logits of the token that follows each.
    ///
    /// # Shapes
    ///
    /// - `tokens`: one slice a row, of the row's own length
    /// - output: `[rows, vocab_size]`
    fn advance(&self, state: &mut Self::State, tokens: &[&[u32]]) -> Tensor<2>;

    /// Makes row `r` what row `rows[r]` was: drops rows that are not named, repeats those named twice.
    fn reorder(&self, state: &mut Self::State, rows: &[usize]);

    /// Puts the rows of `other`, another state of this model, behind those of `state`.
    fn join(&self, state: &mut Self::State, other: Self::State);
}
