//! Every block in every stack: values, shapes, and the gradient of every input and parameter.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use burn_attn::{
    BlockConfig, LayerInput, Norm, NormPlacement, TransformerConfig, TransformerInput,
    TransformerStackConfig,
};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest, assert_same, differs},
    devices,
    numbers::{filled, tensor},
    parameters,
};

use super::{D_FF, D_MODEL, N_HEADS, N_LAYERS, by_hand, every_block};

/// About ten times the worst that was seen on flex and ndarray.
const TOLERANCE: f64 = 5e-6;

const SHAPE: [usize; 3] = [2, 7, D_MODEL];

/// Compares two runs of one module: outputs, and the gradients of inputs and parameters.
fn assert_agree<M: Module>(
    what: &str,
    module: &M,
    inputs: &[Tensor<3>],
    actual: Tensor<3>,
    expected: Tensor<3>,
) {
    assert_close(what, &actual.to_data(), &expected.to_data(), TOLERANCE);
    let gradients = |output: Tensor<3>| {
        let shape = output.dims();
        let weight = tensor(shape, 9, &output.device());
        (output * weight).sum().backward()
    };
    let (actual, expected) = (gradients(actual), gradients(expected));
    // A gradient's error grows with the numbers that it sums.
    let close = |name: &str, actual: &TensorData, expected: &TensorData| {
        let what = format!("{what}: {name}");
        assert_close_to_largest(&what, actual, expected, TOLERANCE, 0.0);
    };
    for input in inputs {
        let of = |gradients| input.grad(gradients).expect("the gradient of an input");
        close("an input", &of(&actual).to_data(), &of(&expected).to_data());
    }
    let actual = parameters::gradients(module, &actual);
    let expected = parameters::gradients(module, &expected);
    let paths: Vec<_> = parameters::values(module).into_keys().collect();
    assert_eq!(actual.keys().cloned().collect::<Vec<_>>(), paths);
    for (path, actual) in &actual {
        close(path, actual, &expected[path]);
    }
}

/// Runs `check` with every block that `fits` on every CPU backend.
fn with_every_block(
    fits: impl Fn(&BlockConfig) -> bool,
    check: impl Fn(&str, BlockConfig, &Device),
) {
    for (name, device) in devices::cpu() {
        let device = device.autodiff();
        for block in every_block().into_iter().filter(&fits) {
            let what = format!(
                "{:?}, {:?}, {:?}, parallel {}, bias {}, on {name}",
                block.norm, block.norm_placement, block.activation, block.parallel, block.bias
            );
            check(&what, block, &device);
        }
    }
}

/// The last norm, which the paper's own placement does without.
fn last_norm(block: &BlockConfig, norm: Option<&Norm>, x: Tensor<3>) -> Tensor<3> {
    assert_eq!(norm.is_some(), block.norm_placement != NormPlacement::Post);
    match norm {
        Some(norm) => by_hand::norm(&block.norm, norm, x),
        None => x,
    }
}

#[test]
fn encoders_and_causal_stacks_are_their_formulas() {
    with_every_block(
        |_| true,
        |what, block, device| {
            for causal in [false, true] {
                let config = TransformerStackConfig::encoder(D_MODEL, D_FF, N_HEADS, N_LAYERS)
                    .with_causal(causal)
                    .with_block(block.clone());
                let module = filled(config.init(device), 1);
                let x = tensor(SHAPE, 3, device).require_grad();
                let layers = module.layers.iter();
                let expected = layers.fold(x.clone(), |x, layer| by_hand::layer(&block, layer, x));
                let expected = last_norm(&block, module.norm.as_ref(), expected);
                let actual = module.forward(LayerInput::new(x.clone()));
                assert_eq!(actual.dims(), SHAPE);
                let what = format!("{what}, causal {causal}");
                assert_agree(&what, &module, &[x], actual, expected);
            }
        },
    );
}

#[test]
fn decoders_are_their_formulas() {
    with_every_block(
        |block| !block.parallel,
        |what, block, device| {
            let config = TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, N_LAYERS)
                .with_block(block.clone());
            let module = filled(config.init(device), 1);
            let x = tensor(SHAPE, 3, device).require_grad();
            let memory = tensor([2, 11, D_MODEL], 4, device).require_grad();
            let layers = module.layers.iter();
            let expected = layers.fold(x.clone(), |x, layer| {
                by_hand::decoder_layer(&block, layer, x, &memory)
            });
            let expected = last_norm(&block, module.norm.as_ref(), expected);
            let actual = module.forward(LayerInput::new(x.clone()).memory(memory.clone()));
            assert_eq!(actual.dims(), SHAPE);
            assert_agree(what, &module, &[x, memory], actual, expected);
        },
    );
}

