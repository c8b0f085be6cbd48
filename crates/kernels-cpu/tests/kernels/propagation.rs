//! Every entry of the list of poisons, in the oracle and on every path of the kernels.

use half::{bf16, f16};

use crate::{
    case::{Case, Tensors, coarse, tensor},
    number::Number,
    poisons::{Operand, Poison, Reaches, poisons},
    run::{How, Layout, PORTABLE, USUAL, run},
};

/// The problem without the poison, or with it where `largest` is the largest finite number.
fn case(poison: &Poison, largest: Option<f64>) -> Case {
    let mut case = Case::new(&poison.name, poison.sizes);
    case.logsumexp_gradient = Some(coarse(7, case.problem.query_rows()));
    case.causal = poison.causal;
    case.window = poison.window;
    let all = |count| vec![count; poison.sizes[0]];
    case.first_keys = poison.first_keys.map(|count| (all(count), false));
    case.key_lengths = poison.key_lengths.clone();
    case.segments = poison.segments.clone();
    case.visible_blocks = poison.visible_blocks.clone();
    case.masked = poison.masked.clone();
    case.bias = poison.bias.clone();
    case.relative = poison.relative.clone();
    case.sinks = poison.sinks.clone();
    case.softcap = poison.softcap;
    case.dropout = poison.dropout;
    let Some(largest) = largest else { return case };
    let p = case.problem;
    for put in &poison.puts {
        let (tensor, dim) = match put.operand {
            Operand::Query => (&mut case.query, p.dim_qk),
            Operand::Key => (&mut case.key, p.dim_qk),
            Operand::Value => (&mut case.value, p.dim_v),
            Operand::Bias => (&mut case.bias.as_mut().unwrap().1, 1),
            Operand::OutputGradient => (&mut case.output_gradient, p.dim_v),
            Operand::LogsumexpGradient => (case.logsumexp_gradient.as_mut().unwrap(), 1),
        };
        put.write(tensor, dim, largest);
    }
    case
}

/// The first number that breaks the rule, if one does.
fn violation(
    reaches: Reaches,
    clean: &Tensors,
    dirty: &Tensors,
    oracle: &Tensors,
) -> Option<String> {
    clean
        .iter()
        .zip(dirty)
        .find_map(|((name, clean), (_, dirty))| {
            let at = reaches.violation(clean, dirty, tensor(oracle, name))?;
            Some(format!(
                "{name}[{at}] is {} instead of {}",
                dirty[at], clean[at]
            ))
        })
}

/// The results without the poison, and with it.
fn kernels<T: Number>(poison: &Poison, how: How) -> [Tensors; 2] {
    [None, Some(T::LARGEST)].map(|largest| {
        let case = case(poison, largest);
        case.of_parameters(run::<T>(&case, how))
    })
}

/// Fails for every poison that spreads, or gets lost, in any of these runs of it.
fn check(runs: impl Fn(&Poison) -> Vec<(&'static str, [Tensors; 2])>) {
    let mut violations = Vec::new();
    for poison in poisons() {
        let oracle = case(&poison, Some(f32::LARGEST)).oracle();
        for (what, [clean, dirty]) in runs(&poison) {
            if let Some(violation) = violation(poison.reaches, &clean, &dirty, &oracle) {
                violations.push(format!("{}: {what}: {violation}", poison.name));
            }
        }
    }
    let count = violations.len();
    assert!(count == 0, "{count} violations:\n{}", violations.join("\n"));
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn the_oracle_lets_no_poison_spread_and_none_that_is_seen_get_lost() {
    check(|poison| {
        let [clean, dirty] = [None, Some(f32::LARGEST)].map(|x| case(poison, x).oracle());
        let nan = dirty
            .iter()
            .any(|(_, data)| data.iter().any(|x| x.is_nan()));
        assert_eq!(nan, poison.reaches == Reaches::Caller, "{}", poison.name);
        vec![("oracle", [clean, dirty])]
    });
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn no_poison_spreads_in_f32_and_none_that_is_seen_gets_lost() {
    let strided = How {
        layout: Layout::Strided,
        ..USUAL
    };
    check(|poison| {
        vec![
            ("f32", kernels::<f32>(poison, USUAL)),
            ("portable f32", kernels::<f32>(poison, PORTABLE)),
            ("strided f32", kernels::<f32>(poison, strided)),
        ]
    });
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn no_poison_spreads_in_other_precisions_and_none_that_is_seen_gets_lost() {
    check(|poison| {
        let mut runs = vec![("f64", kernels::<f64>(poison, USUAL))];
        // The kernels read halves as f32: a tile is copied in another way, but computed in the same way.
        if poison.sizes[3] < 128 {
            runs.push(("f16", kernels::<f16>(poison, USUAL)));
            runs.push(("bf16", kernels::<bf16>(poison, PORTABLE)));
        }
        runs
    });
}
