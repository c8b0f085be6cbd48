//! Between rows of queries and panels of queries.

use super::{real::Real, tile::Tile};

/// Copies `[queries, dim]` rows into the panels of a tile, each `[dim, columns]`, times a factor; columns without a query
/// are zero.
#[inline(always)]
pub(super) fn rows_to_panels<R: Real>(
    tile: &Tile,
    dim: usize,
    rows: &[R],
    factor: R,
    panels: &mut [R],
) {
    for index in 0..tile.count() {
        let panel = tile.panel(index);
        let rows = &rows[panel.column * dim..][..panel.queries * dim];
        let out = &mut panels[panel.column * dim..][..panel.columns * dim];
        if panel.queries < panel.columns {
            out.fill(R::default());
        }
        for (first, rows) in rows.chunks(8 * dim).enumerate() {
            transpose_rows(rows, dim, factor, &mut out[8 * first..], panel.columns);
        }
    }
}

/// Up to eight rows become columns.
#[inline(always)]
fn transpose_rows<R: Real>(rows: &[R], dim: usize, factor: R, out: &mut [R], out_row: usize) {
    let count = rows.len() / dim;
    let mut done = 0;
    if count == 8 {
        while done + 8 <= dim {
            let mut square = [[R::default(); 8]; 8];
            for (row, square) in square.iter_mut().enumerate() {
                square.copy_from_slice(&rows[row * dim + done..][..8]);
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
            out[d * out_row + row] = rows[row * dim + d] * factor;
        }
    }
}

/// The reverse of [`rows_to_panels`], with a factor per query.
#[inline(always)]
pub(super) fn panels_to_rows<R: Real>(
    tile: &Tile,
    dim: usize,
    panels: &[R],
    factors: &[R],
    rows: &mut [R],
) {
    for index in 0..tile.count() {
        let panel = tile.panel(index);
        let panels = &panels[panel.column * dim..][..panel.columns * dim];
        for query in 0..panel.queries {
            let factor = factors[panel.column + query];
            let row = &mut rows[(panel.column + query) * dim..][..dim];
            for (d, out) in row.iter_mut().enumerate() {
                *out = panels[d * panel.columns + query] * factor;
            }
        }
    }
}

/// Copies `[queries, dim]` rows into strips of one or two vectors of dimensions, each `[queries, width]`, times a factor.
///
/// This is the right-hand side of the products that sum over queries. Rows beyond the queries and dimensions beyond `dim`
/// are zero.
#[inline(always)]
pub(super) fn rows_to_strips<R: Real>(
    tile: &Tile,
    dim: usize,
    rows: &[R],
    factor: R,
    strips: &mut [R],
) {
    let queries = tile.columns();
    let mut start = 0;
    for (first, width) in strip_widths(dim, tile.lanes) {
        let strip = &mut strips[start..start + queries * width];
        start += queries * width;
        let filled = width.min(dim - first);
        for (query, out) in strip.chunks_exact_mut(width).enumerate() {
            if query < tile.queries {
                for (out, &x) in out[..filled].iter_mut().zip(&rows[query * dim + first..]) {
                    *out = x * factor;
                }
                out[filled..].fill(R::default());
            } else {
                out.fill(R::default());
            }
        }
    }
}

/// First dimension and width of each strip: two vectors, the last perhaps one.
pub(super) fn strip_widths(dim: usize, lanes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..dim).step_by(2 * lanes).map(move |first| {
        (first, (dim - first).min(2 * lanes).next_multiple_of(lanes))
    })
}
