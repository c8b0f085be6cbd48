//! The gradients of a few parameters, where neither the input nor anything else is tracked: other models have got NaN for them (burn#5162).

use burn::module::{Lora, Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use burn_attn_tests::{
    compare::assert_close_to_largest,
    devices,
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

/// For every model, its gradients of the parameters that `keep` names.
fn gradients(device: &Device, keep: Keep) -> Vec<(&'static str, Named)> {
    let device = device.clone().autodiff();
    let tokens = tokens(&texts(3), &device);
    // The one whose heads have parameters is enough: every shape of a kernel takes a driver in software its time.
    let models = models(&device).into_iter().skip(2);
    let gradients = models.map(|(name, model)| {
        // Factors that are no zeros: `apply_lora` begins with an adapter that changes nothing.
        let mut seed = 0;
        let model = parameters::replace(model.apply_lora(Lora::new(3, 6.0)), |_, shape| {
            seed += 1;
            let numbers = burn_attn_tests::numbers::uniform(seed, shape.iter().product());
            numbers.into_iter().map(|number| 0.3 * number).collect()
        });
        let model = only(model, keep);
        let loss = model.forward(tokens.clone()).square().mean();
        // A model without any of these parameters has nothing to go back to.
        let tracked = parameters::values(&model).keys().any(|path| keep(path));
        let named = tracked.then(|| parameters::gradients(&model, &loss.backward()));
        (name, named.unwrap_or_default())
    });
    gradients.collect()
}

#[test]
fn a_few_parameters_get_the_gradients_of_the_cpu() {
    let Some(wgpu) = devices::wgpu() else {
        println!("skipped: no adapter");
        return;
    };
    let subsets: [(&str, Keep); 2] = [
        ("adapters", |path| path.contains(".lora.")),
        ("heads", |path| {
            path.ends_with("sinks") || path.ends_with("slopes")
        }),
    ];
    let every = gradients(&devices::any(), |_| true);
    for (what, keep) in subsets {
        let mut count = 0;
        for ((name, found), (_, expected)) in gradients(&wgpu, keep).into_iter().zip(&every) {
            let kept: Vec<_> = expected.keys().filter(|path| keep(path)).collect();
            assert_eq!(found.keys().collect::<Vec<_>>(), kept, "{what} of {name}");
            count += kept.len();
            for (path, found) in &found {
                let what = format!("{what} of {name}, {path}");
                assert_close_to_largest(&what, found, &expected[path], TOLERANCE, 0.0);
            }
        }
        assert!(count > 0, "no parameter is one of the {what}");
    }
}
