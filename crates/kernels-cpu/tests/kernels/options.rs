//! Every option of the kernels, alone and all together.

use burn_attn_kernels_cpu::{
    AttentionDropout, BlockSize,
    CausalAlignment::{BottomRight, TopLeft},
    RelativeBuckets, Window, alibi_slopes,
};

use super::case::{Case, coarse};

/// A case without options.
type Plain<'a> = &'a dyn Fn() -> Case;

/// One case per option, on one path; `plain` gives a case without options.
pub fn every_option(plain: Plain<'_>) -> Vec<Case> {
    let mut cases = vec![named(plain, "no option", |_| {})];
    cases.extend(masks(plain));
    cases.extend(offsets(plain));
    cases.extend(block_tables(plain));
    cases.extend(biases(plain));
    cases.extend(others(plain));
    cases.push(named(plain, "everything at once", everything));
    cases.push(named(plain, "everything at once, offsets too", |case| {
        everything(case);
        case.query_offsets = Some(query_offsets(case));
    }));
    cases
}

fn named(plain: Plain<'_>, option: &str, set: impl Fn(&mut Case)) -> Case {
    let mut case = plain();
    case.name = format!("{}: {option}", case.name);
    set(&mut case);
    case
}

fn window(left: Option<usize>, right: Option<usize>) -> Option<Window> {
    Some(Window { left, right })
}

fn masks(plain: Plain<'_>) -> Vec<Case> {
    let mut cases = vec![
        named(plain, "causal", |case| case.causal = Some(BottomRight)),
        named(plain, "causal top-left", |case| case.causal = Some(TopLeft)),
        named(plain, "window", |case| {
            case.window = window(Some(case.problem.len_kv / 5), Some(2));
        }),
        named(plain, "window to the right", |case| {
            case.window = window(None, Some(case.problem.len_kv / 3));
        }),
        named(plain, "causal window", |case| {
            case.causal = Some(BottomRight);
            case.window = window(Some(case.problem.len_kv / 3), None);
        }),
        named(plain, "causal window top-left", |case| {
            case.causal = Some(TopLeft);
            case.window = window(Some(3), None);
        }),
        named(plain, "causal, or one of the first keys", |case| {
            case.causal = Some(BottomRight);
            case.first_keys = Some((first_keys(case), false));
        }),
        named(plain, "a window, or one of the first keys", |case| {
            case.causal = Some(BottomRight);
            case.window = window(Some(case.problem.len_kv / 5), None);
            case.first_keys = Some((first_keys(case), true));
        }),
        named(plain, "both ways, or one of the first keys", |case| {
            case.window = window(Some(2), Some(case.problem.len_kv / 7));
            case.first_keys = Some((first_keys(case), false));
            case.key_lengths = Some(key_lengths(case));
            case.query_offsets = Some(query_offsets(case));
        }),
        named(plain, "key lengths", |case| {
            case.key_lengths = Some(key_lengths(case))
        }),
        named(plain, "a batch item without keys", |case| {
            let mut lengths = key_lengths(case);
            lengths[case.problem.batch - 1] = 0;
            case.key_lengths = Some(lengths);
        }),
        named(plain, "segments", |case| {
            case.segments = Some(sorted_segments(case))
        }),
        named(plain, "causal segments", |case| {
            case.causal = Some(BottomRight);
            case.segments = Some(sorted_segments(case));
        }),
        named(plain, "segments in any order", |case| {
            let ids = |len: usize, step: usize| {
                (0..case.problem.batch * len)
                    .map(|at| (at * step % 3) as i64)
                    .collect()
            };
            case.segments = Some((ids(case.problem.len_q, 5), ids(case.problem.len_kv, 7)));
        }),
        named(plain, "a mask that hides everything", |case| {
            case.masked = Some(([1, 1, 1, 1], vec![true]));
        }),
    ];
    for shape in shapes(plain().scores()) {
        cases.push(named(plain, &format!("mask of shape {shape:?}"), |case| {
            case.masked = Some((shape, hides_a_third(shape)));
        }));
    }
    cases
}

