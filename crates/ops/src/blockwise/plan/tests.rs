use super::*;

fn sizes(len_q: usize, len_kv: usize, reach: [Option<i64>; 2]) -> Sizes {
    Sizes {
        rows_of_heads: 2,
        len_q,
        len_kv,
        dim: 64,
        reach: Reach {
            first: Some(len_kv as i64 - len_q as i64),
            left: reach[0],
            right: reach[1],
            first_keys: None,
        },
        block_area: Some(1 << 14),
    }
}

#[test]
fn blocks_are_all_queries_and_no_larger_than_they_may() {
    for (len_q, len_kv) in [
        (1, 1),
        (1, 100_003),
        (1009, 100_003),
        (4096, 4096),
        (5003, 7),
    ] {
        for reach in [
            [None, None],
            [None, Some(0)],
            [Some(10), Some(0)],
            [Some(1000), Some(1000)],
            [Some(200_000), Some(0)],
        ] {
            let sizes = sizes(len_q, len_kv, reach);
            for plan in [Plan::forward(sizes, &[]), Plan::backward(sizes, &[])] {
                let queries: Vec<_> = plan.queries().collect();
                let counted: usize = queries.iter().map(Range::len).sum();
                assert_eq!(counted, len_q);
                assert!(queries.windows(2).all(|pair| pair[0].end == pair[1].start));
                if plan.is_whole() {
                    assert!(len_q * len_kv <= sizes.area().max(len_kv), "{sizes:?}");
                }
            }
            for queries in Plan::forward(sizes, &[]).queries() {
                let scores = queries.len() * Plan::forward(sizes, &[]).keys_of(&queries).len();
                // A single query may see all keys, and 64 queries or more are rounded up to the next 32.
                let most = len_kv.max(sizes.area() * 9 / 4);
                assert!(scores <= most, "{queries:?} of {sizes:?}");
            }
        }
    }
}

#[test]
fn no_block_is_much_shorter_than_the_others() {
    let lengths: Vec<_> = cut(0..193, 65).map(|block| block.len()).collect();
    assert_eq!(lengths, [65, 65, 63]);
    let lengths: Vec<_> = cut(0..1000, 100).map(|block| block.len()).collect();
    assert_eq!(lengths, [128, 128, 128, 128, 128, 128, 128, 104]);
}

#[test]
fn a_window_makes_blocks_of_more_queries() {
    let count = |reach| {
        Plan::forward(sizes(4096, 4096, reach), &[])
            .queries()
            .count()
    };
    // 4 queries see 4096 keys; 61 see 71.
    assert_eq!(count([None, None]), 1024);
    assert_eq!(count([Some(10), Some(0)]), 68);
}
