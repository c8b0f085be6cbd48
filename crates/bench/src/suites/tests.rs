use clap::ValueEnum;

use super::*;

/// Names and peers of the cases with this in their names.
fn chosen(suite: Suite, on_gpu: bool, filter: &str) -> Vec<(String, Vec<String>)> {
    let cases = cases(suite, on_gpu).into_iter();
    cases
        .filter(|case| case.name.contains(filter))
        .map(|case| {
            let peers = case.peers.into_iter().map(|peer| peer.name).collect();
            (case.name, peers)
        })
        .collect()
}

#[test]
fn a_filter_chooses_what_a_card_or_a_driver_in_software_can_hold() {
    let small = chosen(Suite::Gpu, true, "1 x 2");
    assert_eq!(small.len(), 7);
    assert_eq!(small[6].0, "training full 4096, 1 x 2 x dim 64, f16");
    assert!(small[6].1.contains(&"burn".into()), "{:?}", small[6]);
    assert_eq!(chosen(Suite::Gpu, true, "1 x 8").len(), 5);
    let shared = chosen(Suite::Gpu, true, "shared keys");
    assert_eq!(
        shared[1].0,
        "one token on 8192, 1 x 8 x dim 64, shared keys"
    );
    let peers = ["self:own keys", "self:blockwise", "pytorch cuda"];
    assert_eq!(shared[1].1, peers);
    let large = chosen(Suite::Gpu, true, "1 x 16");
    assert_eq!(large.len(), 16);
    assert_eq!(large[14].0, "training causal 4096, 1 x 16 x dim 128");
    assert_eq!(
        large[14].1,
        ["burn", "self:blockwise", "self:composed", "pytorch cuda"]
    );
    assert_eq!(large[15].0, "training causal 4096, 1 x 16 x dim 128, bf16");
    assert_eq!(
        large[15].1,
        [
            "burn",
            "pytorch flash",
            "pytorch efficient",
            "pytorch cudnn"
        ]
    );
}

#[test]
fn every_suite_has_a_case_for_a_quick_run() {
    for &suite in Suite::value_variants() {
        for on_gpu in [false, true] {
            let mut cases = cases(suite, on_gpu).into_iter();
            assert!(cases.any(|case| case.quick), "{suite:?}, {on_gpu}");
        }
    }
}

#[test]
fn the_blockwise_body_is_beside_burn_only_where_the_suite_gpu_is_not() {
    let besides = |on_gpu| {
        let cases = chosen(Suite::Blockwise, on_gpu, "").into_iter();
        let peers = cases.flat_map(|(_, peers)| peers);
        peers.filter(|peer| peer.starts_with("burn")).count()
    };
    assert_eq!([besides(false), besides(true)], [3, 0]);
}
