//! A training step of the attention modules: width 512, 8 heads, batch 2, without dropout.

use crate::case::{
    Case,
    Library::{BurnNn, Pytorch},
};
use crate::work::{Module, ModuleKind, Work};

/// Up to this length burn-nn is measured; beyond it needs gigabytes.
const BURN_NN: usize = 1024;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, kind) in [
        ("MultiHeadAttention", ModuleKind::MultiHead),
        ("SelfAttention causal", ModuleKind::CausalSelf),
    ] {
        for len in [512, 1024, 2048] {
            let case = case(format!("{name} {len}"), kind, len, len);
            cases.push(match len {
                ..=BURN_NN => case.against(&[BurnNn]),
                _ => case.thorough(),
            });
        }
    }
    let name = "CrossAttention 256 on 1024".into();
    cases.push(case(name, ModuleKind::Cross, 256, 1024).against(&[BurnNn]));
    cases
}

fn case(name: String, kind: ModuleKind, len_q: usize, len_kv: usize) -> Case {
    let module = Module {
        batch: 2,
        len_q,
        ..Module::alone(kind, len_kv)
    };
    Case::new(name, Work::Module(module)).against(&[Pytorch])
}
