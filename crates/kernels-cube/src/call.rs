//! A call as its kernels see it: tiles, cubes and arguments.

use burn_attn_kernels_cpu::{PositionMask, Problem};
use cubecl::{
    client::Client,
    ir::{ElemType, FloatKind, UIntKind},
    prelude::{CubeCount, CubeDim, Numeric},
};

#[cfg(test)]
use crate::supports::FORCED;
use crate::{
    Inputs, Operand, check,
    few_queries::{self, KEYS},
    operands::{dims, optional},
    score::{Config, ScoringLaunch},
    supports::{FARTHEST, LARGEST_TENSOR, MANY_SCORES, Pass, has_room, is_in_software, supports},
    tile::Tile,
    whole_rows::{self, WIDEST},
};

/// The type of the elements of a mask that is not there.
const ANY_MASK: ElemType = ElemType::UInt(UIntKind::U32);

#[cfg(test)]
thread_local! {
    /// Instead of what the device prefers.
    pub(crate) static WHOLE_ROWS: core::cell::Cell<Option<bool>> = const { core::cell::Cell::new(None) };
}

/// Everything about a call that its kernels share.
pub(crate) struct Call<'a> {
    pub(crate) client: &'a Client,
    pub(crate) inputs: &'a Inputs,
    pub(crate) problem: Problem,
    pub(crate) config: Config,
    /// See [`Scoring::tile_kinds`](crate::score::Scoring::tile_kinds).
    pub(crate) tile_kinds: Option<Operand>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(client: &'a Client, inputs: &'a Inputs, pass: Pass) -> Self {
        let [batch, heads_q, len_q, dim_qk] = dims(&inputs.query);
        let [_, heads_kv, len_kv, dim_v] = dims(&inputs.value);
        let problem = Problem {
            batch,
            heads_q,
            heads_kv,
            len_q,
            len_kv,
            dim_qk,
            dim_v,
        };
        check::inputs(inputs, &problem);
        let elem = inputs.query.elem;
        let (mask, optional) = (inputs.mask_elem(), inputs.optional());
        assert!(
            supports(client, &problem, elem, mask, optional),
            "these kernels cannot compute attention of {elem} with {problem:?}, {optional} optional tensors besides sinks{} on this device",
            mask.map(|mask| format!(" and masks of {mask}"))
                .unwrap_or_default()
        );
        let tile = Tile::of(client, &problem, pass).expect("the call is supported");
        let config = Config {
            tile,
            parts_qk: tile.cover(dim_qk),
            parts_v: tile.cover(dim_v),
            queries: tile.rows,
            softcap: inputs.softcap.is_some(),
            dropout: inputs.dropout.is_some(),
        };
        Self {
            client,
            inputs,
            problem,
            config,
            tile_kinds: None,
        }
    }

    /// This call for the kernels of [`few_queries`], if its queries are few and the device can run them.
    pub(crate) fn of_few_queries(&self) -> Option<Self> {
        #[cfg(test)]
        if FORCED.get().is_some() {
            return None;
        }
        let Problem {
            heads_q,
            heads_kv,
            len_q,
            ..
        } = self.problem;
        let scratch = [self.splits(), self.problem.dim_v.max(2)]
            .into_iter()
            .try_fold(self.problem.query_rows(), usize::checked_mul);
        let properties = self.client.properties();
        let shared = properties.hardware.max_shared_memory_size;
        let heads = few_queries::heads_of_cube(heads_q / heads_kv, len_q, shared)?;
        // As much as the device gives at a time.
        let most = LARGEST_TENSOR.min(properties.memory.max_page_size as usize / 4);
        scratch
            .is_some_and(|elements| elements <= most)
            .then(|| Self {
                config: Config {
                    tile: few_queries::tile(heads, len_q),
                    queries: len_q,
                    ..self.config
                },
                tile_kinds: None,
                ..*self
            })
    }

    /// This call for the kernel of [`whole_rows`], if a driver in software computes it, and it is long: that kernel takes longest to compile.
    pub(crate) fn of_whole_rows(&self) -> Option<Self> {
        let Problem { dim_qk, dim_v, .. } = self.problem;
        let scores = self
            .problem
            .query_rows()
            .saturating_mul(self.problem.len_kv);
        let is_narrow = dim_qk.max(dim_v) <= WIDEST;
        let fits = is_in_software(self.client) && is_narrow && scores >= MANY_SCORES;
        #[cfg(test)]
        let fits = WHOLE_ROWS.get().unwrap_or(fits);
        fits.then(|| Self {
            config: whole_rows::config(self.config, dim_qk, dim_v),
            tile_kinds: self.tile_kinds.clone(),
            ..*self
        })
    }

    /// Whether the kernels have room for one more tensor.
    pub(crate) fn has_room(&self) -> bool {
        let kinds = usize::from(self.tile_kinds.is_some());
        has_room(self.client, self.inputs.optional() + kinds + 1)
    }

    /// `[batch, heads_q, tiles of queries, tiles of keys]`
    pub(crate) fn tiles(&self) -> [usize; 4] {
        let Problem {
            batch,
            heads_q,
            len_q,
            len_kv,
            ..
        } = self.problem;
        let [tiles_q, tiles_kv] = [len_q, len_kv].map(|len| len.div_ceil(self.config.tile.size));
        [batch, heads_q, tiles_q, tiles_kv]
    }

    /// Splits of the keys of a head, one a cube of [`few_queries`].
    pub(crate) fn splits(&self) -> usize {
        self.problem.len_kv.div_ceil(KEYS)
    }

    pub(crate) fn scoring<M: Numeric>(&self) -> ScoringLaunch<M> {
        let inputs = self.inputs;
        let Problem {
            batch,
            heads_q,
            len_q,
            len_kv,
            ..
        } = self.problem;
        let all = [batch, heads_q, len_q, len_kv];
        let blocks = inputs.visible_blocks.as_ref().map(|(table, size)| {
            let [rows, columns] = size.table(len_q, len_kv);
            table.broadcast([batch, heads_q, rows, columns])
        });
        let block = inputs.visible_blocks.as_ref().map(|(_, size)| *size);
        let edge = |size: Option<usize>| size.unwrap_or(1).min(LARGEST_TENSOR) as u32;
        let over_all =
            |operand: &Option<Operand>| operand.as_ref().map(|operand| operand.broadcast(all));
        // A field of its own for every way to hide by position, so that a new one is not forgotten here.
        let PositionMask {
            causal: _,
            window: _,
        } = inputs.by_position;
        let reach = inputs.by_position.reach();
        let distance = |reach: Option<usize>| reach.unwrap_or(FARTHEST).min(FARTHEST) as i32;
        let seed = inputs.dropout.map_or(0, |dropout| dropout.seed);
        ScoringLaunch::new(
            over_all(&inputs.bias).into(),
            optional(inputs.distance_bias.as_ref()),
            over_all(&inputs.masked).into(),
            blocks.into(),
            optional(inputs.key_lengths.as_ref()),
            optional(inputs.query_offsets.as_ref()),
            optional(inputs.segments.as_ref()),
            self.tile_kinds
                .as_ref()
                .map(|kinds| kinds.broadcast(self.tiles()))
                .into(),
            edge(block.map(|size| size.queries)),
            edge(block.map(|size| size.keys)),
            inputs.scale as f32,
            inputs.softcap.unwrap_or(1.0) as f32,
            inputs.by_position.offset(len_q, len_kv) as i32,
            distance(reach.left),
            distance(reach.right),
            seed as u32,
            (seed >> 32) as u32,
            inputs.dropout.map_or(0, |dropout| dropout.threshold()),
            inputs.dropout.map_or(1.0, |dropout| dropout.kept_scale()) as f32,
        )
    }

    /// The type of the elements of mask and table.
    pub(crate) fn mask_elem(&self) -> ElemType {
        self.inputs.mask_elem().unwrap_or(ANY_MASK)
    }

    /// Cubes for `tiles` tiles of at least `heads` heads: a device has a limit on each dimension.
    pub(crate) fn cubes(&self, tiles: usize, heads: usize) -> CubeCount {
        let most = self.client.properties().hardware.max_cube_count.1 as usize;
        let z = heads.div_ceil(most);
        CubeCount::Static(tiles as u32, heads.div_ceil(z) as u32, z as u32)
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.config.tile.units() as u32)
    }

    /// Memory for f32, row-major.
    pub(crate) fn scratch(&self, shape: &[usize]) -> Operand {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Operand {
            handle: self.client.empty(4 * shape.iter().product::<usize>()),
            shape: shape.to_vec(),
            strides,
            elem: ElemType::Float(FloatKind::F32),
        }
    }

    /// At least as many cubes, in two dimensions.
    pub(crate) fn spread(&self, cubes: usize) -> CubeCount {
        let most = self.client.properties().hardware.max_cube_count.0 as usize;
        let y = cubes.div_ceil(most);
        CubeCount::Static(cubes.div_ceil(y) as u32, y as u32, 1)
    }
}
