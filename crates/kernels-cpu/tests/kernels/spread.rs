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

/// What breaks the rule, if anything does.
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

/// Without the poison, and with it.
fn kernels<T: Number>(poison: &Poison, how: How) -> [Tensors; 2] {
    [None, Some(T::LARGEST)].map(|largest| {
        let case = case(poison, largest);
        case.of_parameters(run::<T>(&case, how))
    })
}

#[test]
fn no_poison_spreads_and_none_that_is_seen_gets_lost() {
    let strided = How {
        layout: Layout::Strided,
        ..USUAL
    };
    let mut violations = Vec::new();
    for poison in poisons() {
        let clean = case(&poison, None).oracle();
        let oracle = case(&poison, Some(f32::LARGEST)).oracle();
        let without_nan = oracle
            .iter()
            .all(|(_, data)| data.iter().all(|x| !x.is_nan()));
        assert_eq!(
            without_nan,
            poison.reaches != Reaches::Caller,
            "{}",
            poison.name
        );
        for (what, [clean, dirty]) in [
            ("oracle", [clean, oracle.clone()]),
            ("f32", kernels::<f32>(&poison, USUAL)),
            ("portable f32", kernels::<f32>(&poison, PORTABLE)),
            ("strided f32", kernels::<f32>(&poison, strided)),
            ("f64", kernels::<f64>(&poison, USUAL)),
            ("f16", kernels::<f16>(&poison, USUAL)),
            ("bf16", kernels::<bf16>(&poison, PORTABLE)),
        ] {
            if let Some(violation) = violation(poison.reaches, &clean, &dirty, &oracle) {
                violations.push(format!("{}: {what}: {violation}", poison.name));
            }
        }
    }
    let count = violations.len();
    assert!(count == 0, "{count} violations:\n{}", violations.join("\n"));
}
