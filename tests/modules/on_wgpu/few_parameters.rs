//! The gradients of a few parameters, where neither the input nor anything else is tracked: other models have got NaN for them (burn#5162).

use burn::module::{Lora, Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use burn_attn_tests::{
    compare::assert_close_to_largest,
    devices,
    numbers::uniform,
    parameters::{self, Named},
};

use super::{models, texts, tokens};

const TOLERANCE: f64 = 2e-5;

/// Whether a parameter is tracked, by its path.
type Keep = fn(&str) -> bool;

/// The module with gradients of some parameters alone.
fn only<M: Module>(module: M, keep: Keep) -> M {
    struct Only(Vec<String>, Keep);
    impl ModuleMapper for Only {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }

        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let tracked = self.1(&self.0.join("."));
            parameter.set_require_grad(tracked)
        }
    }
    module.map(&mut Only(Vec::new(), keep))
}

/// Gradients of the parameters that `keep` names, of the one model whose heads have parameters: every shape of a kernel takes a driver in software its time.
fn gradients(device: &Device, keep: Keep) -> Named {
    let device = device.clone().autodiff();
    let (_, model) = models(&device).pop().expect("the model with sinks");
    // Factors that are no zeros: `apply_lora` begins with an adapter that changes nothing.
    let mut seed = 0;
    let model = parameters::replace(model.apply_lora(Lora::new(3, 6.0)), |_, shape| {
        seed += 1;
        let numbers = uniform(seed, shape.iter().product());
        numbers.into_iter().map(|number| 0.3 * number).collect()
    });
    let model = only(model, keep);
    let loss = model.forward(tokens(&texts(3), &device)).square().mean();
    parameters::gradients(&model, &loss.backward())
}

#[test]
fn a_few_parameters_get_the_gradients_of_the_cpu() {
    let Some(wgpu) = devices::wgpu() else { return };
    let subsets: [(&str, Keep); 2] = [
        ("adapters", |path| path.contains(".lora.")),
        ("heads", |path| {
            path.ends_with("sinks") || path.ends_with("slopes")
        }),
    ];
    let every = gradients(&devices::any(), |_| true);
    for (what, keep) in subsets {
        let found = gradients(&wgpu, keep);
        let kept: Vec<_> = every.keys().filter(|path| keep(path)).collect();
        assert!(!kept.is_empty(), "no parameter is one of the {what}");
        assert_eq!(found.keys().collect::<Vec<_>>(), kept, "{what}");
        for (path, found) in &found {
            let what = format!("{what}, {path}");
            assert_close_to_largest(&what, found, &every[path], TOLERANCE, 0.0);
        }
    }
}
