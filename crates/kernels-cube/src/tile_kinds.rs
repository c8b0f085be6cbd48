//! Kinds of tiles of scores: whether segments, mask and table hide all, some or no pairs of a tile. A kernel finds the kinds before the other
//! kernels run, if these can bind one more tensor. They skip tiles without visible pairs, and test no pair in tiles without hidden pairs. The
//! kernels of [`few_queries`](crate::few_queries) do not use kinds.

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
};

use crate::{
    Operand,
    call::Call,
    operands::dims,
    scoring::Scoring,
    tile::UNTILED_UNITS,
    visible::{HIDDEN, Place, VISIBLE, is_masked},
};

/// A cube per tile of `kinds`, `[batch or 1, heads_q or 1, tiles of queries or 1, tiles of keys or 1]`: 1 where kinds do not differ.
#[cube(launch_unchecked)]
fn classify<M: Numeric>(
    scoring: &Scoring<M>,
    kinds: &mut Tensor<u32>,
    len_q: u32,
    len_kv: u32,
    #[comptime] height: usize,
    #[comptime] size: usize,
    #[define(M)] _mask: ElemType,
) {
    let unit = UNIT_POS as usize;
    let tiles = kinds.shape(0) * kinds.shape(1) * kinds.shape(2) * kinds.shape(3);
    // The grid is rounded up: extra cubes repeat the last tile.
    let cube = ((CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize).min(tiles - 1);
    let tile_kv = cube % kinds.shape(3);
    let row = cube / kinds.shape(3);
    let tile_q = row % kinds.shape(2);
    let head_of_batch = row / kinds.shape(2);
    let place = Place {
        batch: head_of_batch / kinds.shape(1),
        head: head_of_batch % kinds.shape(1),
        len_q: len_q as usize,
        len_kv: len_kv as usize,
        length: len_kv as i32,
        first_keys: 0i32.runtime(),
        offset: 0i32.runtime(),
    };
    let mut found = Shared::<[u32]>::new_slice(2usize);
    if unit < 2 {
        found[unit] = 0u32;
    }
    sync_cube();
    let mut at = unit;
    while at < comptime!(height * size) {
        let query = tile_q * height + at / size;
        let key = tile_kv * size + at % size;
        if query < place.len_q && key < place.len_kv {
            // All units that write a flag write the same.
            if is_masked::<M>(scoring, place, place.head, query, key) {
                found[0usize] = HIDDEN;
            } else {
                found[1usize] = VISIBLE;
            }
        }
        at += UNTILED_UNITS;
    }
    sync_cube();
    if unit == 0 {
        kinds[cube] = found[0usize] | found[1usize];
    }
}

impl Call<'_> {
    /// This call with [`Scoring::tile_kinds`], if there are several tiles, segments, mask or table, and room for one more tensor.
    #[allow(unsafe_code, reason = "a launch without bounds checks")]
    pub(crate) fn with_tile_kinds(self) -> Self {
        let inputs = self.inputs;
        let all = self.tiles();
        let table = inputs.visible_blocks.as_ref().map(|(table, _)| table);
        let tensors = [inputs.masked.as_ref(), table].into_iter().flatten();
        let differs = |axis: usize| {
            let by_segment = inputs.segments.is_some() && axis != 1;
            by_segment || tensors.clone().any(|tensor| dims(tensor)[axis] > 1)
        };
        let shape: [usize; 4] =
            core::array::from_fn(|axis| if differs(axis) { all[axis] } else { 1 });
        let nothing_hides = tensors.clone().count() == 0 && inputs.segments.is_none();
        // Kinds grow with the square of the length: none where they would outnumber the query's elements.
        let tiles = shape.into_iter().try_fold(1, usize::checked_mul);
        let are_few = tiles.is_some_and(|tiles| tiles <= self.problem.query_elements());
        if nothing_hides || all[2..] == [1, 1] || !are_few || !self.has_room() {
            return self;
        }
        let kinds = Operand {
            elem: ElemType::UInt(UIntKind::U32),
            ..self.scratch(&shape)
        };
        // SAFETY: the kernel writes an element per cube, and reads inside the shapes of its tensors, which `check` has compared.
        unsafe {
            classify::launch_unchecked(
                self.client,
                self.spread(shape.iter().product()),
                CubeDim::new_1d(UNTILED_UNITS as u32),
                self.scoring(),
                kinds.arg(),
                self.problem.len_q as u32,
                self.problem.len_kv as u32,
                self.config.tile_queries(),
                self.config.tile_keys(),
                self.mask_elem(),
            );
        }
        Self {
            tile_kinds: Some(kinds),
            ..self
        }
    }
}
