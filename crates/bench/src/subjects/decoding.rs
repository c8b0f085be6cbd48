//! Decoding by a decoder-only stack: ours, and burn-nn's encoder with its cache, on the same parameters.

use std::time::{Duration, Instant};

use burn::{
    nn::transformer::{TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput},
    tensor::{Device, Tensor, TensorData},
};
use burn_attn::{
    BlockConfig, FeedForwardActivation, KvCacheConfig, NormPlacement, TransformerCache,
    TransformerStack, TransformerStackConfig,
};

use super::op::values;
use super::parameters::{NormOf, assign, feed_forward, norm, projection, projections};
use super::{Results, Subject};
use crate::case::Library;
use crate::generator::{numbers, seed};
use crate::work::Decoding;

/// Inputs of `decoding` and the implementation of `library`.
pub fn build(decoding: &Decoding, library: Library) -> Result<Box<dyn Subject>, String> {
    let device = Device::default();
    match library {
        Library::Ours => Ok(Box::new(Ours::new(decoding, &device))),
        Library::BurnNn if decoding.context == 0 && decoding.window.is_none() => {
            Ok(Box::new(BurnNn::new(decoding, &device)))
        }
        _ => Err(format!("{} does not decode this here", library.name())),
    }
}

/// The embedded tokens, `[batch, context + tokens, d_model]`.
fn input(decoding: &Decoding, device: &Device) -> Tensor<3> {
    let shape = [
        decoding.batch,
        decoding.context + decoding.tokens,
        decoding.d_model,
    ];
    let numbers = numbers(seed::QUERY, shape.iter().product(), 1.0);
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

struct Ours {
    model: TransformerStack,
    /// Holds the context.
    cache: TransformerCache,
    tokens: Vec<Tensor<3>>,
    batch: usize,
    context: usize,
}

impl Ours {
    fn new(decoding: &Decoding, device: &Device) -> Self {
        let Decoding {
            batch,
            context,
            tokens,
            d_model,
            heads,
            layers,
            window,
        } = *decoding;
        let block = BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_activation(FeedForwardActivation::Gelu)
            .with_dropout(0.0)
            .with_window(window);
        let model = TransformerStackConfig::causal(d_model, 4 * d_model, heads, layers)
            .with_block(block)
            .with_final_norm(false)
            .init(device);
        let parameters = (0..layers).flat_map(|layer| {
            [
                projection(layer, d_model, &[0, 1, 2]),
                projection(layer, d_model, &[3]),
                norm(layer, NormOf::SelfAttention, d_model),
                feed_forward(layer, d_model),
                norm(layer, NormOf::FeedForward, d_model),
            ]
            .concat()
        });
        let model = assign(model, &parameters.collect::<Vec<_>>());
        let x = input(decoding, device);
        let max_len = context + tokens;
        let mut cache = model.cache(batch, &KvCacheConfig::new(max_len));
        if context > 0 {
            let prompt = x.clone().narrow(1, 0, context);
            model.forward_cached(prompt, &mut cache);
        }
        let tokens = (context..max_len)
            .map(|token| x.clone().narrow(1, token, 1))
            .collect();
        Self {
            model,
            cache,
            tokens,
            batch,
            context,
        }
    }

    /// All tokens, one after the other: the state of the last.
    fn decode(&mut self) -> Tensor<3> {
        let states = self
            .tokens
            .iter()
            .map(|token| self.model.forward_cached(token.clone(), &mut self.cache));
        states.last().expect("there are tokens")
    }

    /// Only the context is left.
    fn forget(&mut self) {
        let lengths = vec![self.context; self.batch];
        self.cache.truncate(&lengths);
    }
}

impl Subject for Ours {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        drop(self.decode());
        let took = start.elapsed();
        self.forget();
        took
    }

    fn results(&mut self) -> Results {
        let state = self.decode();
        self.forget();
        vec![("state".into(), values(state))]
    }
}

/// Recomputes the attention of every earlier token at each step: its cache saves the linear layers only.
struct BurnNn {
    model: TransformerEncoder,
    /// The first token, the first two, ...
    prefixes: Vec<Tensor<3>>,
}

impl BurnNn {
    fn new(decoding: &Decoding, device: &Device) -> Self {
        let Decoding {
            tokens,
            d_model,
            heads,
            layers,
            ..
        } = *decoding;
        let model = TransformerEncoderConfig::new(d_model, 4 * d_model, heads, layers)
            .with_norm_first(true)
            .with_dropout(0.0)
            .init(device);
        let parameters = (0..layers).flat_map(|layer| {
            [
                projections(layer, d_model),
                feed_forward(layer, d_model),
                norm(layer, NormOf::FeedForward, d_model),
                norm(layer, NormOf::SelfAttention, d_model),
            ]
            .concat()
        });
        let model = assign(model, &parameters.collect::<Vec<_>>());
        let x = input(decoding, device);
        let prefixes = (1..=tokens).map(|len| x.clone().narrow(1, 0, len));
        Self {
            model,
            prefixes: prefixes.collect(),
        }
    }

    fn decode(&self) -> Tensor<3> {
        let mut cache = self.model.new_autoregressive_cache();
        let states = self.prefixes.iter().map(|prefix| {
            let input = TransformerEncoderInput::new(prefix.clone());
            self.model
                .forward_autoregressive_inference(input, &mut cache)
        });
        states.last().expect("there are tokens")
    }
}

impl Subject for BurnNn {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        drop(self.decode());
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        let states = self.decode();
        let [_, len, _] = states.dims();
        vec![("state".into(), values(states.narrow(1, len - 1, 1)))]
    }
}
