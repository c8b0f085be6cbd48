//! A gate on the merged heads, in every module, with and without a cache.

use burn::{
    module::Param,
    nn::Linear,
    tensor::{Tensor, activation::sigmoid},
};
use burn_attn::{
    CrossAttentionInput, KvCacheConfig, MultiHeadAttentionConfig, MultiHeadAttentionInput,
    SelfAttentionInput,
};
use burn_attn_tests::{
    compare::{assert_close, differs},
    devices,
    numbers::{filled, tensor},
    parameters,
};

const WIDTH: usize = 15;

fn product(layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    let bias = layer.bias.as_ref().expect("a bias").val();
    x.matmul(layer.weight.val().unsqueeze()) + bias.unsqueeze()
}

#[test]
fn the_sigmoid_of_a_projection_multiplies_the_merged_heads() {
    for (backend, device) in devices::cpu() {
        let device = device.autodiff();
        let config = MultiHeadAttentionConfig::new(WIDTH, 3).with_dropout(0.0);
        let config = config
            .with_d_value_head(7)
            .with_causal(true)
            .with_gate(true);
        let module = filled(config.init(&device), 1);
        let x: Tensor<3> = tensor([2, 5, WIDTH], 2, &device);
        let input = || MultiHeadAttentionInput::self_attention(x.clone());
        // Merged heads are the output of a projection that changes nothing.
        let mut ungated = module.clone();
        ungated.gate = None;
        ungated.output = Linear {
            weight: Param::from_tensor(Tensor::eye(21, &device)),
            bias: None,
        };
        let merged = ungated.forward(input());
        let gate = module.gate.as_ref().expect("a gate");
        let expected = merged * sigmoid(product(gate, x.clone()));
        let expected = product(&module.output, expected);
        let actual = module.forward(input());
        let close = |what: &str, actual: &Tensor<3>| {
            let what = format!("{backend}, {what}");
            assert_close(&what, &actual.to_data(), &expected.to_data(), 2e-6);
        };
        close("multi-head", &actual);
        let gradients = parameters::gradients(&module, &actual.sum().backward());
        assert!(gradients.contains_key("gate.weight") && gradients.contains_key("gate.bias"));
        let mut cache = module.cache(2, &KvCacheConfig::new(5));
        let pieces = (0..5).map(|at| {
            let token = x.clone().narrow(1, at, 1);
            module.forward_cached(MultiHeadAttentionInput::self_attention(token), &mut cache)
        });
        close("cached", &Tensor::cat(pieces.collect(), 1));
        let of_one_input = module.clone().into_self_attention();
        close(
            "self-attention",
            &of_one_input.forward(SelfAttentionInput::new(x.clone())),
        );
        let mut cache = of_one_input.cache(2, &KvCacheConfig::new(5));
        close(
            "self-attention, cached",
            &of_one_input.forward_cached(x.clone(), &mut cache),
        );
        let mut both_ways = module;
        both_ways.causal = false;
        let expected = both_ways.forward(input());
        let cross = both_ways.into_cross_attention();
        let actual = cross.forward(CrossAttentionInput::new(x.clone(), x.clone()));
        assert_close(backend, &actual.to_data(), &expected.into_data(), 2e-6);
        let mut open = cross;
        open.gate = None;
        assert!(differs(
            &open.forward(CrossAttentionInput::new(x.clone(), x)),
            &actual
        ));
    }
}
