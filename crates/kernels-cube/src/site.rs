//! Which tile of which head a cube has, in a grid of tiles by heads.

use cubecl::prelude::*;

use crate::{
    scoring::{Config, Scoring},
    share::{Share, share},
    tile::{Side, side},
    visible::{Place, head_of_cube, place},
};

/// The tile of queries of a cube.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Site<'a, F: Float, N: Size> {
    pub(crate) place: Place,
    /// The head of its keys and values.
    pub(crate) head_kv: usize,
    /// The first query.
    pub(crate) first: usize,
    pub(crate) share: Share,
    /// The queries of the first head, whose factor is the scale.
    pub(crate) queries: Side<'a, F, N>,
}

/// The heads of a cube, from `head` on, and the head of their keys.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct SiteOfHeads {
    pub(crate) batch: usize,
    pub(crate) head_kv: usize,
    pub(crate) head: usize,
}

/// The heads of this cube, in a grid with a cube for every `config.heads` heads that share keys. The last cube of a group may recompute heads of
/// the cube before, and write the same bits; bits may differ where a NaN or infinite value is seen by heads of one of the cubes alone.
#[cube]
pub(crate) fn site_of_heads<F: Float, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    #[comptime] config: Config,
) -> SiteOfHeads {
    let own = comptime!(config.heads);
    let heads_kv = key.shape(1);
    let group = query.shape(1) / heads_kv;
    let of_group = group.div_ceil(own);
    let cube = head_of_cube(key.shape(0) * heads_kv * of_group);
    let head_of_batch = cube / of_group;
    let head_kv = head_of_batch % heads_kv;
    SiteOfHeads {
        batch: head_of_batch / heads_kv,
        head_kv,
        head: head_kv * group + (cube % of_group * own).min(group - own),
    }
}

/// Where this cube works. The last tile goes first: with a causal mask it has the most keys.
#[cube]
pub(crate) fn site<'a, F: Float, M: Numeric, N: Size>(
    query: &'a Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    scoring: &Scoring<M>,
    #[comptime] config: Config,
) -> Site<'a, F, N> {
    let size = comptime!(config.tile_queries());
    let len_q = query.shape(2);
    let heads = site_of_heads::<F, N>(query, key, config);
    let (batch, head) = (heads.batch, heads.head);
    let tiles = len_q.div_ceil(size);
    let share = share(tiles, config);
    let first = (tiles - 1 - share.tile) * size;
    Site::<'a, F, N> {
        place: place::<M>(scoring, batch, head, len_q, key.shape(2)),
        head_kv: heads.head_kv,
        first,
        share,
        queries: side::<F, N>(query, batch, head, first, scoring.scale),
    }
}

/// The tile of keys of a cube.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct SiteOfKeys {
    pub(crate) batch: usize,
    pub(crate) head_kv: usize,
    /// Heads of queries that share the keys.
    pub(crate) group: usize,
    pub(crate) len_q: usize,
    pub(crate) len_kv: usize,
    /// The first key.
    pub(crate) first: usize,
    pub(crate) share: Share,
}

#[cube]
pub(crate) fn site_of_keys<F: Float, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    #[comptime] config: Config,
) -> SiteOfKeys {
    let size = comptime!(config.tile_keys());
    let heads_kv = key.shape(1);
    let len_kv = key.shape(2);
    let head_of_batch = head_of_cube(key.shape(0) * heads_kv);
    let share = share(len_kv.div_ceil(size), config);
    SiteOfKeys {
        batch: head_of_batch / heads_kv,
        head_kv: head_of_batch % heads_kv,
        group: query.shape(1) / heads_kv,
        len_q: query.shape(2),
        len_kv,
        first: share.tile * size,
        share,
    }
}
