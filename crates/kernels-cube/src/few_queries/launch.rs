//! Which calls have few queries, and their launches.

use cubecl::prelude::*;

use super::{
    kernels::partial,
    shape::{KEYS, UNITS, heads_of_cube, tile},
};
#[cfg(test)]
use crate::supports::FORCED;
use crate::{Operand, call::Call, scoring::Config, supports::largest_scratch};

#[allow(unsafe_code, reason = "launches without bounds checks")]
impl Call<'_> {
    /// This call for the kernels of [`few_queries`](super), if its queries are few and the device has the memory.
    pub(crate) fn of_few_queries(&self) -> Option<Self> {
        #[cfg(test)]
        if FORCED.get().is_some() {
            return None;
        }
        // On matrix units more rows share the keys of a cube.
        if self.config.heads > 1 {
            return None;
        }
        let p = &self.problem;
        let scratch = [self.splits_of_keys(), p.dim_v.max(2)]
            .into_iter()
            .try_fold(p.query_rows(), usize::checked_mul);
        let shared = self.client.properties().hardware.max_shared_memory_size;
        let heads = heads_of_cube(p.group_size(), p.len_q, shared)?;
        scratch
            .is_some_and(|elements| elements <= largest_scratch(self.client))
            .then(|| Self {
                config: Config {
                    tile: tile(heads, p.len_q),
                    matrix: None,
                    heads,
                    split: false,
                    ..self.config
                },
                tile_kinds: None,
                splits: 1,
                ..*self
            })
    }

    /// Splits of the keys of a head, one per cube.
    fn splits_of_keys(&self) -> usize {
        self.problem.len_kv.div_ceil(KEYS)
    }

    /// Writes output and logsumexp of a call from [`Call::of_few_queries`].
    pub(crate) fn forward_of_few_queries(
        &self,
        output: &Operand,
        logsumexp: &Operand,
        size: VectorSize,
    ) {
        let inputs = self.inputs;
        let p = &self.problem;
        let (batch, heads_q, len_q, dim_v) = (p.batch, p.heads_q, p.len_q, p.dim_v);
        let splits = self.splits_of_keys();
        let sums = self.scratch(&[splits * batch, heads_q, len_q, dim_v]);
        let statistics = self.scratch(&[splits * batch, heads_q, len_q, 2]);
        let vectors = dim_v / size;
        let units_per_row = vectors.next_power_of_two().min(UNITS);
        let cube_dim = CubeDim::new_1d(UNITS as u32);
        // SAFETY: the kernels read and write inside the shapes of their tensors, which `check` has compared.
        unsafe {
            partial::launch_unchecked(
                self.client,
                self.cubes(splits, self.heads_of_grid()),
                cube_dim,
                size,
                inputs.query.arg(),
                inputs.key.arg(),
                inputs.value.arg(),
                self.scoring(),
                sums.arg(),
                statistics.arg(),
                units_per_row,
                vectors.div_ceil(units_per_row),
                self.config,
                [inputs.query.elem, self.mask_elem()],
            );
        }
        self.merge(&sums, &statistics, output, logsumexp);
    }
}
