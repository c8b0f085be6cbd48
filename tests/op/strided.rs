//! Training as models do it: several tiles and threads, operands that are views, an upstream gradient that is one too.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::{AttentionBias, AttentionOptions, CausalAlignment, ops};
use burn_attn_kernels_cpu::Window;
use burn_attn_tests::{
    compare::{assert_near, numbers_f64},
    devices,
    numbers::uniform_f64,
};

use crate::{
    case::{Case, Results, tensor},
    option_tensors::gradient,
    oracle::TOLERANCE_OF_F32,
};

/// A tile has 128 queries; blocks of keys have 192 forward and 128 backward.
const LEN_Q: usize = 307;
const LEN_KV: usize = 331;
const HEADS: usize = 4;
const DIM: usize = 64;

/// A `[batch, heads, len, dim]` operand that is a view of another tensor.
#[derive(Clone, Copy)]
struct View {
    of: [usize; 4],
    view: fn(Tensor<4>) -> Tensor<4>,
}

/// As `[batch, len, heads, dim]`, which is how a projection lies.
fn rows(batch: usize, heads: usize, len: usize) -> View {
    View {
        of: [batch, len, heads, DIM],
        view: |x| x.swap_dims(1, 2),
    }
}

/// Heads of a projection that has others before and behind them.
fn some_heads(batch: usize, heads: usize, len: usize) -> View {
    View {
        of: [batch, len, heads + 2, DIM],
        view: |x| {
            let [_, _, heads, _] = x.dims();
            x.swap_dims(1, 2).narrow(1, 1, heads - 2)
        },
    }
}

/// With the numbers of a row apart.
fn columns(batch: usize, heads: usize, len: usize) -> View {
    View {
        of: [batch, heads, DIM, len],
        view: |x| x.swap_dims(2, 3),
    }
}

/// One batch item for both.
fn one_item(heads: usize, len: usize) -> View {
    View {
        of: [1, heads, len, DIM],
        view: |x| {
            let [_, heads, len, dim] = x.dims();
            x.expand([2, heads, len, dim])
        },
    }
}

/// One head for all.
fn one_head(len: usize) -> View {
    View {
        of: [2, 1, len, DIM],
        view: |x| {
            let [batch, _, len, dim] = x.dims();
            x.expand([batch, HEADS, len, dim])
        },
    }
}

/// A problem whose operands are views.
struct Scenario {
    case: Case,
    /// Query, key, value and, if there is one, bias.
    views: Vec<View>,
    /// The output as the loss reads it.
    upstream: fn(Tensor<4>) -> Tensor<4>,
}

fn scenario(
    name: &str,
    heads_kv: usize,
    views: impl Into<Vec<View>>,
    upstream: fn(Tensor<4>) -> Tensor<4>,
) -> Scenario {
    let mut case = Case::new(name, [2, HEADS, heads_kv, LEN_Q, LEN_KV, DIM, DIM]);
    let views = views.into();
    let plain = devices::any();
    for (at, view) in views.iter().enumerate() {
        let seen = (view.view)(leaf(at, view, &plain, DType::F64));
        let shape = seen.dims();
        let numbers = numbers_f64(&seen);
        match at {
            0 => case.query = numbers,
            1 => case.key = numbers,
            2 => case.value = numbers,
            _ => case.bias = Some((shape, numbers)),
        }
    }
    Scenario {
        case,
        views,
        upstream,
    }
}

/// What the operand at this place is a view of.
fn leaf(at: usize, view: &View, device: &Device, dtype: DType) -> Tensor<4> {
    let numbers = uniform_f64(at as u64 + 21, view.of.iter().product());
    tensor(&numbers, view.of, device, dtype)
}

fn scenarios() -> Vec<Scenario> {
    let causal = |scenario: Scenario| Scenario {
        case: Case {
            causal: Some(CausalAlignment::BottomRight),
            ..scenario.case
        },
        ..scenario
    };
    let [q, kv] = [LEN_Q, LEN_KV];
    vec![
        causal(scenario(
            "heads of projections",
            HEADS,
            [
                rows(2, HEADS, q),
                some_heads(2, HEADS, kv),
                some_heads(2, HEADS, kv),
            ],
            |output| output.swap_dims(1, 2),
        )),
        {
            let mut grouped = scenario(
                "grouped heads, numbers apart",
                2,
                [columns(2, HEADS, q), rows(2, 2, kv), columns(2, 2, kv)],
                |output| output.permute([3, 0, 2, 1]),
            );
            grouped.case = grouped.case.with_sinks().with_alibi();
            grouped.case.key_lengths = Some(vec![LEN_KV, 201]);
            grouped.case.softcap = Some(2.0);
            grouped
        },
        scenario(
            "expanded, with a bias of queries and keys",
            HEADS,
            [
                one_item(HEADS, q),
                one_head(kv),
                one_item(HEADS, kv),
                View {
                    of: [1, 1, LEN_KV, LEN_Q],
                    view: |x| x.swap_dims(2, 3).expand([2, HEADS, LEN_Q, LEN_KV]),
                },
            ],
            |output| output.permute([2, 1, 3, 0]),
        ),
        {
            let mut window = scenario(
                "a window and a bias of heads and keys",
                HEADS,
                [
                    rows(2, HEADS, q),
                    rows(2, HEADS, kv),
                    one_head(kv),
                    View {
                        of: [1, LEN_KV, HEADS, 1],
                        view: |x| x.permute([0, 2, 3, 1]).expand([2, HEADS, 1, LEN_KV]),
                    },
                ],
                |output| output.swap_dims(1, 2),
            );
            window.case.window = Some(Window {
                left: Some(150),
                right: Some(9),
            });
            window
        },
    ]
}

