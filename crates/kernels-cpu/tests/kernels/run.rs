//! One call of the kernels, forward and backward.

use burn_attn_kernels_cpu::{
    Blocks, Broadcast, Mask, Options,
    tiled::{
        Execution, Gradients, Inputs, Instructions, Real, Rows, RowsMut, Upstream, backward,
        forward,
    },
};

use crate::{
    case::{Case, Tensors},
    number::Number,
};

/// Every kind of vectors, 64 bytes included on any machine.
pub const INSTRUCTIONS: &[Instructions] = &[
    Instructions::Widest,
    Instructions::Portable,
    #[cfg(debug_assertions)]
    Instructions::Emulated512,
];

/// Every kind of vectors, on each of these numbers of threads.
pub fn executions(threads: &[usize]) -> Vec<Execution> {
    let on = |&threads| {
        INSTRUCTIONS.iter().map(move |&instructions| Execution {
            threads,
            instructions,
        })
    };
    threads.iter().flat_map(on).collect()
}

/// The sentence with which a call panics.
pub fn sentence(call: impl FnOnce()) -> String {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
    let panic = result.expect_err("it was refused");
    panic.downcast_ref::<String>().expect("a sentence").clone()
}

/// How the tensors lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Row-major.
    Contiguous,
    /// `[batch, len, heads, dim]` with gaps between the rows, keys and values in one buffer; bias and mask back to front.
    Strided,
    /// Row-major, but bias and mask in the full shape of the scores, with strides of 0 where they repeat.
    Expanded,
}

/// Everything that changes how a call runs, but not what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    pub instructions: Instructions,
    pub threads: usize,
    pub layout: Layout,
    /// Which gradients are asked for: of query, key, value, bias, distance bias and sinks.
    pub required: [bool; 6],
}

/// One thread, the widest vectors, contiguous tensors, all gradients.
pub const USUAL: How = How {
    instructions: Instructions::Widest,
    threads: 1,
    layout: Layout::Contiguous,
    required: [true; 6],
};

/// Without vector instructions.
pub const PORTABLE: How = How {
    instructions: Instructions::Portable,
    ..USUAL
};

/// As on a machine with AVX-512: vectors of 64 bytes, and larger blocks in the products.
#[cfg(debug_assertions)]
pub const EMULATED_512: How = How {
    instructions: Instructions::Emulated512,
    ..USUAL
};

/// A buffer of rows with the strides of its view and the element at which the view starts.
struct Buffer<T> {
    data: Vec<T>,
    strides: [usize; 3],
    start: usize,
}

impl<T> Buffer<T> {
    fn rows(&self) -> Rows<'_, T> {
        Rows::new(&self.data[self.start..], self.strides)
    }
}

/// Numbers between two rows that must not be read.
const GAP: usize = 3;

/// Tensors `[batch, heads, len, dims[n]]`, side by side in the rows of one buffer if strided.
fn buffers<T: Number, const N: usize>(
    tensors: [&[f64]; N],
    [batch, heads, len]: [usize; 3],
    dims: [usize; N],
    layout: Layout,
) -> [Buffer<T>; N] {
    if layout != Layout::Strided {
        return std::array::from_fn(|n| Buffer {
            data: elements(tensors[n]),
            strides: [heads * len * dims[n], len * dims[n], dims[n]],
            start: 0,
        });
    }
    let width = dims.iter().sum::<usize>() + GAP;
    let mut data = vec![nan::<T>(); batch * len * heads * width];
    let strides = [len * heads * width, width, heads * width];
    let mut start = 0;
    let starts: [usize; N] = std::array::from_fn(|n| {
        for (row, numbers) in tensors[n].chunks_exact(dims[n]).enumerate() {
            let at = [row / len / heads, row / len % heads, row % len];
            let offset: usize = at.iter().zip(strides).map(|(at, stride)| at * stride).sum();
            data[offset + start..][..dims[n]].copy_from_slice(&elements(numbers));
        }
        let of_tensor = start;
        start += dims[n];
        of_tensor
    });
    starts.map(|start| Buffer {
        // A tensor without rows has no elements to skip either.
        start: start.min(data.len()),
        data: data.clone(),
        strides,
    })
}

/// Where a kernel writes rows.
struct Target<T> {
    data: Vec<T>,
    sizes: [usize; 3],
    dim: usize,
    strides: [usize; 3],
}

