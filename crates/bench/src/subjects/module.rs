//! Attention modules: one training step of ours and of burn-nn's, on the same parameters.

use std::time::{Duration, Instant};

use burn::{
    nn::attention as burn_nn,
    tensor::{Device, Tensor, TensorData},
};
use burn_attn::{
    CrossAttentionConfig, CrossAttentionInput, MultiHeadAttentionConfig, MultiHeadAttentionInput,
    SelfAttentionConfig, SelfAttentionInput,
};

use super::op::values;
use super::parameters::{assign, projection};
use super::{Results, Subject, wait_for};
use crate::case::Library;
use crate::generator::{numbers, seed};
use crate::work::{Module, ModuleKind};

/// From the input and the memory, which only cross-attention looks at, to the output.
type Forward = Box<dyn Fn(Tensor<3>, Tensor<3>) -> Tensor<3>>;

struct ModuleSubject {
    x: Tensor<3>,
    memory: Tensor<3>,
    forward: Forward,
}

/// Inputs of `module` and the implementation of `library`.
pub fn build(module: &Module, library: Library) -> Result<Box<dyn Subject>, String> {
    let device = Device::default().autodiff();
    let forward = match library {
        Library::Ours => ours(module, &device),
        Library::BurnNn => burn_nn(module, &device),
        _ => return Err(format!("{} has no such module here", library.name())),
    };
    let input = |seed, len| {
        let shape = [module.batch, len, module.d_model];
        let numbers = numbers(seed, shape.iter().product(), 1.0);
        Tensor::<3>::from_data(TensorData::new(numbers, shape), &device).require_grad()
    };
    Ok(Box::new(ModuleSubject {
        x: input(seed::QUERY, module.len_q),
        memory: input(seed::KEY, module.len_kv),
        forward,
    }))
}

/// Parameters in the order of the fields, one linear layer for each group of projections.
fn parameters(module: &Module, layers: &[&[usize]]) -> Vec<Vec<f32>> {
    layers
        .iter()
        .flat_map(|parts| projection(0, module.d_model, parts))
        .collect()
}

const APART: &[&[usize]] = &[&[0], &[1], &[2], &[3]];

fn ours(module: &Module, device: &Device) -> Forward {
    let [d_model, heads] = [module.d_model, module.heads];
    match module.kind {
        ModuleKind::MultiHead => {
            let config = MultiHeadAttentionConfig::new(d_model, heads).with_dropout(0.0);
            let attention = assign(config.init(device), parameters(module, APART));
            Box::new(move |x, _| attention.forward(MultiHeadAttentionInput::self_attention(x)))
        }
        ModuleKind::CausalSelf => {
            let config = SelfAttentionConfig::new(d_model, heads)
                .with_causal(true)
                .with_dropout(0.0);
            let layers: &[&[usize]] = &[&[0, 1, 2], &[3]];
            let attention = assign(config.init(device), parameters(module, layers));
            Box::new(move |x, _| attention.forward(SelfAttentionInput::new(x)))
        }
        ModuleKind::Cross => {
            let config = CrossAttentionConfig::new(d_model, heads).with_dropout(0.0);
            let layers: &[&[usize]] = &[&[0], &[1, 2], &[3]];
            let attention = assign(config.init(device), parameters(module, layers));
            Box::new(move |x, memory| attention.forward(CrossAttentionInput::new(x, memory)))
        }
    }
}

fn burn_nn(module: &Module, device: &Device) -> Forward {
    let [d_model, heads] = [module.d_model, module.heads];
    let parameters = parameters(module, APART);
    if module.kind == ModuleKind::Cross {
        let d_head = d_model / heads;
        let config = burn_nn::CrossAttentionConfig::new(d_model, d_model, heads, heads, d_head)
            .with_dropout(0.0);
        let attention = assign(config.init(device), parameters);
        return Box::new(move |x, memory| attention.forward(x, memory, None));
    }
    let config = burn_nn::MultiHeadAttentionConfig::new(d_model, heads).with_dropout(0.0);
    let attention = assign(config.init(device), parameters);
    let mask = (module.kind == ModuleKind::CausalSelf)
        .then(|| burn_nn::generate_autoregressive_mask(module.batch, module.len_q, device));
    Box::new(move |x, _| {
        let input = burn_nn::MhaInput::self_attn(x);
        let input = match &mask {
            Some(mask) => input.mask_attn(mask.clone()),
            None => input,
        };
        attention.forward(input).context
    })
}

impl ModuleSubject {
    fn forward(&self) -> Tensor<3> {
        (self.forward)(self.x.clone(), self.memory.clone())
    }
}

impl Subject for ModuleSubject {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        let gradients = self.forward().square().mean().backward();
        wait_for(&self.x.device());
        drop(gradients);
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        let output = self.forward();
        let gradients = output.clone().square().mean().backward();
        let gradient = self.x.grad(&gradients).expect("the input is tracked");
        vec![("output", values(output)), ("dinput", values(gradient))]
    }
}
