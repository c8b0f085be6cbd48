//! One attention problem, said once and given to the oracle and to the operation under test.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use burn_attn::{AttentionBias, AttentionMask, AttentionOptions, CausalAlignment, Window, ops};
use burn_attn_kernels_cpu::{Broadcast, Dropout, Mask, Problem, Segments, oracle};

/// Numbers in (−1, 1) that f32 holds exactly, so that every precision reads the same input.
pub fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 44) as f64) / f64::from(1 << 19) - 1.0
        })
        .collect()
}

/// A problem with its mask, options and data.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    pub problem: Problem,
    pub query: Vec<f64>,
    pub key: Vec<f64>,
    pub value: Vec<f64>,
    pub causal: Option<CausalAlignment>,
    pub window: Option<Window>,
    pub key_lengths: Option<Vec<usize>>,
    pub segments: Option<(Vec<i64>, Vec<i64>)>,
    pub masked: Option<([usize; 4], Vec<bool>)>,
    pub bias: Option<([usize; 4], Vec<f64>)>,
    pub softcap: Option<f64>,
    pub scale: Option<f64>,
    pub dropout: Option<Dropout>,
}

/// Results and gradients of a case, as the oracle or the operation computed them.
pub struct Results {
    pub output: Vec<f64>,
    pub logsumexp: Vec<f64>,
    pub weights: Vec<f64>,
    pub gradients: [Vec<f64>; 3],
    pub bias_gradient: Option<Vec<f64>>,
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
        Self {
            name: name.to_string(),
            problem,
            // Larger than (−1, 1), so that the softmax is far from uniform.
            query: numbers(1, problem.query_elements())
                .iter()
                .map(|x| 4.0 * x)
                .collect(),
            key: numbers(2, problem.key_elements()),
            value: numbers(3, problem.value_elements()),
            causal: None,
            window: None,
            key_lengths: None,
            segments: None,
            masked: None,
            bias: None,
            softcap: None,
            scale: None,
            dropout: None,
        }
    }

    /// The usual sizes: two batch items, five heads, 7 queries, 11 keys.
    pub fn usual(name: &str) -> Self {
        Self::new(name, [2, 5, 5, 7, 11, 3, 13])
    }

    /// A dense mask of `shape` that hides about a third.
    pub fn with_masked(mut self, shape: [usize; 4]) -> Self {
        let hidden = numbers(5, shape.iter().product())
            .iter()
            .map(|&x| x > 0.3)
            .collect();
        self.masked = Some((shape, hidden));
        self
    }

    /// A dense bias of `shape`.
    pub fn with_bias(mut self, shape: [usize; 4]) -> Self {
        self.bias = Some((shape, numbers(6, shape.iter().product())));
        self
    }

    /// Gradients of the loss with respect to the output and the logsumexp.
    fn loss_weights(&self) -> (Vec<f64>, Vec<f64>) {
        let rows = self.problem.query_rows();
        (numbers(7, self.problem.output_elements()), numbers(8, rows))
    }

    /// What the naive f64 oracle says.
    pub fn oracle(&self) -> Results {
        let inputs = oracle::Inputs {
            mask: Mask {
                causal: self.causal,
                window: self.window,
                key_lengths: self.key_lengths.as_deref(),
                segments: self
                    .segments
                    .as_ref()
                    .map(|(queries, keys)| Segments { queries, keys }),
                masked: self
                    .masked
                    .as_ref()
                    .map(|(shape, data)| Broadcast::new(data, *shape).unwrap()),
            },
            bias: self
                .bias
                .as_ref()
                .map(|(shape, data)| Broadcast::new(data, *shape).unwrap()),
            softcap: self.softcap,
            scale: self.scale,
            dropout: self.dropout,
            ..oracle::Inputs::new(&self.query, &self.key, &self.value)
        };
        let forward = oracle::forward(&self.problem, &inputs).unwrap();
        let (of_output, of_logsumexp) = self.loss_weights();
        let gradients =
            oracle::backward(&self.problem, &inputs, &of_output, Some(&of_logsumexp)).unwrap();
        Results {
            output: forward.output,
            logsumexp: forward.logsumexp,
            weights: forward.weights,
            gradients: [gradients.q, gradients.k, gradients.v],
            bias_gradient: gradients.bias,
        }
    }

    fn tensor(data: &[f64], shape: [usize; 4], device: &Device, dtype: DType) -> Tensor<4> {
        let data = TensorData::new(data.to_vec(), shape).convert_dtype(dtype);
        Tensor::from_data(data, (device, dtype))
    }

    pub fn query(&self, device: &Device, dtype: DType) -> Tensor<4> {
        let p = self.problem;
        Self::tensor(
            &self.query,
            [p.batch, p.heads_q, p.len_q, p.dim_qk],
            device,
            dtype,
        )
    }

    pub fn key(&self, device: &Device, dtype: DType) -> Tensor<4> {
        let p = self.problem;
        Self::tensor(
            &self.key,
            [p.batch, p.heads_kv, p.len_kv, p.dim_qk],
            device,
            dtype,
        )
    }

    pub fn value(&self, device: &Device, dtype: DType) -> Tensor<4> {
        let p = self.problem;
        Self::tensor(
            &self.value,
            [p.batch, p.heads_kv, p.len_kv, p.dim_v],
            device,
            dtype,
        )
    }

    pub fn mask(&self, device: &Device) -> AttentionMask {
        let p = self.problem;
        let mut mask = AttentionMask::none();
        if let Some(alignment) = self.causal {
            mask = mask.and(AttentionMask::causal_aligned(alignment));
        }
        if let Some(window) = self.window {
            let reach = |bound: Option<usize>| bound.unwrap_or(usize::MAX);
            mask = mask.and(AttentionMask::window(
                reach(window.left),
                reach(window.right),
            ));
        }
        if let Some(lengths) = &self.key_lengths {
            let lengths: Vec<i64> = lengths.iter().map(|&length| length as i64).collect();
            mask = mask.and(AttentionMask::key_lengths(Tensor::from_data(
                lengths.as_slice(),
                device,
            )));
        }
        if let Some((queries, keys)) = &self.segments {
            let tensor = |ids: &Vec<i64>, len| {
                Tensor::<2, Int>::from_data(TensorData::new(ids.clone(), [p.batch, len]), device)
            };
            mask = mask.and(AttentionMask::segments(
                tensor(queries, p.len_q),
                tensor(keys, p.len_kv),
            ));
        }
        if let Some((shape, data)) = &self.masked {
            let masked =
                Tensor::<4, Bool>::from_data(TensorData::new(data.clone(), *shape), device);
            mask = mask.and(AttentionMask::masked(masked));
        }
        mask
    }

    /// Everything but the bias, which may need a gradient.
    pub fn options(&self, device: &Device) -> AttentionOptions {
        AttentionOptions {
            mask: self.mask(device),
            softcap: self.softcap,
            scale: self.scale,
            dropout: self.dropout,
            bias: None,
        }
    }

    /// What the operation says on a device with autodiff.
    pub fn run(&self, device: &Device, dtype: DType) -> Results {
        let device = device.clone().autodiff();
        let query = self.query(&device, dtype).require_grad();
        let key = self.key(&device, dtype).require_grad();
        let value = self.value(&device, dtype).require_grad();
        let bias = self
            .bias
            .as_ref()
            .map(|(shape, data)| Self::tensor(data, *shape, &device, dtype).require_grad());
        let options = AttentionOptions {
            bias: bias.clone().map(AttentionBias::dense),
            ..self.options(&device)
        };
        let weights = ops::attention_weights(query.clone(), key.clone(), options.clone());
        let (output, logsumexp) =
            ops::attention_with_logsumexp(query.clone(), key.clone(), value.clone(), options);

        let (of_output, of_logsumexp) = self.loss_weights();
        let of_output = Self::tensor(&of_output, output.dims(), &device, dtype);
        let [batch, heads, len_q] = logsumexp.dims();
        let of_logsumexp = Self::tensor(
            &of_logsumexp,
            [batch, heads, len_q, 1],
            &device,
            logsumexp.dtype(),
        );
        // Rows that see nothing have a logsumexp of −∞, whose gradient is zero by contract.
        let finite = logsumexp.clone().unsqueeze_dim::<4>(3);
        let finite = finite.clone().mask_fill(finite.is_inf(), 0.0);
        let loss = (output.clone() * of_output).sum() + (finite * of_logsumexp).sum().cast(dtype);
        let gradients = loss.backward();
        let numbers = |tensor: Tensor<4>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
        let gradient = |tensor: &Tensor<4>| {
            numbers(
                tensor
                    .grad(&gradients)
                    .expect("every tracked input gets a gradient"),
            )
        };
        Results {
            weights: numbers(weights),
            logsumexp: logsumexp.into_data().iter::<f64>().collect(),
            gradients: [gradient(&query), gradient(&key), gradient(&value)],
            bias_gradient: bias.as_ref().map(gradient),
            output: numbers(output),
        }
    }
}

