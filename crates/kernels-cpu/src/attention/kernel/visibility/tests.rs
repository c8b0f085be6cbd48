use super::*;
use crate::{BlockSize, Blocks, Broadcast, Mask, Options, Problem};

/// The runs of one query, of which a table shows some blocks.
fn runs(size: usize, shown: &[bool], keys: Range<usize>) -> std::vec::Vec<Range<usize>> {
    let problem = Problem {
        batch: 1,
        heads_q: 1,
        heads_kv: 1,
        len_q: 1,
        len_kv: size * shown.len(),
        dim_qk: 8,
        dim_v: 8,
    };
    let mask = Mask {
        blocks: Some(Blocks {
            visible: Broadcast::new(shown, [1, 1, 1, shown.len()]).unwrap(),
            size: BlockSize::from(size),
        }),
        ..Mask::default()
    };
    let scoring = Scoring::<f32> {
        problem,
        options: Options {
            mask,
            ..Options::default()
        },
        distance_bias: None,
        softcap: None,
        score_function: None,
        visible_function: None,
    };
    scoring.runs(0, 0..1, 0..1, keys).collect()
}

/// A run that begins with a piece too short for one of its own ends at the next that differs, and does not go on through all that the table hides.
#[test]
fn a_short_beginning_joins_little() {
    for seen in [0, 1] {
        let shown = core::array::from_fn::<_, 125, _>(|block| block == seen);
        assert_eq!(runs(64, &shown, 40..8000), vec![40..128]);
    }
    let shown = core::array::from_fn::<_, 125, _>(|block| block == 1);
    assert_eq!(runs(8, &shown, 0..1000), vec![0..32]);
}
