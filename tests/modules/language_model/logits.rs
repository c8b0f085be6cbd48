//! The logits of every token are those of the whole text read at once.

use burn::tensor::{Device, Tensor};
use burn_attn::{CacheStorage, KvCacheConfig};
use burn_attn_models::{generate::Autoregressive, language_model::LanguageModel};
use burn_attn_tests::{
    compare::{assert_close, differs, error},
    devices,
    numbers::filled,
};

use super::{Case, MAX_LEN, PROMPTS, VOCABULARY, batch, cases, model, small, texts};

/// The largest error of all logits, when each row reads its prompt at once and then token by token to its end.
fn error_of_cached(
    model: &LanguageModel,
    prompts: [usize; 3],
    cache: &KvCacheConfig,
    device: &Device,
) -> f64 {
    let texts = texts(3);
    let whole = model.forward(batch(&texts, device));
    let mut state = model.start_with(3, cache);
    // Which text a row reads, how far it is, and how far it goes now.
    let mut rows: Vec<(usize, usize, usize)> = prompts
        .into_iter()
        .enumerate()
        .map(|(text, end)| (text, 0, end))
        .collect();
    let mut worst = 0.0;
    while !rows.is_empty() {
        let new = rows.iter().map(|&(text, at, end)| &texts[text][at..end]);
        let logits = model.advance(&mut state, &new.collect::<Vec<_>>());
        let expected = rows.iter().map(|&(text, _, end)| {
            let of_text = whole.clone().narrow(0, text, 1).narrow(1, end - 1, 1);
            of_text.reshape([1, VOCABULARY])
        });
        let expected: Tensor<2> = Tensor::cat(expected.collect(), 0);
        let error = error(&logits.into_data(), &expected.into_data());
        assert!(!error.is_nan());
        worst = f64::max(worst, error);
        let ends: Vec<usize> = rows.iter().map(|&(_, _, end)| end).collect();
        assert_eq!(model.lengths(&state), ends);
        // Rows that are at their end leave.
        let going_on: Vec<usize> = (0..rows.len()).filter(|&row| ends[row] < MAX_LEN).collect();
        if going_on.len() < rows.len() {
            model.reorder(&mut state, &going_on);
        }
        rows = going_on
            .into_iter()
            .map(|row| (rows[row].0, ends[row], ends[row] + 1))
            .collect();
    }
    worst
}

/// Panics unless row after row has the logits of the token before its end in `whole`.
fn assert_rows(what: &str, logits: &Tensor<2>, whole: &Tensor<3>, ends: &[usize]) {
    for (row, &end) in ends.iter().enumerate() {
        let expected = whole.clone().narrow(0, row, 1).narrow(1, end - 1, 1);
        let expected = expected.reshape([1, VOCABULARY]).into_data();
        let actual = logits.clone().narrow(0, row, 1).into_data();
        assert_close(&format!("{what}, row {row}"), &actual, &expected, 1e-5);
    }
}

#[test]
fn cached_logits_are_the_uncached_ones() {
    for (backend, device) in devices::cpu() {
        for Case { name, config, .. } in cases() {
            let model = model(&config, &device);
            for prompts in PROMPTS {
                let error = error_of_cached(&model, prompts, &small(), &device);
                println!("{backend}, {name}, {prompts:?}: error {error:.1e}");
                assert!(error <= 1e-5, "{backend}, {name}, {prompts:?}: {error:.1e}");
            }
        }
    }
}

#[test]
fn logits_from_eight_bits_are_near() {
    for (backend, device) in devices::cpu() {
        for Case { name, config, .. } in cases() {
            // Quiet sublayers: loud ones pass on more than the error of their keys and values.
            let model = filled(config.init(&device), 1);
            for prompts in PROMPTS {
                let cache = small().with_storage(CacheStorage::Int8);
                let error = error_of_cached(&model, prompts, &cache, &device);
                println!("{backend}, {name}, {prompts:?}: error {error:.1e}");
                // More than rounding, or it would not be 8 bits.
                assert!(
                    (3e-4..6e-3).contains(&error),
                    "{backend}, {name}, {prompts:?}: {error:.1e}"
                );
            }
        }
    }
}

#[test]
fn every_case_is_another_model() {
    let device = devices::any();
    let texts = batch(&texts(3), &device);
    let logits = cases().into_iter().map(|case| {
        let logits = model(&case.config, &device).forward(texts.clone());
        (case.name, logits)
    });
    let logits: Vec<(String, Tensor<3>)> = logits.collect();
    for (at, (name, logits_of_one)) in logits.iter().enumerate() {
        for (other, logits_of_other) in &logits[..at] {
            assert!(differs(logits_of_one, logits_of_other), "{name} = {other}");
        }
    }
}

#[test]
fn tokens_that_were_taken_back_leave_nothing() {
    let device = devices::any();
    for Case { name, config, .. } in cases() {
        let model = model(&config, &device);
        let texts = texts(2);
        let whole = model.forward(batch(&texts, &device));
        // Room for all: of what has left a window, nothing can be taken back.
        let mut state = model.start(2);
        model.advance(&mut state, &[&texts[0][..3], &texts[1][..6]]);
        model.advance(&mut state, &[&[1, 2, 3, 4], &[5]]);
        state.truncate(&[3, 6]);
        let logits = model.advance(&mut state, &[&texts[0][3..5], &texts[1][6..10]]);
        assert_rows(&name, &logits, &whole, &[5, 10]);
    }
}

#[test]
fn padding_needs_no_positions() {
    for (backend, device) in devices::cpu() {
        for Case { name, config, .. } in cases() {
            let model = model(&config, &device);
            let texts = texts(3);
            let whole = model.forward(batch(&texts, &device));
            let mut state = model.start_with(3, &small());
            let start = [&texts[0][..12], &texts[1][..5], &texts[2][..9]];
            model.advance(&mut state, &start);
            // The padding behind the first row would stand on positions up to 15.
            let new = [&texts[0][12..13], &texts[1][5..9], &texts[2][9..11]];
            let logits = model.advance(&mut state, &new);
            let what = format!("{backend}, {name}");
            assert_rows(&what, &logits, &whole, &[13, 9, 11]);
        }
    }
}