/// Every option of the operation, alone and together.
pub fn every_case() -> Vec<Case> {
    use CausalAlignment::{BottomRight, TopLeft};
    let usual = Case::usual;
    let window = |left, right| Some(Window { left, right });
    let lengths = || Some(vec![11, 4]);
    let segments = || {
        Some((
            vec![1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5],
            vec![
                1, 1, 2, 2, 2, 2, 3, 3, 9, 9, 9, 4, 4, 4, 4, 4, 5, 5, 5, 9, 9, 9,
            ],
        ))
    };
    vec![
        usual("nothing masked"),
        Case {
            causal: Some(BottomRight),
            ..usual("causal")
        },
        Case {
            causal: Some(TopLeft),
            ..usual("causal top-left")
        },
        Case {
            causal: Some(BottomRight),
            ..Case::new("causal, more queries than keys", [2, 3, 3, 11, 5, 7, 2])
        },
        Case {
            causal: Some(TopLeft),
            ..Case::new(
                "causal top-left, more queries than keys",
                [2, 3, 3, 11, 5, 7, 2],
            )
        },
        Case {
            window: window(Some(2), Some(1)),
            ..usual("window")
        },
        Case {
            window: window(Some(3), None),
            causal: Some(BottomRight),
            ..usual("causal window")
        },
        Case {
            window: window(Some(3), None),
            causal: Some(TopLeft),
            ..usual("causal window top-left")
        },
        Case {
            key_lengths: lengths(),
            ..usual("key lengths")
        },
        Case {
            key_lengths: Some(vec![0, 11]),
            ..usual("a batch item without keys")
        },
        Case {
            segments: segments(),
            ..usual("segments")
        },
        Case {
            segments: segments(),
            causal: Some(BottomRight),
            ..usual("causal segments")
        },
        usual("dense mask").with_masked([2, 5, 7, 11]),
        usual("dense mask of keys").with_masked([2, 1, 1, 11]),
        usual("dense mask of queries and keys").with_masked([1, 1, 7, 11]),
        usual("dense mask of heads").with_masked([1, 5, 1, 11]),
        usual("dense mask of queries").with_masked([2, 1, 7, 1]),
        usual("dense bias").with_bias([2, 5, 7, 11]),
        usual("bias of heads").with_bias([1, 5, 7, 11]),
        usual("bias of keys").with_bias([2, 1, 1, 11]),
        Case {
            softcap: Some(1.5),
            ..usual("softcap")
        },
        Case {
            scale: Some(0.37),
            ..usual("scale")
        },
        Case {
            dropout: Some(Dropout {
                probability: 0.3,
                seed: 17,
            }),
            ..usual("dropout")
        },
        Case::new("grouped heads", [2, 6, 3, 7, 11, 5, 13]),
        Case {
            causal: Some(BottomRight),
            ..Case::new("one key/value head", [3, 5, 1, 7, 11, 2, 3])
        },
        Case {
            causal: Some(BottomRight),
            ..Case::new("one query", [2, 3, 3, 1, 13, 5, 7])
        },
        Case::new("one of everything", [1, 1, 1, 1, 1, 1, 1]),
        Case {
            causal: Some(BottomRight),
            window: window(Some(5), None),
            key_lengths: lengths(),
            segments: segments(),
            softcap: Some(2.0),
            scale: Some(0.8),
            dropout: Some(Dropout {
                probability: 0.2,
                seed: 3,
            }),
            ..Case::new("everything at once", [2, 6, 2, 7, 11, 5, 3])
                .with_masked([2, 1, 7, 11])
                .with_bias([1, 6, 7, 11])
        },
    ]
}
