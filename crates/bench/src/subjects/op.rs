//! The attention operation on Burn's tensors: ours, Burn's own, and what burn-nn computes between its projections.

use std::time::{Duration, Instant};

use burn::{
    nn::DropoutConfig,
    tensor::{
        Bool, DType, Device, Int, Tensor, TensorData, activation::softmax, module,
        ops::AttentionModuleOptions,
    },
};
use burn_attn::{AttentionBias, AttentionMask, AttentionOptions, ops, padding};

use super::subject::{Results, Subject, time_whole, values, wait};
use crate::case::Library;
use crate::generator::{QUERY_SCALE, numbers, seed};
use crate::text::name;
use crate::work::{Implementation, Op, Pass, Precision};

/// The seed of our dropout; the peers draw from other generators.
pub const DROPOUT_SEED: u64 = 7;

/// From query, key and value, and the bias on the scores.
type Attention = Box<dyn Fn([Tensor<4>; 3], Option<Tensor<4>>) -> Tensor<4>>;

struct OpSubject {
    pass: Pass,
    /// Query, key and value.
    inputs: [Tensor<4>; 3],
    bias: Option<Tensor<4>>,
    gradient: Tensor<4>,
    attention: Attention,
}

/// Inputs of `op` and the implementation of `library`.
pub fn build(op: &Op, library: Library) -> Result<Box<dyn Subject>, String> {
    let device = match op.pass {
        Pass::Forward => Device::default(),
        Pass::Backward | Pass::Training => Device::default().autodiff(),
    };
    let attention = match library {
        Library::Ours => ours(op, &device),
        Library::Burn => burn(op, &device)?,
        Library::BurnNn => burn_nn(op, &device)?,
        _ => return Err(format!("{} does not use Burn's tensors", name(library))),
    };
    let (precision, stored) = (op.precision, dtype(op.precision));
    let input = |seed, scale, shape| {
        let tensor = tensor(seed, scale, shape, precision, stored, &device);
        match op.pass {
            Pass::Forward => tensor,
            Pass::Backward | Pass::Training => tensor.require_grad(),
        }
    };
    // The output is multiplied in f32 where a device stores another type, but cannot compute in it, as Vulkan does bf16.
    let of_loss = match device.supports_dtype(stored) {
        true => stored,
        false => DType::F32,
    };
    let queries = [op.batch, op.heads, op.len_q, op.dim];
    let keys = [op.batch, op.heads_kv, op.len_kv, op.dim];
    let scores = [1, op.heads, op.len_q, op.len_kv];
    Ok(Box::new(OpSubject {
        pass: op.pass,
        inputs: [
            input(seed::QUERY, QUERY_SCALE, queries),
            input(seed::KEY, 1.0, keys),
            input(seed::VALUE, 1.0, keys),
        ],
        bias: op.bias.then(|| input(seed::BIAS, 1.0, scores)),
        gradient: tensor(seed::GRADIENT, 1.0, queries, precision, of_loss, &device),
        attention,
    }))
}

/// The same numbers as every contestant has of this seed, rounded to `precision`, in a tensor of `stored`.
pub fn tensor(
    seed: u32,
    scale: f32,
    shape: [usize; 4],
    precision: Precision,
    stored: DType,
    device: &Device,
) -> Tensor<4> {
    let data = TensorData::new(numbers(seed, shape.iter().product(), scale), shape);
    let rounded = data.convert_dtype(dtype(precision));
    Tensor::from_data(rounded.convert_dtype(stored), (device, stored))
}

/// Burn's name of a precision.
pub fn dtype(precision: Precision) -> DType {
    match precision {
        Precision::F32 => DType::F32,
        Precision::Bf16 => DType::BF16,
        Precision::F16 => DType::F16,
    }
}