impl<T: Number> Target<T> {
    fn new(sizes: [usize; 3], dim: usize, layout: Layout) -> Self {
        let [batch, heads, len] = sizes;
        let (strides, width) = if layout == Layout::Strided {
            let width = dim + GAP;
            ([len * heads * width, width, heads * width], width)
        } else {
            ([heads * len * dim, len * dim, dim], dim)
        };
        Self {
            data: vec![nan::<T>(); batch * heads * len * width],
            sizes,
            dim,
            strides,
        }
    }

    fn rows(&mut self) -> RowsMut<'_, T> {
        RowsMut::new(&mut self.data, self.strides)
    }

    /// The rows in row-major order.
    ///
    /// # Panics
    /// The kernel has written between them.
    fn numbers(mut self) -> Vec<f64> {
        let [batch, heads, len] = self.sizes;
        let mut numbers = Vec::new();
        for row in 0..batch * heads * len {
            let at = [row / len / heads, row / len % heads, row % len];
            let offsets = at.iter().zip(self.strides).map(|(at, stride)| at * stride);
            let row = &mut self.data[offsets.sum()..][..self.dim];
            numbers.extend(row.iter().map(|x| x.to_f64()));
            row.fill(nan());
        }
        assert!(self.data.iter().all(|x| x.to_f64().is_nan()));
        numbers
    }
}

fn nan<T: Number>() -> T {
    T::from_real(T::Real::from_f64(f64::NAN))
}

/// # Panics
/// A number changes its value: the oracle would read another.
fn elements<T: Number>(numbers: &[f64]) -> Vec<T> {
    let element = |&x: &f64| {
        let element = T::from_real(T::Real::from_f64(x));
        assert!(element.to_f64() == x || x.is_nan(), "{x} is no {}", T::NAME);
        element
    };
    numbers.iter().map(element).collect()
}

/// # Panics
/// As [`elements`].
pub fn reals<T: Number>(numbers: &[f64]) -> Vec<T::Real> {
    let real = |&x: &f64| {
        let real = T::Real::from_f64(x);
        let is_exact = real.to_f64() == x || x.is_nan();
        assert!(is_exact, "{x} is not exact for {}", T::NAME);
        real
    };
    numbers.iter().map(real).collect()
}

/// A `[batch, heads, queries, keys]` operand with its strides.
struct Operand<T> {
    data: Vec<T>,
    shape: [usize; 4],
    strides: [usize; 4],
}

impl<T: Copy> Operand<T> {
    fn new(data: &[T], shape: [usize; 4], scores: [usize; 4], layout: Layout) -> Self {
        let [batch, heads, queries, keys] = shape;
        let strides = [heads * queries * keys, queries * keys, keys, 1];
        let repeats = |axis: usize| shape[axis] == 1;
        match layout {
            Layout::Contiguous => Self {
                data: data.to_vec(),
                shape,
                strides,
            },
            Layout::Strided => {
                let mut back_to_front = data.to_vec();
                let reversed = [1, batch, batch * heads, batch * heads * queries];
                for (flat, &x) in data.iter().enumerate() {
                    let offset = |axis: usize| flat / strides[axis] % shape[axis] * reversed[axis];
                    back_to_front[(0..4).map(offset).sum::<usize>()] = x;
                }
                Self {
                    data: back_to_front,
                    shape,
                    strides: reversed,
                }
            }
            Layout::Expanded => Self {
                data: data.to_vec(),
                shape: scores,
                strides: std::array::from_fn(|axis| if repeats(axis) { 0 } else { strides[axis] }),
            },
        }
    }

    fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    fn broadcast(&self) -> Broadcast<'_, T> {
        Broadcast::strided(&self.data, self.shape, self.strides).unwrap()
    }
}

