//! Which calls a device can compute, and with which tiles.

use core::ops::RangeInclusive;

use burn_attn_kernels_cpu::Problem;
use cubecl::{
    client::Client,
    features::{Plane, TypeUsage},
    ir::{ElemType, FloatKind},
};

use crate::tile::{Tile, UNTILED_UNITS};

/// The largest head: wider ones would not fit into registers.
const LARGEST_DIM: usize = 256;

/// The widest head whose output fits into registers with eight rows per unit.
const WIDEST_OF_EIGHT_ROWS: usize = 128;

/// The widest head of whose gradients of the query two cubes fit on a multiprocessor.
const WIDEST_OF_TWO_CUBES: usize = 64;

/// The fewest scores for which a longer program pays where reads of shared memory are slow: a program of 8 x 8 numbers per unit takes
/// seconds to compile on Mesa's lavapipe.
const MANY_SCORES: usize = 1 << 18;

/// The widest planes of a driver in software, through Vulkan and DirectX: one unit per lane of a processor's vector. V3D, a GPU without plane
/// operations, has 16. Through OpenGL no driver says how wide they are, and one in software, untested, is taken for a GPU.
pub(crate) const WIDEST_VECTOR: usize = 8;

/// Rows of the largest tile without [`matrix`](crate::matrix) units.
const LARGEST_TILE: usize = 64;

/// Tensors that the largest kernels bind, besides the optional ones: forward query, key, value, sinks, output and logsumexp; backward query, key,
/// value, the gradient of the output, statistics and one gradient.
const REQUIRED_TENSORS: usize = 6;

/// Elements of the largest tensor: indices are 32 bits wide, some with a sign.
pub(crate) const LARGEST_TENSOR: usize = i32::MAX as usize;

/// The most tiles of the other side in a split on a driver in software: Mesa's lavapipe, in 22.3 at least, leaves all loops of a kernel after
/// 65,535 rounds, and a tile takes up to 400 rounds. Diagonals of a bias by distance are not split.
pub(crate) const MOST_TILES: usize = 128;

/// The longest side of a call, and the reach of a query without a window: sums of positions fit into 32 bits.
pub(crate) const FARTHEST: usize = LARGEST_TENSOR / 4;

/// Range of a non-zero scale: the normal numbers of f32. A device may take smaller ones for 0.
pub(crate) const SCALES: RangeInclusive<f64> = f32::MIN_POSITIVE as f64..=f32::MAX as f64;

/// Range of softcaps whose products and quotients stay far from the limits of f32.
pub(crate) const SOFTCAPS: RangeInclusive<f64> = 1.0 / (1_u64 << 60) as f64..=(1_u64 << 60) as f64;

/// Whether f32, in which the kernels compute scores, has the range for this scale and softcap.
#[must_use]
pub fn supports_scalars(scale: f64, softcap: Option<f64>) -> bool {
    (scale == 0.0 || SCALES.contains(&scale.abs()))
        && softcap.is_none_or(|softcap| SOFTCAPS.contains(&softcap))
}

/// Whether the kernels can compute this call on this device. `elem` is the type of the query, `mask` is
/// [`Inputs::mask_elem`](crate::Inputs::mask_elem), `optional` is [`Inputs::optional`](crate::Inputs::optional), and `distance_gradient` asks for the
/// gradient of a distance bias too, which needs memory: [`backward`](crate::backward) asks for it in every call that has such a bias.
///
/// Shapes of other tensors and all strides are unknown here: a call that is supported panics if the index of an element of an operand exceeds 2³¹ − 1.
#[must_use]
pub fn supports(
    client: &Client,
    problem: &Problem,
    elem: ElemType,
    mask: Option<ElemType>,
    optional: usize,
    distance_gradient: bool,
) -> bool {
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
        // Two statistics of each row.
        problem.query_rows().saturating_mul(2),
    ];
    // Scratch for the gradient of a distance bias.
    let diagonals = lens
        .saturating_add(2 * LARGEST_TILE)
        .saturating_mul(2)
        .saturating_mul(problem.batch)
        .saturating_mul(problem.heads_q);
    let longest = problem.len_q.max(problem.len_kv);
    float
        && [Some(elem), mask].into_iter().flatten().all(|elem| {
            client
                .properties()
                .type_usage(elem)
                .contains(TypeUsage::Buffer)
        })
        && problem.dim_qk.max(problem.dim_v) <= LARGEST_DIM
        && problem.heads_q.is_multiple_of(problem.heads_kv)
        && sizes.iter().all(|size| (1..=LARGEST_TENSOR).contains(size))
        && (!distance_gradient || diagonals <= LARGEST_TENSOR)
        && longest <= FARTHEST
        && longest.div_ceil(Tile::SMALLEST.size) <= hardware.max_cube_count.0 as usize
        && problem.batch.saturating_mul(problem.heads_q)
            <= hardware.max_cube_count.1 as usize * hardware.max_cube_count.2 as usize
        && has_room(client, optional)
        && hardware.max_units_per_cube as usize >= UNTILED_UNITS
        && Tile::of(client, problem, Pass::Query).is_some()
        && can_split(client, problem)
}