fn ours(op: &Op, device: &Device) -> Attention {
    let mut mask = AttentionMask::none();
    if op.causal {
        mask = mask.and(AttentionMask::causal());
    }
    if let Some(left) = op.window {
        mask = mask.and(AttentionMask::window(left, 0));
    }
    if let Some(lengths) = &op.key_lengths {
        let lengths: Vec<i64> = lengths.iter().map(|&length| length as i64).collect();
        let lengths = Tensor::<1, Int>::from_data(lengths.as_slice(), device);
        mask = mask.and(AttentionMask::key_lengths(lengths));
    }
    let mut options = AttentionOptions::default().mask(mask);
    options.softcap = op.softcap;
    if op.dropout > 0.0 {
        options = options.dropout(op.dropout, DROPOUT_SEED);
    }
    let implementation = op.implementation;
    Box::new(move |[query, key, value], bias| {
        let mut options = options.clone();
        options.bias = bias.map_or_else(AttentionBias::none, AttentionBias::dense);
        match implementation {
            Implementation::Chosen => ops::attention(query, key, value, options),
            Implementation::Blockwise => {
                ops::backend::blockwise_attention(query, key, value, options, None).0
            }
            Implementation::Composed => {
                ops::backend::composed_attention(query, key, value, options).0
            }
        }
    })
}

fn burn(op: &Op, device: &Device) -> Result<Attention, String> {
    if op.dropout > 0.0 || op.window.is_some() {
        return Err("Burn's operation is measured without window and dropout".into());
    }
    let masked = hidden_keys(op, device);
    let options = AttentionModuleOptions {
        scale: None,
        softcap: op.softcap,
        is_causal: op.causal,
    };
    Ok(Box::new(move |[query, key, value], bias| {
        module::attention(query, key, value, masked.clone(), bias, options)
    }))
}

/// The lines of `burn_nn::attention::MultiHeadAttention` that are not projections.
fn burn_nn(op: &Op, device: &Device) -> Result<Attention, String> {
    if op.causal || op.window.is_some() || op.softcap.is_some() || op.bias {
        return Err("burn-nn's lines are measured with padding and dropout only".into());
    }
    let masked = hidden_keys(op, device);
    let dropout = DropoutConfig::new(op.dropout).init();
    let divisor = (op.dim as f32).sqrt();
    Ok(Box::new(move |[query, key, value], _| {
        let mut scores = query.matmul(key.transpose()).div_scalar(divisor);
        if let Some(masked) = &masked {
            scores = scores.mask_fill(masked.clone(), -1.0e4);
        }
        dropout.forward(softmax(scores, 3)).matmul(value)
    }))
}

/// `[batch, 1, 1, len_kv]`, true where a key is padding, if any is.
fn hidden_keys(op: &Op, device: &Device) -> Option<Tensor<4, Bool>> {
    let lengths = op.key_lengths.as_ref()?;
    Some(padding(lengths, op.len_kv, device).reshape([op.batch, 1, 1, op.len_kv]))
}

impl OpSubject {
    fn forward(&self) -> Tensor<4> {
        (self.attention)(self.inputs.clone(), self.bias.clone())
    }

    /// The time of the gradients alone.
    fn backward(&self) -> Duration {
        let output = self.forward();
        wait();
        let start = Instant::now();
        drop(self.loss(output).backward());
        wait();
        start.elapsed()
    }

    fn loss(&self, output: Tensor<4>) -> Tensor<1> {
        (output.cast(self.gradient.dtype()) * self.gradient.clone()).sum()
    }
}

impl Subject for OpSubject {
    // Giving back the memory counts: a training loop pays for it in every step.
    fn step(&mut self) {
        match self.pass {
            Pass::Forward => drop(self.forward()),
            Pass::Training => drop(self.loss(self.forward()).backward()),
            Pass::Backward => {
                self.backward();
            }
        }
    }

    fn time(&mut self, count: usize) -> Duration {
        match self.pass {
            Pass::Forward | Pass::Training => time_whole(self, count),
            Pass::Backward => (0..count).map(|_| self.backward()).sum(),
        }
    }

    fn results(&mut self) -> Results {
        let output = self.forward();
        let mut results = vec![("output".into(), values(output.clone()))];
        if self.pass != Pass::Forward {
            let gradients = self.loss(output).backward();
            let names = ["dquery", "dkey", "dvalue", "dbias"];
            for (name, tensor) in names.into_iter().zip(self.inputs.iter().chain(&self.bias)) {
                let gradient = tensor.grad(&gradients);
                results.extend(gradient.map(|gradient| (name.into(), values(gradient))));
            }
        }
        results
    }
}