fn offsets(plain: Plain<'_>) -> Vec<Case> {
    vec![
        named(plain, "causal offsets", |case| {
            case.causal = Some(BottomRight);
            case.query_offsets = Some(query_offsets(case));
        }),
        named(plain, "the first and the last offset, top-left", |case| {
            let p = case.problem;
            let ends = [p.len_kv as i64, -(p.len_q as i64)];
            case.causal = Some(TopLeft);
            case.query_offsets = Some(ends.into_iter().cycle().take(p.batch).collect());
        }),
        named(plain, "a window at offsets", |case| {
            case.window = window(Some(case.problem.len_kv / 5), Some(2));
            case.query_offsets = Some(query_offsets(case));
        }),
        named(plain, "a cache of unequal sequences", |case| {
            cache(case);
            case.window = window(Some(case.problem.len_kv / 3), None);
        }),
        named(plain, "a cache with ALiBi", |case| {
            cache(case);
            case.alibi = Some(slopes(case));
        }),
        named(plain, "a cache with a relative bias", |case| {
            cache(case);
            case.relative = Some(relative(case, 10, false));
        }),
        named(plain, "a bias for every distance at offsets", |case| {
            case.relative = Some(one_bucket_per_distance(case));
            case.query_offsets = Some(query_offsets(case));
        }),
    ]
}

fn block_tables(plain: Plain<'_>) -> Vec<Case> {
    let mut cases = Vec::new();
    // Smaller than a panel or a block of the kernels, larger than either, and larger than the lengths.
    for size in [[1, 1], [3, 5], [17, 37], [67, 41], [150, 3], [5000, 61]].map(BlockSize::from) {
        cases.push(named(plain, &format!("{size:?}"), |case| {
            let shape = case.table(size);
            case.visible_blocks = Some((shape, shows_a_third(shape), size));
        }));
    }
    for pattern in [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]] {
        cases.push(named(plain, &format!("blocks of {pattern:?}"), |case| {
            let size = BlockSize::from([11, 43]);
            let table = case.table(size);
            let shape =
                std::array::from_fn(|axis| if pattern[axis] == 1 { 1 } else { table[axis] });
            case.visible_blocks = Some((shape, shows_a_third(shape), size));
        }));
    }
    cases.push(named(plain, "causal blocks", |case| {
        let size = BlockSize::from([7, 34]);
        let shape = case.table(size);
        case.causal = Some(BottomRight);
        case.visible_blocks = Some((shape, shows_a_third(shape), size));
    }));
    cases.push(named(plain, "blocks that show nothing", |case| {
        case.visible_blocks = Some(([1; 4], vec![false], BlockSize::from(64)));
    }));
    cases
}

