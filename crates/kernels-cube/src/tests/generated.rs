//! The kernels on matrix units, and in f32 without, compiled to CUDA C++ and MSL, which needs no device with matrix units.
//!
//! `BURN_ATTN_SOURCES=FOLDER cargo test -p burn-attn-kernels-cube --features wgpu generated` writes the sources there, and
//! `count_registers.py FOLDER` compiles them.

use std::sync::Arc;

use burn_attn_kernels_cpu::{AttentionDropout, BlockSize, Problem};
use cubecl::{
    Compiler,
    client::Client,
    ir::{DeviceProperties, ElemType, FloatKind, TargetProperties},
    prelude::{CubeCount, CubeKernel},
};
use cubecl_cpp::{
    shared::{CompilationOptions, ComputeKernel, CppCompiler},
    target::{Cuda, Metal},
};

use super::{
    case::Case,
    device::{F32, I32, U32, client, listing, reals, unwritten, upload},
};
use crate::{
    Inputs,
    bias_gradient::bias_gradient,
    bias_part::Sums,
    call::Call,
    forward::forward,
    key_gradient::key_gradient,
    launch::WIDEST_OF_TWO_SUMS,
    matrix::{
        bias_gradient::bias_gradient as bias_gradient_by_matrix,
        forward::forward as forward_by_matrix,
        key_gradient::key_gradient as key_gradient_by_matrix,
        query_gradient::query_gradient as query_gradient_by_matrix,
        shape::{Forced, Matrix},
    },
    operands::optional,
    query_gradient::query_gradient,
    supports::{Pass, reads_ahead},
    tile::Tile,
};

/// A language, and a device with matrix units whose kernels are in it.
struct Language {
    /// The call of a product.
    product: &'static str,
    /// Types of numbers that are multiplied, and sizes `[m, n, k]` of their products.
    sizes: &'static [(ElemType, [u32; 3])],
    /// Type of two numbers as which one in f32 is multiplied.
    pieces: Option<ElemType>,
    shared_memory: usize,
    extension: &'static str,
    compiled: fn(&dyn CubeKernel) -> ComputeKernel,
}

const LANGUAGES: [Language; 2] = [
    Language {
        product: "mma_sync(",
        sizes: &[(F16, [16; 3]), (BF16, [16; 3]), (TF32, [16, 16, 8])],
        pieces: Some(TF32),
        shared_memory: 227 << 10,
        extension: "cu",
        compiled: compiled::<CppCompiler<Cuda>>,
    },
    Language {
        product: "simdgroup_multiply_accumulate(",
        sizes: &[(F16, [8; 3]), (F32, [8; 3])],
        pieces: None,
        shared_memory: 32 << 10,
        extension: "metal",
        compiled: compiled::<CppCompiler<Metal>>,
    },
];

fn compiled<C>(kernel: &dyn CubeKernel) -> ComputeKernel
where
    C: Compiler<Representation = ComputeKernel, CompilationOptions = CompilationOptions> + Default,
{
    let compiled = C::default().compile(kernel.define(), &CompilationOptions::default());
    compiled.unwrap()
}

const F16: ElemType = ElemType::Float(FloatKind::F16);
const BF16: ElemType = ElemType::Float(FloatKind::BF16);
const TF32: ElemType = ElemType::Float(FloatKind::TF32);

/// Inputs with each option that is compiled into a kernel, by name.
fn options(client: &Client) -> Vec<(&'static str, Inputs)> {
    let floats = |shape: &[usize]| Some(unwritten(client, F32, shape));
    let ints = |shape: &[usize]| {
        let data = vec![0i32; shape.iter().product()];
        Some(upload(client, &data, shape, I32))
    };
    let hidden = |shape: &[usize]| {
        let data = vec![0u32; shape.iter().product()];
        upload(client, &data, shape, U32)
    };
    let tensor = || unwritten(client, F32, &[1, 2, 128, 64]);
    let plain = || Inputs::new(tensor(), tensor(), tensor(), 0.1);
    let mut options = Vec::new();
    let mut with = |name, change: &dyn Fn(&mut Inputs)| {
        let mut inputs = plain();
        change(&mut inputs);
        options.push((name, inputs));
    };
    let dropout = AttentionDropout {
        probability: 0.1,
        seed: 7,
    };
    let blocks = || Some((hidden(&[1, 2, 2, 2]), BlockSize::from([64, 64])));
    with("_bias", &|it| it.bias = floats(&[1, 2, 128, 128]));
    with("_broadcast_bias", &|it| it.bias = floats(&[1, 1, 1, 128]));
    with("_distances", &|it| it.distance_bias = floats(&[2, 255]));
    with("_sinks", &|it| it.sinks = floats(&[2]));
    with("_mask", &|it| it.masked = Some(hidden(&[1, 2, 128, 128])));
    with("_blocks", &|it| it.visible_blocks = blocks());
    with("_lengths", &|it| it.key_lengths = ints(&[1]));
    with("_first_keys", &|it| it.first_keys = ints(&[1]));
    with("_offsets", &|it| it.query_offsets = ints(&[1]));
    with("_segments", &|it| it.segments = ints(&[1, 256]));
    with("_softcap", &|it| it.softcap = Some(30.0));
    with("_dropout", &|it| it.dropout = Some(dropout));
    with("_heads", &|it| {
        it.query = unwritten(client, F32, &[1, 8, 5, 64]);
    });
    with("_kinds", &|it| it.visible_blocks = blocks());
    with("_many_heads", &|it| {
        it.query = unwritten(client, F32, &[1, 16, 16, 64]);
    });
    for name in ["_splits", "_value", "_delta"] {
        with(name, &|_| ());
    }
    options
}

