//! Every option of the operation, alone and together.

use burn_attn::CausalAlignment;
use burn_attn_kernels_cpu::{AttentionDropout, Window};

use crate::case::Case;

/// Every option of the operation, alone and together.
pub fn every_case() -> Vec<Case> {
    use CausalAlignment::{BottomRight, TopLeft};
    let usual = Case::usual;
    let tall = |name| Case::new(name, [2, 3, 3, 11, 5, 7, 2]);
    let causal = |case, alignment| Case {
        causal: Some(alignment),
        ..case
    };
    let window = |left, right| Some(Window { left, right });
    let lengths = || Some(vec![11, 4]);
    let segments = || {
        Some((
            vec![1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5],
            vec![
                1, 1, 2, 2, 2, 2, 3, 3, 9, 9, 9, 4, 4, 4, 4, 4, 5, 5, 5, 9, 9, 9,
            ],
        ))
    };
    let mut cases = vec![
        usual("nothing masked"),
        causal(usual("causal"), BottomRight),
        causal(usual("causal top-left"), TopLeft),
        causal(tall("causal, more queries than keys"), BottomRight),
        causal(tall("causal top-left, more queries than keys"), TopLeft),
        Case {
            window: window(Some(2), Some(1)),
            ..usual("window")
        },
        Case {
            window: window(Some(3), None),
            causal: Some(BottomRight),
            ..usual("causal window")
        },
        Case {
            window: window(Some(3), None),
            causal: Some(TopLeft),
            ..usual("causal window top-left")
        },
        Case {
            causal: Some(BottomRight),
            first_keys: Some((vec![8, 0], false)),
            ..usual("causal, or one of the first keys")
        },
        Case {
            causal: Some(TopLeft),
            window: window(Some(1), None),
            first_keys: Some((vec![2, 11], true)),
            key_lengths: lengths(),
            ..usual("a causal window, or one of the first keys")
        },
        Case {
            window: window(Some(1), Some(2)),
            first_keys: Some((vec![3, 1], false)),
            segments: segments(),
            ..usual("a window, or one of the first keys").with_alibi()
        },
        Case {
            key_lengths: lengths(),
            ..usual("key lengths")
        },
        Case {
            key_lengths: Some(vec![0, 11]),
            ..usual("a batch item without keys")
        },
        Case {
            segments: segments(),
            ..usual("segments")
        },
        Case {
            segments: segments(),
            causal: Some(BottomRight),
            ..usual("causal segments")
        },
        usual("blocks").with_blocks([3, 4], [false; 4]),
        usual("blocks of one size for all").with_blocks(2, [true, true, false, false]),
        usual("blocks of keys").with_blocks([2, 1], [false, true, true, false]),
        usual("blocks of queries").with_blocks([1, 5], [true, false, false, true]),
        causal(
            usual("causal blocks").with_blocks(3, [false, true, false, false]),
            BottomRight,
        ),
        usual("one block that shows or hides a head").with_blocks(13, [false; 4]),
        usual("ALiBi").with_alibi(),
        causal(usual("causal ALiBi"), BottomRight).with_alibi(),
        causal(usual("causal top-left ALiBi"), TopLeft).with_alibi(),
        tall("ALiBi, more queries than keys").with_alibi(),
        causal(tall("causal ALiBi, more queries than keys"), BottomRight).with_alibi(),
        causal(
            tall("causal top-left ALiBi, more queries than keys"),
            TopLeft,
        )
        .with_alibi(),
        usual("relative bias").with_relative(true),
        usual("one-sided relative bias").with_relative(false),
        causal(usual("causal relative bias"), BottomRight).with_relative(false),
        causal(usual("causal top-left relative bias"), TopLeft).with_relative(true),
        tall("relative bias, more queries than keys").with_relative(true),
        causal(
            tall("causal relative bias, more queries than keys"),
            BottomRight,
        )
        .with_relative(false),
        causal(
            tall("causal top-left relative bias, more queries than keys"),
            TopLeft,
        )
        .with_relative(false),
        relative_bias_that_hides(),
        usual("dense bias, ALiBi and relative bias")
            .with_bias([2, 1, 1, 11])
            .with_alibi()
            .with_relative(true),
        usual("sinks").with_sinks(),
        causal(usual("causal sinks"), BottomRight).with_sinks(),
        causal(tall("sinks, and queries that see nothing"), BottomRight).with_sinks(),
        Case {
            key_lengths: Some(vec![0, 11]),
            ..usual("sinks, and a batch item without keys").with_sinks()
        },
        Case {
            sinks: Some(vec![f64::NEG_INFINITY, 50.0, 0.0, -50.0, f64::NEG_INFINITY]),
            key_lengths: Some(vec![0, 11]),
            ..usual("sinks of every size")
        },
        Case {
            softcap: Some(1.5),
            ..usual("softcap")
        },
        Case {
            scale: Some(0.37),
            ..usual("scale")
        },
        Case {
            dropout: Some(AttentionDropout {
                probability: 0.3,
                seed: 17,
            }),
            ..usual("dropout")
        },
        Case::new("grouped heads", [2, 6, 3, 7, 11, 5, 13]),
        causal(
            Case::new("one key/value head", [3, 5, 1, 7, 11, 2, 3]),
            BottomRight,
        ),
        causal(Case::new("one query", [2, 3, 3, 1, 13, 5, 7]), BottomRight),
        Case::new("one query and blocks", [2, 6, 3, 1, 13, 5, 7]).with_blocks([1, 2], [false; 4]),
        Case::new("one of everything", [1, 1, 1, 1, 1, 1, 1]),
        Case {
            key_lengths: Some(vec![0]),
            ..Case::new("one of everything, hidden", [1, 1, 1, 1, 1, 1, 1])
        },
        Case {
            causal: Some(BottomRight),
            window: window(Some(5), None),
            key_lengths: lengths(),
            segments: segments(),
            softcap: Some(2.0),
            scale: Some(0.8),
            dropout: Some(AttentionDropout {
                probability: 0.2,
                seed: 3,
            }),
            ..Case::new("everything at once", [2, 6, 2, 7, 11, 5, 3])
                .with_blocks([2, 3], [true, false, false, false])
                .with_masked([2, 1, 7, 11])
                .with_bias([1, 6, 7, 11])
                .with_alibi()
                .with_relative(true)
                .with_sinks()
        },
    ];
    cases.extend(wrong_on_wgpu_once());
    cases.extend(sequences_with_places_of_their_own());
    for shape in every_broadcast([2, 5, 7, 11]) {
        cases.push(usual(&format!("dense mask {shape:?}")).with_masked(shape));
        cases.push(usual(&format!("dense bias {shape:?}")).with_bias(shape));
    }
    cases
}

