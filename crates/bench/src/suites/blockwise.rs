//! Training by the blockwise body, which calls without kernels run: its memory and time against those of the score matrix.
//!
//! The operation is asked for it, on every device. On flex it is compared with Burn's own too, and the module runs the kernels; on
//! a GPU the suite `gpu` does that.

use crate::case::{
    Case,
    Library::{self, Burn, BurnNn, Ours},
    Measure, Peer,
};
use crate::work::{Body, Module, ModuleKind, Op, Pass::Training, Work};

/// The cases.
pub fn cases(on_gpu: bool) -> Vec<Case> {
    let blockwise = |op: Op| {
        Work::Op(Op {
            body: Body::Blockwise,
            ..op
        })
    };
    let composed = |op: Op| {
        Work::Op(Op {
            body: Body::Composed,
            ..op
        })
    };
    let op = |len| Op::new(Training, len);
    let mut cases = Vec::new();
    for len in [1024, 4096] {
        let case = Case::new(
            format!("training full {len}, 2 x 8 heads"),
            blockwise(op(len)),
        );
        cases.push(against(case, "self:composed", Ours, &composed(op(len))).thorough());
    }
    cases.push(
        Case::new("training full 8192, 2 x 8 heads", blockwise(op(8192)))
            .against_peer(Peer {
                name: "self:4096".into(),
                library: Ours,
                work: blockwise(op(4096)),
                measure: Measure::Memory,
            })
            .thorough(),
    );
    // Just beyond the calls that are one block, where the two bodies are the same.
    let few_heads = |len| Op {
        batch: 1,
        heads: 2,
        heads_kv: 2,
        ..op(len)
    };
    let case = Case::new(
        "training full 1024, 1 x 2 heads",
        blockwise(few_heads(1024)),
    );
    cases.push(against(case, "self:composed", Ours, &composed(few_heads(1024))).thorough());
    if on_gpu {
        return cases;
    }
    for causal in [false, true] {
        let op = Op {
            causal,
            ..few_heads(4096)
        };
        let shown = if causal { "causal" } else { "full" };
        let name = format!("training {shown} 4096, 1 x 2 heads");
        let case = Case::new(name, blockwise(op.clone()));
        cases.push(against(case, "burn", Burn, &Work::Op(op)).thorough());
    }
    let module = Work::Module(Module {
        kind: ModuleKind::MultiHead,
        batch: 1,
        len_q: 2048,
        len_kv: 2048,
        d_model: 512,
        heads: 8,
    });
    let case = Case::new("MultiHeadAttention 2048, 1 x 8 heads", module.clone());
    cases.push(against(case, "burn-nn", BurnNn, &module).thorough());
    cases
}

fn against(case: Case, name: &str, library: Library, work: &Work) -> Case {
    case.against_peer(Peer {
        name: name.into(),
        library,
        work: work.clone(),
        measure: Measure::Time,
    })
}