/// The passes whose kernels [`options`] of this name change.
fn passes(name: &str) -> &'static [Pass] {
    match name {
        "_delta" => &[Pass::Query],
        "_value" => &[Pass::KeyAndValue],
        "_many_heads" => &[Pass::Forward],
        "_splits" | "_small" => &[Pass::Forward, Pass::Query, Pass::KeyAndValue],
        _ => &[Pass::Forward, Pass::Query, Pass::KeyAndValue, Pass::Bias],
    }
}

/// Products in a source with tiles of dot products and tiles of weights times rows: one for each fragment, or one for each iteration of a loop that is not
/// unrolled, and three where a number has two pieces.
fn products([dots, sums]: [usize; 2], matrix: Matrix, dim: usize) -> usize {
    let (columns, steps) = match matrix.unrolled {
        true => (matrix.columns / matrix.n, matrix.columns / matrix.k),
        false => (matrix.together, 1),
    };
    let of_dots = columns * (dim / matrix.k);
    let of_sums = steps * (dim / matrix.n);
    let of_pieces = if matrix.pieces > 1 { 3 } else { 1 };
    of_pieces * (dots * of_dots + sums * of_sums)
}

/// The kernel of a pass on such a device for inputs of a type, and how many products its source has.
fn kernel(
    device: &Arc<DeviceProperties>,
    client: &Client,
    (name, inputs): &(&str, Inputs),
    elem: ElemType,
    pass: Pass,
) -> (Box<dyn CubeKernel>, usize) {
    let shape = &inputs.query.shape;
    let tensor = || unwritten(client, F32, shape);
    let rows = reals(client, &[0.0; 512], F32, &[2, 1, 2, 128]).arg();
    let mut call = Call::new(client, inputs, pass);
    let heads = match pass {
        Pass::Forward => call.problem.group_size(),
        _ => 1,
    };
    let of_tile = Problem {
        len_q: heads * call.problem.len_q,
        ..call.problem
    };
    let of_matrix = Matrix::of(device, &of_tile, elem, pass);
    call.config.matrix = of_matrix.map(|(_, matrix)| matrix);
    // Without matrix units the tile is that of a GPU.
    let of_units = Tile {
        ahead: reads_ahead(pass, shape[3]),
        ..Tile::square(64, if pass == Pass::Forward { 8 } else { 4 }, 4)
    };
    call.config.tile = of_matrix.map_or(of_units, |(tile, _)| tile);
    if of_matrix.is_some() {
        call.config.heads = heads;
    }
    if *name == "_kinds" {
        call.tile_kinds = Some(unwritten(client, U32, &call.tiles()));
    }
    call.config.split = *name == "_splits";
    // Splits write partial results in f32.
    let result = if call.config.split { F32 } else { elem };
    let upstream = tensor().arg();
    macro_rules! dummy {
        ($kernel:ident, $types:expr, $($own:expr),+) => {
            Box::new($kernel::create_dummy_kernel(
                device.clone(),
                Arc::new(TargetProperties::default()),
                CubeCount::Static(1, 1, 1),
                call.cube_dim(),
                4,
                inputs.query.arg(),
                inputs.key.arg(),
                inputs.value.arg(),
                $($own,)+
                call.config,
                $types,
            ))
        };
    }
    macro_rules! kernel {
        ($of_units:ident, $of_matrix:ident, $tiles:expr, $($own:expr),+) => {{
            let types = [elem, call.mask_elem(), result];
            match call.config.matrix {
                Some(matrix) => {
                    let kernel = dummy!($of_matrix, matrix.types(types), $($own),+);
                    (kernel, products($tiles, matrix, shape[3]))
                }
                None => (dummy!($of_units, types, $($own),+), 0),
            }
        }};
    }
    match pass {
        Pass::Forward => {
            let (sinks, output) = (optional(inputs.sinks.as_ref()), upstream);
            kernel!(
                forward,
                forward_by_matrix,
                [1, 1],
                sinks,
                call.scoring(),
                output,
                rows,
                f32::NEG_INFINITY
            )
        }
        Pass::Query => {
            let Inputs {
                bias,
                distance_bias,
                sinks,
                ..
            } = inputs;
            let alone = *name == "_delta";
            let exact = [bias, distance_bias, sinks]
                .into_iter()
                .any(Option::is_some);
            let delta = (exact || alone).then(|| unwritten(client, F32, &[1, 2, 128, 1]));
            let gradient = (!alone).then(tensor);
            kernel!(
                query_gradient,
                query_gradient_by_matrix,
                [2, usize::from(!alone)],
                upstream,
                rows,
                call.scoring(),
                optional(gradient.as_ref()),
                optional(delta.as_ref())
            )
        }
        Pass::Bias => {
            let summed = inputs.bias.as_ref().map_or(
                Sums {
                    diagonal: inputs.distance_bias.is_some(),
                    ..Sums::default()
                },
                |bias| Sums::of(bias, &call.problem),
            );
            macro_rules! with_sums {
                ($kernel:ident, $types:expr) => {
                    dummy!(
                        $kernel,
                        $types,
                        upstream,
                        rows,
                        call.scoring(),
                        tensor().arg(),
                        1u32,
                        summed
                    )
                };
            }
            let mask = call.mask_elem();
            match call.config.matrix {
                Some(matrix) => {
                    let types = [elem, mask, matrix.elem];
                    let kernel = with_sums!(bias_gradient_by_matrix, types);
                    (kernel, products([2, 0], matrix, shape[3]))
                }
                None => (with_sums!(bias_gradient, [elem, mask]), 0),
            }
        }
        Pass::KeyAndValue => {
            // Both gradients, or where registers do not suffice the gradient of the key alone.
            let widest = call
                .config
                .matrix
                .map_or(WIDEST_OF_TWO_SUMS, Matrix::widest_of_two_sums);
            let value = (shape[3] <= widest).then(tensor);
            let key = (*name != "_value").then(tensor);
            let [of_key, of_value] = [&key, &value].map(|it| usize::from(it.is_some()));
            kernel!(
                key_gradient,
                key_gradient_by_matrix,
                [1 + of_key, of_key + of_value],
                upstream,
                rows,
                call.scoring(),
                optional(key.as_ref()),
                optional(value.as_ref())
            )
        }
    }
}

