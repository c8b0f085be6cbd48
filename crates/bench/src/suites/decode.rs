//! Generation: one query against the keys so far, and whole continuations by a stack of six layers; 8 heads of width 64.

use crate::case::{
    Case,
    Library::{Burn, BurnNn, Candle, Pytorch, PytorchCompile},
};
use crate::work::{Decoding, Op, Pass, Work};

/// Tokens of a continuation.
const CONTINUATION: usize = 512;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for batch in [1, 8] {
        for len in [128, 512, 1024, 4096, 8192] {
            let mut op = Op::new(Pass::Forward, len);
            (op.batch, op.len_q) = (batch, 1);
            let name = format!("one token on {len}, batch {batch}");
            let mut case = Case::new(name, Work::Op(op)).against(&[Pytorch, Burn, Candle]);
            case.quick = [128, 4096].contains(&len);
            cases.push(case);
        }
    }
    for batch in [1, 8] {
        let name = format!("{CONTINUATION} tokens, 6 layers, batch {batch}");
        let decoding = Work::Decoding(continuation(batch, 0, CONTINUATION));
        let case = Case::new(name, decoding);
        // Minutes, because burn-nn's time grows with the cube of the length.
        cases.push(case.against(&[Pytorch, PytorchCompile, BurnNn]).thorough());
    }
    // A window of 512: the length of the context does not matter.
    let windowed = |context| {
        Work::Decoding(Decoding {
            // Itself and those before it.
            window: Some(511),
            ..continuation(1, context, 64)
        })
    };
    cases.push(
        Case::new("64 tokens after 4096, window 512", windowed(4096))
            .against_self("after 512", windowed(512)),
    );
    cases
}

fn continuation(batch: usize, context: usize, tokens: usize) -> Decoding {
    Decoding {
        batch,
        context,
        tokens,
        d_model: 512,
        heads: 8,
        layers: 6,
        window: None,
    }
}