/// Runs the kernels in the precision of `T`.
pub fn run<T: Number>(case: &Case, how: How) -> Tensors {
    let p = case.problem;
    let execution = Execution {
        threads: how.threads,
        instructions: how.instructions,
    };
    let of_queries = [p.batch, p.heads_q, p.len_q];
    let of_keys = [p.batch, p.heads_kv, p.len_kv];
    let [q] = buffers::<T, 1>([&case.query], of_queries, [p.dim_qk], how.layout);
    let pairs = [case.key.as_slice(), &case.value];
    let [k, v] = buffers::<T, 2>(pairs, of_keys, [p.dim_qk, p.dim_v], how.layout);
    let masked = case.masked.as_ref();
    let masked = masked.map(|(shape, data)| Operand::new(data, *shape, case.scores(), how.layout));
    let blocks = case.visible_blocks.as_ref();
    let blocks = blocks.map(|(shape, data, size)| {
        let table = Operand::new(data, *shape, case.table(*size), how.layout);
        (table, *size)
    });
    let bias = case.bias.as_ref();
    let bias = bias
        .map(|(shape, data)| Operand::new(&reals::<T>(data), *shape, case.scores(), how.layout));
    let distance_bias = case.distance_bias().map(|data| reals::<T>(&data));
    let sinks = case.sinks.as_ref().map(|data| reals::<T>(data));
    let inputs = Inputs {
        problem: p,
        q: q.rows(),
        k: k.rows(),
        v: v.rows(),
        options: Options {
            mask: Mask {
                blocks: blocks.as_ref().map(|(table, size)| Blocks {
                    visible: table.broadcast(),
                    size: *size,
                }),
                masked: masked.as_ref().map(Operand::broadcast),
                ..case.mask()
            },
            bias: bias.as_ref().map(Operand::broadcast),
            sinks: sinks.as_deref(),
            softcap: case.softcap,
            scale: case.scale,
            dropout: case.dropout,
        },
        distance_bias: distance_bias.as_deref(),
        // The oracle has no functions: `tests/op` compares them with formulas.
        score_function: None,
        visible_function: None,
    };

    let mut output = Target::<T>::new(of_queries, p.dim_v, how.layout);
    let mut logsumexp = vec![T::Real::from_f64(f64::NAN); p.query_rows()];
    let (rows, logs) = (output.rows(), logsumexp.as_mut_slice());
    forward(&inputs, rows, logs, execution).unwrap();

    let wide = output.numbers();
    let [of_output] = buffers::<T, 1>([&wide], of_queries, [p.dim_v], how.layout);
    let incoming = [case.output_gradient.as_slice()];
    let [incoming] = buffers::<T, 1>(incoming, of_queries, [p.dim_v], how.layout);
    let of_logsumexp = case
        .logsumexp_gradient
        .as_ref()
        .map(|data| reals::<T>(data));
    let upstream = Upstream {
        output: of_output.rows(),
        logsumexp: &logsumexp,
        output_gradient: incoming.rows(),
        logsumexp_gradient: of_logsumexp.as_deref(),
    };
    let [for_q, for_k, for_v, for_bias, for_distance, for_sinks] = how.required;
    let target =
        |required: bool, sizes, dim| required.then(|| Target::<T>::new(sizes, dim, how.layout));
    let mut q_gradient = target(for_q, of_queries, p.dim_qk);
    let mut k_gradient = target(for_k, of_keys, p.dim_qk);
    let mut v_gradient = target(for_v, of_keys, p.dim_v);
    let real_gradient = |required: bool, len: Option<usize>| {
        let len = len.filter(|_| required)?;
        Some(vec![T::Real::from_f64(f64::NAN); len])
    };
    let of_bias = bias.as_ref().map(Operand::elements);
    let mut bias_gradient = real_gradient(for_bias, of_bias);
    let of_distance = distance_bias.as_ref().map(Vec::len);
    let mut distance_gradient = real_gradient(for_distance, of_distance);
    let mut sinks_gradient = real_gradient(for_sinks, sinks.as_ref().map(Vec::len));
    let gradients = Gradients {
        q: q_gradient.as_mut().map(Target::rows),
        k: k_gradient.as_mut().map(Target::rows),
        v: v_gradient.as_mut().map(Target::rows),
        bias: bias_gradient.as_deref_mut(),
        distance_bias: distance_gradient.as_deref_mut(),
        sinks: sinks_gradient.as_deref_mut(),
        captured: None,
    };
    backward(&inputs, &upstream, gradients, execution).unwrap();

    let of_reals = |data: Vec<T::Real>| data.iter().map(|x| x.to_f64()).collect();
    let all = [
        ("output", Some(wide)),
        ("logsumexp", Some(of_reals(logsumexp))),
        ("query gradient", q_gradient.map(Target::numbers)),
        ("key gradient", k_gradient.map(Target::numbers)),
        ("value gradient", v_gradient.map(Target::numbers)),
        ("bias gradient", bias_gradient.map(of_reals)),
        ("distance bias gradient", distance_gradient.map(of_reals)),
        ("sinks gradient", sinks_gradient.map(of_reals)),
    ];
    let present = all.into_iter();
    present
        .filter_map(|(name, data)| Some((name, data?)))
        .collect()
}

/// The results to the last bit.
pub fn bits(tensors: &Tensors) -> Vec<(&'static str, Vec<u64>)> {
    let of_tensor = |data: &Vec<f64>| data.iter().map(|x| x.to_bits()).collect();
    let named = tensors.iter();
    named.map(|(name, data)| (*name, of_tensor(data))).collect()
}
