//! How fast the kernels are: `cargo run --release -p burn-attn-kernels-cube --features vulkan --example speed -- [HEADS [LEN [ROUNDS [TYPES]]]]`,
//! by default 16 heads, 4096 tokens, medians of 5 rounds, types `f32,f16,bf16`.

use std::time::Instant;

use burn_attn_kernels_cpu::{CausalAlignment, PositionMask};
use burn_attn_kernels_cube::{Gradients, Inputs, Operand, Upstream, backward, forward};
use cubecl::{
    bytes::Bytes,
    client::Client,
    ir::{ElemType, FloatKind},
};
use half::{bf16, f16};

fn operand(client: &Client, shape: &[usize], kind: FloatKind, seed: u32) -> Operand {
    let mut state = seed;
    let numbers = (0..shape.iter().product()).map(|_: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    });
    let bytes = match kind {
        FloatKind::F16 => numbers
            .flat_map(|x| f16::from_f32(x).to_le_bytes())
            .collect(),
        FloatKind::BF16 => numbers
            .flat_map(|x| bf16::from_f32(x).to_le_bytes())
            .collect(),
        _ => numbers.flat_map(f32::to_le_bytes).collect(),
    };
    let handle = client.create(Bytes::from_bytes_vec(bytes));
    Operand::row_major(handle, shape, ElemType::Float(kind))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let client = cubecl::Device::default().client();
    let properties = client.properties();
    println!("{} {:?}", client.name(), properties.hardware);
    println!("cmma {:?}", properties.features.matmul.cmma);
    println!("cube_mma {:?}", properties.features.matmul.cube_mma);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: usize| {
        arguments
            .get(at)
            .map_or(or, |argument| argument.parse().unwrap())
    };
    let (heads, len, rounds) = (number(0, 16), number(1, 4096), number(2, 5).max(1));
    let wait = || cubecl::future::block_on(client.sync()).unwrap();
    let types = arguments.get(3).map_or("f32,f16,bf16", String::as_str);
    let kinds = types.split(',').map(|name| match name {
        "f32" => FloatKind::F32,
        "f16" => FloatKind::F16,
        "bf16" => FloatKind::BF16,
        other => panic!("{other:?} is none of f32, f16 and bf16"),
    });
    for kind in kinds {
        for dim in [64, 128] {
            for causal in [false, true] {
                let tensor = |seed| operand(&client, &[1, heads, len, dim], kind, seed);
                let rows = |seed| operand(&client, &[1, heads, len], FloatKind::F32, seed);
                let scale = 1.0 / (dim as f64).sqrt();
                let inputs = Inputs {
                    by_position: PositionMask::new(
                        causal.then_some(CausalAlignment::BottomRight),
                        None,
                    ),
                    ..Inputs::new(tensor(1), tensor(2), tensor(3), scale)
                };
                let upstream = Upstream {
                    output: tensor(4),
                    logsumexp: rows(5),
                    output_gradient: tensor(6),
                    logsumexp_gradient: rows(7),
                };
                let of_query = Gradients {
                    query: Some(tensor(8)),
                    ..Gradients::default()
                };
                let of_key_and_value = Gradients {
                    key: Some(tensor(9)),
                    value: Some(tensor(10)),
                    ..Gradients::default()
                };
                let time = |run: &dyn Fn()| {
                    // Calls per sample: enough that waiting for the device does not count, and that its clocks are up.
                    let mut count = 1;
                    let of = |count: usize| {
                        let start = Instant::now();
                        (0..count).for_each(|_| run());
                        wait();
                        start.elapsed().as_secs_f64()
                    };
                    of(1);
                    while of(count) < 0.1 {
                        count *= 2;
                    }
                    let times: Vec<f64> = (0..rounds).map(|_| of(count) / count as f64).collect();
                    median(times)
                };
                let ahead = time(&|| {
                    forward(&client, &inputs, &upstream.output, &upstream.logsumexp)
                        .expect("the device computes");
                });
                let [query, key_and_value] = [&of_query, &of_key_and_value].map(|gradients| {
                    time(&|| {
                        backward(&client, &inputs, &upstream, gradients)
                            .expect("the device computes");
                    })
                });
                let back = query + key_and_value;
                let operations =
                    4.0 * (heads * len * len * dim) as f64 / if causal { 2.0 } else { 1.0 };
                println!(
                    "{kind:?} d {dim} causal {causal}: forward {:.2} ms {:.2} TFLOP/s, backward {:.2} + {:.2} ms {:.2} TFLOP/s",
                    ahead * 1e3,
                    operations / ahead * 1e-12,
                    query * 1e3,
                    key_and_value * 1e3,
                    2.5 * operations / back * 1e-12,
                );
            }
        }
    }
}
