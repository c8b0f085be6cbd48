//! The model learns by its gradients, and says what it has learned.

use burn::{
    module::Module,
    nn::loss::CrossEntropyLossConfig,
    optim::{AdamConfig, GradientsParams},
    tensor::Device,
};
use burn_attn::{
    BlockConfig, FeedForwardActivation, NormConfig, NormPlacement, positions::PositionEncoding,
};
use burn_attn_models::{
    generate::{GenerateOptions, generate},
    language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig},
};
use burn_attn_tests::{devices, numbers::filled, parameters};

use super::{D_MODEL, HEADS, MAX_LEN, VOCABULARY, batch};

/// What follows 3 or 7 depends on what came before, so no table of pairs of tokens can say it.
const TEXT: [u32; MAX_LEN] = [3, 7, 3, 11, 3, 7, 19, 7, 3, 2, 11, 5, 13];
const STEPS: usize = 60;

/// A small Llama and a small GPT-2.
fn configs() -> [(&'static str, LanguageModelConfig); 2] {
    let config = || {
        LanguageModelConfig::new(VOCABULARY)
            .with_d_model(D_MODEL)
            .with_n_heads(HEADS)
            .with_d_ff(29)
            .with_max_len(MAX_LEN)
            .with_scaled_embedding(false)
    };
    let block = || {
        BlockConfig::new()
            .with_dropout(0.0)
            .with_norm_placement(NormPlacement::Pre)
    };
    let llama = block()
        .with_norm(NormConfig::rms_norm())
        .with_activation(FeedForwardActivation::SwiGlu)
        .with_bias(false)
        .with_n_kv_heads(2)
        .with_position(PositionEncoding::rotary());
    let gpt2 = block().with_activation(FeedForwardActivation::GeluTanh);
    [
        ("Llama", config().with_block(llama).with_tied(false)),
        (
            "GPT-2",
            config()
                .with_block(gpt2)
                .with_absolute_position(AbsolutePosition::Learned),
        ),
    ]
}

/// The model after some steps, and the loss before each.
fn train(config: &LanguageModelConfig, device: &Device) -> (LanguageModel, Vec<f32>) {
    let mut model = filled(config.init(device), 1);
    let mut optimizer = AdamConfig::new().init();
    let input = batch(&[TEXT[..MAX_LEN - 1].to_vec()], device);
    let goal = batch(&[TEXT[1..].to_vec()], device).flatten(0, 1);
    let losses = (0..STEPS).map(|_| {
        let logits = model.forward(input.clone()).flatten(0, 1);
        let loss = CrossEntropyLossConfig::new()
            .init(device)
            .forward(logits, goal.clone());
        let value = loss.clone().into_scalar();
        let gradients = loss.backward();
        let with_gradient: Vec<String> = parameters::gradients(&model, &gradients)
            .into_keys()
            .collect();
        let all: Vec<String> = parameters::values(&model).into_keys().collect();
        assert_eq!(with_gradient, all);
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimizer.step(1e-2, model.clone(), gradients);
        value
    });
    let losses = losses.collect();
    (model, losses)
}

#[test]
fn a_text_is_learned_by_heart() {
    for (backend, device) in devices::cpu() {
        for (name, config) in configs() {
            let (model, losses) = train(&config, &device.clone().autodiff());
            let (first, last) = (losses[0], losses[STEPS - 1]);
            println!("{backend}, {name}: loss {first:.3}, after {STEPS} steps {last:.4}");
            assert!(first > 2.0, "{backend}, {name}: there is nothing to learn");
            assert!(last < 0.03, "{backend}, {name}: {losses:?}");
            let model = model.valid();
            // The last token is chosen, never read: every row can end with it.
            let prompts = [1, 2, 5].map(|len| TEXT[..len].to_vec());
            let options = GenerateOptions::new(MAX_LEN);
            let outputs = generate(&model, model.start(3), &prompts, &options).unwrap();
            for (prompt, output) in prompts.iter().zip(outputs) {
                let rest = &TEXT[prompt.len()..];
                assert_eq!(output.tokens[..rest.len()], *rest, "{backend}, {name}");
            }
        }
    }
}
