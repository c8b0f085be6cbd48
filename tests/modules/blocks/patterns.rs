//! Stacks of layers that differ, and of layers that are the same.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn::{
    AttentionBias, BlockConfig, KvCacheConfig, LayerInput, LayerPattern, NormConfig, NormPlacement,
    TransformerLayerConfig, TransformerStack, TransformerStackConfig,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_models::{bert::BertConfig, language_model::LanguageModelConfig};
use burn_attn_tests::{
    compare::{assert_close, assert_same, differs},
    devices,
    numbers::{filled, tensor},
    parameters, sentence,
};

use super::{D_FF, D_MODEL, N_HEADS};

const TOLERANCE: f64 = 5e-6;

fn rotary(base: f64) -> PositionEncoding {
    PositionEncoding::Rotary(RotaryConfig::new().with_base(base))
}

fn block() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_d_head(4)
        .with_norm_placement(NormPlacement::Pre)
}

/// Gemma 3's kind of stack, and one layer of three that knows no positions.
fn mixed(n_layers: usize, device: &Device) -> TransformerStack {
    let near = block().with_window(2).with_position(rotary(10_000.0));
    let far = block().with_position(rotary(1_000_000.0));
    let pattern = LayerPattern::Cycle(vec![near.clone(), far, near, block()]);
    let config = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, n_layers);
    filled(config.with_pattern(pattern).init(device), 1)
}

/// Layer by layer, with positions that are told to each.
fn by_layers(
    stack: &TransformerStack,
    order: &[(usize, Option<usize>)],
    x: Tensor<3>,
) -> Tensor<3> {
    let x = order.iter().fold(x, |x, &(layer, position)| {
        let input = LayerInput::new(x);
        let input = match position {
            Some(position) => input.position(stack.positions[position].clone()),
            None => input,
        };
        stack.layers[layer].forward(input).states
    });
    match &stack.norm {
        Some(norm) => norm.forward(x),
        None => x,
    }
}

#[test]
fn layers_that_differ_run_in_their_order() {
    for (_, device) in devices::cpu() {
        let stack = mixed(6, &device);
        assert_eq!((stack.layers.len(), stack.positions.len()), (6, 2));
        let x: Tensor<3> = tensor([2, 9, D_MODEL], 2, &device);
        let actual = stack.forward(LayerInput::new(x.clone()));
        let order = [Some(0), Some(1), Some(0), None, Some(0), Some(1)];
        let order: Vec<_> = order.into_iter().enumerate().collect();
        let expected = by_layers(&stack, &order, x.clone());
        assert_same(&actual, &expected);
        // Each difference matters.
        let swapped: Vec<_> = order
            .iter()
            .map(|&(layer, position)| (layer, position.map(|position| 1 - position)))
            .collect();
        assert!(differs(&actual, &by_layers(&stack, &swapped, x.clone())));
    }
}

#[test]
fn layers_that_differ_decode() {
    for (name, device) in devices::cpu() {
        let stack = mixed(5, &device);
        let x: Tensor<3> = tensor([2, 13, D_MODEL], 2, &device);
        let whole = stack.forward(LayerInput::new(x.clone()));
        let config = KvCacheConfig::new(13).with_initial_capacity(2);
        let mut cache = stack.cache(2, &config);
        for (from, len) in [(0, 6), (6, 1), (7, 1), (8, 5)] {
            let piece = x.clone().narrow(1, from, len);
            let states = stack.forward_cached(piece, &mut cache);
            let expected = whole.clone().narrow(1, from, len);
            assert_close(name, &states.into_data(), &expected.into_data(), TOLERANCE);
        }
    }
}

