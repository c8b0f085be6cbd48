//! What the host does: choose tiles, launch kernels.

use burn_attn_kernels_cpu::Problem;
use cubecl::{
    client::Client,
    features::Plane,
    ir::{ElemType, FloatKind, UIntKind},
    prelude::{ComptimeOptionArgs, CubeCount, CubeDim, TensorArg, VectorSize},
};

use crate::{
    Gradients, Inputs, Operand, Upstream,
    bias_gradient::{Sums, bias_gradient, distance_gradient},
    forward::forward as forward_kernel,
    key_gradient::key_gradient,
    query_gradient::query_gradient,
    row_terms::{UNITS, row_terms as row_terms_kernel, sink_gradient},
    score::{Config, ScoringLaunch},
    tile::Tile,
};

/// The largest head: wider ones would not fit into registers.
const LARGEST_DIM: usize = 256;

/// The widest head whose output fits into registers with eight rows per unit.
const WIDEST_OF_EIGHT_ROWS: usize = 128;

/// The widest head whose gradients of key and value fit into registers together.
const WIDEST_OF_TWO_SUMS: usize = 128;

/// Tensors of every call, at most: query, key, value, two statistics, and three gradients.
const REQUIRED_TENSORS: usize = 8;

/// Elements of the largest tensor: indices are 32 bits wide, some with a sign.
const LARGEST_TENSOR: usize = i32::MAX as usize;

/// Whether the kernels can compute this call on this device, forward and backward. `elem` is the type of the query, `optional`
/// counts the optional tensors among the inputs.
#[must_use]
pub fn supports(client: &Client, problem: &Problem, elem: ElemType, optional: usize) -> bool {
    let hardware = &client.properties().hardware;
    let float = matches!(
        elem,
        ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16)
    );
    let sizes = [
        problem.query_elements(),
        problem.key_elements(),
        problem.value_elements(),
        problem.output_elements(),
    ];
    float
        && problem.dim_qk.max(problem.dim_v) <= LARGEST_DIM
        && sizes.iter().all(|size| (1..=LARGEST_TENSOR).contains(size))
        && REQUIRED_TENSORS + optional <= hardware.max_bindings as usize
        && Tile::of(client, LARGEST_DIM, Pass::Backward).is_some()
}

/// The passes, whose kernels need different numbers of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Forward,
    Backward,
}

impl Tile {
    /// The fastest that the device can hold.
    fn of(client: &Client, dim: usize, pass: Pass) -> Option<Self> {
        let properties = client.properties();
        let hardware = &properties.hardware;
        // Eight rows read less shared memory for every multiplication, but only the forward pass has the registers. A device
        // without planes is a processor, for which the longer program only takes longer to compile.
        let eight = pass == Pass::Forward
            && dim <= WIDEST_OF_EIGHT_ROWS
            && properties.features.plane.contains(Plane::Ops);
        [
            eight.then_some(Tile { size: 64, rows: 8 }),
            Some(Tile { size: 64, rows: 4 }),
            Some(Tile { size: 32, rows: 4 }),
        ]
        .into_iter()
        .flatten()
        .find(|tile| {
            tile.bytes() <= hardware.max_shared_memory_size
                && tile.units() <= hardware.max_units_per_cube as usize
        })
    }
}

/// Everything about a call that its kernels share.
struct Call<'a> {
    client: &'a Client,
    inputs: &'a Inputs,
    problem: Problem,
    config: Config,
}

impl<'a> Call<'a> {
    fn new(client: &'a Client, inputs: &'a Inputs, pass: Pass) -> Self {
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
        let tile = Tile::of(client, dim_qk.max(dim_v), pass).expect("the call is supported");
        let config = Config {
            tile,
            parts_qk: tile.cover(dim_qk),
            parts_v: tile.cover(dim_v),
            softcap: inputs.softcap.is_some(),
            dropout: inputs.dropout.is_some(),
        };
        Self {
            client,
            inputs,
            problem,
            config,
        }
    }