/// Output, logsumexp, and the gradients of what the operands are views of, by name.
type Named = Vec<(&'static str, Vec<f64>)>;

const LEAVES: [&str; 4] = ["query", "key", "value", "bias"];

impl Scenario {
    fn run(&self, device: &Device, dtype: DType) -> Named {
        let device = device.clone().autodiff();
        let views = self.views.iter().enumerate();
        let leaves = views.map(|(at, view)| leaf(at, view, &device, dtype).require_grad());
        let leaves: Vec<Tensor<4>> = leaves.collect();
        let operand = |at: usize| (self.views[at].view)(leaves[at].clone());
        let mut options: AttentionOptions = Case {
            bias: None,
            ..self.case.clone()
        }
        .options(&device, dtype);
        if leaves.len() > 3 {
            options = options.bias(AttentionBias::dense(operand(3)));
        }
        let (output, logsumexp) =
            ops::attention_with_logsumexp(operand(0), operand(1), operand(2), options);

        // The suite's weights of the loss, read through the view.
        let [batch, heads, len, dim] = output.dims();
        let of = |seed, shape: [usize; 4], dtype| {
            let numbers = uniform_f64(seed, shape.iter().product());
            tensor(&numbers, shape, &device, dtype)
        };
        let weights = (self.upstream)(of(7, [batch, heads, len, dim], dtype));
        // A copy, so that the gradient of the output alone is the view.
        let weights = Tensor::from_data(weights.to_data(), (&device, dtype));
        let of_output = ((self.upstream)(output.clone()) * weights).sum();
        let weights = of(8, [batch, heads, len, 1], logsumexp.dtype());
        let of_logsumexp = (logsumexp.clone().unsqueeze_dim::<4>(3) * weights).sum();
        let gradients = (of_output + of_logsumexp).backward();

        let mut found = vec![
            ("output", numbers_f64(&output)),
            ("logsumexp", numbers_f64(&logsumexp)),
        ];
        let leaves = LEAVES.into_iter().zip(&leaves);
        found.extend(leaves.map(|(name, leaf)| (name, gradient(leaf, &gradients))));
        found
    }

    /// The same from the oracle, whose gradients Burn brings back through the views.
    fn expected(&self) -> Named {
        let Results {
            output,
            logsumexp,
            gradients,
            option_gradients,
            ..
        } = self.case.oracle();
        let of_bias = option_gradients
            .into_iter()
            .find(|(name, _)| *name == "bias gradient");
        let gradients = gradients
            .into_iter()
            .chain(of_bias.map(|(_, gradient)| gradient));
        let device = devices::any().autodiff();
        let mut expected = vec![("output", output), ("logsumexp", logsumexp)];
        for (at, of_view) in gradients.enumerate() {
            let leaf = leaf(at, &self.views[at], &device, DType::F64).require_grad();
            let seen = (self.views[at].view)(leaf.clone());
            let of_view = tensor(&of_view, seen.dims(), &device, DType::F64);
            let gradients = (seen * of_view).sum().backward();
            expected.push((LEAVES[at], gradient(&leaf, &gradients)));
        }
        expected
    }
}

/// `work` with so many threads.
fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a pool of threads").install(work)
}

#[test]
fn views_of_many_tiles_on_several_threads() {
    for scenario in scenarios() {
        let expected = scenario.expected();
        for (backend, device) in devices::cpu() {
            for (dtype, tolerance) in [(DType::F32, TOLERANCE_OF_F32), (DType::F64, 1e-13)] {
                let alone = on_threads(1, || scenario.run(&device, dtype));
                assert_eq!(alone.len(), expected.len());
                let what = format!("'{}' on {backend} in {dtype:?}", scenario.case.name);
                for ((name, expected), (_, actual)) in expected.iter().zip(&alone) {
                    assert_near(&format!("{name} of {what}"), actual, expected, tolerance);
                }
                for threads in [2, 4] {
                    let together = on_threads(threads, || scenario.run(&device, dtype));
                    for ((name, alone), (_, together)) in alone.iter().zip(&together) {
                        assert!(
                            alone == together,
                            "{name} of {what} is different on {threads} threads"
                        );
                    }
                }
            }
        }
    }
}
