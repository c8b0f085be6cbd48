//! Attention modules: one training step of ours and of burn-nn's, on the same parameters.

use std::time::{Duration, Instant};

use burn::{
    module::Module as BurnModule,
    nn::attention as burn_nn,
    optim::GradientsParams,
    tensor::{Device, Gradients, Tensor, TensorData},
};
use burn_attn::{
    CrossAttentionConfig, CrossAttentionInput, MultiHeadAttentionConfig, MultiHeadAttentionInput,
    SelfAttentionConfig, SelfAttentionInput,
};

use super::op::values;
use super::parameters::{Parameter, assign, gradients, projection, projections};
use super::{Results, Subject, wait_for};
use crate::case::Library;
use crate::generator::{numbers, seed};
use crate::work::{Module, ModuleKind};

/// A module of any library.
trait Attention {
    /// From the input and the memory, which only cross-attention looks at, to the output.
    fn forward(&self, x: Tensor<3>, memory: Tensor<3>) -> Tensor<3>;

    /// Those of its parameters.
    fn gradients(&self, of: &mut Gradients) -> Results;
}

/// A module, how it is called, and its parameters in the order of its fields.
struct Assigned<M, F> {
    module: M,
    parameters: Vec<Parameter>,
    forward: F,
}

impl<M, F> Assigned<M, F>
where
    M: BurnModule + 'static,
    F: Fn(&M, Tensor<3>, Tensor<3>) -> Tensor<3> + 'static,
{
    fn boxed(module: M, parameters: Vec<Parameter>, forward: F) -> Box<dyn Attention> {
        Box::new(Self {
            module: assign(module, &parameters),
            parameters,
            forward,
        })
    }
}

impl<M, F> Attention for Assigned<M, F>
where
    M: BurnModule,
    F: Fn(&M, Tensor<3>, Tensor<3>) -> Tensor<3>,
{
    fn forward(&self, x: Tensor<3>, memory: Tensor<3>) -> Tensor<3> {
        (self.forward)(&self.module, x, memory)
    }

    fn gradients(&self, of: &mut Gradients) -> Results {
        let of = GradientsParams::from_module(of, &self.module);
        gradients(&self.module, &self.parameters, &of)
    }
}

struct ModuleSubject {
    cross: bool,
    x: Tensor<3>,
    memory: Tensor<3>,
    attention: Box<dyn Attention>,
}

/// Inputs of `module` and the implementation of `library`.
pub fn build(module: &Module, library: Library) -> Result<Box<dyn Subject>, String> {
    let device = Device::default().autodiff();
    let attention = match library {
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
        cross: module.kind == ModuleKind::Cross,
        x: input(seed::QUERY, module.len_q),
        memory: input(seed::KEY, module.len_kv),
        attention,
    }))
}

fn ours(module: &Module, device: &Device) -> Box<dyn Attention> {
    let [d_model, heads] = [module.d_model, module.heads];
    let layers = |layers: &[&[usize]]| {
        let layers = layers.iter().map(|parts| projection(0, d_model, parts));
        layers.collect::<Vec<_>>().concat()
    };
    match module.kind {
        ModuleKind::MultiHead => {
            let config = MultiHeadAttentionConfig::new(d_model, heads).with_dropout(0.0);
            let parameters = projections(0, d_model);
            Assigned::boxed(config.init(device), parameters, |attention, x, _| {
                attention.forward(MultiHeadAttentionInput::self_attention(x))
            })
        }
        ModuleKind::CausalSelf => {
            let config = SelfAttentionConfig::new(d_model, heads)
                .with_causal(true)
                .with_dropout(0.0);
            let parameters = layers(&[&[0, 1, 2], &[3]]);
            Assigned::boxed(config.init(device), parameters, |attention, x, _| {
                attention.forward(SelfAttentionInput::new(x))
            })
        }
        ModuleKind::Cross => {
            let config = CrossAttentionConfig::new(d_model, heads).with_dropout(0.0);
            let parameters = layers(&[&[0], &[1, 2], &[3]]);
            Assigned::boxed(config.init(device), parameters, |attention, x, memory| {
                attention.forward(CrossAttentionInput::new(x, memory))
            })
        }
    }
}

fn burn_nn(module: &Module, device: &Device) -> Box<dyn Attention> {
    let [d_model, heads] = [module.d_model, module.heads];
    let parameters = projections(0, d_model);
    if module.kind == ModuleKind::Cross {
        let d_head = d_model / heads;
        let config = burn_nn::CrossAttentionConfig::new(d_model, d_model, heads, heads, d_head)
            .with_dropout(0.0);
        return Assigned::boxed(config.init(device), parameters, |attention, x, memory| {
            attention.forward(x, memory, None)
        });
    }
    let config = burn_nn::MultiHeadAttentionConfig::new(d_model, heads).with_dropout(0.0);
    let mask = (module.kind == ModuleKind::CausalSelf)
        .then(|| burn_nn::generate_autoregressive_mask(module.batch, module.len_q, device));
    Assigned::boxed(config.init(device), parameters, move |attention, x, _| {
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
        self.attention.forward(self.x.clone(), self.memory.clone())
    }
}

impl Subject for ModuleSubject {
    fn step(&mut self) -> Duration {
        self.steps(1)
    }

    fn steps(&mut self, count: usize) -> Duration {
        let start = Instant::now();
        for _ in 0..count {
            drop(self.forward().square().mean().backward());
        }
        wait_for(&self.x.device());
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        let output = self.forward();
        let mut gradients = output.clone().square().mean().backward();
        let mut results = self.attention.gradients(&mut gradients);
        let gradient =
            |tensor: &Tensor<3>| values(tensor.grad(&gradients).expect("the inputs are tracked"));
        results.push(("output".into(), values(output)));
        results.push(("dinput".into(), gradient(&self.x)));
        if self.cross {
            results.push(("dmemory".into(), gradient(&self.memory)));
        }
        results
    }
}
