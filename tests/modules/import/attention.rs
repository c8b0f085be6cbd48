//! `nn.MultiheadAttention`, packed and separate, into the three attention modules.

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor},
};
use burn_attn::{
    CrossAttention, CrossAttentionConfig, CrossAttentionInput, MultiHeadAttention,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, ProjectionBias, SelfAttention,
    SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_tests::{numbers::filled, parameters};

use super::{assert_is, from_both_files, loaded, value};

fn config() -> MultiHeadAttentionConfig {
    MultiHeadAttentionConfig::new(12, 3).with_dropout(0.0)
}

fn from_x(module: &MultiHeadAttention, device: &Device) -> Tensor<3> {
    module.forward(MultiHeadAttentionInput::self_attention(value("x", device)))
}

fn from_three(module: &MultiHeadAttention, device: &Device) -> Tensor<3> {
    let [x, key, value] = ["x", "key", "value"].map(|name| value(name, device));
    module.forward(MultiHeadAttentionInput::new(x, key, value))
}

#[test]
fn packed_projections() {
    from_both_files("attention", |mut weights, device| {
        let module = loaded(&mut weights, "packed", config().init(device));
        assert_is("packed.self_attention", from_x(&module, device));

        let [x, memory] = ["x", "memory"].map(|name| value(name, device));
        let input = MultiHeadAttentionInput::cross_attention(x, memory);
        assert_is("packed.cross_attention", module.forward(input));
    });
}

#[test]
fn packed_projections_into_one_linear_layer() {
    from_both_files("attention", |mut weights, device| {
        for (causal, expected) in [(false, "packed.self_attention"), (true, "packed.causal")] {
            let config = SelfAttentionConfig::new(12, 3)
                .with_dropout(0.0)
                .with_causal(causal);
            let module = loaded(&mut weights, "packed", config.init(device));
            let input = SelfAttentionInput::new(value("x", device));
            assert_is(expected, module.forward(input));
        }
    });
}

#[test]
fn packed_projections_into_two_linear_layers() {
    from_both_files("attention", |mut weights, device| {
        let config = CrossAttentionConfig::new(12, 3).with_dropout(0.0);
        let module = loaded(&mut weights, "packed", config.init(device));
        let [x, memory] = ["x", "memory"].map(|name| value(name, device));
        let input = CrossAttentionInput::new(x, memory);
        assert_is("packed.cross_attention", module.forward(input));
    });
}

#[test]
fn separate_projections() {
    from_both_files("attention", |mut weights, device| {
        let config = config().with_d_key_in(5).with_d_value_in(7);
        let module = loaded(&mut weights, "separate", config.init(device));
        assert_is("separate.output", from_three(&module, device));
    });
}

#[test]
fn separate_projections_of_one_memory() {
    from_both_files("attention", |mut weights, device| {
        let config = CrossAttentionConfig::new(12, 3).with_d_memory(5);
        let module = loaded(
            &mut weights,
            "one_memory",
            config.with_dropout(0.0).init(device),
        );
        let [x, memory] = ["x", "narrow_memory"].map(|name| value(name, device));
        let input = CrossAttentionInput::new(x, memory);
        assert_is("one_memory.output", module.forward(input));
    });
}

#[test]
fn no_bias() {
    from_both_files("attention", |mut weights, device| {
        let config = config().with_bias(ProjectionBias::none());
        let module = loaded(&mut weights, "no_bias", config.init(device));
        assert_is("no_bias.output", from_x(&module, device));

        let config = config.with_d_key_in(5).with_d_value_in(7);
        let module = loaded(&mut weights, "separate_no_bias", config.init(device));
        assert_is("separate_no_bias.output", from_three(&module, device));

        let config = SelfAttentionConfig::new(12, 3)
            .with_dropout(0.0)
            .with_bias(ProjectionBias::none());
        let module = loaded(&mut weights, "no_bias.", config.init(device));
        let input = SelfAttentionInput::new(value("x", device));
        assert_is("no_bias.output", module.forward(input));
    });
}

#[test]
fn a_key_and_value_of_zeros_is_a_sink_at_zero() {
    from_both_files("attention", |weights, device| {
        let mut weights = weights.sinks_at_zero(true);
        let module = config().with_sinks(true).init(device);
        // Whatever the sinks were before.
        for mut module in [module.clone(), filled(module, 7)] {
            weights.load("packed", &mut module).expect("loaded");
            assert_is("packed.zero_attn", from_x(&module, device));
        }
        let config = SelfAttentionConfig::new(12, 3).with_dropout(0.0);
        let config = config.with_causal(true).with_sinks(true);
        let module = loaded(&mut weights, "packed", filled(config.init(device), 7));
        let input = SelfAttentionInput::new(value("x", device));
        assert_is("packed.zero_attn_causal", module.forward(input));
    });
}

#[test]
fn every_float_becomes_the_modules_dtype() {
    from_both_files("attention", |mut weights, device| {
        for (prefix, expected) in [("half", "half.output"), ("double", "packed.self_attention")] {
            let module = loaded(&mut weights, prefix, config().init(device));
            assert_eq!(module.query.weight.val().dtype(), DType::F32);
            assert_is(expected, from_x(&module, device));
        }
        let module = loaded(
            &mut weights,
            "double",
            parameters::wide(config().init(device)),
        );
        assert_eq!(module.query.weight.val().dtype(), DType::F64);
    });
}

#[test]
fn parameters_keep_who_they_are() {
    from_both_files("attention", |mut weights, device| {
        let mut module = filled(config().init(device), 1);
        module.key = module.key.no_grad();
        let ids = |module: &MultiHeadAttention| {
            [&module.query, &module.key].map(|linear| linear.weight.id)
        };
        let (before, trained) = (ids(&module), module.query.weight.val().is_require_grad());
        weights.load("packed", &mut module).expect("loaded");
        assert_eq!(ids(&module), before);
        assert_eq!(module.query.weight.val().is_require_grad(), trained);
        assert!(!module.key.weight.val().is_require_grad());
    });
}

#[test]
fn loaded_modules_are_trained() {
    from_both_files("attention", |mut weights, device| {
        let mut of_self = SelfAttentionConfig::new(12, 3).init(device);
        let mut of_memory = CrossAttentionConfig::new(12, 3).init(device);
        let ids = |of_self: &SelfAttention, of_memory: &CrossAttention| {
            [&of_self.query_key_value, &of_memory.key_value].map(|linear| linear.weight.id)
        };
        let before = ids(&of_self, &of_memory);
        weights.load("packed", &mut of_self).expect("loaded");
        weights.load("packed", &mut of_memory).expect("loaded");
        assert_eq!(ids(&of_self, &of_memory), before);
        if !device.is_autodiff() {
            return;
        }
        let [x, memory] = ["x", "memory"].map(|name| value(name, device));
        let output = of_self.forward(SelfAttentionInput::new(x.clone()));
        let loss = (output.square()).sum()
            + of_memory
                .forward(CrossAttentionInput::new(x, memory))
                .square()
                .sum();
        let gradients = loss.backward();
        // Weight and bias of every projection, those that are one layer counted once.
        assert_eq!(parameters::gradients(&of_self, &gradients).len(), 4);
        assert_eq!(parameters::gradients(&of_memory, &gradients).len(), 6);
    });
}

#[test]
fn finish_knows_what_nobody_took() {
    from_both_files("attention", |mut weights, device| {
        let names: Vec<String> = weights.names().map(str::to_string).collect();
        assert!(names.contains(&"packed.in_proj_weight".to_string()));
        weights
            .load("packed", &mut config().init(device))
            .expect("loaded");
        let error = weights.finish().expect_err("the others were not taken");
        assert_eq!(
            error.to_string(),
            "the weights do not fit the model: unexpected: double.in_proj_bias, double.in_proj_weight, double.out_proj.bias, \
             double.out_proj.weight, half.in_proj_bias, … (26 in all)"
        );
    });
}
