//! One attention problem, said once and given to the oracle and to the operation under test.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, AttentionOptions, CausalAlignment, RelativeBuckets, alibi_slopes, ops,
};
use burn_attn_kernels_cpu::{
    AttentionDropout, BlockSize, Blocks, Broadcast, FirstKeys, Mask, Options, PositionMask,
    Problem, Segments, Window, oracle,
};
use burn_attn_tests::numbers::uniform_f64;

use crate::{
    body::Body,
    option_tensors::{OptionTensors, gradient},
};

/// A problem with its mask, options and data.
#[derive(Clone, PartialEq)]
pub struct Case {
    pub name: String,
    pub problem: Problem,
    pub query: Vec<f64>,
    pub key: Vec<f64>,
    pub value: Vec<f64>,
    pub causal: Option<CausalAlignment>,
    pub window: Option<Window>,
    /// Keys that causality and window do not hide, per batch item, and whether causality does.
    pub first_keys: Option<(Vec<usize>, bool)>,
    pub key_lengths: Option<Vec<usize>>,
    pub query_offsets: Option<Vec<i64>>,
    pub segments: Option<(Vec<i64>, Vec<i64>)>,
    pub visible_blocks: Option<([usize; 4], Vec<bool>, BlockSize)>,
    pub masked: Option<([usize; 4], Vec<bool>)>,
    pub bias: Option<([usize; 4], Vec<f64>)>,
    pub alibi: Option<Vec<f64>>,
    pub relative: Option<(Vec<f64>, RelativeBuckets)>,
    pub sinks: Option<Vec<f64>>,
    pub softcap: Option<f64>,
    pub scale: Option<f64>,
    pub dropout: Option<AttentionDropout>,
    /// The gradient of the loss with respect to the output.
    pub output_gradient: Vec<f64>,
    /// The gradient of the loss with respect to the logsumexp.
    pub logsumexp_gradient: Vec<f64>,
}

/// Results and gradients of a case, as the oracle or the operation computed them.
pub struct Results {
    pub output: Vec<f64>,
    pub logsumexp: Vec<f64>,
    pub weights: Vec<f64>,
    pub gradients: [Vec<f64>; 3],
    /// The gradients of the tensors among the options, by name.
    pub option_gradients: Vec<(&'static str, Vec<f64>)>,
}

/// A tensor of these numbers, rounded to `dtype`.
pub fn tensor<const D: usize>(
    data: &[f64],
    shape: [usize; D],
    device: &Device,
    dtype: DType,
) -> Tensor<D> {
    let data = TensorData::new(data.to_vec(), shape).convert_dtype(dtype);
    Tensor::from_data(data, (device, dtype))
}

/// A tensor of these bools.
pub fn bools(data: Vec<bool>, shape: [usize; 4], device: &Device) -> Tensor<4, Bool> {
    Tensor::from_data(TensorData::new(data, shape), device)
}

impl Case {
    /// Prime sizes, so that a swapped axis fails; nothing masked.
    pub fn new(
        name: &str,
        [batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v]: [usize; 7],
    ) -> Self {
        let problem = Problem {
            batch,
            heads_q,
            heads_kv,
            len_q,
            len_kv,
            dim_qk,
            dim_v,
        };
        let query = uniform_f64(1, problem.query_elements());
        Self {
            name: name.to_string(),
            problem,
            // Larger than (−1, 1), so that the softmax is far from uniform.
            query: query.iter().map(|x| 4.0 * x).collect(),
            key: uniform_f64(2, problem.key_elements()),
            value: uniform_f64(3, problem.value_elements()),
            causal: None,
            window: None,
            first_keys: None,
            key_lengths: None,
            query_offsets: None,
            segments: None,
            visible_blocks: None,
            masked: None,
            bias: None,
            alibi: None,
            relative: None,
            sinks: None,
            softcap: None,
            scale: None,
            dropout: None,
            output_gradient: uniform_f64(7, problem.output_elements()),
            logsumexp_gradient: uniform_f64(8, problem.query_rows()),
        }
    }

    /// The usual sizes: two batch items, five heads, 7 queries, 11 keys.
    pub fn usual(name: &str) -> Self {
        Self::new(name, [2, 5, 5, 7, 11, 3, 13])
    }

    /// A dense mask of `shape` that hides about a third.
    pub fn with_masked(mut self, shape: [usize; 4]) -> Self {
        let hidden = uniform_f64(5, shape.iter().product());
        self.masked = Some((shape, hidden.iter().map(|&x| x > 0.3).collect()));
        self
    }

