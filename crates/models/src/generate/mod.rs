//! Generation, token by token, from any model that says how probable each next token is.
//!
//! | file | what it is |
//! | --- | --- |
//! | `autoregressive` | [`Autoregressive`]: what a model must be able to do |
//! | `options` | [`GenerateOptions`] and [`BeamOptions`]: when to stop, how wide to search |
//! | `sampling` | [`Sampling`]: how a token is chosen: greedy, or drawn with temperature, top-k, top-p and min-p |
//! | `stream` | [`stream`], an iterator over the steps, and [`generate`](generate()), which runs it to its end |
//! | `beam` | [`beam_search`]: the most probable outputs, several of them if wished |
//! | `logits` | what the model says, read once a step and checked |
//! | `prompts` | what a call is given, checked, and how long each row may become |
//!
//! # How a token is chosen
//!
//! [`generate`](generate()) and [`stream`] read the logits of every row once a step and choose on the host, in this order, which is that
//! of Hugging Face's transformers:
//!
//! 1. repetition penalty ([`GenerateOptions::repetition_penalty`]),
//! 2. temperature ([`Sampling::temperature`]),
//! 3. top-k ([`Sampling::top_k`]),
//! 4. top-p ([`Sampling::top_p`]),
//! 5. min-p ([`Sampling::min_p`]),
//! 6. the draw.
//!
//! Of equally probable tokens the smaller one counts as the more probable, everywhere. That is the one difference: top-k here keeps
//! exactly k tokens, there also those that tie with the k-th.
//!
//! Log-probabilities are always those of the model itself, before all of the above: they add up to that of the whole output,
//! however it was found.
//!
//! # Repeatable
//!
//! Row `r` of a call draws from stream `r` of a ChaCha8 generator whose key is the seed, one number a token. The same seed gives the
//! same tokens, and what other rows of the batch do, or whether there are any, changes nothing but the rounding inside the model.
//!
//! # Example
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use burn_attn_models::{
//!     generate::{BeamOptions, GenerateOptions, Sampling, beam_search, generate, stream},
//!     seq2seq::Seq2SeqConfig,
//! };
//!
//! let device = Device::default();
//! let model = Seq2SeqConfig::new(100).with_d_model(32).with_n_heads(4).init(&device);
//! let source = Tensor::<2, Int>::from_data([[5, 6, 7], [8, 9, 0]], &device);
//! let source_lengths = Tensor::<1, Int>::from_data([3, 2], &device);
//! let start = model.start(source, source_lengths);
//! let (bos, eos) = (1, 2);
//! let prompts = [vec![bos], vec![bos]];
//!
//! let options = GenerateOptions::new(20)
//!     .stop_tokens([eos])
//!     .sampling(Sampling::temperature(0.8).top_k(50).top_p(0.95))
//!     .seed(7);
//! for step in stream(&model, start.clone(), &prompts, &options).take(3) {
//!     for choice in step {
//!         println!("row {}: token {}", choice.row, choice.token);
//!     }
//! }
//!
//! let greedy = generate(&model, start.clone(), &prompts, &GenerateOptions::new(20).stop_tokens([eos]));
//! let beams = beam_search(&model, start, &prompts, &BeamOptions::new(4, 20).stop_tokens([eos]).n_best(2));
//! assert_eq!((greedy.len(), beams.len(), beams[0].len()), (2, 2, 2));
//! ```

mod autoregressive;
mod beam;
mod logits;
mod options;
mod prompts;
mod sampling;
mod stream;

pub use autoregressive::Autoregressive;
pub use beam::{Hypothesis, beam_search};
pub use options::{BeamOptions, GenerateOptions};
pub use sampling::Sampling;
pub use stream::{Choice, Finish, Generation, Stream, generate, stream};
