//! Decoding by a decoder-only stack: ours, and burn-nn's encoder with its cache, on the same parameters.

use std::time::{Duration, Instant};

use burn::{
    nn::transformer::{TransformerEncoderConfig, TransformerEncoderInput},
    tensor::{Device, Tensor},
};
use burn_attn::{
    BlockConfig, FeedForwardActivation, KvCacheConfig, NormPlacement, TransformerCache,
    TransformerStack, TransformerStackConfig,
};

use super::parameters::{APART, NormOf, PACKED, assign, feed_forward, norm, projections};
use super::{Results, Subject, calls, input, values};
use crate::case::Library;
use crate::generator::seed;
use crate::work::Decoding;

/// Inputs of `decoding` and the implementation of `library`.
pub fn build(decoding: &Decoding, library: Library) -> Result<Box<dyn Subject>, String> {
    let device = Device::default();
    match library {
        Library::Ours => Ok(Box::new(Ours::new(decoding, &device))),
        Library::BurnNn if decoding.context == 0 && decoding.window.is_none() => {
            Ok(burn_nn(decoding, &device))
        }
        _ => Err(format!("{} does not decode this here", library.name())),
    }
}

/// The embedded tokens, `[batch, context + tokens, d_model]`.
fn embedded(decoding: &Decoding, device: &Device) -> Tensor<3> {
    let len = decoding.context + decoding.tokens;
    input(seed::QUERY, [decoding.batch, len, decoding.d_model], device)
}

fn state(state: Tensor<3>) -> Results {
    vec![("state".into(), values(state))]
}

struct Ours {
    model: TransformerStack,
    /// Holds the context.
    cache: TransformerCache,
    tokens: Vec<Tensor<3>>,
    /// Of the context in each sequence.
    lengths: Vec<usize>,
}

impl Ours {
    fn new(decoding: &Decoding, device: &Device) -> Self {
        let &Decoding {
            batch,
            context,
            tokens,
            d_model,
            heads,
            layers,
            window,
        } = decoding;
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
                projections(layer, d_model, &PACKED),
                norm(layer, NormOf::SelfAttention, d_model),
                feed_forward(layer, d_model),
                norm(layer, NormOf::FeedForward, d_model),
            ]
            .concat()
        });
        let model = assign(model, &parameters.collect::<Vec<_>>());
        let x = embedded(decoding, device);
        let max_len = context + tokens;
        let mut cache = model.cache(batch, &KvCacheConfig::new(max_len));
        if context > 0 {
            let prompt = x.clone().narrow(1, 0, context);
            model.forward_cached(prompt, &mut cache);
        }
        let tokens = (context..max_len).map(|token| x.clone().narrow(1, token, 1));
        Self {
            model,
            cache,
            tokens: tokens.collect(),
            lengths: vec![context; batch],
        }
    }

    /// All tokens, one after the other: the state of the last, and how long they took.
    fn decode(&mut self) -> (Tensor<3>, Duration) {
        let start = Instant::now();
        let states = self
            .tokens
            .iter()
            .map(|token| self.model.forward_cached(token.clone(), &mut self.cache));
        let state = states.last().expect("there are tokens");
        let took = start.elapsed();
        // Only the context is left.
        self.cache.truncate(&self.lengths);
        (state, took)
    }
}

impl Subject for Ours {
    fn step(&mut self) {
        self.decode();
    }

    /// Without the time of forgetting.
    fn time(&mut self, count: usize) -> Duration {
        (0..count).map(|_| self.decode().1).sum()
    }

    fn results(&mut self) -> Results {
        state(self.decode().0)
    }
}

/// Recomputes the attention of every earlier token at each step: its cache saves the linear layers only.
fn burn_nn(decoding: &Decoding, device: &Device) -> Box<dyn Subject> {
    let &Decoding {
        tokens,
        d_model,
        heads,
        layers,
        ..
    } = decoding;
    let model = TransformerEncoderConfig::new(d_model, 4 * d_model, heads, layers)
        .with_norm_first(true)
        .with_dropout(0.0)
        .init(device);
    let parameters = (0..layers).flat_map(|layer| {
        [
            projections(layer, d_model, &APART),
            feed_forward(layer, d_model),
            norm(layer, NormOf::FeedForward, d_model),
            norm(layer, NormOf::SelfAttention, d_model),
        ]
        .concat()
    });
    let model = assign(model, &parameters.collect::<Vec<_>>());
    let x = embedded(decoding, device);
    // The first token, the first two, ...
    let prefixes: Vec<_> = (1..=tokens)
        .map(|len| x.clone().narrow(1, 0, len))
        .collect();
    let decode = move || {
        let mut cache = model.new_autoregressive_cache();
        let states = prefixes.iter().map(|prefix| {
            let input = TransformerEncoderInput::new(prefix.clone());
            model.forward_autoregressive_inference(input, &mut cache)
        });
        states.last().expect("there are tokens")
    };
    calls(decode, |states: Tensor<3>| {
        let [_, len, _] = states.dims();
        state(states.narrow(1, len - 1, 1))
    })
}
