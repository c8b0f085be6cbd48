//! Training by the blockwise implementation, which calls without kernels run: its memory and time against those of the score matrix.
//!
//! The operation is asked for it, on every device. On flex it is compared with Burn's own too, and the module runs the kernels; on
//! a GPU the suite `gpu` does that.

use crate::case::{
    Case,
    Library::{Burn, BurnNn, Ours},
    Measure,
};
use crate::work::{Implementation, Module, ModuleKind, Op, Pass::Training, Work};

pub fn cases(on_gpu: bool) -> Vec<Case> {
    let case = |op: &Op| {
        let name = format!("{}, {} x {} heads", op.title(), op.batch, op.heads);
        Case::new(name, op.by(Implementation::Blockwise)).thorough()
    };
    let beside_composed =
        |op: Op| case(&op).against_self("composed", op.by(Implementation::Composed));
    let op = |len| Op::new(Training, len);
    let few_heads = |len| op(len).sized(1, 2);
    let half = op(4096).by(Implementation::Blockwise);
    // Just beyond the calls that are one block, where the two implementations are the same.
    let mut short = beside_composed(few_heads(1024));
    short.quick = true;
    let mut cases = vec![
        beside_composed(op(1024)),
        beside_composed(op(4096)),
        case(&op(8192)).against_peer("self:4096", Ours, half, Measure::Memory),
        short,
    ];
    if on_gpu {
        return cases;
    }
    for causal in [false, true] {
        let mut op = few_heads(4096);
        op.causal = causal;
        let burn = Work::Op(op.clone());
        cases.push(case(&op).against_peer("burn", Burn, burn, Measure::Time));
    }
    let module = Work::Module(Module::alone(ModuleKind::MultiHead, 2048));
    let case = Case::new("MultiHeadAttention 2048, 1 x 8 heads", module);
    cases.push(case.against(&[BurnNn]).thorough());
    cases
}
