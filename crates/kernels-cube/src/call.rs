//! The tiles, cubes and kernel arguments of a call.

use burn_attn_kernels_cpu::{PositionMask, Problem};
use cubecl::{
    client::Client,
    ir::{ElemType, FloatKind, UIntKind},
    prelude::{CubeCount, CubeDim, Numeric},
};

use crate::{
    Inputs, Operand, check,
    cubes::tile_of_heads,
    matrix::shape::Matrix,
    operands::optional,
    scoring::{Config, ScoringLaunch},
    supports::{FARTHEST, LARGEST_TENSOR, Pass, has_room, supports},
    tile::Tile,
};

/// The element type in place of an absent mask's.
const ANY_MASK: ElemType = ElemType::UInt(UIntKind::U32);

/// Everything about a call that its kernels share.
pub(crate) struct Call<'a> {
    pub(crate) client: &'a Client,
    pub(crate) inputs: &'a Inputs,
    pub(crate) problem: Problem,
    pub(crate) config: Config,
    /// See [`Scoring::tile_kinds`](crate::scoring::Scoring::tile_kinds).
    pub(crate) tile_kinds: Option<Operand>,
    /// Cubes that share a tile.
    pub(crate) splits: usize,
}

impl<'a> Call<'a> {
    /// Panics unless the inputs are as their documentation says, and supported.
    pub(crate) fn new(client: &'a Client, inputs: &'a Inputs, pass: Pass) -> Self {
        let [batch, heads_q, len_q, dim_qk] = check::sizes("query", &inputs.query);
        let [_, heads_kv, len_kv, dim_v] = check::sizes("value", &inputs.value);
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
        let distance_gradient = pass != Pass::Forward && inputs.distance_bias.is_some();
        assert!(
            supports(client, &problem, elem, mask, optional, distance_gradient),
            "these kernels cannot compute attention of {elem} with {problem:?}, {optional} optional tensors besides sinks{} on this device",
            mask.map(|mask| format!(" and masks of {mask}"))
                .unwrap_or_default()
        );
        Self::of(client, inputs, problem, pass)
    }

    /// This call, with the tiles of another pass.
    pub(crate) fn of_pass(&self, pass: Pass) -> Self {
        Self::of(self.client, self.inputs, self.problem, pass)
    }

    fn of(client: &'a Client, inputs: &'a Inputs, problem: Problem, pass: Pass) -> Self {
        let elem = inputs.query.elem;
        let of_heads = match pass {
            Pass::Forward => tile_of_heads(client, inputs, &problem),
            _ => None,
        };
        let of_head = || Some((Matrix::of(client.properties(), &problem, elem, pass)?, 1));
        let (tile, matrix, heads) = match of_heads.or_else(of_head) {
            Some(((tile, matrix), heads)) => (tile, Some(matrix), heads),
            None => {
                let tile = Tile::of(client, &problem, pass);
                (tile.expect("the call is supported"), None, 1)
            }
        };
        let config = Config {
            tile,
            matrix,
            parts_qk: tile.cover(problem.dim_qk),
            parts_v: tile.cover(problem.dim_v),
            heads,
            softcap: inputs.softcap.is_some(),
            dropout: inputs.dropout.is_some(),
            keys_in_rows: pass == Pass::KeyAndValue,
            split: false,
        };
        let mut call = Self {
            client,
            inputs,
            problem,
            config,
            tile_kinds: None,
            splits: 1,
        };
        call.splits = call.splits_of(pass);
        call.config.split = call.splits > 1;
        call
    }

    /// Whether the device binds one more tensor than the call has.
    pub(crate) fn has_room(&self) -> bool {
        let kinds = usize::from(self.tile_kinds.is_some());
        has_room(self.client, self.inputs.optional() + kinds + 1)
    }

