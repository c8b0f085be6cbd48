//! Calls for drivers that compute nothing: `cargo run-checks --drivers` reads what their compilers say of the kernels.

use burn_attn_kernels_cpu::{CausalAlignment, Problem};
use cubecl::ir::{ElemType, FloatKind};

use super::{
    case::{Case, matrices},
    device::{F32, client},
    oracle::computed,
};

/// Options by name.
const OPTIONS: [(&str, fn(&mut Case)); 13] = [
    ("causal", |it| {
        it.causal = Some(CausalAlignment::BottomRight)
    }),
    ("bias", |it| it.bias = Some([true; 4])),
    ("broadcast bias", |it| {
        it.bias = Some([false, false, false, true])
    }),
    ("distance bias", |it| it.alibi = true),
    ("sinks", |it| it.sinks = true),
    ("mask", |it| it.masked = Some([true; 4])),
    ("blocks", |it| it.blocks = Some([64, 64])),
    ("lengths", |it| it.lengths = true),
    ("first keys", |it| {
        it.causal = Some(CausalAlignment::BottomRight);
        it.first_keys = Some(false);
    }),
    ("offsets", |it| {
        it.causal = Some(CausalAlignment::BottomRight);
        it.offsets = Some(3);
    }),
    ("segments", |it| it.segments = true),
    ("softcap", |it| it.softcap = Some(30.0)),
    ("dropout", |it| it.dropout = Some(0.1)),
];

/// Launches all passes with each option, and says before each case which it is.
fn launch(elem: ElemType) {
    let Some(client) = client() else { return };
    let hardware = &client.properties().hardware;
    let is_fixed = hardware.plane_size_min == hardware.plane_size_max;
    let case = |dim| Case {
        elem,
        ..Case::new([1, 8, 8, 300, 300, dim, dim])
    };
    let run = |name: &str, case: &Case| {
        let Problem { dim_qk, .. } = case.problem;
        eprintln!("case {elem}, heads of {dim_qk}{name}");
        // NVK has products in f16, and planes of one size.
        if elem != F32 && is_fixed {
            matrices(&client, case);
        }
        computed(case);
    };
    for dim in [64, 80, 128, 192, 256] {
        run("", &case(dim));
    }
    for (name, change) in OPTIONS {
        let mut case = case(64);
        change(&mut case);
        run(&format!(", {name}"), &case);
    }
    // One query, and a few that are a tile of several heads.
    for (name, len) in [(", one query", 1), (", 16 queries", 16)] {
        let problem = [1, 8, 2, len, 3000, 64, 64];
        let case = Case {
            elem,
            gradients: false,
            ..Case::new(problem)
        };
        run(name, &case);
    }
}

#[test]
#[ignore = "for drivers that compute nothing"]
fn in_f32() {
    launch(F32);
}

#[test]
#[ignore = "for drivers that compute nothing"]
fn in_f16() {
    launch(ElemType::Float(FloatKind::F16));
}