    /// A table of blocks that shows about half, with size 1 in the dimensions in which `ones` is true.
    pub fn with_blocks(mut self, size: impl Into<BlockSize>, ones: [bool; 4]) -> Self {
        let (p, size) = (self.problem, size.into());
        let [rows, columns] = size.table(p.len_q, p.len_kv);
        let full = [p.batch, p.heads_q, rows, columns];
        let shape: [usize; 4] = std::array::from_fn(|axis| if ones[axis] { 1 } else { full[axis] });
        let visible = uniform_f64(11, shape.iter().product());
        let visible = visible.iter().map(|&x| x > 0.0).collect();
        self.visible_blocks = Some((shape, visible, size));
        self
    }

    /// A dense bias of `shape`.
    pub fn with_bias(mut self, shape: [usize; 4]) -> Self {
        self.bias = Some((shape, uniform_f64(6, shape.iter().product())));
        self
    }

    /// The slopes of the paper.
    pub fn with_alibi(mut self) -> Self {
        self.alibi = Some(alibi_slopes(self.problem.heads_q));
        self
    }

    /// A relative bias whose shared buckets the usual lengths reach.
    pub fn with_relative(mut self, bidirectional: bool) -> Self {
        let buckets = RelativeBuckets {
            buckets: 10,
            max_distance: 7,
            bidirectional,
        };
        self.relative = Some((uniform_f64(9, 10 * self.problem.heads_q), buckets));
        self
    }

    /// Sinks about as large as the scores.
    pub fn with_sinks(mut self) -> Self {
        let sinks = uniform_f64(10, self.problem.heads_q);
        self.sinks = Some(sinks.iter().map(|x| 4.0 * x).collect());
        self
    }

    /// What the naive f64 oracle says.
    pub fn oracle(&self) -> Results {
        let (segments, blocks) = (self.segments.as_ref(), self.visible_blocks.as_ref());
        let inputs = oracle::Inputs {
            options: Options {
                mask: Mask {
                    by_position: PositionMask::new(self.causal, self.window),
                    first_keys: self.first_keys.as_ref().map(|(counts, causal)| FirstKeys {
                        counts,
                        causal: *causal,
                    }),
                    key_lengths: self.key_lengths.as_deref(),
                    query_offsets: self.query_offsets.as_deref(),
                    segments: segments.map(|(queries, keys)| Segments { queries, keys }),
                    blocks: blocks.map(|(shape, data, size)| Blocks {
                        visible: Broadcast::new(data, *shape).unwrap(),
                        size: *size,
                    }),
                    masked: self
                        .masked
                        .as_ref()
                        .map(|(shape, data)| Broadcast::new(data, *shape).unwrap()),
                },
                bias: self
                    .bias
                    .as_ref()
                    .map(|(shape, data)| Broadcast::new(data, *shape).unwrap()),
                sinks: self.sinks.as_deref(),
                softcap: self.softcap,
                scale: self.scale,
                dropout: self.dropout,
            },
            alibi: self.alibi.as_deref(),
            relative: self
                .relative
                .as_ref()
                .map(|(table, buckets)| (table.as_slice(), *buckets)),
            ..oracle::Inputs::new(&self.query, &self.key, &self.value)
        };
        let forward = oracle::forward(&self.problem, &inputs).unwrap();
        let upstream = (&self.output_gradient, Some(&*self.logsumexp_gradient));
        let gradients = oracle::backward(&self.problem, &inputs, upstream.0, upstream.1).unwrap();
        Results {
            output: forward.output,
            logsumexp: forward.logsumexp,
            weights: forward.weights,
            gradients: [gradients.q, gradients.k, gradients.v],
            option_gradients: [
                ("bias gradient", gradients.bias),
                ("slopes gradient", gradients.alibi),
                ("table gradient", gradients.relative),
                ("sinks gradient", gradients.sinks),
            ]
            .into_iter()
            .filter_map(|(name, gradient)| Some((name, gradient?)))
            .collect(),
        }
    }

    /// Query, key and value.
    pub fn operands(&self, device: &Device, dtype: DType) -> [Tensor<4>; 3] {
        let p = self.problem;
        [
            (&self.query, [p.batch, p.heads_q, p.len_q, p.dim_qk]),
            (&self.key, [p.batch, p.heads_kv, p.len_kv, p.dim_qk]),
            (&self.value, [p.batch, p.heads_kv, p.len_kv, p.dim_v]),
        ]
        .map(|(data, shape)| tensor(data, shape, device, dtype))
    }

