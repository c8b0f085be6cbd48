//! Attention modules: one training step of ours and of burn-nn's, on the same parameters.

use burn::{
    module::Module as BurnModule,
    nn::attention as burn_nn,
    optim::GradientsParams,
    tensor::{Device, Tensor},
};
use burn_attn::{
    CrossAttentionConfig, CrossAttentionInput, MultiHeadAttentionConfig, MultiHeadAttentionInput,
    SelfAttentionConfig, SelfAttentionInput,
};

use super::parameters::{ACROSS, APART, PACKED, Parameter, assign, gradients, projections};
use super::subject::{Results, Subject, input, values};
use crate::generator::seed;
use crate::work::{Module, ModuleKind};

/// A module of any library, and how it is called: with the input and the memory, which only cross-attention looks at.
struct Training<M, F> {
    module: M,
    forward: F,
    /// In the order of the module's fields.
    parameters: Vec<Parameter>,
    x: Tensor<3>,
    memory: Tensor<3>,
    cross: bool,
}

/// Ours, and its inputs.
pub fn ours(module: &Module) -> Box<dyn Subject> {
    let device = &Device::default().autodiff();
    let [d_model, heads] = [module.d_model, module.heads];
    match module.kind {
        ModuleKind::MultiHead => {
            let config = MultiHeadAttentionConfig::new(d_model, heads).with_dropout(0.0);
            training(module, config.init(device), &APART, |attention, x, _| {
                attention.forward(MultiHeadAttentionInput::self_attention(x))
            })
        }
        ModuleKind::CausalSelf => {
            let config = SelfAttentionConfig::new(d_model, heads).with_causal(true);
            let attention = config.with_dropout(0.0).init(device);
            training(module, attention, &PACKED, |attention, x, _| {
                attention.forward(SelfAttentionInput::new(x))
            })
        }
        ModuleKind::Cross => {
            let config = CrossAttentionConfig::new(d_model, heads).with_dropout(0.0);
            let attention = config.init(device);
            training(module, attention, &ACROSS, |attention, x, memory| {
                attention.forward(CrossAttentionInput::new(x, memory))
            })
        }
    }
}

/// The module of burn-nn, and its inputs.
pub fn burn_nn(module: &Module) -> Box<dyn Subject> {
    let device = &Device::default().autodiff();
    let [d_model, heads] = [module.d_model, module.heads];
    if module.kind == ModuleKind::Cross {
        let d_head = d_model / heads;
        let config = burn_nn::CrossAttentionConfig::new(d_model, d_model, heads, heads, d_head);
        let attention = config.with_dropout(0.0).init(device);
        return training(module, attention, &APART, |attention, x, memory| {
            attention.forward(x, memory, None)
        });
    }
    let config = burn_nn::MultiHeadAttentionConfig::new(d_model, heads).with_dropout(0.0);
    let mask = (module.kind == ModuleKind::CausalSelf)
        .then(|| burn_nn::generate_autoregressive_mask(module.batch, module.len_q, device));
    let forward = move |attention: &burn_nn::MultiHeadAttention, x, _| {
        let input = burn_nn::MhaInput::self_attn(x);
        let input = match &mask {
            Some(mask) => input.mask_attn(mask.clone()),
            None => input,
        };
        attention.forward(input).context
    };
    training(module, config.init(device), &APART, forward)
}

/// `attention` with given projections in this layout, and the inputs of `work`.
fn training<M, F>(work: &Module, attention: M, layout: &[&[usize]], forward: F) -> Box<dyn Subject>
where
    M: BurnModule + 'static,
    F: Fn(&M, Tensor<3>, Tensor<3>) -> Tensor<3> + 'static,
{
    let device = Device::default().autodiff();
    let tracked = |seed, len| input(seed, [work.batch, len, work.d_model], &device).require_grad();
    let parameters = projections(0, work.d_model, layout);
    Box::new(Training {
        module: assign(attention, &parameters),
        forward,
        parameters,
        x: tracked(seed::QUERY, work.len_q),
        memory: tracked(seed::KEY, work.len_kv),
        cross: work.kind == ModuleKind::Cross,
    })
}

impl<M, F: Fn(&M, Tensor<3>, Tensor<3>) -> Tensor<3>> Training<M, F> {
    fn forward(&self) -> Tensor<3> {
        (self.forward)(&self.module, self.x.clone(), self.memory.clone())
    }
}

impl<M: BurnModule, F: Fn(&M, Tensor<3>, Tensor<3>) -> Tensor<3>> Subject for Training<M, F> {
    fn step(&mut self) {
        drop(self.forward().square().mean().backward());
    }

    fn results(&mut self) -> Results {
        let output = self.forward();
        let mut tracked = output.clone().square().mean().backward();
        let of_module = GradientsParams::from_module(&mut tracked, &self.module);
        let mut results = gradients(&self.module, &self.parameters, &of_module);
        let gradient =
            |tensor: &Tensor<3>| values(tensor.grad(&tracked).expect("the inputs are tracked"));
        results.push(("output".into(), values(output)));
        results.push(("dinput".into(), gradient(&self.x)));
        if self.cross {
            results.push(("dmemory".into(), gradient(&self.memory)));
        }
        results
    }
}
