//! The launches of both passes.

use cubecl::{
    client::Client,
    ir::{ElemType, FloatKind},
    prelude::{CubeDim, VectorSize},
};

use crate::{
    Gradients, Inputs, Operand, Refusal, Upstream,
    bias_gradient::{bias_gradient, distance_gradient},
    bias_part::Sums,
    call::Call,
    check,
    forward::forward as forward_kernel,
    key_gradient::key_gradient,
    matrix::{
        bias_gradient::bias_gradient as bias_gradient_by_matrix,
        forward::forward as forward_by_matrix,
        key_gradient::key_gradient as key_gradient_by_matrix,
        query_gradient::query_gradient as query_gradient_by_matrix,
    },
    operands::{dims, optional, vector_size},
    query_gradient::query_gradient,
    row_statistics::sink_gradient,
    supports::Pass,
    tile::UNTILED_UNITS,
};

/// The widest head whose gradients of key and value fit into registers together.
pub(crate) const WIDEST_OF_TWO_SUMS: usize = 128;

/// Writes the output `[batch, heads_q, len_q, dim_v]`, of the query's type, and the logsumexp `[batch, heads_q, len_q]`, in f32.
///
/// # Errors
///
/// The cause, if the device refuses a kernel. It is asked at the first call of each variant of a kernel, which waits until all earlier work is sent.
/// Later failures, such as lack of memory, appear when results are read.
///
/// # Panics
///
/// With the offending values if an input is not as its documentation says, and if [`supports`](crate::supports) says no.
pub fn forward(
    client: &Client,
    inputs: &Inputs,
    output: &Operand,
    logsumexp: &Operand,
) -> Result<(), Refusal> {
    let call = Call::new(client, inputs, Pass::Forward);
    check::results(output, logsumexp, &call.problem, inputs.query.elem);
    let size = vector_size([&inputs.query, &inputs.key, &inputs.value]);
    let call = match call.of_few_queries() {
        Some(call) => {
            call.forward_of_few_queries(output, logsumexp, size);
            call
        }
        None => {
            let call = call.with_tile_kinds();
            call.forward_of_tiles(output, logsumexp, size);
            call
        }
    };
    call.confirm(Pass::Forward, size, &[Some(output), Some(logsumexp)])
}

#[allow(unsafe_code, reason = "a launch without bounds checks")]
impl Call<'_> {
    fn forward_of_tiles(&self, output: &Operand, logsumexp: &Operand, size: VectorSize) {
        if self.splits == 1 {
            return self.launch_forward(self.inputs.sinks.as_ref(), output, logsumexp, size);
        }
        let sums = self.parts_of(output);
        let statistics = self.scratch(&[self.splits, self.problem.query_rows(), 2]);
        // The sinks are counted once, when the splits are merged.
        self.launch_forward(None, &sums, &statistics, size);
        self.merge(&sums, &statistics, output, logsumexp);
    }

    fn launch_forward(
        &self,
        sinks: Option<&Operand>,
        output: &Operand,
        logsumexp: &Operand,
        size: VectorSize,
    ) {
        let inputs = self.inputs;
        let cubes = || self.cubes(self.tiles()[2] * self.splits, self.heads_of_grid());
        let types = [inputs.query.elem, self.mask_elem(), output.elem];
        macro_rules! launch {
            ($kernel:ident, $types:expr) => {
                // SAFETY: the kernel reads and writes inside the shapes of its tensors, which `check` has compared.
                unsafe {
                    $kernel::launch_unchecked(
                        self.client,
                        cubes(),
                        self.cube_dim(),
                        size,
                        inputs.query.arg(),
                        inputs.key.arg(),
                        inputs.value.arg(),
                        optional(sinks),
                        self.scoring(),
                        output.arg(),
                        logsumexp.arg(),
                        f32::NEG_INFINITY,
                        self.config,
                        $types,
                    )
                }
            };
        }
        match self.config.matrix {
            Some(matrix) => launch!(forward_by_matrix, matrix.types(types)),
            None => launch!(forward_kernel, types),
        }
    }
}

