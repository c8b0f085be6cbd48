//! Which keys a query may see, and how the other keys are hidden. Both tiles and single queries use this file.
//!
//! Whole blocks are skipped where causality, window, key lengths, segments, a block table, a bool tensor or a function hide them;
//! a mask is applied only to blocks that are partly hidden.

use core::ops::Range;

use pulp::Simd;

use crate::{
    Blocks, DistanceAxis, PositionMask,
    attention::kernel::{
        scores::Scoring,
        seen::{Scores, Seen, Visibility},
        tile::{Panel, Queries, WIDEST_PANEL},
    },
    mask::blocks::within,
    simd::real::Real,
};

/// A shorter run of keys is not worth a separate step: the run is joined with its neighbours, and some of its keys are hidden one by one.
const SHORTEST_RUN: usize = 32;

impl<R: Real> Scoring<'_, R> {
    /// From the first to the last key that causality, window, first keys and key length leave to any query of `queries`. Whole blocks
    /// between the first keys and a window are hidden.
    pub(crate) fn key_range(&self, queries: &Queries) -> Range<usize> {
        Self::between(&self.first_and_last(queries))
    }

    /// [`key_range`](Self::key_range) of queries whose first and last may see these keys.
    fn between([(_, first), (count, last)]: &[(usize, Range<usize>); 2]) -> Range<usize> {
        // Rows without keys may come first (more queries than keys): their range is empty and begins no later.
        let range = first.start.min(last.start)..last.end;
        match count {
            0 => range,
            _ => 0..range.end.max(*count),
        }
    }

    /// Whether some of `keys` are between the first keys and the window of all `queries`.
    pub(crate) fn has_gap(&self, queries: &Queries, keys: &Range<usize>) -> bool {
        if self.options.mask.first_keys.is_none() {
            return false;
        }
        let [(_, first), (count, last)] = self.first_and_last(queries);
        count.max(keys.start) < first.start.min(last.start).min(keys.end)
    }

    /// What the first query and the last may see. Neither the number of first keys nor the ends of the range decrease from one query to the next.
    fn first_and_last(&self, queries: &Queries) -> [(usize, Range<usize>); 2] {
        let mask = &self.options.mask;
        let seen_keys = |query| mask.seen_keys(&self.problem, queries.batch_item, query);
        let first = seen_keys(queries.first);
        match queries.count {
            1 => [first.clone(), first],
            count => [first, seen_keys(queries.first + count - 1)],
        }
    }

    /// The part of a block of keys that any query of the panel sees, cut at multiples of `rows` keys of the block.
    pub(crate) fn seen_by(&self, panel: Panel, block: &Range<usize>, rows: usize) -> Option<Seen> {
        let bounds = self.first_and_last(&panel.queries);
        let range = Self::between(&bounds);
        if range.start >= block.end || range.end <= block.start || range.is_empty() {
            return None;
        }
        let first = (range.start.max(block.start) - block.start) / rows * rows;
        let end = (range.end.min(block.end) - block.start).next_multiple_of(rows);
        let keys = block.start + first..(block.start + end).min(block.end);
        let keys = self.shown_by_function(&panel.queries, keys, rows);
        if keys.is_empty() {
            return None;
        }
        let visibility = self.visibility(&panel.queries, bounds, &keys);
        (visibility != Visibility::Hidden).then_some(Seen {
            panel,
            keys,
            visibility,
        })
    }

    /// Whether `keys` are hidden from or visible to all of `queries`, whose first and last may see the keys of `bounds`.
    fn visibility(
        &self,
        queries: &Queries,
        bounds: [(usize, Range<usize>); 2],
        keys: &Range<usize>,
    ) -> Visibility {
        let [(of_first, first), (of_last, last)] = bounds;
        let out_of_range = keys.end <= first.start.min(last.start) || keys.start >= last.end;
        if out_of_range && keys.start >= of_last {
            return Visibility::Hidden;
        }
        let in_range =
            keys.end <= first.end && (keys.start >= last.start || of_first >= last.start);
        let mut some_hidden = !in_range && keys.end > of_first;
        for part in [Self::segments, Self::blocks, Self::masked, Self::function] {
            match part(self, queries, keys) {
                Visibility::Hidden => return Visibility::Hidden,
                visibility => some_hidden |= visibility == Visibility::Partial,
            }
        }
        Visibility::of(some_hidden, true)
    }

    /// Entries of a distance bias per head, and the index of the one that serves a query and a key: the next query has the next entry, the
    /// next key the one before.
    pub(crate) fn distances(&self, batch_item: usize, query: usize, key: usize) -> (usize, usize) {
        let axis = DistanceAxis::new(&self.problem, &self.options.mask);
        let position = self.options.mask.position(&self.problem, batch_item, query);
        (axis.len(), axis.index(position, key))
    }

    /// The keys that the block table shows to any of these queries in any of these heads, cut wherever the table shows them to different
    /// queries.
    ///
    /// So each piece is hidden from, or visible to, whole blocks of queries, unless its blocks are shorter than
    /// [`SHORTEST_RUN`]. Without a table, there is one piece.
    pub(crate) fn runs(
        &self,
        batch_item: usize,
        heads: Range<usize>,
        queries: Range<usize>,
        keys: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> {
        let blocks = self.options.mask.blocks;
        let mut rest = keys;
        core::iter::from_fn(move || {
            while !rest.is_empty() {
                let Some(blocks) = blocks else {
                    return Some(core::mem::take(&mut rest));
                };
                let entries = |key: usize| {
                    let column = key / blocks.size.keys;
                    let rows = blocks.rows(&queries);
                    let of_head = move |head| {
                        let entry = move |row| blocks.visible.get(batch_item, head, row, column);
                        rows.clone().map(entry)
                    };
                    heads.clone().flat_map(of_head)
                };
                let end_of_block = |key: usize| {
                    let first = key / blocks.size.keys * blocks.size.keys;
                    first.saturating_add(blocks.size.keys).min(rest.end)
                };
                let start = rest.start;
                let mut end = end_of_block(start);
                let mut seen = entries(start).any(|shows| shows);
                let mut is_mixed = false;
                while end < rest.end {
                    is_mixed |= !entries(start).eq(entries(end));
                    if is_mixed && end - start >= SHORTEST_RUN {
                        break;
                    }
                    seen |= entries(end).any(|shows| shows);
                    end = end_of_block(end);
                }
                rest.start = end;
                if seen {
                    return Some(start..end);
                }
            }
            None
        })
    }

    fn blocks(&self, queries: &Queries, keys: &Range<usize>) -> Visibility {
        let blocks = self.options.mask.blocks.as_ref();
        blocks.map_or(Visibility::Visible, |blocks| {
            shown_by(blocks, queries, keys)
        })
    }

    /// The segments of some queries, and of some keys.
    fn segment_ids(&self, queries: &Queries, keys: &Range<usize>) -> Option<[&[i64]; 2]> {
        let segments = self.options.mask.segments?;
        let first_query = queries.batch_item * self.problem.len_q + queries.first;
        let first_key = queries.batch_item * self.problem.len_kv + keys.start;
        Some([
            &segments.queries[first_query..][..queries.count],
            &segments.keys[first_key..][..keys.len()],
        ])
    }

    fn segments(&self, queries: &Queries, keys: &Range<usize>) -> Visibility {
        let Some([queries, keys]) = self.segment_ids(queries, keys) else {
            return Visibility::Visible;
        };
        let extremes = |ids: &[i64]| {
            ids.iter().fold((i64::MAX, i64::MIN), |(low, high), &id| {
                (low.min(id), high.max(id))
            })
        };
        let (query_low, query_high) = extremes(queries);
        let (key_low, key_high) = extremes(keys);
        if query_high < key_low || key_high < query_low {
            Visibility::Hidden
        } else if query_low == query_high && key_low == key_high {
            Visibility::Visible
        } else {
            Visibility::Partial
        }
    }

    fn masked(&self, queries: &Queries, keys: &Range<usize>) -> Visibility {
        let Some(masked) = self.options.mask.masked else {
            return Visibility::Visible;
        };
        let [_, _, of_queries, of_keys] = masked.strides();
        let (mut some_hidden, mut some_visible) = (false, false);
        for query in queries.range() {
            let start = masked.index(queries.batch_item, queries.head, query, keys.start);
            let row = &masked.data()[start..=start + (keys.len() - 1) * of_keys];
            if of_keys <= 1 {
                some_hidden |= row.iter().any(|&masked| masked);
                some_visible |= !row.iter().all(|&masked| masked);
            } else {
                for &masked in row.iter().step_by(of_keys) {
                    some_hidden |= masked;
                    some_visible |= !masked;
                }
            }
            if of_queries == 0 || (some_hidden && some_visible) {
                break;
            }
        }
        Visibility::of(some_hidden, some_visible)
    }

    /// Sets the scores that segments, blocks, a bool tensor or a function hide to −∞, even if they are NaN.
    pub(crate) fn hide_single_keys(&self, scores: &mut Scores<'_, R>) {
        let Seen { panel, keys, .. } = scores.seen;
        let queries = &panel.queries;
        if let Some([queries, keys]) = self.segment_ids(queries, keys) {
            for (row, key) in scores.numbers.chunks_mut(scores.stride).zip(keys) {
                for (score, query) in row.iter_mut().zip(queries) {
                    *score = if query == key {
                        *score
                    } else {
                        R::NEG_INFINITY
                    };
                }
            }
        }
        if let Some(blocks) = &self.options.mask.blocks {
            hide_blocks(blocks, scores);
        }
        if let Some(masked) = &self.options.mask.masked {
            let [_, _, of_queries, of_keys] = masked.strides();
            for (query, index) in queries.range().enumerate() {
                let start = masked.index(queries.batch_item, queries.head, index, keys.start);
                let row = &masked.data()[start..];
                for (key, scores) in scores.rows().enumerate() {
                    let masked = row[key * of_keys];
                    if of_queries > 0 {
                        let score = &mut scores[query];
                        *score = if masked { R::NEG_INFINITY } else { *score };
                    } else if masked {
                        scores.fill(R::NEG_INFINITY);
                    }
                }
                if of_queries == 0 {
                    break;
                }
            }
        }
        if self.visible_function.is_some() {
            self.hide_by_function(scores);
        }
    }

    /// Sets the scores that causality, window, first keys or key length hide to −∞, even if they are NaN.
    #[inline(always)]
    pub(crate) fn hide_by_range<S: Simd>(&self, simd: S, scores: &mut Scores<'_, R>) {
        let Seen { panel, keys, .. } = scores.seen;
        let mask = &self.options.mask;
        if mask.by_position == PositionMask::default() && mask.key_lengths.is_none() {
            return;
        }
        // Counted from the first key of the block, the bounds are small and every precision holds them exactly.
        let [mut counts, mut starts, mut ends] = [[R::default(); WIDEST_PANEL]; 3];
        let relative =
            |key: usize| R::from_f64((key.clamp(keys.start, keys.end) - keys.start) as f64);
        for (query, index) in panel.queries.range().enumerate() {
            let batch_item = panel.queries.batch_item;
            let (count, range) = mask.seen_keys(&self.problem, batch_item, index);
            counts[query] = relative(count);
            starts[query] = relative(range.start);
            ends[query] = relative(range.end);
        }
        let hidden = R::splat(simd, R::NEG_INFINITY);
        let [counts, starts, ends] = [&counts, &starts, &ends].map(|all| R::vectors::<S>(all));
        let has_first_keys = mask.first_keys.is_some();
        for (key, row) in scores.rows().enumerate() {
            let key = R::splat(simd, R::from_f64(key as f64));
            let row = R::vectors_mut::<S>(row);
            for (((score, &start), &end), &count) in
                row.iter_mut().zip(starts).zip(ends).zip(counts)
            {
                let before_end = R::select_less(simd, key, end, *score, hidden);
                let in_range = R::select_less(simd, key, start, hidden, before_end);
                *score = match has_first_keys {
                    true => R::select_less(simd, key, count, *score, in_range),
                    false => in_range,
                };
            }
        }
    }
}

