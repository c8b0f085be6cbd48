//! The kernels on matrix units as CUDA C++, which needs no such device.
//!
//! `BURN_ATTN_CUDA=FOLDER cargo test -p burn-attn-kernels-cube --features wgpu generated` leaves the sources there, and
//! `count_registers.py FOLDER` compiles them.

use std::sync::Arc;

use cubecl::{
    Compiler,
    ir::{DeviceProperties, ElemType, FloatKind, TargetProperties, features::MmaConfig},
    prelude::{CubeCount, CubeKernel},
};
use cubecl_cpp::{
    shared::{CompilationOptions, CppCompiler},
    target::Cuda,
};

use super::device::{F32, client, plain, reals, unwritten};
use crate::{
    call::Call,
    matrix::shape::Matrix,
    matrix::{forward::forward, key_gradient::key_gradient, query_gradient::query_gradient},
    operands::optional,
    supports::Pass,
};

fn source(kernel: &dyn CubeKernel) -> String {
    let compiled =
        CppCompiler::<Cuda>::default().compile(kernel.define(), &CompilationOptions::default());
    compiled.unwrap().to_string()
}

/// A kernel multiplies whole tiles: a product of 16 x 16 x 16 for each part of one, and no other number of them.
#[test]
fn all_products_are_on_matrix_units() {
    let Some(client) = client() else { return };
    let elem = ElemType::Float(FloatKind::F16);
    let mut like_nvidia: DeviceProperties = client.properties().clone();
    like_nvidia.hardware.plane_size_min = 32;
    like_nvidia.hardware.plane_size_max = 32;
    like_nvidia.hardware.max_shared_memory_size = 48 << 10;
    like_nvidia.hardware.max_units_per_cube = 1024;
    like_nvidia.features.matmul.cmma = [MmaConfig {
        a_type: elem,
        b_type: elem,
        cd_type: F32,
        m: 16,
        n: 16,
        k: 16,
    }]
    .into();
    let properties = Arc::new(like_nvidia);
    let target = Arc::new(TargetProperties::default());
    for dim in [64, 128] {
        let tensor = || unwritten(&client, F32, &[1, 2, 128, dim]);
        let inputs = plain(tensor(), tensor(), tensor(), 0.1);
        let rows = || reals(&client, &[0.0; 512], F32, &[2, 1, 2, 128]);
        for pass in [Pass::Forward, Pass::Query, Pass::KeyAndValue] {
            let mut call = Call::new(&client, &inputs, pass);
            let (tile, matrix) = Matrix::of(&properties, &call.problem, elem, pass).unwrap();
            call.config.tile = tile;
            call.config.matrix = Some(matrix);
            macro_rules! source {
                ($kernel:ident, $($own:expr),+) => {
                    source(&$kernel::create_dummy_kernel(
                        properties.clone(),
                        target.clone(),
                        CubeCount::Static(1, 1, 1),
                        call.cube_dim(),
                        4,
                        inputs.query.arg(),
                        inputs.key.arg(),
                        inputs.value.arg(),
                        $($own,)+
                        call.config,
                        [elem, call.mask_elem()],
                    ))
                };
            }
            let rows = rows().arg();
            let (code, products) = match pass {
                Pass::Forward => {
                    let (none, output) = (optional(None), tensor().arg());
                    let scoring = call.scoring();
                    (
                        source!(forward, none, scoring, output, rows, f32::NEG_INFINITY),
                        2,
                    )
                }
                Pass::Query => {
                    let (upstream, gradient) = (tensor().arg(), tensor().arg());
                    (
                        source!(query_gradient, upstream, rows, call.scoring(), gradient),
                        3,
                    )
                }
                _ => {
                    // Together, or as in wide heads that of the key alone.
                    let value = (dim == 64).then(tensor);
                    let products = 3 + usize::from(value.is_some());
                    let (of_key, of_value) = (optional(Some(&tensor())), optional(value.as_ref()));
                    let (upstream, scoring) = (tensor().arg(), call.scoring());
                    let code = source!(key_gradient, upstream, rows, scoring, of_key, of_value);
                    (code, products)
                }
            };
            let of_tile = matrix.columns / 16 * (dim / 16);
            assert_eq!(
                code.matches("mma_sync(").count(),
                products * of_tile,
                "{pass:?}, dim {dim}"
            );
            if let Ok(folder) = std::env::var("BURN_ATTN_CUDA") {
                std::fs::write(format!("{folder}/{pass:?}_{dim}.cu"), code).unwrap();
            }
        }
    }
}
