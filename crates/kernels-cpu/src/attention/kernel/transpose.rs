//! Conversion between rows of queries and panels of queries.

use pulp::Simd;

use crate::{attention::kernel::tile::Tile, simd::real::Real};

/// Copies `[queries, padded]` rows into the panels of a tile, each `[dim, columns]`, times a factor; columns without a
/// query are zero.
#[inline(always)]
pub(crate) fn rows_to_panels<R: Real>(
    tile: &Tile,
    dim: usize,
    padded: usize,
    rows: &[R],
    factor: R,
    panels: &mut [R],
) {
    for index in 0..tile.count() {
        let panel = tile.panel(index);
        let rows = &rows[panel.column * padded..][..panel.queries.count * padded];
        let out = &mut panels[panel.column * dim..][..panel.columns * dim];
        if panel.queries.count < panel.columns {
            out.fill(R::default());
        }
        for (first, rows) in rows.chunks(8 * padded).enumerate() {
            transpose_rows(
                rows,
                dim,
                padded,
                factor,
                &mut out[8 * first..],
                panel.columns,
            );
        }
    }
}

/// Up to eight rows become columns.
#[inline(always)]
fn transpose_rows<R: Real>(
    rows: &[R],
    dim: usize,
    padded: usize,
    factor: R,
    out: &mut [R],
    out_row: usize,
) {
    let count = rows.len() / padded;
    let mut done = 0;
    if count == 8 {
        while done + 8 <= dim {
            let mut square = [[R::default(); 8]; 8];
            for (row, square) in square.iter_mut().enumerate() {
                square.copy_from_slice(&rows[row * padded + done..][..8]);
            }
            for d in 0..8 {
                let mut column = [R::default(); 8];
                for row in 0..8 {
                    column[row] = square[row][d] * factor;
                }
                out[(done + d) * out_row..][..8].copy_from_slice(&column);
            }
            done += 8;
        }
    }
    for row in 0..count {
        for d in done..dim {
            out[d * out_row + row] = rows[row * padded + d] * factor;
        }
    }
}

/// Eight rows of four numbers become four rows of eight.
#[inline(always)]
pub(crate) fn transpose_eights<S: Simd, R: Real>(simd: S, rows: &[[R; 4]; 8]) -> [[R; 8]; 4] {
    let mut out = [[R::default(); 8]; 4];
    let lanes = R::lanes::<S>();
    if size_of::<R::Vector<S>>() == 32 && lanes == 8 {
        // AVX2 puts the structures of the lower halves before those of the upper ones: rows 0 to 3 go into lower halves.
        // AVX-512, which has eight numbers of f64, has another order.
        let mut vectors = [R::splat(simd, R::default()); 4];
        for (index, vector) in vectors.iter_mut().enumerate() {
            let mut pair = [R::default(); 8];
            pair[..4].copy_from_slice(&rows[index]);
            pair[4..].copy_from_slice(&rows[index + 4]);
            *vector = R::vectors::<S>(&pair)[0];
        }
        let columns = R::deinterleave(simd, vectors);
        for (out, column) in out.iter_mut().zip(columns) {
            R::vectors_mut::<S>(out)[0] = column;
        }
    } else if lanes == 4 {
        for half in 0..2 {
            let mut vectors = [R::splat(simd, R::default()); 4];
            for (row, vector) in rows[4 * half..].iter().zip(&mut vectors) {
                *vector = R::vectors::<S>(row)[0];
            }
            let columns = R::deinterleave(simd, vectors);
            for (out, column) in out.iter_mut().zip(columns) {
                R::vectors_mut::<S>(out)[half] = column;
            }
        }
    } else {
        for (column, row) in rows.iter().enumerate() {
            for (out, &x) in out.iter_mut().zip(row) {
                out[column] = x;
            }
        }
    }
    out
}

/// Packs `[queries, padded]` rows, times a factor, into micro-panels of one or two vectors of dimensions, each `[queries, width]`; rows
/// beyond the queries are zero.
///
/// The micro-panels are the right-hand side of the products that sum over queries.
#[inline(always)]
pub(crate) fn pack_rows<S: Simd, R: Real>(
    simd: S,
    tile: &Tile,
    padded: usize,
    rows: &[R],
    factor: R,
    packed: &mut [R],
) {
    let queries = tile.columns();
    let factor = R::splat(simd, factor);
    let mut start = 0;
    for (first, width) in micro_panel_widths(padded, tile.lanes) {
        let micro_panel = &mut packed[start..start + queries * width];
        start += queries * width;
        let (filled, empty) = micro_panel.split_at_mut(tile.queries.count * width);
        for (row, out) in rows
            .chunks_exact(padded)
            .zip(filled.chunks_exact_mut(width))
        {
            let row = R::vectors::<S>(&row[first..first + width]);
            for (out, &x) in R::vectors_mut::<S>(out).iter_mut().zip(row) {
                *out = R::times(simd, x, factor);
            }
        }
        empty.fill(R::default());
    }
}

/// First dimension and width of each micro-panel: two vectors; the last may be one vector wide.
pub(crate) fn micro_panel_widths(
    padded: usize,
    lanes: usize,
) -> impl Iterator<Item = (usize, usize)> {
    (0..padded)
        .step_by(2 * lanes)
        .map(move |first| (first, (padded - first).min(2 * lanes)))
}

#[cfg(test)]
mod tests;