/// Writes the gradients for which `gradients` has an operand.
///
/// In half precision, gradients of biases and sinks come from an output that is not rounded, and so does the key's if one of them is wanted. The
/// query's never does. Without the query's gradient this costs two products.
///
/// # Errors
///
/// As [`forward`].
///
/// # Panics
///
/// As [`forward`], and if a number of the wanted gradient of the dense bias is the sum of more than about 2³² tiles of scores.
pub fn backward(
    client: &Client,
    inputs: &Inputs,
    upstream: &Upstream,
    gradients: &Gradients,
) -> Result<(), Refusal> {
    let call = Call::new(client, inputs, Pass::Query);
    check::gradients(inputs, upstream, gradients, &call.problem);
    if let Some(gradient) = &gradients.bias {
        call.of_pass(Pass::Bias).check_sums(gradient);
    }
    // Gradients of a row's scores add up to 0, but not with delta of a rounded output: an error far too large for sums of gradients, such as those of
    // biases that keys share and of ALiBi's slopes. The gradient of a sink is a sum of deltas.
    let is_rounded = inputs.query.elem != ElemType::Float(FloatKind::F32);
    let biases = [gradients.bias.as_ref(), gradients.distance_bias.as_ref()];
    let has_bias = biases.iter().any(Option::is_some);
    let exact = is_rounded && (has_bias || gradients.sinks.is_some());
    let call = match gradients.query.is_some() || exact {
        true => call.with_tile_kinds(),
        false => call,
    };
    let backward = Backward {
        statistics: call.row_statistics(upstream),
        size: vector_size([
            &inputs.query,
            &inputs.key,
            &inputs.value,
            &upstream.output_gradient,
        ]),
        call,
        upstream,
    };
    let query = gradients.query.as_ref();
    // Both results bind one tensor more than each of them.
    if exact && query.is_some() && !backward.call.has_room() {
        backward.query(query, false);
        backward.query(None, true);
    } else {
        backward.query(query, exact);
    }
    if let Some((sinks, gradient)) = inputs.sinks.as_ref().zip(gradients.sinks.as_ref()) {
        backward.sinks(sinks, gradient);
    }
    let delta = exact.then_some(&backward.statistics);
    let of_rows = [query, gradients.sinks.as_ref(), delta];
    if of_rows.iter().any(Option::is_some) {
        backward.confirm(Pass::Query, &of_rows)?;
    }
    let (key, value) = (gradients.key.as_ref(), gradients.value.as_ref());
    if key.is_some() || value.is_some() {
        let backward = backward.of_pass(Pass::KeyAndValue);
        let problem = &backward.call.problem;
        let widest = match backward.call.config.matrix {
            Some(matrix) => matrix.widest_of_two_sums(),
            None => WIDEST_OF_TWO_SUMS,
        };
        if problem.dim_qk.max(problem.dim_v) <= widest && backward.call.has_room() {
            backward.key_and_value(key, value);
        } else {
            backward.key_and_value(key, None);
            backward.key_and_value(None, value);
        }
        backward.confirm(Pass::KeyAndValue, &[key, value])?;
    }
    if !has_bias {
        return Ok(());
    }
    let of_bias = backward.of_pass(Pass::Bias);
    if let Some(gradient) = &gradients.bias {
        of_bias.bias(gradient);
    }
    if let Some(gradient) = &gradients.distance_bias {
        of_bias.distance_bias(gradient);
    }
    of_bias.confirm(Pass::Bias, &biases)
}

struct Backward<'a> {
    call: Call<'a>,
    upstream: &'a Upstream,
    /// `[2, batch, heads_q, len_q]`, see [`row_statistics`](crate::row_statistics::row_statistics).
    statistics: Operand,
    size: VectorSize,
}

/// Launches a kernel of the backward pass with the arguments that all these kernels share, and `$own`.
macro_rules! launch {
    ($kernel:ident, $backward:expr, $cubes:expr, $types:expr, $($own:expr),+) => {{
        let Backward { call, upstream, .. } = $backward;
        let inputs = call.inputs;
        // SAFETY: as in `forward`.
        unsafe {
            $kernel::launch_unchecked(
                call.client,
                $cubes,
                call.cube_dim(),
                $backward.size,
                inputs.query.arg(),
                inputs.key.arg(),
                inputs.value.arg(),
                upstream.output_gradient.arg(),
                $backward.statistics.arg(),
                call.scoring(),
                $($own,)+
                call.config,
                $types,
            );
        }
    }};
}

