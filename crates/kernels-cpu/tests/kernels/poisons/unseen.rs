//! Junk that no query sees: in keys hidden from all queries or from a group of heads, and in rows that see nothing.

use burn_attn_kernels_cpu::{
    BlockSize,
    CausalAlignment::{BottomRight, TopLeft},
    RelativeBuckets, Window,
};

use super::poison::{Operand, Poison, Set};

/// Keys that no query of the first batch item sees, hidden in every way.
pub fn hidden_keys(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, heads_kv, len_q, len_kv, ..] = sizes;
    let mut all = Vec::new();
    let mut hide = |way: &str, keys: &dyn Fn(usize) -> bool, set: Set<'_>| {
        let keys: Vec<usize> = (0..len_kv).filter(|&key| keys(key)).collect();
        assert!(!keys.is_empty(), "{path}: {way} hides nothing");
        let mut plain = Poison::new(format!("{path}: keys hidden by {way}"), sizes);
        set(&mut plain);
        for poison in [plain.clone(), plain.with_options()] {
            let rows = poison.key_rows(0..heads_kv, &keys);
            all.extend(poison.each_junk(&[Operand::Key, Operand::Value], &rows));
        }
    };
    // Every third key, so that hidden and visible keys stand side by side, or all from one on.
    let third = |key: usize| key % 3 == 1;
    let of_first = |at: usize| at < len_kv && third(at);
    let tail = len_kv - len_kv / 3;
    let per_key = [batch, 1, 1, len_kv];
    let every = |shape: [usize; 4]| 0..shape.iter().product::<usize>();
    let every_score = [batch, heads, len_q, len_kv];
    let hides = |at: usize| at < heads * len_q * len_kv && third(at % len_kv);
    let infinite = |hides: bool| if hides { f64::NEG_INFINITY } else { 0.5 };

    hide("a key length", &|key| key >= tail, &|p| {
        let lengths = (0..batch).map(|b| if b == 0 { tail } else { len_kv });
        p.key_lengths = Some(lengths.collect());
    });
    hide(
        "the causal mask from the top left",
        &|key| key >= len_q,
        &|p| {
            p.causal = Some(TopLeft);
        },
    );
    // The first query of the default alignment stands on key `len_kv - len_q`.
    hide("a window", &|key| key + 2 < len_kv - len_q, &|p| {
        p.window = Some(Window {
            left: Some(2),
            right: Some(0),
        });
    });
    let between = |key: usize| key >= 3 && key + 2 < len_kv - len_q;
    hide("first keys and a window", &between, &|p| {
        p.first_keys = Some(3);
        p.window = Some(Window {
            left: Some(2),
            right: Some(0),
        });
    });
    hide("segments", &third, &|p| {
        let keys = (0..batch * len_kv).map(|at| i64::from(of_first(at)));
        p.segments = Some((vec![0; batch * len_q], keys.collect()));
    });
    hide("single blocks", &third, &|p| {
        let visible = every(per_key).map(|at| !of_first(at));
        p.visible_blocks = Some((per_key, visible.collect(), BlockSize::from([5, 1])));
    });
    hide("a mask per key", &third, &|p| {
        p.masked = Some((per_key, every(per_key).map(of_first).collect()));
    });
    hide("a causal mask and one per score", &third, &|p| {
        p.causal = Some(BottomRight);
        p.masked = Some((every_score, every(every_score).map(hides).collect()));
    });
    hide("a bias per key", &third, &|p| {
        let bias = every(per_key).map(|at| infinite(of_first(at)));
        p.bias = Some((per_key, bias.collect()));
    });
    hide("a bias per score", &third, &|p| {
        let bias = every(every_score).map(|at| infinite(hides(at)));
        p.bias = Some((every_score, bias.collect()));
    });
    hide("a relative bias", &|key| key + 2 < len_kv - len_q, &|p| {
        // A bucket for every distance; those of more than two tokens back hide.
        let buckets = RelativeBuckets {
            buckets: 4 * (len_q + len_kv),
            max_distance: 2 * (len_q + len_kv),
            bidirectional: true,
        };
        let mut table = vec![0.5; buckets.buckets * heads];
        for distance in 3..(len_q + len_kv) as isize {
            table[buckets.bucket(-distance) * heads..][..heads].fill(f64::NEG_INFINITY);
        }
        p.relative = Some((table, buckets));
    });

    // A masked key may have any bias.
    let mut biased = Poison::new(
        format!("{path}: keys and their bias hidden by a mask"),
        sizes,
    );
    biased.masked = Some((every_score, every(every_score).map(hides).collect()));
    biased.bias = Some((every_score, vec![0.5; every(every_score).len()]));
    let elements: Vec<usize> = every(every_score).filter(|&at| hides(at)).collect();
    all.extend(biased.clone().each_junk(&[Operand::Bias], &elements));
    // One bias for all queries, which the columns of a tile without a query get too.
    biased.name += ", one bias per key";
    biased.bias = Some((per_key, vec![0.5; every(per_key).len()]));
    let elements: Vec<usize> = (0..len_kv).filter(|&key| third(key)).collect();
    all.extend(biased.each_junk(&[Operand::Bias], &elements));
    all
}

