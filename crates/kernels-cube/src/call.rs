//! A call as its kernels see it: whether they can compute it, tiles, cubes and arguments.

use burn_attn_kernels_cpu::{PositionMask, Problem};
use cubecl::{
    client::Client,
    features::Plane,
    ir::{ElemType, FloatKind, UIntKind},
    prelude::{CubeCount, CubeDim, Numeric},
};

use crate::{
    Inputs, Operand, check,
    few_queries::{self, KEYS},
    operands::{dims, optional},
    row_terms::UNTILED_UNITS,
    score::{Config, ScoringLaunch},
    tile::Tile,
    whole_rows::{self, WIDEST},
};

/// The largest head: wider ones would not fit into registers.
const LARGEST_DIM: usize = 256;

/// The widest head whose output fits into registers with eight rows per unit.
const WIDEST_OF_EIGHT_ROWS: usize = 128;

/// Scores from which longer programs pay where reads of shared memory are slow: on Mesa's lavapipe a program of 8 x 8 numbers per unit
/// takes seconds to compile, one of 8 x 16 tens of seconds.
const MANY_SCORES: usize = 1 << 18;
const VERY_MANY_SCORES: usize = 1 << 21;

/// Numbers of the vectors that drivers in software compute with; a GPU that runs 16 units together without planes is known (V3D), none that runs 8.
const WIDEST_VECTOR: usize = 8;

/// Rows of the largest tile.
const LARGEST_TILE: usize = 64;

/// Tensors of every call, at most: query, key, value, two statistics, and three gradients.
const REQUIRED_TENSORS: usize = 8;

/// Elements of the largest tensor: indices are 32 bits wide, some with a sign.
const LARGEST_TENSOR: usize = i32::MAX as usize;

/// No key is farther away from a query, so that sums of positions fit into 32 bits.
const FARTHEST: usize = LARGEST_TENSOR / 4;

/// Whether the kernels can compute this call on this device, forward and backward. `elem` is the type of the query, `optional`
/// the number of [`Inputs::optional`].
#[must_use]
pub fn supports(client: &Client, problem: &Problem, elem: ElemType, optional: usize) -> bool {
    let hardware = &client.properties().hardware;
    let float = matches!(
        elem,
        ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16)
    );
    let lens = problem.len_q.saturating_add(problem.len_kv);
    let sizes = [
        problem.query_elements(),
        problem.key_elements(),
        problem.value_elements(),
        problem.output_elements(),
    ];
    // Of the gradient of a distance bias, which may be among the optional tensors.
    let diagonals = lens
        .saturating_add(2 * LARGEST_TILE)
        .saturating_mul(2 * problem.batch)
        .saturating_mul(problem.heads_q);
    let longest = problem.len_q.max(problem.len_kv);
    float
        && client.properties().supports_type(elem)
        && problem.dim_qk.max(problem.dim_v) <= LARGEST_DIM
        && sizes.iter().all(|size| (1..=LARGEST_TENSOR).contains(size))
        && (optional == 0 || diagonals <= LARGEST_TENSOR)
        && longest <= FARTHEST
        && longest.div_ceil(Tile::SMALLEST.size) <= hardware.max_cube_count.0 as usize
        && problem.batch.saturating_mul(problem.heads_q)
            <= hardware.max_cube_count.1 as usize * hardware.max_cube_count.2 as usize
        && REQUIRED_TENSORS + optional <= hardware.max_bindings as usize
        && hardware.max_units_per_cube as usize >= UNTILED_UNITS
        && Tile::of(client, problem, Pass::Backward).is_some()
}

#[cfg(test)]
thread_local! {
    /// Instead of the device's tile.
    static FORCED: core::cell::Cell<Option<Tile>> = const { core::cell::Cell::new(None) };
    /// Instead of what the device prefers.
    pub(crate) static WHOLE_ROWS: core::cell::Cell<Option<bool>> = const { core::cell::Cell::new(None) };
}

