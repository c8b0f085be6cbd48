//! Random calls of the operation on flex, forward and backward, against the oracle: the cases and the tolerance of the kernels' own suite.

#[allow(dead_code, reason = "the kernels' suite uses the rest")]
#[path = "../../crates/kernels-cpu/tests/kernels"]
mod kernels {
    pub mod allowed;
    pub mod case;
    pub mod number;
    pub mod options;
    pub mod plain;
    pub mod random;
}

use burn::tensor::{DType, Device, bf16, f16};
use burn_attn_tests::numbers::{STEP, mixed};
use rayon::prelude::*;

use crate::{body::Body, case::Case, oracle::pairs};
use kernels::{
    allowed::{errors, near},
    number::Number,
    random::Choices,
};

/// How many calls: `BURN_ATTN_CASES`, or few.
fn count() -> u64 {
    match std::env::var("BURN_ATTN_CASES") {
        Ok(count) => count
            .parse()
            .unwrap_or_else(|_| panic!("BURN_ATTN_CASES must be a whole number, got {count}")),
        Err(_) => 300,
    }
}

/// The largest error of a call in units of what is allowed, `None` where an option of any size leaves the range.
fn error<T: Number>(index: u64, dtype: DType) -> Option<(f64, String)> {
    let mut state = (16 * index).wrapping_mul(STEP);
    let mut next = || {
        state = state.wrapping_add(STEP);
        mixed(state)
    };
    let mut choices = Choices {
        sizes: next().to_le_bytes()[..7].try_into().expect("seven bytes"),
        options: next() as u32,
        seed: next() as u16,
        // In half of the calls.
        extremes: match next() % 2 == 0 {
            true => next() as u8,
            false => 0,
        },
    };
    // Most sizes are small, in every dtype alike; 250 keys are more than a block has.
    let longest = match index / 4 % 256 {
        0 => 250,
        1..16 => 40,
        _ => 12,
    };
    // Burn gives no gradient to a tensor without numbers: there is a batch item, a query and a key.
    choices.sizes[0] = 1 + choices.sizes[0] % 2;
    for size in &mut choices.sizes[3..5] {
        *size = 1 + *size % (longest as u8 - 1);
    }
    let problem = choices.case::<T>(longest);
    let oracle = problem.oracle();
    let allowed = near::<T>(&problem, &oracle)?;
    let p = problem.problem;
    let sizes = [
        p.batch, p.heads_q, p.heads_kv, p.len_q, p.len_kv, p.dim_qk, p.dim_v,
    ];
    let zeros = vec![0.0; p.query_rows()];
    let case = Case {
        query: problem.query,
        key: problem.key,
        value: problem.value,
        causal: problem.causal,
        window: problem.window,
        first_keys: problem.first_keys,
        key_lengths: problem.key_lengths,
        query_offsets: problem.query_offsets,
        segments: problem.segments,
        visible_blocks: problem.visible_blocks,
        masked: problem.masked,
        bias: problem.bias,
        alibi: problem.alibi,
        relative: problem.relative,
        sinks: problem.sinks,
        softcap: problem.softcap,
        scale: problem.scale,
        dropout: problem.dropout,
        output_gradient: problem.output_gradient,
        logsumexp_gradient: problem.logsumexp_gradient.unwrap_or(zeros),
        ..Case::new(&problem.name, sizes)
    };
    let mut worst = (0.0, String::new());
    // The tensors among the options have the precision in which the kernels compute.
    let of_options = match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let actual = case.run_with(
        Body::Backend,
        &Device::flex(),
        [dtype, of_options],
        |options, _| options,
    );
    let mut results = pairs(case.oracle(), actual);
    // The weights are another call, which has no kernel.
    results.retain(|(name, ..)| *name != "weights");
    assert_eq!(results.len(), oracle.len(), "{}", case.name);
    // The numbers of the problem, not of its copy, which could lack an option.
    for ((name, _, actual), ((of_oracle, expected), allowed)) in
        results.iter().zip(oracle.iter().zip(allowed))
    {
        assert_eq!(name, of_oracle);
        for (at, (error, allowed)) in errors(actual, expected).zip(allowed).enumerate() {
            let units = if error == 0.0 { 0.0 } else { error / allowed };
            if units > worst.0 {
                let message = format!(
                    "call {index} in {dtype:?}, {}: {name}[{at}] is {} instead of {}",
                    case.name, actual[at], expected[at]
                );
                worst = (units, message);
            }
        }
    }
    Some(worst)
}

/// `cargo run-checks --long` compares a million calls.
#[test]
fn random_calls_agree_with_the_oracle() {
    let count = count();
    let errors = (0..count)
        .into_par_iter()
        .filter_map(|index| match index % 4 {
            0 => error::<f64>(index, DType::F64),
            1 => error::<f32>(index, DType::F32),
            2 => error::<f16>(index, DType::F16),
            _ => error::<bf16>(index, DType::BF16),
        });
    let larger = |(first, calls): ((f64, String), u64), (second, more): ((f64, String), u64)| {
        let larger = if second.0 > first.0 { second } else { first };
        (larger, calls + more)
    };
    let none = || ((0.0, String::new()), 0);
    let ((units, message), compared) = errors.map(|error| (error, 1)).reduce(none, larger);
    println!(
        "{count} random calls, {compared} of them within the range and compared; the largest error is {units:.3} of the tolerance: {message}"
    );
    assert!(units <= 1.0, "{message}");
    assert!(2 * compared > count);
}