/// A kernel on matrix units multiplies whole tiles, and no other numbers; others multiply none there. None takes more shared memory than there is.
#[test]
fn all_products_are_on_matrix_units() {
    let Some(client) = client() else { return };
    // Causality changes numbers that a kernel reads, not the kernel.
    let plain = |dim| {
        let tensor = || unwritten(&client, F32, &[1, 2, 128, dim]);
        ("", Inputs::new(tensor(), tensor(), tensor(), 0.1))
    };
    // Rows of 80 and 192 numbers, which not all units copy; and few queries and keys, in tiles of as many of both.
    let few = |dim| {
        let tensor = || unwritten(&client, F32, &[1, 2, 64, dim]);
        ("_small", Inputs::new(tensor(), tensor(), tensor(), 0.1))
    };
    let in_f16 = [64, 80, 128, 192, 256]
        .map(plain)
        .into_iter()
        .chain([few(128)]);
    let in_f16 = in_f16
        .chain(options(&client))
        .map(|call| (F16, false, call));
    let in_f32 = [(64, false), (128, false), (64, true), (128, true)];
    let in_f32 = in_f32.map(|(dim, pieces)| (F32, pieces, plain(dim)));
    // Metal multiplies bf16 as f32.
    let of_halves = ["_heads", "_lengths", "_sinks", "_splits"];
    let in_bf16 = options(&client)
        .into_iter()
        .filter(|(name, _)| of_halves.contains(name))
        .chain([64, 128].map(plain))
        .map(|call| (BF16, false, call));
    let calls: Vec<_> = in_f16.chain(in_f32).chain(in_bf16).collect();
    for language in LANGUAGES {
        let device = listing(&client, language.sizes, language.shared_memory);
        let device = Arc::new(device);
        for (elem, pieces, call) in &calls {
            let (name, inputs) = call;
            if *pieces && language.pieces.is_none() {
                continue;
            }
            let dim = inputs.query.shape[3];
            let case = Case {
                matrix: Forced {
                    pieces: language.pieces.filter(|_| *pieces),
                    ..Forced::default()
                },
                ..Case::new([1; 7])
            };
            for &pass in passes(name) {
                let made = || kernel(&device, &client, call, *elem, pass);
                let (kernel, products) = case.forced(made);
                let compiled = (language.compiled)(&*kernel);
                let (code, shared) = (compiled.source, compiled.shared_memory_size);
                let pieces = if case.matrix.pieces.is_some() {
                    "_pieces"
                } else {
                    ""
                };
                let extension = language.extension;
                let file = format!("{pass:?}_{elem}{pieces}_{dim}{name}.{extension}");
                if let Ok(folder) = std::env::var("BURN_ATTN_SOURCES") {
                    std::fs::write(format!("{folder}/{file}"), &code).unwrap();
                }
                assert_eq!(code.matches(language.product).count(), products, "{file}");
                let most = language.shared_memory;
                assert!(shared <= most, "{shared} bytes of {most}: {file}");
                // Sinks and softcap multiply and add outside of products.
                let others = ["_sinks", "_softcap"].contains(name);
                assert!(others || code.contains("fma(") == (products == 0), "{file}");
            }
        }
    }
}