/// Every shape that stretches to `full`.
fn every_broadcast(full: [usize; 4]) -> Vec<[usize; 4]> {
    (0..16)
        .map(|ones| std::array::from_fn(|axis| if ones >> axis & 1 == 1 { 1 } else { full[axis] }))
        .collect()
}

/// Query offsets beside everything that counts from them.
fn sequences_with_places_of_their_own() -> Vec<Case> {
    let placed = |case, offsets: [i64; 2]| Case {
        causal: Some(CausalAlignment::BottomRight),
        query_offsets: Some(offsets.into()),
        ..case
    };
    let usual = |name| placed(Case::usual(name), [4, 1]);
    let window = |left, right| Some(Window { left, right });
    let one_query = || {
        placed(
            Case::new("offsets, one query", [2, 6, 2, 1, 11, 5, 3]),
            [3, 10],
        )
    };
    vec![
        usual("offsets, causal"),
        Case {
            causal: Some(CausalAlignment::TopLeft),
            ..usual("offsets, causal top-left")
        },
        Case {
            causal: None,
            window: window(Some(2), Some(1)),
            ..usual("offsets, window")
        },
        Case {
            key_lengths: Some(vec![11, 8]),
            window: window(Some(3), None),
            ..usual("offsets in a padded cache, window")
        },
        placed(Case::usual("offsets outside, alibi").with_alibi(), [-3, 9]),
        placed(
            Case::usual("offsets at both ends").with_relative(true),
            [-7, 11],
        ),
        placed(
            Case::usual("offsets, relative, both biases")
                .with_relative(false)
                .with_alibi(),
            [0, 5],
        ),
        Case {
            causal: None,
            ..placed(
                Case::usual("offsets, relative, not causal").with_relative(true),
                [4, -2],
            )
        },
        Case {
            key_lengths: Some(vec![4, 11]),
            ..one_query().with_alibi()
        },
        Case {
            dropout: Some(AttentionDropout {
                probability: 0.2,
                seed: 3,
            }),
            softcap: Some(2.0),
            window: window(Some(5), None),
            key_lengths: Some(vec![11, 8]),
            ..placed(
                Case::new("offsets and everything", [2, 6, 2, 7, 11, 5, 3]),
                [4, 1],
            )
            .with_masked([2, 1, 7, 11])
            .with_bias([1, 6, 7, 11])
            .with_alibi()
            .with_relative(true)
            .with_sinks()
        },
    ]
}

/// The smallest cases of what the composed body computed wrongly on wgpu, where the blockwise body takes them: one head with both distance
/// biases, one key that some queries see, and gradients of more than 65,535 terms.
pub fn wrong_on_wgpu_once() -> [Case; 5] {
    let causal = |case| Case {
        causal: Some(CausalAlignment::BottomRight),
        ..case
    };
    let one_key = |name| Case::new(name, [1, 12, 3, 4, 1, 4, 4]);
    let long = |name| Case::new(name, [1, 2, 1, 191, 193, 1, 2]);
    [
        Case::new("one head, ALiBi and relative bias", [1, 1, 1, 11, 14, 3, 5])
            .with_alibi()
            .with_relative(false),
        Case {
            segments: Some((vec![1, 2, 1, 2], vec![1])),
            ..causal(one_key("one key, segments"))
        },
        causal(one_key("one key, relative bias")).with_relative(false),
        causal(long("long, ALiBi and relative bias"))
            .with_alibi()
            .with_relative(false),
        small_gradients(causal(long("long, one number for all")).with_bias([1, 1, 1, 1])),
    ]
}

/// The rounding error of a sum of very many terms of either sign grows with the terms, so the terms are small.
fn small_gradients(mut case: Case) -> Case {
    let upstream = case.output_gradient.iter_mut();
    upstream
        .chain(&mut case.logsumexp_gradient)
        .for_each(|x| *x /= 16.0);
    case
}

/// A table that hides the far keys of one head, and every key from another.
fn relative_bias_that_hides() -> Case {
    let mut case = Case::usual("relative bias that hides").with_relative(false);
    let heads = case.problem.heads_q;
    if let Some((table, buckets)) = &mut case.relative {
        table[(buckets.buckets - 1) * heads] = f64::NEG_INFINITY;
        table
            .iter_mut()
            .skip(3)
            .step_by(heads)
            .for_each(|entry| *entry = f64::NEG_INFINITY);
    }
    case
}