fn biases(plain: Plain<'_>) -> Vec<Case> {
    let mut cases = vec![
        named(plain, "bias that hides", |case| {
            let shape = case.scores();
            let hides = hides_a_third(shape);
            let mut bias: Vec<f64> = coarse(6, hides.len());
            for (bias, hides) in bias.iter_mut().zip(hides) {
                *bias = if hides { f64::NEG_INFINITY } else { *bias };
            }
            // The first row sees nothing.
            bias[..shape[3]].fill(f64::NEG_INFINITY);
            case.bias = Some((shape, bias));
        }),
        named(plain, "ALiBi", |case| case.alibi = Some(slopes(case))),
        named(plain, "causal ALiBi", |case| {
            case.causal = Some(BottomRight);
            case.alibi = Some(slopes(case));
        }),
        named(plain, "top-left ALiBi", |case| {
            case.causal = Some(TopLeft);
            case.alibi = Some(slopes(case));
        }),
        named(plain, "relative bias", |case| {
            case.relative = Some(relative(case, 10, true))
        }),
        named(plain, "causal one-sided relative bias", |case| {
            case.causal = Some(BottomRight);
            case.relative = Some(relative(case, 10, false));
        }),
        named(plain, "a bias for every distance", |case| {
            case.relative = Some(one_bucket_per_distance(case));
        }),
        named(plain, "relative bias that hides", |case| {
            let (mut table, buckets) = relative(case, 10, true);
            let heads = case.problem.heads_q;
            // Hides the far keys of one head, and every key of another.
            table[4 * heads] = f64::NEG_INFINITY;
            let last = table.iter_mut().skip(heads - 1).step_by(heads);
            last.for_each(|entry| *entry = f64::NEG_INFINITY);
            case.relative = Some((table, buckets));
        }),
        named(plain, "dense bias, ALiBi and relative bias", |case| {
            let [batch, _, _, len_kv] = case.scores();
            case.bias = Some(([batch, 1, 1, len_kv], coarse(6, batch * len_kv)));
            case.alibi = Some(slopes(case));
            case.relative = Some(relative(case, 6, true));
        }),
    ];
    for shape in shapes(plain().scores()) {
        cases.push(named(plain, &format!("bias of shape {shape:?}"), |case| {
            case.bias = Some((shape, coarse(6, shape.iter().product())));
        }));
    }
    cases
}

fn others(plain: Plain<'_>) -> Vec<Case> {
    let sinks = |case: &Case| {
        coarse(10, case.problem.heads_q)
            .iter()
            .map(|x| 4.0 * x)
            .collect()
    };
    let dropout = |probability, seed| Some(AttentionDropout { probability, seed });
    vec![
        named(plain, "sinks", |case| case.sinks = Some(sinks(case))),
        named(plain, "sinks of every size", |case| {
            let sizes = [f64::NEG_INFINITY, 50.0, -50.0, 0.0].into_iter().cycle();
            case.sinks = Some(sizes.take(case.problem.heads_q).collect());
        }),
        named(plain, "sinks, and rows without keys", |case| {
            case.sinks = Some(sinks(case));
            case.key_lengths = Some(vec![0; case.problem.batch]);
        }),
        named(plain, "softcap", |case| case.softcap = Some(1.5)),
        named(plain, "scale", |case| case.scale = Some(0.37)),
        named(plain, "negative scale", |case| case.scale = Some(-0.8)),
        named(plain, "dropout", |case| case.dropout = dropout(0.3, 17)),
        named(plain, "dropout of nothing", |case| {
            case.dropout = dropout(0.0, 17)
        }),
        named(plain, "gradient of the logsumexp", |case| {
            case.logsumexp_gradient = Some(coarse(7, case.problem.query_rows()));
        }),
    ]
}

/// All options except first keys and query offsets, with every gradient.
pub fn everything(case: &mut Case) {
    let [batch, heads, len_q, len_kv] = case.scores();
    case.causal = Some(BottomRight);
    case.window = window(Some(len_kv / 2), Some(1));
    case.key_lengths = Some(key_lengths(case));
    case.segments = Some(sorted_segments(case));
    let size = BlockSize::from([23, 17]);
    let shape = case.table(size);
    let most = coarse(8, shape.iter().product());
    let most = most.iter().map(|&x| x < 0.7).collect();
    case.visible_blocks = Some((shape, most, size));
    let shape = [batch, 1, len_q, len_kv];
    case.masked = Some((shape, hides_a_third(shape)));
    let shape = [1, heads, len_q, len_kv];
    case.bias = Some((shape, coarse(6, shape.iter().product())));
    case.alibi = Some(slopes(case));
    case.relative = Some(relative(case, 10, true));
    case.sinks = Some(coarse(10, heads));
    case.softcap = Some(2.0);
    case.scale = Some(0.8);
    case.dropout = Some(AttentionDropout {
        probability: 0.2,
        seed: 3,
    });
    case.logsumexp_gradient = Some(coarse(7, case.problem.query_rows()));
}