/// Keys hidden from all query heads of their group, while the heads of another group see the keys of the same index.
pub fn keys_hidden_from_a_group(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, heads_kv, _, len_kv, ..] = sizes;
    if heads_kv == 1 {
        return Vec::new();
    }
    let keys: Vec<usize> = (0..len_kv).filter(|key| key % 3 == 1).collect();
    let shape = [batch, heads, 1, len_kv];
    let hides = |at: usize| at < heads / heads_kv * len_kv && at % len_kv % 3 == 1;
    let all_hides = || (0..batch * heads * len_kv).map(hides);
    let mut by_mask = Poison::new(format!("{path}: keys hidden from a group by a mask"), sizes);
    by_mask.masked = Some((shape, all_hides().collect()));
    let mut by_bias = Poison::new(format!("{path}: keys hidden from a group by a bias"), sizes);
    let infinite = |hides: bool| if hides { f64::NEG_INFINITY } else { 0.5 };
    by_bias.bias = Some((shape, all_hides().map(infinite).collect()));
    let with_puts = |poison: Poison| {
        let rows = poison.key_rows(0..1, &keys);
        poison.each_junk(&[Operand::Key, Operand::Value], &rows)
    };
    [by_mask, by_bias].into_iter().flat_map(with_puts).collect()
}

/// Queries that see no key: junk in them, or in the incoming gradients of their rows, does not spread.
pub fn hidden_rows(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, _, len_q, len_kv, ..] = sizes;
    let rows = batch * heads * len_q;
    let mut all = Vec::new();
    let mut hide = |way: &str, hidden: &dyn Fn(usize) -> bool, set: Set<'_>| {
        let hidden: Vec<usize> = (0..rows).filter(|&row| hidden(row)).collect();
        let mut plain = Poison::new(format!("{path}: rows hidden by {way}"), sizes);
        set(&mut plain);
        let mut sinks = plain.clone();
        sinks.name += ", with sinks";
        sinks.sinks = Some((0..heads).map(|head| head as f64 / 4.0).collect());
        let both = [Operand::Query, Operand::OutputGradient];
        for operand in [both[0], both[1], Operand::LogsumexpGradient] {
            all.extend(plain.clone().each_junk(&[operand], &hidden));
        }
        // With a sink, the logsumexp of such a row is the sink, which receives the gradient of the logsumexp.
        for operand in both {
            all.extend(sinks.clone().each_junk(&[operand], &hidden));
        }
        all.extend(plain.with_options().each_junk(&both, &hidden));
    };
    let per_row = [batch, heads, len_q, 1];
    if len_q > len_kv {
        hide(
            "the causal mask",
            &|row| row % len_q < len_q - len_kv,
            &|p| {
                p.causal = Some(BottomRight);
            },
        );
    }
    if batch > 1 {
        hide("a key length of 0", &|row| row / len_q / heads == 1, &|p| {
            let lengths = (0..batch).map(|b| if b == 1 { 0 } else { len_kv });
            p.key_lengths = Some(lengths.collect());
        });
        hide(
            "segments",
            &|row| (row / len_q / heads + row % len_q) % 3 == 1,
            &|p| {
                let ids =
                    (0..batch * len_q).map(|at| i64::from((at / len_q + at % len_q) % 3 == 1));
                p.segments = Some((ids.collect(), vec![0; batch * len_kv]));
            },
        );
    }
    hide(
        "blocks",
        &|row| row / len_q % heads == 1 && row % len_q < 5,
        &|p| {
            let size = BlockSize::from([5, len_kv]);
            let blocks = len_q.div_ceil(5);
            let visible = (0..heads * blocks).map(|at| at != blocks);
            p.visible_blocks = Some(([1, heads, blocks, 1], visible.collect(), size));
        },
    );
    hide("a mask", &|row| row % 5 == 1, &|p| {
        p.masked = Some((per_row, (0..rows).map(|row| row % 5 == 1).collect()));
    });
    hide("a bias", &|row| row % 5 == 1, &|p| {
        let bias = (0..rows).map(|row| if row % 5 == 1 { f64::NEG_INFINITY } else { 0.5 });
        p.bias = Some((per_row, bias.collect()));
    });
    all
}
