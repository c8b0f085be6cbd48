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

use super::parameters::{assign, burn_layer, our_layer};
use super::subject::{Results, Subject, calls, input, values};
use crate::generator::seed;
use crate::work::Decoding;

/// The embedded tokens, `[batch, context + tokens, d_model]`.
fn embedded(decoding: &Decoding, device: &Device) -> Tensor<3> {
    let len = decoding.context + decoding.tokens;
    input(seed::QUERY, [decoding.batch, len, decoding.d_model], device)
}

fn state(state: Tensor<3>) -> Results {
    vec![("state".into(), values(state))]
}

/// Our stack with its cache.
pub struct Ours {
    model: TransformerStack,
    /// Holds the context.
    cache: TransformerCache,
    tokens: Vec<Tensor<3>>,
    /// Tokens of the context in each sequence.
    lengths: Vec<usize>,
}

impl Ours {
    pub fn new(decoding: &Decoding) -> Self {
        let device = &Device::default();
        let (d_model, layers) = (decoding.d_model, decoding.layers);
        let block = BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_activation(FeedForwardActivation::Gelu)
            .with_dropout(0.0)
            .with_window(decoding.window);
        let model = TransformerStackConfig::causal(d_model, 4 * d_model, decoding.heads, layers)
            .with_block(block)
            .with_final_norm(false)
            .init(device);
        let parameters = (0..layers).flat_map(|layer| our_layer(d_model, layer, None));
        let model = assign(model, &parameters.collect::<Vec<_>>());
        let x = embedded(decoding, device);
        let (context, max_len) = (decoding.context, decoding.context + decoding.tokens);
        let mut cache = model.cache(decoding.batch, &KvCacheConfig::new(max_len));
        if context > 0 {
            let prompt = x.clone().narrow(1, 0, context);
            model.forward_cached(prompt, &mut cache);
        }
        let tokens = (context..max_len).map(|token| x.clone().narrow(1, token, 1));
        Self {
            model,
            cache,
            tokens: tokens.collect(),
            lengths: vec![context; decoding.batch],
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

    /// Leaves out the time of truncating the cache.
    fn time(&mut self, count: usize) -> Duration {
        (0..count).map(|_| self.decode().1).sum()
    }

    fn results(&mut self) -> Results {
        state(self.decode().0)
    }
}

/// Recomputes the attention of every earlier token at each step: its cache saves the linear layers only.
pub fn burn_nn(decoding: &Decoding) -> Result<Box<dyn Subject>, String> {
    if decoding.context > 0 || decoding.window.is_some() {
        return Err("burn-nn decodes from the first token here, without a window".into());
    }
    let device = &Device::default();
    let (d_model, layers) = (decoding.d_model, decoding.layers);
    let model = TransformerEncoderConfig::new(d_model, 4 * d_model, decoding.heads, layers)
        .with_norm_first(true)
        .with_dropout(0.0)
        .init(device);
    let parameters = (0..layers).flat_map(|layer| burn_layer(d_model, layer, None));
    let model = assign(model, &parameters.collect::<Vec<_>>());
    let x = embedded(decoding, device);
    // The first token, the first two, ...
    let prefixes = (1..=decoding.tokens).map(|len| x.clone().narrow(1, 0, len));
    let prefixes: Vec<_> = prefixes.collect();
    let decode = move || {
        let mut cache = model.new_autoregressive_cache();
        let states = prefixes.iter().map(|prefix| {
            let input = TransformerEncoderInput::new(prefix.clone());
            model.forward_autoregressive_inference(input, &mut cache)
        });
        states.last().expect("there are tokens")
    };
    Ok(calls(decode, |states: Tensor<3>| {
        let [_, len, _] = states.dims();
        state(states.narrow(1, len - 1, 1))
    }))
}