/// Runs `call` with this tile in place of the device's.
#[cfg(all(test, feature = "wgpu"))]
pub(crate) fn with_tile<T>(tile: Option<Tile>, call: impl FnOnce() -> T) -> T {
    FORCED.set(tile);
    let result = call();
    FORCED.set(None);
    result
}

/// The passes, whose kernels need different numbers of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pass {
    Forward,
    /// Gradients of query, key and value.
    Backward,
    /// Gradients of the biases.
    Bias,
}

impl Tile {
    const SMALLEST: Self = Self {
        size: 32,
        rows: 4,
        columns: 4,
    };

    /// The fastest that the device can hold.
    fn of(client: &Client, problem: &Problem, pass: Pass) -> Option<Self> {
        #[cfg(test)]
        if let Some(tile) = FORCED.get() {
            return Some(match pass {
                Pass::Forward | Pass::Backward => tile,
                Pass::Bias => Self {
                    rows: 4,
                    columns: 4,
                    ..tile
                },
            });
        }
        let properties = client.properties();
        let hardware = &properties.hardware;
        let has_planes = has_planes(client);
        let dim = problem.dim_qk.max(problem.dim_v);
        let scores = problem.query_rows().saturating_mul(problem.len_kv);
        // The more numbers a unit holds, the more multiplications a read of shared memory feeds, and the longer the program takes to
        // compile. A GPU has registers for few, and for eight rows only in the forward pass. Without planes, which CubeCL finds in
        // no driver in software and in almost every other, reads cost more than all else; a unit's arrays may then be larger than the 512 bytes that are
        // safe on Vulkan, where GPUs have planes.
        let [rows, columns] = match pass {
            Pass::Bias => [4, 4],
            _ if !has_planes && scores >= VERY_MANY_SCORES => [8, 16],
            _ if !has_planes && scores >= MANY_SCORES => [8, 8],
            Pass::Forward if has_planes && dim <= WIDEST_OF_EIGHT_ROWS => [8, 4],
            _ => [4, 4],
        };
        let tile = |rows, columns| Self {
            size: LARGEST_TILE,
            rows,
            columns,
        };
        [tile(rows, columns), tile(4, 4), Self::SMALLEST]
            .into_iter()
            .find(|tile| {
                tile.bytes() <= hardware.max_shared_memory_size
                    && tile.units() <= hardware.max_units_per_cube as usize
            })
    }
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
        assert!(
            supports(client, &problem, elem, inputs.optional()),
            "these kernels cannot compute attention of {elem} with {problem:?} on this device"
        );
        let tile = Tile::of(client, &problem, pass).expect("the call is supported");
        let mask = mask_elem(inputs);
        assert!(
            client.properties().supports_type(mask),
            "masked or visible_blocks is of {mask}, which this device does not have"
        );
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

    /// Whether the kernels can read one more tensor.
    pub(crate) fn has_room(&self) -> bool {
        let most = self.client.properties().hardware.max_bindings as usize;
        REQUIRED_TENSORS + self.inputs.optional() < most
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
        let [query_segments, key_segments] = match &inputs.segments {
            Some([query, key]) => [Some(query), Some(key)],
            None => [None, None],
        };
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
            optional(query_segments),
            optional(key_segments),
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

    /// See [`mask_elem`].
    pub(crate) fn mask_elem(&self) -> ElemType {
        mask_elem(self.inputs)
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

/// Whether units can exchange numbers: on almost every GPU, and in no driver in software.
fn has_planes(client: &Client) -> bool {
    client.properties().features.plane.contains(Plane::Ops)
}

/// Whether the device is a driver in software: the units that it runs together are the numbers of a processor's vector.
fn is_in_software(client: &Client) -> bool {
    let together = client.properties().hardware.plane_size_max as usize;
    !has_planes(client) && together <= WIDEST_VECTOR
}

/// The type of the elements of mask and table; any will do where there is none.
fn mask_elem(inputs: &Inputs) -> ElemType {
    let table = inputs.visible_blocks.as_ref().map(|(table, _)| table);
    let tensor = inputs.masked.as_ref().or(table);
    tensor.map_or(ElemType::UInt(UIntKind::U32), |tensor| tensor.elem)
}
