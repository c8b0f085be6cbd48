//! The kernels on matrix units, compiled to CUDA C++ and MSL, which needs no device with matrix units.
//!
//! `BURN_ATTN_SOURCES=FOLDER cargo test -p burn-attn-kernels-cube --features wgpu generated` writes the sources there, and
//! `count_registers.py FOLDER` compiles them.

use std::sync::Arc;

use burn_attn_kernels_cpu::{AttentionDropout, BlockSize};
use cubecl::{
    Compiler,
    client::Client,
    ir::{DeviceProperties, ElemType, FloatKind, TargetProperties, features::MmaConfig},
    prelude::{CubeCount, CubeKernel},
};
use cubecl_cpp::{
    shared::{CompilationOptions, CppCompiler},
    target::{Cuda, Metal},
};

use super::device::{F32, I32, U32, client, reals, unwritten, upload};
use crate::{
    Inputs,
    call::Call,
    matrix::shape::Matrix,
    matrix::{forward::forward, key_gradient::key_gradient, query_gradient::query_gradient},
    operands::optional,
    supports::Pass,
};

/// A language, and a device with matrix units whose kernels are in it.
struct Language {
    /// The call of a product of `size` x `size` x `size`.
    product: &'static str,
    size: u32,
    shared_memory: usize,
    extension: &'static str,
    source: fn(&dyn CubeKernel) -> String,
}

const LANGUAGES: [Language; 2] = [
    Language {
        product: "mma_sync(",
        size: 16,
        shared_memory: 48 << 10,
        extension: "cu",
        source: source::<CppCompiler<Cuda>>,
    },
    Language {
        product: "simdgroup_multiply_accumulate(",
        size: 8,
        shared_memory: 32 << 10,
        extension: "metal",
        source: source::<CppCompiler<Metal>>,
    },
];

fn source<C>(kernel: &dyn CubeKernel) -> String
where
    C: Compiler<CompilationOptions = CompilationOptions> + Default,
{
    let compiled = C::default().compile(kernel.define(), &CompilationOptions::default());
    compiled.unwrap().to_string()
}

impl Language {
    fn device(&self, client: &Client) -> Arc<DeviceProperties> {
        let mut properties: DeviceProperties = client.properties().clone();
        properties.hardware.plane_size_min = 32;
        properties.hardware.plane_size_max = 32;
        properties.hardware.max_shared_memory_size = self.shared_memory;
        properties.hardware.max_units_per_cube = 1024;
        properties.features.matmul.cmma = [MmaConfig {
            a_type: F16,
            b_type: F16,
            cd_type: F32,
            m: self.size,
            n: self.size,
            k: self.size,
        }]
        .into();
        Arc::new(properties)
    }
}

const F16: ElemType = ElemType::Float(FloatKind::F16);

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
    options
}

/// The kernel of a pass on such a device, its number of products of whole tiles, and the columns of a tile.
fn kernel(
    device: &Arc<DeviceProperties>,
    client: &Client,
    inputs: &Inputs,
    pass: Pass,
) -> (Box<dyn CubeKernel>, usize, usize) {
    let shape = &inputs.query.shape;
    let tensor = || unwritten(client, F32, shape);
    let rows = reals(client, &[0.0; 512], F32, &[2, 1, 2, 128]).arg();
    let mut call = Call::new(client, inputs, pass);
    let (tile, matrix) = Matrix::of(device, &call.problem, F16, pass).unwrap();
    call.config.tile = tile;
    call.config.matrix = Some(matrix);
    if pass == Pass::Forward {
        call.config.heads = call.problem.group_size();
    }
    let upstream = tensor().arg();
    macro_rules! kernel {
        ($kernel:ident, $products:expr, $($own:expr),+) => {{
            let kernel = $kernel::create_dummy_kernel(
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
                [F16, call.mask_elem(), F16],
            );
            (Box::new(kernel), $products, matrix.columns)
        }};
    }
    match pass {
        Pass::Forward => {
            let (sinks, output) = (optional(inputs.sinks.as_ref()), upstream);
            kernel!(
                forward,
                2,
                sinks,
                call.scoring(),
                output,
                rows,
                f32::NEG_INFINITY
            )
        }
        Pass::Query => kernel!(
            query_gradient,
            3,
            upstream,
            rows,
            call.scoring(),
            tensor().arg()
        ),
        _ => {
            // Both gradients, or in wide heads the gradient of the key alone.
            let value = (shape[3] == 64).then(tensor);
            let products = 3 + usize::from(value.is_some());
            let (of_key, of_value) = (optional(Some(&tensor())), optional(value.as_ref()));
            kernel!(
                key_gradient,
                products,
                upstream,
                rows,
                call.scoring(),
                of_key,
                of_value
            )
        }
    }
}

/// A kernel multiplies whole tiles: its source has one product for each fragment of a tile, and no other products.
#[test]
fn all_products_are_on_matrix_units() {
    let Some(client) = client() else { return };
    // Causality changes numbers that a kernel reads, not the kernel.
    let plain = [64, 128, 256].map(|dim| {
        let tensor = || unwritten(&client, F32, &[1, 2, 128, dim]);
        ("", Inputs::new(tensor(), tensor(), tensor(), 0.1))
    });
    let calls: Vec<_> = plain.into_iter().chain(options(&client)).collect();
    for language in LANGUAGES {
        let (device, size) = (language.device(&client), language.size as usize);
        for (name, inputs) in &calls {
            let dim = inputs.query.shape[3];
            for pass in [Pass::Forward, Pass::Query, Pass::KeyAndValue] {
                let (kernel, products, columns) = kernel(&device, &client, inputs, pass);
                let code = (language.source)(&*kernel);
                let file = format!("{pass:?}_{dim}{name}.{}", language.extension);
                let counted = code.matches(language.product).count();
                assert_eq!(counted, products * columns / size * (dim / size), "{file}");
                if let Ok(folder) = std::env::var("BURN_ATTN_SOURCES") {
                    std::fs::write(format!("{folder}/{file}"), code).unwrap();
                }
            }
        }
    }
}
