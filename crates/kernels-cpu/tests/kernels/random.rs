//! A case from a few arbitrary numbers, for property tests and for the fuzzer.

use burn_attn_kernels_cpu::{
    BlockSize,
    CausalAlignment::{BottomRight, TopLeft},
    Dropout, RelativeBuckets, Window,
};

use crate::{
    case::{Case, coarse},
    options::{hides_a_third, key_lengths, query_offsets, shapes, shows_a_third},
};

/// Any numbers make a case.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    /// Of batch, heads_kv, group, len_q, len_kv, dim_qk, dim_v.
    pub sizes: [u8; 7],
    /// One bit per option, and some more for its kind.
    pub options: u32,
    pub seed: u16,
}

impl Choices {
    /// The case of these choices, whose lengths are less than `longest`.
    pub fn case(self, longest: usize) -> Case {
        let size = |index: usize, end: usize| usize::from(self.sizes[index]) % end;
        let (heads_kv, group) = (1 + size(1, 3), 1 + size(2, 3));
        let sizes = [
            size(0, 3),
            heads_kv * group,
            heads_kv,
            size(3, longest),
            size(4, longest),
            1 + size(5, 19),
            1 + size(6, 19),
        ];
        let mut case = Case::new(&format!("{self:?}"), sizes);
        let [batch, heads, len_q, len_kv] = case.scores();
        let seed = u64::from(self.seed);
        let chosen = |bit: u32| self.options >> bit & 1 == 1;
        if chosen(0) {
            case.causal = Some(if chosen(1) { TopLeft } else { BottomRight });
        }
        if chosen(2) {
            let reach = |bit: u32, tokens: usize| chosen(bit).then_some(tokens % (len_kv + 1));
            case.window = Some(Window {
                left: reach(3, usize::from(self.seed)),
                right: reach(4, usize::from(self.seed / 7)),
            });
        }
        if chosen(5) {
            case.key_lengths = Some(key_lengths(&case));
        }
        if chosen(31) {
            // Where the sequences of a cache end, or anywhere.
            let ends = case.key_lengths.iter().flatten();
            let ends = ends.map(|&end| end as i64 - len_q as i64).collect();
            case.query_offsets = Some(match case.key_lengths {
                Some(_) if self.seed.is_multiple_of(2) => ends,
                _ => query_offsets(&case),
            });
        }
        if chosen(6) {
            let ids = |stream: u64, count| {
                coarse(stream, count)
                    .iter()
                    .map(|x| (3.0 * x) as i64)
                    .collect()
            };
            case.segments = Some((
                ids(seed + 11, batch * len_q),
                ids(seed + 12, batch * len_kv),
            ));
        }
        let all_shapes = shapes(case.scores());
        let shape = |first: u32| all_shapes[(self.options >> first & 15) as usize];
        if chosen(7) {
            case.masked = Some((shape(8), hides_a_third(shape(8))));
        }
        if chosen(12) {
            let mut bias = coarse(seed + 6, shape(13).iter().product());
            if chosen(17) {
                let hidden = bias.iter_mut().filter(|bias| **bias > 0.6);
                hidden.for_each(|bias| *bias = f64::NEG_INFINITY);
            }
            case.bias = Some((shape(13), bias));
        }
        case.alibi = chosen(18).then(|| coarse(seed + 13, heads));
        if chosen(19) {
            let buckets = RelativeBuckets {
                buckets: 8,
                max_distance: 11,
                bidirectional: chosen(20),
            };
            case.relative = Some((coarse(seed + 9, 8 * heads), buckets));
        }
        case.sinks = chosen(21).then(|| coarse(seed + 10, heads));
        case.softcap = chosen(22).then_some(1.5);
        case.scale = chosen(23).then_some(0.7);
        case.dropout = chosen(24).then_some(Dropout {
            probability: 0.3,
            seed,
        });
        if chosen(26) {
            let size = BlockSize {
                queries: 1 + usize::from(self.seed) % 40,
                keys: 1 + usize::from(self.seed / 40) % 90,
            };
            let shape = shapes(case.table(size))[(self.options >> 27 & 15) as usize];
            case.visible_blocks = Some((shape, shows_a_third(shape), size));
        }
        case.logsumexp_gradient = chosen(25).then(|| coarse(seed + 7, batch * heads * len_q));
        case
    }
}