#[test]
fn shared_layers_have_one_set_of_weights() {
    for (name, device) in devices::cpu() {
        let device = device.autodiff();
        for (groups, order) in [
            (1, [0, 0, 0, 0, 0]),
            (2, [0, 0, 0, 1, 1]),
            (5, [0, 1, 2, 3, 4]),
        ] {
            let config = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, 5)
                .with_block(block())
                .with_pattern(LayerPattern::Shared(groups));
            let stack = filled(config.init(&device), 1);
            assert_eq!(stack.layers.len(), groups);
            let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
            let actual = stack.forward(LayerInput::new(x.clone()));
            let order = order.map(|layer| (layer, None));
            let expected = by_layers(&stack, &order, x.clone());
            assert_same(&actual, &expected);
            let gradients = |output: Tensor<3>| {
                let gradients = (output * tensor([2, 7, D_MODEL], 3, &device))
                    .sum()
                    .backward();
                parameters::gradients(&stack, &gradients)
            };
            let (actual, expected) = (gradients(actual), gradients(expected));
            assert_eq!(actual.len(), parameters::values(&stack).len());
            for (path, actual) in &actual {
                assert_close(&format!("{name}: {path}"), actual, &expected[path], 2e-5);
            }
            // Every pass has keys and values of its own.
            let whole = stack.forward(LayerInput::new(x.clone()));
            let mut cache = stack.cache(2, &KvCacheConfig::new(7));
            assert_eq!(cache.layers().len(), 5);
            for from in 0..7 {
                let token = x.clone().narrow(1, from, 1);
                let states = stack.forward_cached(token, &mut cache);
                let expected = whole.clone().narrow(1, from, 1);
                assert_close(name, &states.into_data(), &expected.into_data(), TOLERANCE);
            }
        }
    }
}

/// T5 has one table a stack: the same as a bias that is told to all layers.
#[test]
fn a_stack_has_one_relative_bias() {
    let device = devices::any().autodiff();
    let config = TransformerStackConfig::encoder(D_MODEL, D_FF, N_HEADS, 3);
    let relative = block().with_position(PositionEncoding::relative());
    let stack = filled(config.clone().with_block(relative).init(&device), 1);
    let tables = parameters::values(&stack).into_keys();
    let tables: Vec<_> = tables.filter(|path| path.contains("relative")).collect();
    assert_eq!(tables, ["positions.0.relative.table"]);

    let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
    let mut plain = config.with_block(block()).init(&device);
    plain.layers = stack.layers.clone();
    plain.norm = stack.norm.clone();
    let told = |bias: AttentionBias| plain.forward(LayerInput::new(x.clone()).bias(bias));
    let bias = || stack.positions[0].bias();
    let actual = stack.forward(LayerInput::new(x.clone()));
    let expected = told(bias());
    assert_same(&actual, &expected);
    let table = &stack.positions[0].relative.as_ref().expect("one").table;
    let gradient = |output: Tensor<3>| {
        let loss = (output * tensor([2, 7, D_MODEL], 3, &device)).sum();
        table
            .val()
            .grad(&loss.backward())
            .expect("trained")
            .into_data()
    };
    let (actual, expected) = (gradient(actual), gradient(expected));
    assert_close("table", &actual, &expected, TOLERANCE);
    assert!(actual.iter::<f32>().any(|number| number != 0.0));
}

#[test]
fn hidden_states_are_those_between_the_layers() {
    let device = devices::any();
    let stack = mixed(4, &device);
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
    let input = || LayerInput::new(x.clone());
    let output = stack.forward_with_hidden_states(input());
    assert_same(&output.states, &stack.forward(input()));
    assert_eq!(output.hidden_states.len(), 4);
    assert!(output.self_weights.is_empty());
    let order = [(0, Some(0)), (1, Some(1)), (2, Some(0)), (3, None)];
    for (index, hidden) in output.hidden_states.iter().enumerate() {
        let mut front = stack.clone();
        front.norm = None;
        assert_same(hidden, &by_layers(&front, &order[..=index], x.clone()));
    }
    let norm = stack.norm.as_ref().expect("a last norm");
    let last = output.hidden_states.last().expect("four").clone();
    assert_same(&output.states, &norm.forward(last));
}

#[test]
fn a_pattern_that_no_stack_can_have() {
    let config = || TransformerStackConfig::encoder(D_MODEL, D_FF, N_HEADS, 3);
    for (pattern, reason) in [
        (
            LayerPattern::Cycle(vec![]),
            "pattern Cycle needs at least one block",
        ),
        (
            LayerPattern::Cycle(vec![block(); 4]),
            "pattern Cycle has 4 blocks for 3 layers",
        ),
        (
            LayerPattern::Shared(0),
            "pattern Shared needs 1 to 3 layers with weights, got 0",
        ),
        (
            LayerPattern::Shared(4),
            "pattern Shared needs 1 to 3 layers with weights, got 4",
        ),
    ] {
        let error = config().with_pattern(pattern).validate();
        let error = error.expect_err("bad").to_string();
        assert_eq!(error, format!("TransformerStackConfig: {reason}"));
    }
    let stack = config()
        .with_pattern(LayerPattern::Shared(2))
        .init(&devices::any());
    assert_eq!(stack.layers.len(), 2);
    assert!(stack.num_params() > 0);
}