    pub fn mask(&self, device: &Device) -> AttentionMask {
        let p = self.problem;
        let causal = match self.causal {
            Some(alignment) => AttentionMask::causal_aligned(alignment),
            None => AttentionMask::none(),
        };
        let mut mask = causal.clone();
        if let Some(window) = self.window {
            let reach = |bound: Option<usize>| bound.unwrap_or(usize::MAX);
            mask = mask.and(AttentionMask::window(
                reach(window.left),
                reach(window.right),
            ));
        }
        let first = |counts: &[usize]| {
            let counts: Vec<i64> = counts.iter().map(|&count| count as i64).collect();
            AttentionMask::key_lengths(Tensor::from_data(counts.as_slice(), device))
        };
        if let Some((counts, are_causal)) = &self.first_keys {
            mask = mask.or(first(counts));
            if *are_causal {
                mask = mask.and(causal);
            }
        }
        if let Some(lengths) = &self.key_lengths {
            mask = mask.and(first(lengths));
        }
        if let Some((queries, keys)) = &self.segments {
            let [queries, keys] = [(queries, p.len_q), (keys, p.len_kv)].map(|(ids, len)| {
                Tensor::<2, Int>::from_data(TensorData::new(ids.clone(), [p.batch, len]), device)
            });
            mask = mask.and(AttentionMask::segments(queries, keys));
        }
        if let Some((shape, data, size)) = &self.visible_blocks {
            let table = bools(data.clone(), *shape, device);
            mask = mask.and(AttentionMask::visible_blocks(table, *size));
        }
        if let Some((shape, data)) = &self.masked {
            mask = mask.and(AttentionMask::masked(bools(data.clone(), *shape, device)));
        }
        mask
    }

    /// The tensors among the options.
    pub fn option_tensors(&self, device: &Device, dtype: DType) -> OptionTensors {
        let heads = self.problem.heads_q;
        let of_heads = |data: &Vec<f64>| tensor::<1>(data, [heads], device, dtype);
        OptionTensors {
            bias: self
                .bias
                .as_ref()
                .map(|(shape, data)| tensor(data, *shape, device, dtype)),
            alibi: self.alibi.as_ref().map(of_heads),
            relative: self.relative.as_ref().map(|(table, buckets)| {
                let shape = [buckets.buckets, heads];
                (tensor(table, shape, device, dtype), *buckets)
            }),
            sinks: self.sinks.as_ref().map(of_heads),
        }
    }

    pub fn options(&self, device: &Device, dtype: DType) -> AttentionOptions {
        self.options_of(device, &self.option_tensors(device, dtype))
    }

    pub fn options_of(&self, device: &Device, tensors: &OptionTensors) -> AttentionOptions {
        let mut options = AttentionOptions::default().mask(self.mask(device));
        options.softcap = self.softcap;
        options.scale = self.scale;
        options.dropout = self.dropout;
        options.bias = tensors.attention_bias();
        options.sinks = tensors.sinks.clone();
        options.query_offsets = self
            .query_offsets
            .as_ref()
            .map(|offsets| Tensor::from_data(offsets.as_slice(), device));
        options
    }

    /// What the operation says on a device with autodiff.
    pub fn run(&self, device: &Device, dtype: DType) -> Results {
        self.run_by(Body::Backend, device, dtype)
    }

    /// The same by an implementation of choice.
    pub fn run_by(&self, body: Body, device: &Device, dtype: DType) -> Results {
        self.run_with(body, device, [dtype, dtype], |options, _| options)
    }

    /// As [`run_by`](Self::run_by), with a second dtype for the tensors among the options, to which `add` adds others.
    pub fn run_with(
        &self,
        body: Body,
        device: &Device,
        [dtype, of_options]: [DType; 2],
        add: impl FnOnce(AttentionOptions, &Device) -> AttentionOptions,
    ) -> Results {
        let device = device.clone().autodiff();
        let [query, key, value] = self.operands(&device, dtype).map(Tensor::require_grad);
        let tensors = self.option_tensors(&device, of_options).tracked();
        let options = add(self.options_of(&device, &tensors), &device);
        let weights = ops::attention_weights(query.clone(), key.clone(), options.clone());
        let operands = [query.clone(), key.clone(), value.clone()];
        let (output, logsumexp) = body.attend(operands, options);
        let of_output = tensor(&self.output_gradient, output.dims(), &device, dtype);
        let of_logsumexp = tensor(
            &self.logsumexp_gradient,
            logsumexp.dims(),
            &device,
            logsumexp.dtype(),
        );
        // The loss itself may be infinite, by the logsumexp of a row that sees nothing; only its gradient is used.
        let loss = (output.clone() * of_output).sum()
            + (logsumexp.clone() * of_logsumexp).sum().cast(dtype);
        let gradients = loss.backward();
        Results {
            weights: weights.into_data().iter().collect(),
            logsumexp: logsumexp.into_data().iter().collect(),
            gradients: [
                gradient(&query, &gradients),
                gradient(&key, &gradients),
                gradient(&value, &gradients),
            ],
            option_gradients: tensors.gradients(&gradients),
            output: output.into_data().iter().collect(),
        }
    }
}