#[test]
fn both_stacks_of_a_transformer_have_the_block() {
    with_every_block(
        |block| !block.parallel,
        |_, block, device| {
            let config =
                TransformerConfig::new(D_MODEL, D_FF, N_HEADS, 2, 1).with_block(block.clone());
            let module = filled(config.init(device), 1);
            let source = tensor([2, 11, D_MODEL], 4, device);
            let target = tensor(SHAPE, 3, device);
            let layers = module.encoder.layers.iter();
            let memory = layers.fold(source.clone(), |x, layer| by_hand::layer(&block, layer, x));
            let memory = last_norm(&block, module.encoder.norm.as_ref(), memory);
            let layer = &module.decoder.layers[0];
            let expected = by_hand::decoder_layer(&block, layer, target.clone(), &memory);
            let expected = last_norm(&block, module.decoder.norm.as_ref(), expected);
            let actual = module.forward(TransformerInput::new(source, target));
            assert_close("both", &actual.to_data(), &expected.to_data(), TOLERANCE);
        },
    );
}

#[test]
fn encoder_and_causal_stack_differ_by_the_mask_alone() {
    let device = devices::any();
    let [encoder, causal] = [
        TransformerStackConfig::encoder,
        TransformerStackConfig::causal,
    ]
    .map(|config| {
        let config = config(D_MODEL, D_FF, N_HEADS, N_LAYERS);
        filled(config.init(&device), 1)
    });
    let x: Tensor<3> = tensor(SHAPE, 3, &device);
    let both = LayerInput::new(x.clone());
    let masked = both.clone().mask(burn_attn::AttentionMask::causal());
    let expected = causal.forward(LayerInput::new(x));
    assert_same(&encoder.forward(masked), &expected);
    assert!(differs(&encoder.forward(both), &expected));
}

#[test]
fn asking_a_causal_stack_for_weights_changes_nothing() {
    let device = devices::any();
    for block in every_block() {
        let config = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, N_LAYERS);
        let module = filled(config.with_block(block).init(&device), 1);
        let input = LayerInput::new(tensor(SHAPE, 3, &device));
        let output = module.forward_with_weights(input.clone());
        assert_same(&output.states, &module.forward(input));
        assert_eq!(output.self_weights.len(), N_LAYERS);
        for weights in output.self_weights {
            assert_eq!(weights.dims(), [2, N_HEADS, 7, 7]);
            // The first position has only itself to look at.
            let first = weights.slice([0..2, 0..N_HEADS, 0..1, 0..7]);
            let expected = Tensor::<1>::from_data([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], &device);
            assert_same(&first, &expected.expand([2, N_HEADS, 1, 7]));
        }
    }
}

#[test]
fn a_last_norm_can_be_asked_for_and_left_out() {
    let device = devices::any();
    for placement in super::PLACEMENTS {
        for wanted in [false, true] {
            let block = BlockConfig::new().with_norm_placement(placement);
            let config = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, N_LAYERS)
                .with_block(block)
                .with_final_norm(wanted);
            assert_eq!(config.init(&device).norm.is_some(), wanted);
        }
    }
}

#[test]
fn empty_input_gives_empty_output() {
    for (_, device) in devices::cpu() {
        for shape in [[0, 7, D_MODEL], [2, 0, D_MODEL]] {
            for block in every_block() {
                let config = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, N_LAYERS);
                let module = filled(config.with_block(block.clone()).init(&device), 1);
                let input = LayerInput::new(Tensor::zeros(shape, &device));
                assert_eq!(module.forward(input).dims(), shape);
                let positions =
                    vec![(0..shape[1]).map(|token| 2 * token).collect::<Vec<_>>(); shape[0]];
                let input = LayerInput::new(Tensor::zeros(shape, &device)).positions(positions);
                assert_eq!(module.forward(input).dims(), shape);

                if block.parallel {
                    continue;
                }
                let config = TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, N_LAYERS);
                let module = filled(config.with_block(block).init(&device), 1);
                let memory = Tensor::zeros([shape[0], 11, D_MODEL], &device);
                let input = LayerInput::new(Tensor::zeros(shape, &device)).memory(memory);
                assert_eq!(module.forward(input).dims(), shape);
            }
        }
    }
}
