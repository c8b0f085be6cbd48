//! The attention operation: batch 2, 8 heads of width 64, f32, unless the name says more.

use crate::case::{Case, Library, Measure, Peer};
use crate::work::{
    Matmul, Op,
    Pass::{self, Backward, Forward, Training},
    Precision, Work,
};

use Library::{Burn, BurnNn, Candle, Pytorch};

/// Up to this length the slow peers are measured: Burn's training, which keeps the score matrix five times, and candle.
const SLOW: usize = 1024;
/// The one longer length at which Burn trains, for its memory.
const BURN_MEMORY: usize = 4096;
/// From this length on only ours and PyTorch are measured.
const LONG: usize = 8192;
/// Lengths of `--quick`.
const QUICK: [usize; 2] = [128, 1024];

/// The cases.
pub fn cases() -> Vec<Case> {
    let mut cases = lengths();
    cases.extend(options());
    cases.extend(one_head());
    cases.extend(ragged());
    cases.extend(precisions());
    cases.push(backward());
    cases
}

fn case(name: String, op: Op) -> Case {
    Case::new(name, Work::Op(op))
}

/// "causal" or "full".
fn shown(causal: bool) -> &'static str {
    if causal { "causal" } else { "full" }
}

/// Every length, causal and full, forward and training.
fn lengths() -> Vec<Case> {
    let mut cases = Vec::new();
    for len in [128, 256, 512, 1024, 2048, 4096, LONG] {
        for causal in [true, false] {
            for pass in [Forward, Training] {
                let op = Op {
                    causal,
                    ..Op::new(pass, len)
                };
                let name = format!("{} {} {len}", pass.name(), shown(causal));
                let mut case = case(name, op).against(peers(pass, causal, len));
                case.quick = QUICK.contains(&len);
                cases.push(match (pass, causal, len) {
                    (Forward, false, 4096) => case.against_peer(sgemm()),
                    (Training, false, LONG) => case.against_peer(growth()),
                    _ => case,
                });
            }
        }
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

/// What the machine can do in f32.
fn sgemm() -> Peer {
    Peer {
        name: "sgemm 2048³".into(),
        library: Pytorch,
        work: Work::Matmul(Matmul {
            size: 2048,
            precision: Precision::F32,
        }),
        measure: Measure::Rate,
    }
}

/// How our memory grows when the length doubles.
fn growth() -> Peer {
    Peer {
        name: "self:4096".into(),
        library: Library::Ours,
        work: Work::Op(Op::new(Training, 4096)),
        measure: Measure::Memory,
    }
}

/// Each option, against the others (it takes PyTorch off its fast path) and against ourselves without it: of
/// `self:none`, below 1 it costs, above 1 it saves.
fn options() -> Vec<Case> {
    let plain = || Op::new(Training, 1024);
    let grouped = Op {
        heads_kv: 2,
        ..plain()
    };
    let window = Op {
        window: Some(127),
        ..plain()
    };
    let bias = Op {
        bias: true,
        ..plain()
    };
    let softcap = Op {
        softcap: Some(30.0),
        ..plain()
    };
    let dropout = Op {
        dropout: 0.1,
        ..plain()
    };
    let case = |name: &str, op, peers: &[Library]| {
        case(format!("training 1024 {name}"), op)
            .against(peers)
            .against_self("none", Work::Op(plain()))
    };
    vec![
        case("padding", plain().padded(), &[Pytorch, Burn, BurnNn]),
        case("dense bias", bias, &[Pytorch, Burn]),
        case("8 heads on 2", grouped, &[Pytorch]),
        case("dropout", dropout, &[Pytorch, BurnNn]),
        case("window 128", window, &[Pytorch]),
        case("softcap", softcap, &[Burn]),
    ]
}

/// One sequence, one head: is there work for every core?
fn one_head() -> Vec<Case> {
    let mut cases = Vec::new();
    for causal in [true, false] {
        for pass in [Forward, Training] {
            let op = Op {
                batch: 1,
                heads: 1,
                heads_kv: 1,
                causal,
                ..Op::new(pass, 4096)
            };
            let name = format!("{} {} 4096, 1 × 1 head", pass.name(), shown(causal));
            cases.push(case(name, op).against(&[Pytorch]).thorough());
        }
    }
    cases
}

/// Batches of sentences.
fn ragged() -> Vec<Case> {
    let sizes = [(7, 16), (12, 16), (12, 64), (24, 32), (64, 32), (64, 64)];
    let cases = sizes.map(|(len, dim)| {
        let op = Op {
            batch: 64,
            dim,
            ..Op::new(Training, len)
        };
        let name = format!("training padding {len}, 64 × 8 × dim {dim}");
        case(name, op.padded()).against(&[BurnNn, Pytorch])
    });
    cases.into()
}

/// bf16 in and out.
fn precisions() -> Vec<Case> {
    let cases = [true, false].map(|causal| {
        let wide = Op {
            causal,
            ..Op::new(Training, 1024)
        };
        let narrow = Op {
            precision: Precision::Bf16,
            ..wide.clone()
        };
        case(format!("training {} 1024 bf16", shown(causal)), narrow)
            .against_self("f32", Work::Op(wide))
            .against(&[Pytorch])
    });
    cases.into()
}

/// The backward pass alone, against what the machine can do.
fn backward() -> Case {
    case("backward full 4096".into(), Op::new(Backward, 4096))
        .against(&[Pytorch])
        .against_peer(sgemm())
        .thorough()
}
