use super::*;
use crate::{BlockSize, Blocks, Broadcast, Mask, Options, Problem};

/// From key 40 on, which is in a hidden block of 64, a table that shows the second block alone has one run: that of the block, and what was too short
/// before it.
#[test]
fn a_short_beginning_does_not_join_all_that_the_table_hides() {
    let problem = Problem {
        batch: 1,
        heads_q: 1,
        heads_kv: 1,
        len_q: 1,
        len_kv: 8000,
        dim_qk: 8,
        dim_v: 8,
    };
    let mut shown = [false; 125];
    shown[1] = true;
    let mask = Mask {
        blocks: Some(Blocks {
            visible: Broadcast::new(&shown, [1, 1, 1, 125]).unwrap(),
            size: BlockSize::from(64),
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
    let mut runs = scoring.runs(0, 0..1, 0..1, 40..8000);
    assert_eq!((runs.next(), runs.next()), (Some(40..128), None));
}