    fn scoring<M: cubecl::prelude::Numeric>(&self) -> ScoringLaunch<M> {
        let inputs = self.inputs;
        let Problem {
            batch,
            heads_q,
            len_q,
            len_kv,
            ..
        } = self.problem;
        let all = [batch, heads_q, len_q, len_kv];
        let over_all =
            |operand: &Option<Operand>| operand.as_ref().map(|operand| operand.broadcast(all));
        let [query_segments, key_segments] = match &inputs.segments {
            Some([query, key]) => [Some(query), Some(key)],
            None => [None, None],
        };
        let reach = inputs.by_position.reach();
        // Nothing is farther away than this.
        let farthest = LARGEST_TENSOR / 4;
        let distance = |reach: Option<usize>| reach.unwrap_or(farthest).min(farthest) as i32;
        let seed = inputs.dropout.map_or(0, |dropout| dropout.seed);
        ScoringLaunch::new(
            over_all(&inputs.bias).into(),
            optional(inputs.distance_bias.as_ref()),
            over_all(&inputs.masked).into(),
            optional(inputs.key_lengths.as_ref()),
            optional(inputs.query_offsets.as_ref()),
            optional(query_segments),
            optional(key_segments),
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

    /// The type of the mask's elements; any will do where there is none.
    fn mask_elem(&self) -> ElemType {
        let masked = self.inputs.masked.as_ref();
        masked.map_or(ElemType::UInt(UIntKind::U32), |masked| masked.elem)
    }

    /// Cubes for `tiles` tiles of `heads` heads: a device has no more than 65535 in a dimension.
    fn cubes(&self, tiles: usize, heads: usize) -> CubeCount {
        let most = self.client.properties().hardware.max_cube_count.1 as usize;
        let y = heads.min(most);
        CubeCount::Static(tiles as u32, y as u32, heads.div_ceil(y) as u32)
    }

    fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.config.tile.units() as u32)
    }
}

/// Writes the output `[batch, heads_q, len_q, dim_v]`, of the query's type, and the logsumexp `[batch, heads_q, len_q]`, in f32.
/// Sizes of zero are not allowed.
#[allow(unsafe_code, reason = "a launch without bounds checks")]
pub fn forward(client: &Client, inputs: &Inputs, output: &Operand, logsumexp: &Operand) {
    let call = Call::new(client, inputs, Pass::Forward);
    let Problem {
        batch,
        heads_q,
        len_q,
        ..
    } = call.problem;
    let heads = batch * heads_q;
    let operands = [&inputs.query, &inputs.key, &inputs.value];
    let size = vector_size(operands);
    let [query, key, value] = operands.map(Operand::arg);
    // SAFETY: the kernel reads and writes inside the shapes of its tensors, which `Operand`s describe.
    unsafe {
        forward_kernel::launch_unchecked(
            client,
            call.cubes(len_q.div_ceil(call.config.tile.size), heads),
            call.cube_dim(),
            size,
            query,
            key,
            value,
            optional(inputs.sinks.as_ref()),
            call.scoring(),
            output.arg(),
            logsumexp.arg(),
            f32::NEG_INFINITY,
            heads as u32,
            call.config,
            [inputs.query.elem, call.mask_elem()],
        );
    }
}

/// Writes the gradients that have a place to go to. Sizes of zero are not allowed.
pub fn backward(client: &Client, inputs: &Inputs, upstream: &Upstream, gradients: &Gradients) {
    let call = Call::new(client, inputs, Pass::Backward);
    let backward = Backward {
        terms: call.row_terms(upstream),
        size: vector_size([
            &inputs.query,
            &inputs.key,
            &inputs.value,
            &upstream.output_gradient,
        ]),
        call,
        upstream,
    };
    if let Some(gradient) = &gradients.query {
        backward.query(gradient);
    }
    let (key, value) = (gradients.key.as_ref(), gradients.value.as_ref());
    if backward
        .call
        .problem
        .dim_qk
        .max(backward.call.problem.dim_v)
        <= WIDEST_OF_TWO_SUMS
    {
        backward.key_and_value(key, value);
    } else {
        backward.key_and_value(key, None);
        backward.key_and_value(None, value);
    }
    if let Some(gradient) = &gradients.bias {
        backward.bias(gradient);
    }
    if let Some(gradient) = &gradients.distance_bias {
        backward.distance_bias(gradient);
    }
    if let Some((sinks, gradient)) = inputs.sinks.as_ref().zip(gradients.sinks.as_ref()) {
        backward.sinks(sinks, gradient);
    }
}

