//! LoRA, also over packed weights: the modules compute what Burn's `materialize` makes of their weights, and train the
//! adapters alone.

use burn::{
    module::{Lora, Module, ModuleMapper, Param, QLora, Quantizer},
    tensor::{Device, Int, Tensor, TensorData, quantization::Calibration},
};
use burn_attn::{
    CrossAttentionConfig, CrossAttentionInput, FeedForwardActivation, FeedForwardConfig,
    KvCacheConfig, MultiHeadAttentionConfig, MultiHeadAttentionInput, SelfAttention,
    SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_models::{
    generate::Autoregressive,
    language_model::{AbsolutePosition, LanguageModelConfig},
    seq2seq::Seq2SeqConfig,
};
use burn_attn_tests::{
    compare::{assert_close, error},
    numbers::{alone, filled, tensor, uniform},
    parameters,
};

use super::{D_FF, D_MODEL, HEADS, TOLERANCE, devices, heads, schemes};

/// Factors that are no zeros: with those that `apply_lora` begins with, an adapter changes nothing.
fn trained<M: Module>(module: M) -> M {
    struct Train(Vec<String>);
    impl ModuleMapper for Train {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }

        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let path = self.0.join(".");
            if !path.contains(".lora.") {
                return parameter;
            }
            parameter.map(|factor| {
                let numbers = uniform(path.len() as u64, factor.shape().num_elements());
                let numbers = numbers.into_iter().map(|number| 0.2 * number).collect();
                let data = TensorData::new::<f32, _>(numbers, factor.shape());
                let tracked = factor.is_require_grad();
                Tensor::from_data(data, &factor.device()).set_require_grad(tracked)
            })
        }
    }
    module.map(&mut Train(Vec::new()))
}

/// LoRA over floats, and over 8 bits with one scale per tensor and per block.
fn adapted<M: Module>(module: &M) -> Vec<(&'static str, M)> {
    let lora = || Lora::new(3, 6.0);
    let mut adapted = vec![("lora", trained(module.clone().apply_lora(lora())))];
    for (name, scheme) in schemes() {
        let qlora = QLora::new(lora(), Quantizer::new(Calibration::MinMax, scheme));
        adapted.push((name, trained(module.clone().apply_qlora(qlora))));
    }
    adapted
}

/// Panics unless the adapted module gives what its merged weights give, and not what the module gave before.
#[track_caller]
fn check<M: Module, const D: usize>(what: &str, module: &M, run: impl Fn(&M) -> Tensor<D>) {
    let exact = run(module).into_data();
    for (name, adapted) in adapted(module) {
        let expected = run(&adapted.clone().materialize()).into_data();
        let actual = run(&adapted).into_data();
        assert_close(&format!("{what}, {name}"), &actual, &expected, TOLERANCE);
        let moved = error(&actual, &exact);
        assert!(moved > 1e-2, "{what}, {name}: no adapter ({moved:.1e})");
    }
}

#[test]
fn attention_with_adapters() {
    let _alone = alone();
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        let memory: Tensor<3> = tensor([2, 5, D_MODEL], 2, &device);
        for (name, heads) in heads() {
            let what = format!("{backend}, {name}");
            let config = SelfAttentionConfig::new(D_MODEL, HEADS)
                .with_heads(heads.clone())
                .with_causal(true)
                .with_dropout(0.0);
            let fused = filled(config.init(&device), 3);
            let input = || SelfAttentionInput::new(x.clone());
            check(&what, &fused, |module| module.forward(input()));
            check(&what, &fused, |module| {
                let mut cache = module.cache(2, &KvCacheConfig::new(8));
                module.forward_cached(input(), &mut cache);
                module.forward_cached(
                    SelfAttentionInput::new(x.clone().narrow(1, 0, 1)),
                    &mut cache,
                )
            });
            let config = CrossAttentionConfig::new(D_MODEL, HEADS)
                .with_heads(heads.clone())
                .with_dropout(0.0);
            check(&what, &filled(config.init(&device), 3), |module| {
                module.forward(CrossAttentionInput::new(x.clone(), memory.clone()))
            });
            let config = MultiHeadAttentionConfig::new(D_MODEL, HEADS)
                .with_heads(heads)
                .with_dropout(0.0);
            check(&what, &filled(config.init(&device), 3), |module| {
                let input = MultiHeadAttentionInput::cross_attention(x.clone(), memory.clone());
                module.forward(input)
            });
        }
        let config = FeedForwardConfig::new(D_MODEL, D_FF)
            .with_activation(FeedForwardActivation::SwiGlu)
            .with_dropout(0.0);
        check(&backend, &filled(config.init(&device), 3), |module| {
            module.forward(x.clone())
        });
    }
}

#[test]
fn models_with_adapters() {
    let _alone = alone();
    for (backend, device) in devices() {
        let tokens = || Tensor::<2, Int>::from_data([[5, 20, 0], [1, 1, 2]], &device);
        for tied in [true, false] {
            let config = LanguageModelConfig::new(21)
                .with_d_model(D_MODEL)
                .with_n_heads(HEADS)
                .with_d_ff(D_FF)
                .with_max_len(11)
                .with_tied(tied)
                .with_absolute_position(AbsolutePosition::Learned);
            let block = config.block.clone().with_dropout(0.0);
            let model = filled(config.with_block(block).init(&device), 1);
            let what = format!("{backend}, tied {tied}");
            check(&what, &model, |model| model.forward(tokens()));
            check(&what, &model, |model| {
                let mut state = model.start(2);
                model.advance(&mut state, &[&[5, 20, 0], &[1]]);
                model.advance(&mut state, &[&[7], &[13]])
            });
        }
        let config = Seq2SeqConfig::new(21)
            .with_d_model(D_MODEL)
            .with_n_heads(HEADS)
            .with_d_ff(D_FF)
            .with_dropout(0.0)
            .with_max_len(11);
        check(&backend, &filled(config.init(&device), 1), |model| {
            model.forward(tokens(), &[3, 2], tokens())
        });
    }
}

fn module(device: &Device) -> SelfAttention {
    let config = SelfAttentionConfig::new(D_MODEL, HEADS).with_dropout(0.0);
    filled(config.init(device), 3)
}

#[test]
fn training_moves_the_adapters_alone() {
    let _alone = alone();
    for (_, device) in burn_attn_tests::devices::cpu() {
        let device = device.autodiff();
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device).require_grad();
        for (name, module) in adapted(&module(&device)) {
            let output = module.forward(SelfAttentionInput::new(x.clone()));
            let gradients = output.square().sum().backward();
            let found: Vec<String> = parameters::gradients(&module, &gradients)
                .into_keys()
                .collect();
            let expected = [
                "output.weight.lora.a",
                "output.weight.lora.b",
                "query_key_value.weight.lora.a",
                "query_key_value.weight.lora.b",
            ];
            assert_eq!(found, expected, "{name}");
            let of_x = x.grad(&gradients).expect("gradients pass");
            assert!(of_x.abs().sum().into_scalar::<f32>() > 0.0);
        }
    }
}

#[test]
fn a_conversion_merges_adapters() {
    let _alone = alone();
    for (backend, device) in devices() {
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        for (name, module) in adapted(&module(&device)) {
            let expected = module.forward(SelfAttentionInput::new(x.clone()));
            let separate = module.into_multi_head();
            assert!(separate.query.weight.adapter().is_none());
            let output = separate.forward(MultiHeadAttentionInput::self_attention(x.clone()));
            let what = format!("{backend}, {name}");
            assert_close(&what, &output.into_data(), &expected.into_data(), TOLERANCE);
        }
    }
}
