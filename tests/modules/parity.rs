//! Every backend trains the same: outputs, gradients and five steps of loss from the same parameters.

use burn::{
    nn::loss::CrossEntropyLossConfig,
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData},
};
use burn_attn::{SelfAttentionConfig, SelfAttentionInput};
use burn_attn_models::seq2seq::{Seq2Seq, Seq2SeqConfig};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest},
    devices,
    numbers::{alone, filled, tensor, uniform},
    parameters,
};

/// About ten times what the CPU backends differ by, so that a GPU may sum in another order.
const TOLERANCE: f64 = 1e-5;

const VOCABULARY: usize = 23;
const BATCH: usize = 3;
const LEN_SOURCE: usize = 7;
const LEN_TARGET: usize = 5;
const STEPS: usize = 5;

/// Everything that one backend says.
struct Witness {
    name: String,
    logits: TensorData,
    gradients: parameters::Named,
    losses: TensorData,
}

fn model(device: &Device) -> Seq2Seq {
    let config = Seq2SeqConfig::new(VOCABULARY)
        .with_d_model(24)
        .with_n_heads(3)
        .with_d_ff(40)
        .with_dropout(0.0)
        .with_max_len(11);
    filled(config.init(device), 1)
}

/// Tokens that follow from `seed`.
fn tokens(len: usize, seed: u64, device: &Device) -> Tensor<2, Int> {
    let numbers = uniform(seed, BATCH * len).into_iter();
    let tokens: Vec<i32> = numbers
        .map(|number| ((number + 1.0) / 2.0 * VOCABULARY as f32) as i32)
        .collect();
    Tensor::from_data(TensorData::new(tokens, [BATCH, len]), device)
}

/// Five steps of Adam on `device`, which has autodiff.
fn train(name: &str, device: &Device) -> Witness {
    let mut model = model(device);
    let source = tokens(LEN_SOURCE, 2, device);
    let target = tokens(LEN_TARGET, 3, device);
    let goal = tokens(LEN_TARGET, 4, device).reshape([BATCH * LEN_TARGET]);
    let mut optimizer = AdamConfig::new().init();

    let mut witness: Option<Witness> = None;
    let mut losses: Vec<f32> = Vec::new();
    for _ in 0..STEPS {
        let logits = model.forward(source.clone(), &[7, 5, 6], target.clone());
        let rows = logits.clone().reshape([BATCH * LEN_TARGET, VOCABULARY]);
        let loss = CrossEntropyLossConfig::new()
            .init(device)
            .forward(rows, goal.clone());
        losses.push(loss.clone().into_scalar());
        let gradients = loss.backward();
        witness.get_or_insert_with(|| Witness {
            name: name.to_owned(),
            logits: logits.into_data(),
            gradients: parameters::gradients(&model, &gradients),
            losses: TensorData::new(Vec::<f32>::new(), [0]),
        });
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimizer.step(1e-2, model, gradients);
    }
    let mut witness = witness.expect("there is a first step");
    assert!(
        losses[STEPS - 1] < losses[0],
        "{name} learned nothing: {losses:?}"
    );
    witness.losses = TensorData::new(losses, [STEPS]);
    witness
}

/// Panics unless two backends say the same.
fn assert_agree(first: &Witness, second: &Witness) {
    let what = |of: &str| format!("{of}, {} against {}", second.name, first.name);
    assert_close(&what("logits"), &second.logits, &first.logits, TOLERANCE);
    assert_close(&what("losses"), &second.losses, &first.losses, TOLERANCE);
    let paths = |witness: &Witness| witness.gradients.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(second), paths(first));
    for (path, gradient) in &second.gradients {
        // Gradients of a mean are small.
        let expected = &first.gradients[path];
        assert_close_to_largest(&what(path), gradient, expected, TOLERANCE, 0.0);
    }
}

/// What the first CPU backend says: the others are measured by it.
fn reference() -> Witness {
    train("reference", &devices::any().autodiff())
}

#[test]
fn every_parameter_of_the_model_has_a_gradient() {
    let model = model(&devices::any().autodiff());
    let parameters: Vec<_> = parameters::values(&model).into_keys().collect();
    let gradients: Vec<_> = reference().gradients.into_keys().collect();
    assert_eq!(gradients, parameters);
}

#[test]
fn cpu_backends_agree() {
    let reference = reference();
    for (name, device) in devices::cpu() {
        assert_agree(&reference, &train(name, &device.autodiff()));
    }
}

#[test]
fn gradient_checkpointing_changes_nothing() {
    let reference = reference();
    for (name, device) in devices::cpu() {
        let device = device.autodiff().gradient_checkpointing();
        assert_agree(
            &reference,
            &train(&format!("{name} with checkpoints"), &device),
        );
    }
}

#[test]
fn attention_dropout_drops_the_same_weights_on_every_backend() {
    let _alone = alone();
    let outputs: Vec<_> = devices::cpu()
        .into_iter()
        .map(|(name, device)| {
            let device = device.autodiff();
            let config = SelfAttentionConfig::new(15, 3).with_dropout(0.5);
            let module = filled(config.init(&device), 1);
            burn_attn::seed(&device, 7);
            let input = SelfAttentionInput::new(tensor([2, 7, 15], 3, &device));
            (name, module.forward(input).into_data())
        })
        .collect();
    for (name, output) in &outputs[1..] {
        assert_close(name, output, &outputs[0].1, TOLERANCE);
    }
}

#[cfg(feature = "wgpu")]
#[test]
fn wgpu_agrees() {
    let Some(device) = devices::wgpu() else {
        return;
    };
    let reference = reference();
    assert_agree(&reference, &train("wgpu", &device.clone().autodiff()));
    let device = device.autodiff().gradient_checkpointing();
    assert_agree(&reference, &train("wgpu with checkpoints", &device));
}
