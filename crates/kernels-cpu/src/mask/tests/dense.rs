//! All parts of a mask together against a second formulation, which fills a dense matrix instead of comparing indices.

use proptest::prelude::*;

use super::problem;
use crate::CausalAlignment::{self, BottomRight, TopLeft};
use crate::{
    BlockSize, Blocks, Broadcast, FirstKeys, Mask, PositionMask, Problem, Segments, Window,
};

/// A mask with its buffers, as proptest makes them.
#[derive(Clone, Debug)]
struct Owned {
    problem: Problem,
    causal: Option<CausalAlignment>,
    window: Option<Window>,
    first_keys: Option<(Vec<usize>, bool)>,
    key_lengths: Option<Vec<usize>>,
    query_offsets: Option<Vec<i64>>,
    segments: Option<(Vec<i64>, Vec<i64>)>,
    blocks: Option<(Vec<bool>, [usize; 4], BlockSize)>,
    masked: Option<(Vec<bool>, [usize; 4])>,
}

impl Owned {
    fn borrow(&self) -> Mask<'_> {
        Mask {
            by_position: PositionMask::new(self.causal, self.window),
            first_keys: self.first_keys.as_ref().map(|(counts, causal)| FirstKeys {
                counts,
                causal: *causal,
            }),
            key_lengths: self.key_lengths.as_deref(),
            query_offsets: self.query_offsets.as_deref(),
            segments: self
                .segments
                .as_ref()
                .map(|(queries, keys)| Segments { queries, keys }),
            blocks: self.blocks.as_ref().map(|(data, shape, size)| Blocks {
                visible: Broadcast::new(data, *shape).unwrap(),
                size: *size,
            }),
            masked: self
                .masked
                .as_ref()
                .map(|(data, shape)| Broadcast::new(data, *shape).unwrap()),
        }
    }

    /// The whole visible matrix, hidden part by part: nothing here compares a key with a position.
    fn dense(&self) -> Vec<bool> {
        let Problem {
            batch,
            heads_q,
            len_q,
            len_kv,
            ..
        } = self.problem;
        let mut rows = vec![vec![true; len_kv]; batch * heads_q * len_q];
        for (index, row) in rows.iter_mut().enumerate() {
            let (item, head, query) = (
                index / (heads_q * len_q),
                index / len_q % heads_q,
                index % len_q,
            );
            // A strip of keys with room on both sides; the query stands at `centre`. Counted from the end for bottom-right and
            // from the start for top-left, the position needs no offset but a given one.
            let room = 64;
            let centre = match (&self.query_offsets, self.causal) {
                (Some(offsets), _) => (room + query).strict_add_signed(offsets[item] as isize),
                (None, Some(TopLeft)) => room + query,
                (None, _) => room + len_kv + query - len_q,
            };
            let mut strip = vec![true; 2 * room + len_kv];
            if self.causal.is_some() {
                strip[centre + 1..].fill(false);
            }
            if let Some(window) = self.window {
                let left = window.left.map_or(0, |left| centre.saturating_sub(left));
                strip[..left].fill(false);
                for cell in strip
                    .iter_mut()
                    .skip(centre + 1)
                    .skip(window.right.unwrap_or(room * 9))
                {
                    *cell = false;
                }
            }
            if let Some((counts, causal)) = &self.first_keys {
                // If the first keys are causal, only those up to the position of the query.
                let end = if *causal { centre + 1 } else { strip.len() };
                let first = room..room + counts[item];
                strip[first.start..first.end.min(end).max(first.start)].fill(true);
            }
            row.copy_from_slice(&strip[room..room + len_kv]);
            if let Some(lengths) = &self.key_lengths {
                row[lengths[item]..].fill(false);
            }
            if let Some((queries, keys)) = &self.segments {
                let own = queries.chunks(len_q).nth(item).unwrap()[query];
                for (cell, key) in row
                    .iter_mut()
                    .zip(keys.chunks(len_kv.max(1)).nth(item).into_iter().flatten())
                {
                    *cell &= own == *key;
                }
            }
            if let Some((data, shape, size)) = &self.blocks {
                // The rows of the table by cutting into pieces, not by a division.
                let queries: Vec<usize> = (0..len_q).collect();
                let mut pieces = queries.chunks(size.queries);
                let table_row = pieces.position(|piece| piece.contains(&query)).unwrap();
                for (column, cells) in row.chunks_mut(size.keys).enumerate() {
                    if !data[flat([item, head, table_row, column], *shape)] {
                        cells.fill(false);
                    }
                }
            }
            if let Some((data, shape)) = &self.masked {
                for (key, cell) in row.iter_mut().enumerate() {
                    *cell &= !data[flat([item, head, query, key], *shape)];
                }
            }
        }
        rows.concat()
    }
}

