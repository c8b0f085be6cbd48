//! One call: sizes, options, and what a test forces; and the same call in half precision.

use burn_attn_kernels_cpu::{CausalAlignment, Problem, Window};
use cubecl::{
    client::Client,
    ir::{ElemType, FloatKind, features::MmaConfig},
};

use super::device::{F32, client};
use crate::{
    cubes::FORCED_SPLITS,
    matrix::shape::{FORCED_MATRIX, Forced, Matrix},
    supports::{FORCED, Pass},
    tile::Tile,
};

/// Forces nothing but whole tiles through registers, and these only if `ahead`.
pub fn read_ahead(ahead: bool) -> Forced {
    Forced {
        ahead,
        ..Forced::default()
    }
}

/// A call: sizes, options, and what a test forces.
#[derive(Clone, Debug)]
pub struct Case {
    pub problem: Problem,
    pub causal: Option<CausalAlignment>,
    pub window: Option<Window>,
    pub lengths: bool,
    /// Whether the first keys stay causal; batch item `i` has `3 + 40 · i` of them.
    pub first_keys: Option<bool>,
    /// Whether keys and values that lengths hide are NaN.
    pub padding_is_nan: bool,
    /// Whether queries that see no key are NaN, and so the gradients of their outputs and, without sinks, of their logsumexps. There must be some.
    pub unseeing_are_nan: bool,
    /// Index of a number of the values that is NaN.
    pub nan_value: Option<usize>,
    /// Query, key and value are `[batch, len, heads, dim]` in memory, with this many numbers of padding after each row.
    pub interleaved: Option<usize>,
    /// Position of the first query of the first batch item; the positions of the batch items are 7 apart.
    pub offsets: Option<i64>,
    pub segments: bool,
    /// Which dimensions are whole; the others have size 1.
    pub masked: Option<[bool; 4]>,
    pub bias: Option<[bool; 4]>,
    /// Size of the blocks of a table.
    pub blocks: Option<[usize; 2]>,
    pub alibi: bool,
    pub sinks: bool,
    pub softcap: Option<f64>,
    pub dropout: Option<f64>,
    /// Factor on the gradients of output and logsumexp, a power of two.
    pub upstream: f64,
    /// Factor on the keys, whose inverse the queries have: a power of two.
    pub keys: f64,
    /// Whether the first number of each key and value is up to 65,504, the largest in f16. The first numbers of queries and of the output's gradients
    /// are as much smaller.
    pub largest: bool,
    /// Type of query, key, value, output and their gradients.
    pub elem: ElemType,
    /// Tile in place of the device's.
    pub tile: Option<Tile>,
    /// What is forced on matrix units.
    pub matrix: Forced,
    /// Splits in place of the call's. On matrix units as many heads are in a cube as fit then.
    pub splits: Option<usize>,
    /// Whether the backward pass runs, too.
    pub gradients: bool,
    /// Whether gradients of biases and sinks alone are wanted.
    pub frozen: bool,
}

impl Case {
    /// Sizes `[batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v]`.
    pub fn new([batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v]: [usize; 7]) -> Self {
        Self {
            problem: Problem {
                batch,
                heads_q,
                heads_kv,
                len_q,
                len_kv,
                dim_qk,
                dim_v,
            },
            causal: None,
            window: None,
            lengths: false,
            first_keys: None,
            padding_is_nan: false,
            unseeing_are_nan: false,
            nan_value: None,
            interleaved: None,
            offsets: None,
            segments: false,
            masked: None,
            bias: None,
            blocks: None,
            alibi: false,
            sinks: false,
            softcap: None,
            dropout: None,
            upstream: 1.0,
            keys: 1.0,
            largest: false,
            elem: F32,
            tile: None,
            matrix: Forced::default(),
            splits: None,
            gradients: true,
            frozen: false,
        }
    }

    /// Runs `call` with what the case forces.
    pub fn forced<T>(&self, call: impl FnOnce() -> T) -> T {
        FORCED.set(self.tile);
        FORCED_SPLITS.set(self.splits);
        FORCED_MATRIX.set(self.matrix);
        let result = call();
        FORCED.set(None);
        FORCED_SPLITS.set(None);
        FORCED_MATRIX.set(Forced::default());
        result
    }
}

/// The case in each type of half precision that the device's matrix units multiply. Fails if the call would not use them.
pub fn in_halves(case: &Case) -> Vec<Case> {
    let Some(client) = client() else {
        return Vec::new();
    };
    let properties = client.properties();
    let hardware = &properties.hardware;
    let (least, most) = (hardware.plane_size_min, hardware.plane_size_max);
    let listed = &properties.features.matmul.cmma;
    let halves = [FloatKind::F16, FloatKind::BF16].map(ElemType::Float);
    let halves = halves.into_iter().filter(|elem| {
        let types = [*elem, *elem, ElemType::Float(FloatKind::F32)];
        let of_types = |it: &&MmaConfig| [it.a_type, it.b_type, it.cd_type] == types;
        let mut sizes = listed.iter().filter(of_types);
        let is_square = |it: &MmaConfig| it.m == it.n && least.is_multiple_of(it.m);
        let whole = |it: &MmaConfig| [it.m, it.k].iter().all(|size| [8, 16].contains(size));
        least == most && sizes.any(|it| is_square(it) && whole(it))
    });
    let cases: Vec<_> = halves
        .map(|elem| Case {
            elem,
            ..case.clone()
        })
        .collect();
    for case in &cases {
        matrices(&client, case);
    }
    if cases.is_empty() {
        assert!(
            std::env::var_os("BURN_ATTN_NEEDS_MATRIX_UNITS").is_none(),
            "the device has no matrix units"
        );
        eprintln!("skipped: the device has no matrix units");
    }
    cases
}

/// The products of the passes, with what the case forces. Fails if matrix units are not used.
pub fn matrices(client: &Client, case: &Case) -> [Matrix; 4] {
    let (properties, problem, elem) = (client.properties(), &case.problem, case.elem);
    [Pass::Forward, Pass::Query, Pass::KeyAndValue, Pass::Bias].map(|pass| {
        let found = case.forced(|| Matrix::of(properties, problem, elem, pass));
        found
            .unwrap_or_else(|| panic!("{pass:?} of {elem} with {problem:?}"))
            .1
    })
}
