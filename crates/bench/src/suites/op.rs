//! The attention operation: batch 2, 8 heads of width 64, f32, unless the name says more.

use crate::case::{
    Case,
    Library::{self, Burn, BurnNn, Candle, Ours, Pytorch},
    Measure,
};
use crate::work::{
    Matmul, Op,
    Pass::{self, Backward, Forward, Training},
    Precision, Work,
};

/// Up to this length the slow peers are measured: Burn's training, which keeps the score matrix five times, and candle.
const SLOW: usize = 1024;
/// The one longer length at which Burn trains, for its memory.
const BURN_MEMORY: usize = 4096;
/// From this length on only ours and PyTorch are measured.
const LONG: usize = 8192;
/// Lengths of `--quick`.
const QUICK: [usize; 2] = [128, 1024];

pub fn cases() -> Vec<Case> {
    // The backward pass alone, against what the machine can do.
    let backward = Op::new(Backward, 4096);
    let backward = beside_sgemm(case(backward.title(), backward).against(&[Pytorch]));
    [
        lengths(),
        options(),
        one_head(),
        ragged(),
        precisions(),
        vec![backward.thorough()],
    ]
    .concat()
}

fn case(name: String, op: Op) -> Case {
    Case::new(name, Work::Op(op))
}

/// Causal and full, forward and training, at a length.
fn four(len: usize) -> impl Iterator<Item = Op> {
    [true, false].into_iter().flat_map(move |causal| {
        [Forward, Training].map(|pass| Op {
            causal,
            ..Op::new(pass, len)
        })
    })
}

fn lengths() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in [128, 256, 512, 1024, 2048, 4096, LONG]
        .into_iter()
        .flat_map(four)
    {
        let (pass, causal, len) = (op.pass, op.causal, op.len_kv);
        let mut case = case(op.title(), op).against(peers(pass, causal, len));
        case.quick = QUICK.contains(&len);
        cases.push(match (pass, causal, len) {
            (Forward, false, 4096) => beside_sgemm(case),
            (Training, false, LONG) => {
                // How our memory grows when the length doubles.
                let half = Work::Op(Op::new(Training, 4096));
                case.against_peer("self:4096", Ours, half, Measure::Memory)
            }
            _ => case,
        });
    }
    cases
}

/// The libraries that finish such a case in seconds.
fn peers(pass: Pass, causal: bool, len: usize) -> &'static [Library] {
    match pass {
        _ if len >= LONG => &[Pytorch],
        Forward if len <= SLOW => &[Pytorch, Burn, Candle],
        Forward => &[Pytorch, Burn],
        Training if len <= SLOW || (causal && len == BURN_MEMORY) => &[Pytorch, Burn],
        Training | Backward => &[Pytorch],
    }
}

/// Adds what the machine can do in f32.
fn beside_sgemm(case: Case) -> Case {
    let product = Work::Matmul(Matmul {
        size: 2048,
        precision: Precision::F32,
    });
    case.against_peer("sgemm 2048³", Pytorch, product, Measure::Rate)
}

/// Each option, against the peers and against ours without it: a ratio of `self:none` below 1 means that the option costs
/// time, above 1 that it saves some.
fn options() -> Vec<Case> {
    let with = |name: &str, set: fn(&mut Op), peers: &[Library]| {
        let plain = Op::new(Training, 1024);
        let mut op = plain.clone();
        set(&mut op);
        case(format!("training 1024 {name}"), op)
            .against(peers)
            .against_self("none", Work::Op(plain))
    };
    vec![
        with("padding", Op::pad, &[Pytorch, Burn, BurnNn]),
        with("dense bias", |op| op.bias = true, &[Pytorch, Burn]),
        with("8 heads on 2", |op| op.heads_kv = 2, &[Pytorch]),
        with("dropout", |op| op.dropout = 0.1, &[Pytorch, BurnNn]),
        with("window 128", |op| op.window = Some(127), &[Pytorch]),
        with("softcap", |op| op.softcap = Some(30.0), &[Burn]),
    ]
}

/// One sequence, one head: is there work for every core?
fn one_head() -> Vec<Case> {
    let cases = four(4096).map(|op| {
        let op = op.sized(1, 1);
        let name = format!("{}, 1 × 1 head", op.title());
        case(name, op).against(&[Pytorch]).thorough()
    });
    cases.collect()
}

/// Batches of sentences.
fn ragged() -> Vec<Case> {
    let sizes = [(7, 16), (12, 16), (12, 64), (24, 32), (64, 32), (64, 64)];
    let cases = sizes.map(|(len, dim)| {
        let mut op = Op::new(Training, len);
        (op.batch, op.dim) = (64, dim);
        op.pad();
        let name = format!("training padding {len}, 64 × 8 × dim {dim}");
        case(name, op).against(&[BurnNn, Pytorch])
    });
    cases.into()
}

/// bf16 in and out.
fn precisions() -> Vec<Case> {
    let training = four(1024).filter(|op| op.pass == Training);
    let cases = training.map(|wide| {
        let mut narrow = wide.clone();
        narrow.precision = Precision::Bf16;
        case(format!("{} bf16", wide.title()), narrow)
            .against_self("f32", Work::Op(wide))
            .against(&[Pytorch])
    });
    cases.collect()
}