/// The index of an element in a tensor of a shape that may repeat: anything modulo 1 is 0.
fn flat(at: [usize; 4], shape: [usize; 4]) -> usize {
    let axes = at.into_iter().zip(shape);
    axes.fold(0, |flat, (at, size)| flat * size + at % size)
}

fn owned() -> impl Strategy<Value = Owned> {
    let sizes = (
        1..3_usize,
        1..4_usize,
        1..12_usize,
        0..12_usize,
        any::<[bool; 4]>(),
        (1..9_usize, 1..9_usize),
    );
    sizes.prop_flat_map(|(batch, heads_q, len_q, len_kv, ones, (queries, keys))| {
        let full = [batch, heads_q, len_q, len_kv];
        let shape: [usize; 4] = std::array::from_fn(|axis| if ones[axis] { 1 } else { full[axis] });
        let elements: usize = shape.iter().product();
        let size = BlockSize { queries, keys };
        let [rows, columns] = size.table(len_q, len_kv);
        let full = [batch, heads_q, rows, columns];
        let table: [usize; 4] =
            std::array::from_fn(|axis| if ones[3 - axis] { 1 } else { full[axis] });
        let entries: usize = table.iter().product();
        let ids = |len| prop::collection::vec(0..3_i64, len);
        let reach = || prop::option::of(0..14_usize);
        (
            prop::option::of(prop_oneof![Just(BottomRight), Just(TopLeft)]),
            prop::option::of((reach(), reach()).prop_map(|(left, right)| Window { left, right })),
            prop::option::of((prop::collection::vec(0..=len_kv, batch), any::<bool>())),
            prop::option::of(prop::collection::vec(0..=len_kv, batch)),
            prop::option::of(prop::collection::vec(
                -(len_q as i64)..=len_kv as i64,
                batch,
            )),
            prop::option::of((ids(batch * len_q), ids(batch * len_kv))),
            prop::option::of(prop::collection::vec(prop::bool::weighted(0.7), entries)),
            prop::option::of(prop::collection::vec(prop::bool::weighted(0.2), elements)),
        )
            .prop_map(
                move |(
                    causal,
                    window,
                    first_keys,
                    key_lengths,
                    query_offsets,
                    segments,
                    blocks,
                    masked,
                )| {
                    Owned {
                        problem: problem(batch, heads_q, len_q, len_kv),
                        causal,
                        window,
                        first_keys,
                        key_lengths,
                        query_offsets,
                        segments,
                        blocks: blocks.map(|data| (data, table, size)),
                        masked: masked.map(|data| (data, shape)),
                    }
                },
            )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn visible_is_the_dense_matrix(owned in owned()) {
        let (mask, problem) = (owned.borrow(), owned.problem);
        prop_assert_eq!(mask.validate(&problem), Ok(()));
        let mut visible = Vec::new();
        for batch_item in 0..problem.batch {
            for head in 0..problem.heads_q {
                for query in 0..problem.len_q {
                    visible.extend((0..problem.len_kv).map(|key| {
                        mask.visible(&problem, batch_item, head, query, key)
                    }));
                }
            }
        }
        prop_assert_eq!(visible, owned.dense());
    }

    #[test]
    fn key_ranges_are_exact_for_structural_masks_and_never_go_back(owned in owned()) {
        let owned = Owned { segments: None, blocks: None, masked: None, ..owned };
        let (mask, problem, dense) = (owned.borrow(), owned.problem, owned.dense());
        for batch_item in 0..problem.batch {
            let mut previous = (0, 0..0);
            for query in 0..problem.len_q {
                let (first, range) = mask.seen_keys(&problem, batch_item, query);
                let (previous_first, previous_range) = previous;
                prop_assert!(previous_first <= first && first <= problem.len_kv);
                prop_assert!(previous_range.start <= range.start && previous_range.end <= range.end);
                prop_assert!(range.start <= range.end && range.end <= problem.len_kv);
                let row = problem.query_row(batch_item, 0, query) * problem.len_kv;
                for key in 0..problem.len_kv {
                    prop_assert_eq!(key < first || range.contains(&key), dense[row + key]);
                }
                previous = (first, range);
            }
        }
    }
}
