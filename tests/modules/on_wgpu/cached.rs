//! Decoding with a cache under Burn's fusion and autotune says what the whole text says on the CPU: other operations have been wrong there, step after
//! step (burn#5257).

use burn_attn_models::generate::Autoregressive;
use burn_attn_tests::{compare::assert_close_to_largest, devices};

use super::{VOCABULARY, models, texts, tokens};

const TOLERANCE: f64 = 2e-5;

#[test]
fn every_step_is_that_of_the_whole_text() {
    let Some(wgpu) = devices::wgpu() else { return };
    let cpu = devices::any();
    // One sequence, and several of unequal lengths.
    for prompts in [&[5][..], &[2, 7, 5]] {
        let texts = texts(prompts.len());
        let pairs = models(&cpu).into_iter().zip(models(&wgpu));
        for ((name, whole), (_, stepwise)) in pairs {
            let expected = whole.forward(tokens(&texts, &cpu));
            let mut state = stepwise.start(prompts.len());
            let mut lengths = prompts.to_vec();
            let prompt = texts.iter().zip(prompts).map(|(text, &len)| &text[..len]);
            let mut new: Vec<&[u32]> = prompt.collect();
            for step in 0..6 {
                let logits = stepwise.advance(&mut state, &new);
                for (row, &len) in lengths.iter().enumerate() {
                    let expected = expected.clone().narrow(0, row, 1).narrow(1, len - 1, 1);
                    let expected = expected.reshape([1, VOCABULARY]).into_data();
                    let found = logits.clone().narrow(0, row, 1).into_data();
                    let what = format!("{name}, row {row} of {prompts:?}, step {step}");
                    assert_close_to_largest(&what, &found, &expected, TOLERANCE, 0.0);
                }
                let next = texts.iter().zip(&lengths);
                new = next.map(|(text, &len)| &text[len..=len]).collect();
                lengths.iter_mut().for_each(|len| *len += 1);
            }
        }
    }
}
