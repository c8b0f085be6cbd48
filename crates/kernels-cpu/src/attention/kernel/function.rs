//! The caller's score and visible functions, on the scores of a panel.

use crate::{
    Broadcast,
    attention::{
        function::{
            Captured, Pair, PairBlock, Shown,
            lines::{Lines, MOST_CAPTURED as MOST, Place},
        },
        kernel::{
            scores::Scoring,
            seen::{Scores, Seen, Visibility},
            tile::Queries,
            visibility::shown_by,
        },
    },
    simd::real::Real,
};
use core::ops::Range;

impl<R: Real> Scoring<'_, R> {
    /// Applies the score function to a panel or to a single query. `products` gets the scores before it, line after line; it may be
    /// empty, and is if the scores are side by side.
    pub(super) fn apply_function(&self, scores: &mut Scores<'_, R>, products: &mut [R]) {
        let Some((function, captured)) = self.score_function else {
            return;
        };
        let lines = self.lines(scores);
        let rows = scores.numbers.chunks(scores.stride);
        for (row, products) in rows.zip(products.chunks_exact_mut(lines.len)) {
            products.copy_from_slice(&row[..lines.len]);
        }
        let mut places = [(&[][..], Place::default()); MOST];
        self.places(captured, scores, &mut places);
        function.apply(lines, scores.numbers, &places[..captured.len()]);
    }

    /// Turns the gradients of a score function's results into those of the `products`, its arguments, and adds those of the captured numbers to
    /// `of_captured`, if it is not empty: one number for each entry of a query head, one tensor after the other.
    pub(super) fn function_gradients(
        &self,
        products: &[R],
        gradients: &mut Scores<'_, R>,
        of_captured: &mut [R],
    ) {
        let Some((function, captured)) = self.score_function else {
            return;
        };
        let lines = self.lines(gradients);
        let mut places = [(&[][..], Place::default()); MOST];
        self.places(captured, gradients, &mut places);
        let mut sums: [(&mut [R], Place); MOST] = Default::default();
        let required = match of_captured.is_empty() {
            true => 0,
            false => captured.len(),
        };
        let mut rest = of_captured;
        let queries = gradients.seen.panel.queries;
        for (captured, sums) in captured.iter().zip(&mut sums[..required]) {
            let (entries, place) = match captured {
                Captured::Pairs(numbers) => {
                    let [_, _, of_queries, of_keys] = numbers.shape();
                    let strides = [of_queries, of_keys].map(|size| usize::from(size > 1));
                    let start = queries.first * strides[0] + gradients.seen.keys.start * strides[1];
                    let [of_index, of_line] = strides.map(|stride| stride as isize);
                    let place = Place {
                        start,
                        of_line,
                        of_index,
                    };
                    (of_queries * of_keys, place)
                }
                Captured::Distances(_) => self.place_of_distances(gradients),
            };
            let (own, others) = rest.split_at_mut(entries);
            *sums = (own, place);
            rest = others;
        }
        function.gradients(
            lines,
            products,
            gradients.numbers,
            &places[..captured.len()],
            &mut sums[..required],
        );
    }

    /// The part of these keys from the first to the last that a function may show to the queries, cut at multiples of `rows` keys.
    pub(super) fn shown_by_function(
        &self,
        queries: &Queries,
        mut keys: Range<usize>,
        rows: usize,
    ) -> Range<usize> {
        /// About how many keys one call of the function covers.
        const STEP: usize = 32;
        if self.visible_function.is_none() {
            return keys;
        }
        let step = STEP.next_multiple_of(rows);
        let is_hidden = |keys: Range<usize>| self.function(queries, &keys) == Visibility::Hidden;
        while !keys.is_empty() {
            let last = keys.start + (keys.len() - 1) / step * step;
            if !is_hidden(last..keys.end) {
                break;
            }
            keys.end = last;
        }
        while !keys.is_empty() {
            let next = keys.end.min(keys.start + step);
            if !is_hidden(keys.start..next) {
                break;
            }
            keys.start = next;
        }
        keys
    }

    /// How much a function shows of some queries and keys.
    pub(super) fn function(&self, queries: &Queries, keys: &Range<usize>) -> Visibility {
        let Some((_, function)) = &self.visible_function else {
            return Visibility::Visible;
        };
        let position = |query| {
            let position = self
                .options
                .mask
                .position(&self.problem, queries.batch_item, query);
            position as i64
        };
        let indices = |range: &Range<usize>| range.start as i64..range.end as i64;
        let shown = function.form.block(&PairBlock {
            batch_item: queries.batch_item,
            head: queries.head,
            queries: indices(&queries.range()),
            keys: indices(keys),
            positions: position(queries.first)..position(queries.first + queries.count),
        });
        match (shown, &function.whole) {
            (Shown::Nothing, _) => Visibility::Hidden,
            (Shown::All, _) => Visibility::Visible,
            (Shown::Some, Some(whole)) if shown_by(whole, queries, keys) == Visibility::Visible => {
                Visibility::Visible
            }
            (Shown::Some, _) => Visibility::Partial,
        }
    }

    /// Whether a function shows a key to a query.
    pub(super) fn function_shows(&self, [batch_item, head, query]: [usize; 3], key: usize) -> bool {
        let Some((_, function)) = &self.visible_function else {
            return true;
        };
        let mut places = [(&[][..], Place::default()); MOST];
        let at = [batch_item, head, query, key];
        places_of_integers(function.captured, at, false, &mut places);
        let pair = self.pair(at);
        function
            .form
            .visible(pair, &places[..function.captured.len()])
    }

    /// Sets the scores that a function hides to −∞, of a panel or of a single query.
    pub(super) fn hide_by_function(&self, scores: &mut Scores<'_, R>) {
        let Some((loops, function)) = &self.visible_function else {
            return;
        };
        let lines = self.lines(scores);
        let mut places = [(&[][..], Place::default()); MOST];
        places_of_integers(
            function.captured,
            first_pair(scores),
            lines.along_keys,
            &mut places,
        );
        loops.hide(lines, scores.numbers, &places[..function.captured.len()]);
    }

    fn pair(&self, [batch_item, head, query, key]: [usize; 4]) -> Pair {
        let position = self.options.mask.position(&self.problem, batch_item, query);
        Pair {
            batch_item: batch_item as i32,
            head: head as i32,
            query: query as i32,
            key: key as i32,
            position: position as i32,
        }
    }

    /// Scores side by side, which are those of a single query, are one line along its keys.
    fn lines(&self, scores: &Scores<'_, R>) -> Lines {
        let Seen { panel, keys, .. } = scores.seen;
        let along_keys = scores.stride == 1;
        let (count, len) = match along_keys {
            true => (1, keys.len()),
            false => (keys.len(), panel.queries.count),
        };
        Lines {
            first: self.pair(first_pair(scores)),
            along_keys,
            count,
            len,
            stride: scores.stride,
        }
    }

    /// Where the captured numbers of a panel or of a single query are.
    fn places<'b>(
        &self,
        captured: &[Captured<'b, R>],
        scores: &Scores<'_, R>,
        places: &mut [(&'b [R], Place); MOST],
    ) {
        let (at, along_keys) = (first_pair(scores), scores.stride == 1);
        for (captured, place) in captured.iter().zip(places) {
            *place = match captured {
                Captured::Pairs(numbers) => (numbers.data(), place_of(numbers, at, along_keys)),
                Captured::Distances(numbers) => {
                    let (entries, mut place) = self.place_of_distances(scores);
                    place.start += at[1] * entries;
                    (*numbers, place)
                }
            };
        }
    }

    /// Entries of a distance bias per head, and where those of a panel or of a single query are among them.
    fn place_of_distances(&self, scores: &Scores<'_, R>) -> (usize, Place) {
        let [batch_item, _, query, key] = first_pair(scores);
        let (entries, start) = self.distances(batch_item, query, key);
        let (of_line, of_index) = match scores.stride {
            1 => (1, -1),
            _ => (-1, 1),
        };
        let place = Place {
            start,
            of_line,
            of_index,
        };
        (entries, place)
    }
}

/// Batch item, head, first query and first key of some scores.
fn first_pair<R>(scores: &Scores<'_, R>) -> [usize; 4] {
    let Seen { panel, keys, .. } = scores.seen;
    let queries = panel.queries;
    [queries.batch_item, queries.head, queries.first, keys.start]
}

fn places_of_integers<'a>(
    captured: &[Broadcast<'a, i64>],
    at: [usize; 4],
    along_keys: bool,
    places: &mut [(&'a [i64], Place); MOST],
) {
    for (numbers, place) in captured.iter().zip(places) {
        *place = (numbers.data(), place_of(numbers, at, along_keys));
    }
}

/// Where the captured numbers of a pair and of its neighbours are.
fn place_of<T>(numbers: &Broadcast<'_, T>, at: [usize; 4], along_keys: bool) -> Place {
    let [batch_item, head, query, key] = at;
    let [_, _, of_queries, of_keys] = numbers.strides().map(|stride| stride as isize);
    let (of_line, of_index) = match along_keys {
        true => (of_queries, of_keys),
        false => (of_keys, of_queries),
    };
    Place {
        start: numbers.index(batch_item, head, query, key),
        of_line,
        of_index,
    }
}