/// How much a table shows of some queries and keys.
pub(super) fn shown_by(blocks: &Blocks<'_>, queries: &Queries, keys: &Range<usize>) -> Visibility {
    let (mut some_hidden, mut some_visible) = (false, false);
    for row in blocks.rows(&queries.range()) {
        for column in blocks.columns(keys) {
            let visible = (blocks.visible).get(queries.batch_item, queries.head, row, column);
            some_visible |= visible;
            some_hidden |= !visible;
        }
        if some_hidden && some_visible {
            break;
        }
    }
    Visibility::of(some_hidden, some_visible)
}

/// Hides the blocks that the table does not show.
fn hide_blocks<R: Real>(blocks: &Blocks<'_>, scores: &mut Scores<'_, R>) {
    let Seen { panel, keys, .. } = scores.seen;
    let queries = panel.queries;
    for row in blocks.rows(&queries.range()) {
        let columns = within(&queries.range(), row, blocks.size.queries);
        for column in blocks.columns(keys) {
            if (blocks.visible).get(queries.batch_item, queries.head, row, column) {
                continue;
            }
            let rows = within(keys, column, blocks.size.keys);
            for scores in scores.rows().take(rows.end).skip(rows.start) {
                scores[columns.clone()].fill(R::NEG_INFINITY);
            }
        }
    }
}

#[cfg(test)]
mod tests;