/// All shapes that broadcast to the scores.
pub fn shapes(scores: [usize; 4]) -> Vec<[usize; 4]> {
    let size = |pattern: usize, axis: usize| {
        if pattern >> axis & 1 == 1 {
            1
        } else {
            scores[axis]
        }
    };
    (0..16)
        .map(|pattern| std::array::from_fn(|axis| size(pattern, axis)))
        .collect()
}

/// A mask that hides about a third of the pairs.
pub fn hides_a_third(shape: [usize; 4]) -> Vec<bool> {
    coarse(5, shape.iter().product())
        .iter()
        .map(|&x| x > 0.3)
        .collect()
}

/// A table that shows about a third of the blocks.
pub fn shows_a_third(shape: [usize; 4]) -> Vec<bool> {
    coarse(8, shape.iter().product())
        .iter()
        .map(|&x| x > 0.3)
        .collect()
}

/// Different numbers of first keys for the batch items.
pub fn first_keys(case: &Case) -> Vec<usize> {
    let (batch, len_kv) = (case.problem.batch, case.problem.len_kv);
    [len_kv.min(3), 0, len_kv / 2].repeat(batch)[..batch].to_vec()
}

/// Different lengths for the batch items.
pub fn key_lengths(case: &Case) -> Vec<usize> {
    let len_kv = case.problem.len_kv;
    (0..case.problem.batch)
        .map(|item| (2 * len_kv / 3 + 5 * item) % (len_kv + 1))
        .collect()
}

/// Different offsets for the batch items, around those of the alignments.
pub fn query_offsets(case: &Case) -> Vec<i64> {
    let (len_q, len_kv) = (case.problem.len_q as i64, case.problem.len_kv as i64);
    (0..case.problem.batch as i64)
        .map(|item| (len_kv / 2 + 5 * item).rem_euclid(len_q + len_kv + 1) - len_q / 2)
        .map(|offset| offset.clamp(-len_q, len_kv))
        .collect()
}

/// Sequences of unequal length in one padded cache, whose newest tokens are the queries.
pub fn cache(case: &mut Case) {
    let lengths = key_lengths(case);
    let len_q = case.problem.len_q as i64;
    case.causal = Some(BottomRight);
    case.query_offsets = Some(lengths.iter().map(|&len| len as i64 - len_q).collect());
    case.key_lengths = Some(lengths);
}

/// Three sequences, one behind the other, and padding that no query belongs to.
fn sorted_segments(case: &Case) -> (Vec<i64>, Vec<i64>) {
    let ids = |len: usize, shift: usize| {
        let item =
            move |item: usize| (0..len).map(move |at| ((3 * at + shift + item) / len) as i64);
        (0..case.problem.batch).flat_map(item).collect()
    };
    (
        ids(case.problem.len_q, 0),
        ids(case.problem.len_kv, case.problem.len_kv / 4),
    )
}

fn slopes(case: &Case) -> Vec<f64> {
    alibi_slopes(case.problem.heads_q)
}

fn relative(case: &Case, buckets: usize, bidirectional: bool) -> (Vec<f64>, RelativeBuckets) {
    let table = coarse(9, buckets * case.problem.heads_q);
    let buckets = RelativeBuckets {
        buckets,
        max_distance: 7,
        bidirectional,
    };
    (table, buckets)
}

/// One bucket per distance, so that the gradient of every entry of the distance bias is compared.
fn one_bucket_per_distance(case: &Case) -> (Vec<f64>, RelativeBuckets) {
    let distances = case.problem.len_q + case.problem.len_kv;
    let buckets = RelativeBuckets {
        buckets: 4 * distances,
        max_distance: 2 * distances,
        bidirectional: true,
    };
    (coarse(9, buckets.buckets * case.problem.heads_q), buckets)
}
