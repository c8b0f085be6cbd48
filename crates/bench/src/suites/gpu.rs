//! What a user gets on a GPU, the kernels: against Burn's own operation and module, our other implementations, and PyTorch on the same card.

use crate::case::{
    Case,
    Library::{Burn, BurnNn, PytorchCuda, PytorchCudnn, PytorchEfficient, PytorchFlash},
};
use crate::text;
use crate::work::{
    Implementation, Module, ModuleKind, Op,
    Pass::{self, Forward, Training},
    Precision::{self, Bf16, F16},
    Work,
};

/// Heads that Mesa's driver in software can hold.
const FEW: usize = 2;
/// Heads that give a card enough to do.
const MANY: usize = 16;
/// Heads of a model of width 512, which both hold.
const HEADS: usize = 8;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for causal in [false, true] {
        cases.push(case(Training, causal, 4096, FEW, 64));
    }
    for len in [512, 1024, 2048] {
        let mut case = case(Forward, false, len, FEW, 64);
        case.quick = len == 512;
        cases.push(case);
    }
    for pass in [Forward, Training] {
        // Mesa's driver in software has no bf16.
        let op = op(pass, false, 4096, FEW, 64);
        let in_f32 = Work::Op(op.clone());
        cases.push(in_half_precision(F16, op).against_self("f32", in_f32));
    }
    for len in [1024, 8192] {
        let name = format!("one token on {len}, 1 x {HEADS} x dim 64");
        let mut op = op(Forward, false, len, HEADS, 64);
        op.len_q = 1;
        let mut case = against_all(name, op.clone());
        case.quick = len == 1024;
        cases.extend([case, grouped(op)]);
    }
    let module = Work::Module(Module::alone(ModuleKind::MultiHead, 2048));
    let case_of_module = Case::new("module MultiHeadAttention 2048, 1 x 8 heads", module);
    cases.push(case_of_module.against(&[BurnNn]).thorough());
    for dim in [64, 128] {
        for causal in [false, true] {
            for pass in [Forward, Training] {
                cases.push(case(pass, causal, 4096, MANY, dim));
                let op = op(pass, causal, 4096, MANY, dim);
                cases.push(in_half_precision(Bf16, op));
            }
        }
    }
    cases
}

/// One batch item of so many heads.
fn op(pass: Pass, causal: bool, len: usize, heads: usize, dim: usize) -> Op {
    Op {
        dim,
        causal,
        ..Op::new(pass, len).sized(1, heads)
    }
}

fn case(pass: Pass, causal: bool, len: usize, heads: usize, dim: usize) -> Case {
    let op = op(pass, causal, len, heads, dim);
    against_all(name(&op), op)
}

/// The case with one head of keys, an eighth, which all heads share: Burn's operation cannot.
fn grouped(op: Op) -> Case {
    let mut shared = op.clone();
    shared.heads_kv = 1;
    let name = format!(
        "one token on {}, 1 x {} x dim {}, shared keys",
        op.len_kv, op.heads, op.dim
    );
    let blockwise = shared.by(Implementation::Blockwise);
    Case::new(name, Work::Op(shared))
        .against_self("own keys", Work::Op(op))
        .against_self("blockwise", blockwise)
        .against(&[PytorchCuda])
        .thorough()
}

/// The call in bf16 or f16, for which PyTorch has three fused implementations.
fn in_half_precision(precision: Precision, op: Op) -> Case {
    let name = format!("{}, {}", name(&op), text::name(precision));
    Case::new(name, Work::Op(Op { precision, ..op }))
        .against(&[Burn, PytorchFlash, PytorchEfficient, PytorchCudnn])
        .thorough()
}

fn name(op: &Op) -> String {
    format!("{}, 1 x {} x dim {}", op.title(), op.heads, op.dim)
}

fn against_all(name: String, op: Op) -> Case {
    let (blockwise, composed) = (
        op.by(Implementation::Blockwise),
        op.by(Implementation::Composed),
    );
    Case::new(name, Work::Op(op))
        .against(&[Burn])
        .against_self("blockwise", blockwise)
        .against_self("composed", composed)
        .against(&[PytorchCuda])
        .thorough()
}
