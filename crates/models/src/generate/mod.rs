//! Generation, token by token, with any model that predicts the next token.
//!
//! | item | what it is |
//! | --- | --- |
//! | [`generate`](generate()) | continues prompts to their end |
//! | [`stream`] | the same as an iterator over the steps, which other prompts may [join](Stream::join) |
//! | [`beam_search`] | finds the most probable outputs, one or several per prompt |
//! | [`speculate`] | [`generate`](generate()) with a smaller model that guesses ahead: the same tokens, in less time if its guesses are good |
//! | [`GenerateOptions`], [`BeamOptions`] | when to stop, how wide to search |
//! | [`Sampling`] | how a token is chosen: greedily, or drawn with temperature, top-k, top-p and min-p |
//! | [`Autoregressive`] | what a model must be able to do |
//!
//! A call takes a model, a state and the prompts. The state comes from the model's own `start`, such as
//! [`LanguageModel::start`](crate::language_model::LanguageModel::start) or [`Seq2Seq::start`](crate::seq2seq::Seq2Seq::start), and has one row
//! for each prompt. A call consumes it; clone it first to generate from it again.
//!
//! # Example
//!
//! ```
//! use burn::tensor::Device;
//! use burn_attn_models::{
//!     generate::{BeamOptions, GenerateOptions, Sampling, beam_search, generate},
//!     language_model::LanguageModelConfig,
//! };
//!
//! let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
//! let prompts = [vec![5, 6, 7], vec![8]];
//! let end = 2; // the end token
//!
//! let greedy = generate(&model, model.start(2), &prompts, &GenerateOptions::new(20).stop_tokens([end]))?;
//!
//! let options = GenerateOptions::new(20)
//!     .stop_tokens([end])
//!     .sampling(Sampling::temperature(0.8).top_k(50).top_p(0.95))
//!     .seed(7);
//! let sampled = generate(&model, model.start(2), &prompts, &options)?;
//!
//! let beams = beam_search(&model, model.start(2), &prompts, &BeamOptions::new(4, 20).stop_tokens([end]).n_best(2))?;
//! assert_eq!((greedy.len(), sampled.len(), beams.len(), beams[0].len()), (2, 2, 2, 2));
//! # Ok::<(), burn_attn_models::generate::GenerateError>(())
//! ```
//!
//! # Streaming
//!
//! Each step of a [`stream`] has one [`GeneratedToken`] per row that is still going on. Stop by dropping it. An encoder–decoder reads its sources in
//! `start`, and its prompts are begin tokens:
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use burn_attn_models::{generate::{FinishReason, GenerateOptions, stream}, seq2seq::Seq2SeqConfig};
//!
//! let device = Device::default();
//! let model = Seq2SeqConfig::new(100).with_d_model(32).with_n_heads(4).init(&device);
//! let source = Tensor::<2, Int>::from_data([[5, 6, 7], [8, 9, 0]], &device); // the second is padded
//! let source_lengths = Tensor::<1, Int>::from_data([3, 2], &device);
//! let start = model.start(source, source_lengths);
//!
//! let (begin, end) = (1, 2);
//! let options = GenerateOptions::new(20).stop_tokens([end]);
//! for step in stream(&model, start, &[vec![begin], vec![begin]], &options)?.take(3) {
//!     for chosen in step? {
//!         match chosen.finish_reason {
//!             Some(FinishReason::Stop(_)) => println!("row {} has ended", chosen.row),
//!             _ => println!("row {}: token {}", chosen.row, chosen.token),
//!         }
//!     }
//! }
//! # Ok::<(), burn_attn_models::generate::GenerateError>(())
//! ```
//!
//! # Joining a running batch
//!
//! New prompts need not wait for the rows that are running. They read their tokens by themselves and then take every step with the others:
//!
//! ```
//! # use burn::tensor::Device;
//! # use burn_attn_models::{generate::{GenerateOptions, generate, stream}, language_model::LanguageModelConfig};
//! let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
//! let mut running = stream(&model, model.start(1), &[vec![5, 6]], &GenerateOptions::new(4))?;
//! running.next().transpose()?;
//!
//! let first = running.join(model.start(1), &[vec![7, 8, 9]])?; // row 1: rows are numbered in the order of arrival
//! assert_eq!(first[0].row, 1);
//! let step = running.next().expect("no row has ended")?;
//! assert_eq!([step[0].row, step[1].row], [0, 1]);
//! # Ok::<(), burn_attn_models::generate::GenerateError>(())
//! ```
//!
//! # Several turns
//!
//! A conversation goes on without reading its history again. [`Stream::into_state`] gives the state back, and what it has not read yet:
//!
//! ```
//! # use burn::tensor::Device;
//! # use burn_attn_models::{generate::{GenerateOptions, generate, stream}, language_model::LanguageModelConfig};
//! let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
//! let options = GenerateOptions::new(4);
//! let mut turn = stream(&model, model.start(1), &[vec![5, 6]], &options)?;
//! let mut answer = Vec::new();
//! for step in turn.by_ref() {
//!     answer.push(step?[0].token);
//! }
//! let (state, mut rest) = turn.into_state();
//!
//! let mut prompt = rest.remove(0).unread; // the last token of the answer
//! prompt.extend([7, 8]);
//! let second = generate(&model, state, &[prompt], &options)?;
//!
//! let history = [&[5, 6], answer.as_slice(), &[7, 8]].concat();
//! let at_once = generate(&model, model.start(1), &[history], &options)?;
//! assert_eq!(second[0].tokens, at_once[0].tokens);
//! # Ok::<(), burn_attn_models::generate::GenerateError>(())
//! ```
//!
//! # Rolling back
//!
//! [`LanguageModelState::truncate`](crate::language_model::LanguageModelState::truncate) forgets the last tokens of each row. Speculative
//! decoding ([`speculate`]) lets the model read several guessed tokens at once and takes back the wrong ones:
//!
//! ```
//! # use burn::tensor::Device;
//! # use burn_attn_models::{generate::Autoregressive, language_model::LanguageModelConfig};
//! let model = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4).init(&Device::default());
//! let mut state = model.start(1);
//! model.advance(&mut state, &[&[5, 6, 7]]); // the prompt
//! state.reserve(3); // only for models with windows, which drop what they have passed
//! model.advance(&mut state, &[&[8, 9, 10]]); // three guesses, of which the first turns out right
//! state.truncate(&[4]);
//! assert_eq!(model.lengths(&state), [4]);
//!
//! let logits = model.advance(&mut state, &[&[11]]); // as if 9 and 10 had never been read
//! assert_eq!(logits.dims(), [1, 100]);
//! ```
//!
//! # How a token is chosen
//!
//! [`generate`](generate()) and [`stream`] read the logits of every row once per step and choose on the host, in this order, which is that
//! of Hugging Face's transformers:
//!
//! 1. repetition penalty ([`GenerateOptions::repetition_penalty`]),
//! 2. the caller's own changes ([`Stream::logits_processor`]),
//! 3. temperature ([`Sampling::temperature`]),
//! 4. top-k ([`Sampling::top_k`]),
//! 5. top-p ([`Sampling::top_p`]),
//! 6. min-p ([`Sampling::min_p`]),
//! 7. the draw.
//!
//! Of equally probable tokens, the smaller one always counts as the more probable. This is the only difference: top-k here keeps exactly
//! k tokens, while transformers also keeps those that tie with the k-th.
//!
//! Log-probabilities are always those of the model itself, before all of the above. They add up to the log-probability of the whole
//! output, however it was found.
//!
//! # Reproducibility
//!
//! Row `r` of a call draws from stream `r` of a ChaCha8 generator whose key is the seed, one number per token. The same seed gives the
//! same tokens. The other rows of the batch, if there are any, affect nothing but the rounding inside the model.

mod autoregressive;
mod beam;
mod error;
mod logits;
mod options;
mod prompts;
mod row;
mod sampling;
mod speculative;
mod stream;

pub use autoregressive::Autoregressive;
pub use beam::{Hypothesis, beam_search};
pub use error::GenerateError;
pub use options::{BeamOptions, GenerateOptions};
pub use row::{FinishReason, GeneratedToken};
pub use sampling::Sampling;
pub use speculative::{Speculation, Speculative, speculate};
pub use stream::{Generation, Stream, Unfinished, generate, stream};