#[test]
fn a_position_for_a_stack_that_has_its_own() {
    let device = devices::any();
    let stack = mixed(4, &device);
    let position = stack.position(0).expect("a rotary table").clone();
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
    let input = LayerInput::new(x).position(position);
    assert_eq!(
        sentence(|| stack.forward(input)),
        "TransformerStack: a position encoding was given to a stack that has its own"
    );
    assert!(mixed(4, &device).position(3).is_none());
}

/// Layers of a cache that are reordered alone keep their own memory.
#[test]
fn a_layers_cache_takes_its_memory_along() {
    let device = devices::any();
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS)
        .with_causal(true)
        .with_d_memory(11)
        .with_block(block());
    let layer = filled(config.init(&device), 1);
    let x: Tensor<3> = tensor([2, 3, D_MODEL], 2, &device);
    let memory: Tensor<3> = tensor([2, 5, 11], 3, &device);
    let whole = layer.forward(LayerInput::new(x.clone()).memory(memory.clone()));
    let mut cache = layer.cache(2, &KvCacheConfig::new(3));
    let attention = layer.cross_attention.as_ref().expect("one");
    cache.memory = Some(attention.project_memory(memory));
    layer.forward_cached(x.clone().narrow(1, 0, 2), &mut cache);
    cache.reorder(&[1, 0]);
    let last = x.narrow(1, 2, 1).flip([0]);
    let states = layer.forward_cached(last, &mut cache).states;
    let expected = whole.states.narrow(1, 2, 1).flip([0]);
    let (actual, expected) = (states.into_data(), expected.into_data());
    assert_close("reordered", &actual, &expected, TOLERANCE);
}

/// A block that no layer is built like is not looked at.
#[test]
fn a_cycle_replaces_the_block() {
    // 30 numbers make no 4 heads, unless their width is told.
    let pattern = LayerPattern::Cycle(vec![BlockConfig::new().with_d_head(7)]);
    let stack = TransformerStackConfig::causal(30, D_FF, 4, 3).with_pattern(pattern.clone());
    assert_eq!(stack.validate(), Ok(()));
    let stack = stack.init(&devices::any());
    let x: Tensor<3> = tensor([2, 5, 30], 1, &devices::any());
    let output = stack.forward(LayerInput::new(x));
    assert_eq!(output.dims(), [2, 5, 30]);
    let encoder = TransformerStackConfig::encoder(30, D_FF, 4, 3).with_pattern(pattern.clone());
    assert_eq!(encoder.validate(), Ok(()));

    let model = |block: BlockConfig| {
        let config = LanguageModelConfig::new(23)
            .with_d_model(30)
            .with_n_heads(4);
        config.with_pattern(pattern.clone()).with_block(block)
    };
    assert_eq!(model(BlockConfig::new()).validate(), Ok(()));
    // What a model has of it for itself has to be right.
    let error = model(BlockConfig::new().with_dropout(1.5)).validate();
    assert_eq!(
        error.expect_err("it is bad").to_string(),
        "LanguageModelConfig: dropout must be in [0, 1), got 1.5"
    );
    let bert = |block: BlockConfig| {
        let config = BertConfig::new(23).with_d_model(30).with_n_heads(4);
        let error = config
            .with_pattern(pattern.clone())
            .with_block(block)
            .validate();
        error.err().map(|error| error.to_string())
    };
    assert_eq!(bert(BlockConfig::new()), None);
    for (block, expected) in [
        (
            BlockConfig::new().with_dropout(1.5),
            "dropout must be in [0, 1), got 1.5",
        ),
        (
            BlockConfig::new().with_norm(NormConfig::layer_norm().with_epsilon(-1.0)),
            "LayerNorm: epsilon must be positive and finite, got -1",
        ),
    ] {
        assert_eq!(bert(block), Some(format!("BertConfig: {expected}")));
    }
}