#[allow(unsafe_code, reason = "launches without bounds checks")]
impl<'a> Backward<'a> {
    /// This pass, with the tiles of another one.
    fn of_pass(&self, pass: Pass) -> Backward<'a> {
        let call = self.call.of_pass(pass);
        // Tile sizes are powers of two: a length that is as many tiles of two different sizes is one tile of each.
        let known = self.call.tile_kinds.clone();
        let call = match known.filter(|_| call.tiles() == self.call.tiles()) {
            Some(kinds) => Call {
                tile_kinds: Some(kinds),
                ..call
            },
            None => call.with_tile_kinds(),
        };
        Backward {
            call,
            statistics: self.statistics.clone(),
            ..*self
        }
    }

    fn confirm(&self, pass: Pass, results: &[Option<&Operand>]) -> Result<(), Refusal> {
        self.call.confirm(pass, self.size, results)
    }

    /// The gradient of the query, and if `exact` delta of an output that is not rounded, in the place of that of the rounded one.
    fn query(&self, gradient: Option<&Operand>, exact: bool) {
        if gradient.is_none() && !exact {
            return;
        }
        let call = &self.call;
        let cubes = call.cubes(call.tiles()[2] * call.splits, call.heads_of_grid());
        let parts = gradient.map(|gradient| call.parts_of(gradient));
        let products = exact.then(|| {
            let p = &call.problem;
            call.scratch(&[call.splits * p.batch, p.heads_q, p.len_q, 1])
        });
        let types = self.types(parts.as_ref().unwrap_or(&call.inputs.query));
        macro_rules! launch_with_results {
            ($kernel:ident, $types:expr) => {{
                let (of_query, of_delta) = (optional(parts.as_ref()), optional(products.as_ref()));
                launch!($kernel, self, cubes, $types, of_query, of_delta)
            }};
        }
        match call.config.matrix {
            Some(matrix) => launch_with_results!(query_gradient_by_matrix, matrix.types(types)),
            None => launch_with_results!(query_gradient, types),
        }
        if let Some((parts, gradient)) = parts.zip(gradient) {
            call.add_up(&parts, gradient);
        }
        if let Some(products) = products {
            call.exact_delta(&products, self.upstream, &self.statistics);
        }
    }

    fn key_and_value(&self, key: Option<&Operand>, value: Option<&Operand>) {
        let Some(any) = key.or(value) else {
            return;
        };
        let call = &self.call;
        let heads = call.problem.batch * call.problem.heads_kv;
        let cubes = call.cubes(call.tiles()[3] * call.splits, heads);
        let parts_of = |gradient: Option<&Operand>| gradient.map(|it| call.parts_of(it));
        let (keys, values) = (parts_of(key), parts_of(value));
        let types = self.types(keys.as_ref().or(values.as_ref()).unwrap_or(any));
        macro_rules! launch_with_results {
            ($kernel:ident, $types:expr) => {{
                let (of_key, of_value) = (optional(keys.as_ref()), optional(values.as_ref()));
                launch!($kernel, self, cubes, $types, of_key, of_value)
            }};
        }
        match call.config.matrix {
            Some(matrix) => launch_with_results!(key_gradient_by_matrix, matrix.types(types)),
            None => launch_with_results!(key_gradient, types),
        }
        for (parts, gradient) in [(keys, key), (values, value)] {
            if let Some((parts, gradient)) = parts.zip(gradient) {
                call.add_up(&parts, gradient);
            }
        }
    }

    /// The types of the tensors, of the mask, and of a gradient.
    fn types(&self, gradient: &Operand) -> [ElemType; 3] {
        let call = &self.call;
        [call.inputs.query.elem, call.mask_elem(), gradient.elem]
    }

    fn bias(&self, gradient: &Operand) {
        let [batch, heads, len_q, len_kv] = dims(gradient);
        let call = &self.call;
        let [tiles_q, tiles_kv] = [len_q, len_kv].map(|len| call.config.tile.cover(len));
        let summed = Sums::of(gradient, &call.problem);
        let parts = call.parts_of(gradient);
        let heads = call.splits * batch * heads;
        self.bias_tiles(&parts, summed, tiles_q * tiles_kv, heads);
        call.add_up(&parts, gradient);
    }

    fn bias_tiles(&self, gradient: &Operand, summed: Sums, tiles: usize, heads: usize) {
        let cubes = self.call.spread(tiles * heads);
        let tiles = tiles as u32;
        let (inputs, mask) = (self.call.inputs.query.elem, self.call.mask_elem());
        macro_rules! launch_with_sums {
            ($kernel:ident, $types:expr) => {
                launch!($kernel, self, cubes, $types, gradient.arg(), tiles, summed)
            };
        }
        match self.call.config.matrix {
            Some(matrix) => {
                launch_with_sums!(bias_gradient_by_matrix, [inputs, mask, matrix.elem])
            }
            None => launch_with_sums!(bias_gradient, [inputs, mask]),
        }
    }

    fn distance_bias(&self, gradient: &Operand) {
        let (call, p) = (&self.call, &self.call.problem);
        let tile = call.config.tile;
        let tiles = tile.cover(p.len_q) + tile.cover(p.len_kv) - 1;
        let diagonals = call.scratch(&[p.batch, p.heads_q, tiles, 2 * tile.size]);
        let summed = Sums {
            diagonal: true,
            ..Sums::default()
        };
        self.bias_tiles(&diagonals, summed, tiles, p.batch * p.heads_q);
        let entries = gradient.shape.iter().product::<usize>();
        // SAFETY: as in `forward`.
        unsafe {
            distance_gradient::launch_unchecked(
                call.client,
                call.spread(entries.div_ceil(UNTILED_UNITS)),
                CubeDim::new_1d(UNTILED_UNITS as u32),
                diagonals.arg(),
                optional(call.inputs.query_offsets.as_ref()),
                gradient.arg(),
                p.len_q as u32,
                p.len_kv as u32,
                tile.size,
            );
        }
    }

    fn sinks(&self, sinks: &Operand, gradient: &Operand) {
        // SAFETY: as in `forward`.
        unsafe {
            sink_gradient::launch_unchecked(
                self.call.client,
                self.call.spread(self.call.problem.heads_q),
                CubeDim::new_1d(UNTILED_UNITS as u32),
                sinks.arg(),
                self.statistics.arg(),
                gradient.arg(),
            );
        }
    }
}
