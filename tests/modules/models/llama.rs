//! Llama and its relatives against `transformers`.

use burn::tensor::{Int, Tensor};
use burn_attn::LayerInput;
use burn_attn_models::{
    generate::{GenerateOptions, generate},
    language_model::LanguageModel,
    llama,
};
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden::GoldenFile};

use super::{TOLERANCE, folder, language_models::Model};

const FAMILIES: [&str; 7] = [
    "llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "olmo2",
];

/// What errors call these families.
pub(super) const FAMILY: &str = "the Llama family";

pub(super) fn model(name: &'static str) -> Model {
    Model {
        name,
        from_pretrained: |folder, device| llama::from_pretrained(folder, device),
        table: llama::table(folder(name)).unwrap_or_else(|error| panic!("{error}")),
    }
}

fn values() -> GoldenFile {
    GoldenFile::open("models/llama_values")
}

/// Runs `check` with these families on every CPU backend.
fn each(check: impl Fn(&str, &str, LanguageModel)) {
    with(&FAMILIES, devices::cpu(), check);
}

fn with(
    families: &[&str],
    devices: Vec<devices::Named>,
    check: impl Fn(&str, &str, LanguageModel),
) {
    for (backend, device) in devices {
        for &family in families {
            let model = llama::from_pretrained(folder(family), &device);
            let model = model.unwrap_or_else(|error| panic!("{family}: {error}"));
            check(family, &format!("{family} on {backend}"), model);
        }
    }
}

#[test]
fn logits_and_every_layer_are_the_references() {
    each(logits_and_layers);
    // The one with most options, where a driver in software takes seconds for each shape.
    #[cfg(feature = "wgpu")]
    with(&["gemma3"], devices::named(), logits_and_layers);
}

fn logits_and_layers(family: &str, what: &str, model: LanguageModel) {
    let device = model.embedding.weight.device();
    let values = values();
    let tokens = Tensor::<2, Int>::from_data(values.data("tokens"), &device);
    let input = LayerInput::new(model.embed(tokens.clone(), 0));
    let output = model.transformer.forward_with_hidden_states(input);
    let close = |name: &str, actual: Tensor<3>| {
        let expected: Tensor<3> = values.tensor(&format!("{family}.{name}"), &device);
        let what = format!("{what}, {name}");
        let (actual, expected) = (actual.into_data(), expected.into_data());
        assert_close_to_largest(&what, &actual, &expected, TOLERANCE, 0.0);
    };
    let layers = output.hidden_states.len();
    for (layer, states) in output
        .hidden_states
        .into_iter()
        .take(layers - 1)
        .enumerate()
    {
        close(&format!("states.{layer}"), states);
    }
    close("logits", model.logits(output.states));
    close("logits", model.forward(tokens));
}

#[test]
fn cached_decoding_gives_the_references_tokens() {
    each(|family, what, model| {
        let values = values();
        let rows = |name: &str, take: usize| -> Vec<Vec<u32>> {
            let data = values.data(name);
            let width = data.shape()[1];
            let numbers: Vec<i64> = data.iter().collect();
            let rows = numbers.chunks(width);
            rows.map(|row| row[..take].iter().map(|&token| token as u32).collect())
                .collect()
        };
        let prompts = rows("tokens", 4);
        let expected = rows(&format!("{family}.generated"), 5);
        let outputs = generate(&model, model.start(2), &prompts, &GenerateOptions::new(5)).unwrap();
        for (output, expected) in outputs.iter().zip(&expected) {
            assert_eq!(&output.tokens, expected, "{what}");
        }
        // A row alone, and beside a longer one.
        let unequal = [prompts[0].clone(), rows("tokens", 3)[1].clone()];
        let together =
            generate(&model, model.start(2), &unequal, &GenerateOptions::new(5)).unwrap();
        for (prompt, output) in unequal.iter().zip(&together) {
            let prompt = std::slice::from_ref(prompt);
            let alone = generate(&model, model.start(1), prompt, &GenerateOptions::new(5)).unwrap();
            assert_eq!(output.tokens, alone[0].tokens, "{what}");
        }
    });
}

#[test]
fn they_are_written_back_bit_for_bit() {
    // One more and one less, as Gemma 3's QK norm needs, rounds.
    for family in FAMILIES.into_iter().filter(|family| *family != "gemma3") {
        model(family).check_export();
    }
}
