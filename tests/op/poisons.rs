//! What is hidden reaches no result, NaN included, and a visible NaN is not lost: the poisons of the kernels' suite, by every implementation
//! of the operation.

#[path = "../../crates/kernels-cpu/tests/kernels/poisons/mod.rs"]
mod list;

use burn::tensor::DType;
use burn_attn_tests::devices;

use crate::{
    body::Body,
    case::{Case, Results},
    oracle::implementations,
};
use list::{Operand, Poison, Reaches, poisons};

const F32: DType = DType::F32;

/// The problem without the poison, and with it.
fn cases(poison: Poison) -> [Case; 2] {
    let clean = Case {
        causal: poison.causal,
        window: poison.window,
        first_keys: (poison.first_keys).map(|count| (vec![count; poison.sizes[0]], false)),
        key_lengths: poison.key_lengths,
        segments: poison.segments,
        visible_blocks: poison.visible_blocks,
        masked: poison.masked,
        bias: poison.bias,
        relative: poison.relative,
        sinks: poison.sinks,
        softcap: poison.softcap,
        dropout: poison.dropout,
        ..Case::new(&poison.name, poison.sizes)
    };
    let mut dirty = clean.clone();
    let [.., dim_qk, dim_v] = poison.sizes;
    for put in &poison.puts {
        let (tensor, dim) = match put.operand {
            Operand::Query => (&mut dirty.query, dim_qk),
            Operand::Key => (&mut dirty.key, dim_qk),
            Operand::Value => (&mut dirty.value, dim_v),
            Operand::Bias => (&mut dirty.bias.as_mut().expect("a bias to poison").1, 1),
            Operand::OutputGradient => (&mut dirty.output_gradient, dim_v),
            Operand::LogsumexpGradient => (&mut dirty.logsumexp_gradient, 1),
        };
        put.write(tensor, dim, f64::from(f32::MAX));
    }
    [clean, dirty]
}

/// Results and gradients by name.
type Numbers = Vec<(&'static str, Vec<f64>)>;

/// Everything but the weights, which have no value and no gradient to poison.
fn all(results: Results) -> Numbers {
    let [query, key, value] = results.gradients;
    let mut all = vec![
        ("output", results.output),
        ("logsumexp", results.logsumexp),
        ("query gradient", query),
        ("key gradient", key),
        ("value gradient", value),
    ];
    all.extend(results.option_gradients);
    all
}

#[test]
fn poison_reaches_only_queries_that_see_it() {
    let mut failures = Vec::new();
    for (body, device) in implementations(F32) {
        let on_cpu = devices::is_cpu(&device);
        // The general bodies are the same operations everywhere: all on one CPU backend, two on the other, whose operations may
        // treat NaN differently.
        let runs_everywhere = match body {
            Body::Backend => true,
            Body::Blockwise(7) | Body::Composed => on_cpu,
            _ => device == devices::any(),
        };
        if !runs_everywhere {
            continue;
        }
        // A driver in software takes a second for each of the longer ones, of which there are hundreds.
        let is_sampled = devices::is_sampled(&device);
        let runs =
            |poison: &Poison| !is_sampled || poison.sizes.iter().product::<usize>() < 300_000;
        // One problem has several poisons, one after the other. It compiles kernels of its own: where samples are enough, one of three is taken, of each three
        // another: problems that follow each other differ in their options.
        let mut last_problem = (0, None);
        let mut last_clean: Option<(Case, Numbers)> = None;
        for poison in poisons().into_iter().filter(runs) {
            let reaches = poison.reaches;
            let [clean, dirty] = cases(poison);
            let clean = Case {
                name: String::new(),
                ..clean
            };
            if last_problem.1.as_ref() != Some(&clean) {
                last_problem = (last_problem.0 + 1, Some(clean.clone()));
            }
            let number = last_problem.0;
            if is_sampled && (number + number / 3) % 3 != 1 {
                continue;
            }
            let run = |case: &Case| all(case.run_by(body, &device, F32));
            let actual = run(&dirty);
            // What is compared with: results without the poison, or what the oracle says of those with it.
            let (clean, oracle) = match reaches {
                Reaches::Nothing => {
                    let known = last_clean.take().filter(|(case, _)| *case == clean);
                    let (_, results) = last_clean.insert(known.unwrap_or_else(|| {
                        let results = run(&clean);
                        (clean, results)
                    }));
                    (results.clone(), actual.clone())
                }
                Reaches::Caller => (actual.clone(), all(dirty.oracle())),
                Reaches::Viewer => (actual.clone(), actual.clone()),
            };
            for (((name, dirty_numbers), (_, clean)), (_, oracle)) in
                actual.iter().zip(&clean).zip(&oracle)
            {
                if let Some(at) = reaches.violation(clean, dirty_numbers, oracle) {
                    failures.push(format!(
                        "{}: {name}[{at}] is {} by {body:?} on {device:?}",
                        dirty.name, dirty_numbers[at]
                    ));
                }
            }
        }
    }
    let count = failures.len();
    failures.truncate(40);
    assert!(count == 0, "{count} numbers:\n{}", failures.join("\n"));
}
