//! Which products are chosen, by what a device lists and by the environment.

use std::env;

use cubecl::ir::{DeviceProperties, ElemType, FloatKind};

use super::{
    case::Case,
    device::{F32, client, listing},
};
use crate::{matrix::shape::Matrix, supports::Pass};

const F16: ElemType = ElemType::Float(FloatKind::F16);
const BF16: ElemType = ElemType::Float(FloatKind::BF16);
const TF32: ElemType = ElemType::Float(FloatKind::TF32);

/// Bytes, which suffice for any tile.
const SHARED_MEMORY: usize = 100 << 10;

/// The variable that turns matrix units off, or the products of two pieces on.
const SWITCH: &str = "BURN_ATTN_MATRIX_UNITS";

/// Sizes of a product, its operands' type, and in how many of them a number is.
fn chosen(device: &DeviceProperties, elem: ElemType) -> Option<([usize; 3], ElemType, usize)> {
    let problem = Case::new([1, 2, 1, 130, 65, 64, 64]).problem;
    let of = |pass| {
        let (_, matrix) = Matrix::of(device, &problem, elem, pass)?;
        Some(([matrix.m, matrix.n, matrix.k], matrix.elem, matrix.pieces))
    };
    for pass in [Pass::Query, Pass::KeyAndValue, Pass::Bias] {
        assert_eq!(of(pass), of(Pass::Forward), "{pass:?}");
    }
    of(Pass::Forward)
}

#[test]
fn products_that_a_device_lists() {
    let Some(client) = client() else { return };
    let products = [
        (F16, [8, 8, 16]),
        (F16, [16, 16, 16]),
        // Sizes for which there are no kernels.
        (F16, [32, 8, 16]),
        (F16, [16, 16, 32]),
        (BF16, [16, 8, 16]),
    ];
    let device = listing(&client, &products, SHARED_MEMORY);
    assert_eq!(chosen(&device, F16), Some(([16; 3], F16, 1)));
    assert_eq!([BF16, F32].map(|elem| chosen(&device, elem)), [None, None]);
    let chosen_if = |change: fn(&mut DeviceProperties)| {
        let mut device = device.clone();
        change(&mut device);
        chosen(&device, F16)
    };
    // A plane of any of two sizes; one whose units could not share rows in pairs; one in which 16 rows do not fit; and no room.
    assert_eq!(chosen_if(|it| it.hardware.plane_size_min = 16), None);
    let with_planes_of_48 = chosen_if(|it| {
        it.hardware.plane_size_min = 48;
        it.hardware.plane_size_max = 48;
    });
    assert_eq!(with_planes_of_48, None);
    let with_planes_of_eight = chosen_if(|it| {
        it.hardware.plane_size_min = 8;
        it.hardware.plane_size_max = 8;
    });
    assert_eq!(with_planes_of_eight, Some(([8, 8, 16], F16, 1)));
    assert_eq!(
        chosen_if(|it| it.hardware.max_shared_memory_size = 4 << 10),
        None
    );
}

/// The variable is read once per process: `cargo run-checks --vulkan` runs this test again with each of its values.
#[test]
fn the_environment() {
    let lists = [(F16, [16, 16, 16]), (TF32, [16, 16, 8])];
    let Some(client) = client() else { return };
    let device = listing(&client, &lists, SHARED_MEMORY);
    let all = [F16, F32].map(|elem| chosen(&device, elem));
    let in_f16 = Some(([16; 3], F16, 1));
    let expected = match env::var(SWITCH).as_deref() {
        Ok("off") => [None, None],
        Ok("tf32") => [in_f16, Some(([16, 16, 8], TF32, 2))],
        _ => [in_f16, None],
    };
    assert_eq!(all, expected);
}

/// Rows, columns and operands of a tile, by the type of operands, the width of a head, queries, and KiB of shared memory.
#[test]
fn tiles_that_fit() {
    let Some(client) = client() else { return };
    for (elem, dim, len_q, memory, expected) in [
        (F16, 64, 130, 32, [64, 32, 2]),
        (F16, 64, 130, 48, [128, 32, 2]),
        (F16, 64, 40, 48, [64, 32, 2]),
        (F16, 64, 20, 48, [32, 32, 2]),
        (F16, 112, 130, 32, [64, 32, 2]),
        (F16, 128, 130, 32, [64, 32, 1]),
        (F16, 128, 130, 48, [128, 32, 2]),
        (F16, 128, 40, 48, [64, 64, 1]),
        (F16, 128, 20, 48, [32, 32, 1]),
        (F16, 256, 130, 32, [64, 32, 1]),
        (F16, 256, 130, 48, [128, 32, 1]),
        (F32, 64, 130, 32, [32, 32, 2]),
        (F32, 80, 130, 32, [64, 32, 1]),
        (F32, 128, 130, 48, [64, 32, 1]),
        (F32, 128, 130, 100, [128, 32, 2]),
    ] {
        let device = listing(&client, &[(F16, [16; 3]), (F32, [8; 3])], memory << 10);
        let problem = Case::new([1, 2, 1, len_q, 65, dim, dim]).problem;
        let (_, it) = Matrix::of(&device, &problem, elem, Pass::Forward).unwrap();
        let tile = [it.rows, it.columns, it.operands];
        assert_eq!(tile, expected, "{elem} {dim} {len_q} {memory}");
    }
}