    /// `[batch, heads_q, tiles of queries, tiles of keys]`
    pub(crate) fn tiles(&self) -> [usize; 4] {
        let p = &self.problem;
        let tiles_q = p.len_q.div_ceil(self.config.tile_queries());
        let tiles_kv = p.len_kv.div_ceil(self.config.tile_keys());
        [p.batch, p.heads_q, tiles_q, tiles_kv]
    }

    /// Cubes of queries per tile and split: one for every `config.heads` heads that share keys.
    pub(crate) fn heads_of_grid(&self) -> usize {
        let p = &self.problem;
        p.batch * p.heads_kv * p.group_size().div_ceil(self.config.heads)
    }

    pub(crate) fn scoring<M: Numeric>(&self) -> ScoringLaunch<M> {
        let inputs = self.inputs;
        let p = &self.problem;
        let all = [p.batch, p.heads_q, p.len_q, p.len_kv];
        let blocks = inputs.visible_blocks.as_ref().map(|(table, size)| {
            let [rows, columns] = size.table(p.len_q, p.len_kv);
            table.broadcast([p.batch, p.heads_q, rows, columns])
        });
        let block = inputs.visible_blocks.as_ref().map(|(_, size)| *size);
        let edge = |size: Option<usize>| size.unwrap_or(1).min(LARGEST_TENSOR) as u32;
        let over_all =
            |operand: &Option<Operand>| operand.as_ref().map(|operand| operand.broadcast(all));
        // Every field is named, so that a new one does not compile before it is handled here.
        let PositionMask {
            causal: _,
            window: _,
        } = inputs.by_position;
        let reach = inputs.by_position.reach();
        let distance = |reach: Option<usize>| reach.unwrap_or(FARTHEST).min(FARTHEST) as i32;
        let [seeded_a, seeded_b] = inputs.dropout.map_or([0; 2], |dropout| dropout.seeded());
        ScoringLaunch::new(
            over_all(&inputs.bias).into(),
            optional(inputs.distance_bias.as_ref()),
            over_all(&inputs.masked).into(),
            blocks.into(),
            optional(inputs.key_lengths.as_ref()),
            optional(inputs.first_keys.as_ref()),
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
            inputs.by_position.offset(p.len_q, p.len_kv) as i32,
            distance(reach.left),
            distance(reach.right),
            distance(inputs.first_keys_are_causal.then_some(0)),
            seeded_a,
            seeded_b,
            inputs.dropout.map_or(0, |dropout| dropout.threshold()),
            self.keep_scale(),
        )
    }

    /// The factor on kept weights; 1 without dropout.
    pub(crate) fn keep_scale(&self) -> f32 {
        let dropout = self.inputs.dropout;
        dropout.map_or(1.0, |dropout| dropout.kept_scale()) as f32
    }

    pub(crate) fn mask_elem(&self) -> ElemType {
        self.inputs.mask_elem().unwrap_or(ANY_MASK)
    }

    /// A grid of `tiles` by at least `heads` cubes: a device limits each dimension of a grid.
    pub(crate) fn cubes(&self, tiles: usize, heads: usize) -> CubeCount {
        let most = self.client.properties().hardware.max_cube_count.1 as usize;
        let z = heads.div_ceil(most);
        CubeCount::Static(tiles as u32, heads.div_ceil(z) as u32, z as u32)
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.config.tile.units() as u32)
    }

    /// A row-major scratch tensor in f32.
    pub(crate) fn scratch(&self, shape: &[usize]) -> Operand {
        let handle = self.client.empty(4 * shape.iter().product::<usize>());
        Operand::row_major(handle, shape, ElemType::Float(FloatKind::F32))
    }

    /// A grid of at least `cubes` cubes, in two dimensions.
    pub(crate) fn spread(&self, cubes: usize) -> CubeCount {
        let most = self.client.properties().hardware.max_cube_count.0 as usize;
        let y = cubes.div_ceil(most);
        CubeCount::Static(cubes.div_ceil(y) as u32, y as u32, 1)
    }
}