/// The largest scratch buffer, in f32 numbers: the device's largest allocation.
pub(crate) fn largest_scratch(client: &Client) -> usize {
    LARGEST_TENSOR.min(client.properties().memory.max_page_size as usize / 4)
}

/// Whether a driver in software has grid and memory for the splits that [`MOST_TILES`] requires; true on others.
fn can_split(client: &Client, problem: &Problem) -> bool {
    let p = problem;
    let tiles = |len: usize| len.div_ceil(Tile::SMALLEST.size);
    let rows = p.query_rows().saturating_mul(p.dim_qk.max(p.dim_v).max(2));
    let columns = p.key_elements().max(p.value_elements());
    let most = client.properties().hardware.max_cube_count.0 as usize;
    let room = largest_scratch(client);
    let fits = |own: usize, others: usize, elements: usize| match others.div_ceil(MOST_TILES) {
        0 | 1 => true,
        splits => {
            tiles(own).saturating_mul(splits) <= most && elements.saturating_mul(splits) <= room
        }
    };
    !is_in_software(client)
        || fits(p.len_q, tiles(p.len_kv), rows)
            && fits(p.len_kv, p.group_size() * tiles(p.len_q), columns)
}

/// Whether the device binds `others` tensors besides the required ones.
pub(crate) fn has_room(client: &Client, others: usize) -> bool {
    REQUIRED_TENSORS + others <= client.properties().hardware.max_bindings as usize
}

#[cfg(test)]
thread_local! {
    /// Tile in place of the device's.
    pub(crate) static FORCED: core::cell::Cell<Option<Tile>> = const { core::cell::Cell::new(None) };
}

/// The passes: their kernels need different numbers of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pass {
    Forward,
    /// The gradients of query and sinks, and delta of an output that is not rounded.
    Query,
    KeyAndValue,
    Bias,
}

impl Tile {
    const SMALLEST: Self = Self::square(32, 4, 4);

    /// The fastest tile that the device can hold, if any.
    pub(crate) fn of(client: &Client, problem: &Problem, pass: Pass) -> Option<Self> {
        #[cfg(test)]
        if let Some(tile) = FORCED.get() {
            return Some(match pass {
                Pass::Bias => Self {
                    rows: 4,
                    columns: 4,
                    ..tile
                },
                _ => tile,
            });
        }
        let properties = client.properties();
        let hardware = &properties.hardware;
        let (has_planes, in_software) = (has_planes(client), is_in_software(client));
        let dim = problem.dim_qk.max(problem.dim_v);
        let scores = problem.query_rows().saturating_mul(problem.len_kv);
        // Registers limit GPUs to 8x4 numbers per unit in the forward pass and 4x4 in the others. A GPU without plane operations, such as any in
        // a browser, takes 4x4. Software drivers pay for every read of shared memory, so for many scores a unit has 8x8 numbers.
        let [rows, columns] = match pass {
            Pass::Bias => [4, 4],
            _ if in_software && scores >= MANY_SCORES => [8, 8],
            Pass::Forward if has_planes && dim <= WIDEST_OF_EIGHT_ROWS => [8, 4],
            _ => [4, 4],
        };
        let tile = |rows, columns| Self::square(LARGEST_TILE, rows, columns);
        [tile(rows, columns), tile(4, 4), Self::SMALLEST]
            .into_iter()
            .map(|tile| Self {
                ahead: reads_ahead(pass, dim),
                ..tile
            })
            .find(|tile| {
                tile.bytes() <= hardware.max_shared_memory_size
                    && tile.units() <= hardware.max_units_per_cube as usize
            })
    }
}

/// Whether registers suffice for reading a chunk ahead: without, the gradient of the query needs 128 of them in heads of up to 64 numbers, and two
/// cubes fit on a multiprocessor.
pub(crate) fn reads_ahead(pass: Pass, dim: usize) -> bool {
    match pass {
        Pass::Forward | Pass::KeyAndValue => true,
        Pass::Query => dim > WIDEST_OF_TWO_CUBES,
        Pass::Bias => false,
    }
}

/// Whether a device has plane operations: almost every GPU outside of a browser, and no driver in software.
fn has_planes(client: &Client) -> bool {
    client.properties().features.plane.contains(Plane::Ops)
}

pub(crate) fn is_in_software(client: &Client) -> bool {
    let together = client.properties().hardware.plane_size_max as usize;
    !has_planes(client) && together <= WIDEST_VECTOR
}