/// A backward pass.
struct Backward<'a> {
    call: Call<'a>,
    upstream: &'a Upstream,
    /// `[batch, heads_q, len_q]`
    terms: Operand,
    size: VectorSize,
}

impl Call<'_> {
    #[allow(unsafe_code, reason = "a launch without bounds checks")]
    fn row_terms(&self, upstream: &Upstream) -> Operand {
        let terms = self.scratch(&upstream.logsumexp.shape);
        let rows = self.problem.query_rows();
        // SAFETY: as in `forward`.
        unsafe {
            row_terms_kernel::launch_unchecked(
                self.client,
                self.spread(rows.div_ceil(UNITS)),
                CubeDim::new_1d(UNITS as u32),
                upstream.output.arg(),
                upstream.output_gradient.arg(),
                upstream.logsumexp_gradient.arg(),
                terms.arg(),
                self.inputs.query.elem,
            );
        }
        terms
    }

    /// Memory for f32, row-major.
    fn scratch(&self, shape: &[usize]) -> Operand {
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
    fn spread(&self, cubes: usize) -> CubeCount {
        let most = self.client.properties().hardware.max_cube_count.0 as usize;
        let x = cubes.min(most);
        CubeCount::Static(x as u32, cubes.div_ceil(x) as u32, 1)
    }
}

#[allow(unsafe_code, reason = "launches without bounds checks")]
impl Backward<'_> {
    fn query(&self, gradient: &Operand) {
        let Self { call, upstream, .. } = self;
        let (inputs, problem) = (call.inputs, call.problem);
        let heads = problem.batch * problem.heads_q;
        // SAFETY: as in `forward`.
        unsafe {
            query_gradient::launch_unchecked(
                call.client,
                call.cubes(problem.len_q.div_ceil(call.config.tile.size), heads),
                call.cube_dim(),
                self.size,
                inputs.query.arg(),
                inputs.key.arg(),
                inputs.value.arg(),
                upstream.output_gradient.arg(),
                upstream.logsumexp.arg(),
                self.terms.arg(),
                call.scoring(),
                gradient.arg(),
                heads as u32,
                call.config,
                [inputs.query.elem, call.mask_elem()],
            );
        }
    }

    fn key_and_value(&self, key: Option<&Operand>, value: Option<&Operand>) {
        if key.is_none() && value.is_none() {
            return;
        }
        let Self { call, upstream, .. } = self;
        let (inputs, problem) = (call.inputs, call.problem);
        let heads = problem.batch * problem.heads_kv;
        // SAFETY: as in `forward`.
        unsafe {
            key_gradient::launch_unchecked(
                call.client,
                call.cubes(problem.len_kv.div_ceil(call.config.tile.size), heads),
                call.cube_dim(),
                self.size,
                inputs.query.arg(),
                inputs.key.arg(),
                inputs.value.arg(),
                upstream.output_gradient.arg(),
                upstream.logsumexp.arg(),
                self.terms.arg(),
                call.scoring(),
                optional(key),
                optional(value),
                heads as u32,
                call.config,
                [inputs.query.elem, call.mask_elem()],
            );
        }
    }

    fn bias(&self, gradient: &Operand) {
        let problem = self.call.problem;
        let [batch, heads, len_q, len_kv] = dims(gradient);
        let summed = Sums {
            diagonal: false,
            batches: batch < problem.batch,
            heads: heads < problem.heads_q,
            queries: len_q < problem.len_q,
            keys: len_kv < problem.len_kv,
        };
        let tiles = |len: usize| len.div_ceil(self.call.config.tile.size);
        self.bias_tiles(
            gradient,
            summed,
            tiles(len_q) * tiles(len_kv),
            batch * heads,
        );
    }

    fn bias_tiles(&self, gradient: &Operand, summed: Sums, tiles: usize, heads: usize) {
        let Self { call, upstream, .. } = self;
        let inputs = call.inputs;
        // SAFETY: as in `forward`.
        unsafe {
            bias_gradient::launch_unchecked(
                call.client,
                call.cubes(tiles, heads),
                call.cube_dim(),
                self.size,
                inputs.query.arg(),
                inputs.key.arg(),
                inputs.value.arg(),
                upstream.output_gradient.arg(),
                upstream.logsumexp.arg(),
                self.terms.arg(),
                call.scoring(),
                gradient.arg(),
                heads as u32,
                summed,
                call.config,
                [inputs.query.elem, call.mask_elem()],
            );
        }
    }

    fn distance_bias(&self, gradient: &Operand) {
        let Self { call, .. } = self;
        let Problem {
            batch,
            heads_q,
            len_q,
            len_kv,
            ..
        } = call.problem;
        let size = call.config.tile.size;
        let tiles = len_q.div_ceil(size) + len_kv.div_ceil(size) - 1;
        let diagonals = call.scratch(&[batch, heads_q, tiles, 2 * size]);
        let summed = Sums {
            diagonal: true,
            batches: false,
            heads: false,
            queries: false,
            keys: false,
        };
        self.bias_tiles(&diagonals, summed, tiles, batch * heads_q);
        let entries = gradient.shape.iter().product::<usize>();
        // SAFETY: as in `forward`.
        unsafe {
            distance_gradient::launch_unchecked(
                call.client,
                call.spread(entries.div_ceil(UNITS)),
                CubeDim::new_1d(UNITS as u32),
                diagonals.arg(),
                optional(call.inputs.query_offsets.as_ref()),
                gradient.arg(),
                len_q as u32,
                len_kv as u32,
                size,
            );
        }
    }

    fn sinks(&self, sinks: &Operand, gradient: &Operand) {
        // SAFETY: as in `forward`.
        unsafe {
            sink_gradient::launch_unchecked(
                self.call.client,
                CubeCount::Static(self.call.problem.heads_q as u32, 1, 1),
                CubeDim::new_1d(UNITS as u32),
                sinks.arg(),
                self.upstream.logsumexp.arg(),
                self.terms.arg(),
                gradient.arg(),
            );
        }
    }
}

/// Numbers that a unit reads at a time: 4 if every row of every operand begins at a multiple of 4.
fn vector_size<const N: usize>(operands: [&Operand; N]) -> VectorSize {
    let aligned = |operand: &Operand| {
        let bytes = operand.handle.offset_start.unwrap_or(0) as usize;
        let [.., dim] = dims(operand);
        let strides = &operand.strides[..3];
        let shape = &operand.shape[..3];
        let mut outer = strides.iter().zip(shape).filter(|(_, size)| **size > 1);
        dim.is_multiple_of(4)
            && outer.all(|(stride, _)| stride.is_multiple_of(4))
            && bytes.is_multiple_of(4 * operand.elem.size())
    };
    match operands.into_iter().all(aligned) {
        true => 4,
        false => 1,
    }
}

fn dims(operand: &Operand) -> [usize; 4] {
    operand.shape[..]
        .try_into()
        .expect("the operand has four dimensions")
}

fn optional<T: cubecl::prelude::LaunchArg<RuntimeArg = TensorArg>>(
    operand: Option<&Operand>,
) -> ComptimeOptionArgs<T> {
    operand.map(Operand::arg).into()
}

impl Operand {
    #[allow(
        unsafe_code,
        reason = "a tensor of a kernel is raw memory with a shape"
    )]
    fn arg(&self) -> TensorArg {
        // SAFETY: whoever makes an operand says that its shape and strides are those of its memory.
        unsafe {
            TensorArg::from_raw_parts(
                self.handle.clone(),
                self.strides.iter().copied().collect(),
                self.shape.iter().copied().collect(),
            )
        }
    }

    /// With strides of 0 in place of sizes of 1.
    fn broadcast(&self, shape: [usize; 4]) -> TensorArg {
        let strides = self.strides.iter().zip(&self.shape);
        let strides = strides.map(|(&stride, &size)| if size == 1 { 0 } else { stride });
        Self {
            strides: strides.collect(),
            shape: shape.to_vec(),
            ..self.clone()
        }
        .arg()
    }
}
