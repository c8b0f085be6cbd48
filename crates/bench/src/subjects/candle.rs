//! candle-nn's CPU flash attention: forward only, it has no gradient.

use std::time::{Duration, Instant};

use candle_core::{Device, Tensor};
use candle_nn::attention::{AttnMask, flash_attn};

use super::{Results, Subject};
use crate::generator::{QUERY_SCALE, numbers, seed};
use crate::work::{Op, Pass, Precision};

struct CandleSubject {
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: AttnMask,
    scale: f32,
}

/// Inputs of `op` in candle's layout.
pub fn build(op: &Op) -> Result<Box<dyn Subject>, String> {
    let plain = op.key_lengths.is_none()
        && op.window.is_none()
        && op.softcap.is_none()
        && !op.bias
        && op.dropout == 0.0
        && op.precision == Precision::F32
        && op.pass == Pass::Forward;
    if !plain {
        return Err("candle is measured forward, in f32, without options but causal".into());
    }
    subject(op)
        .map(|subject| Box::new(subject) as Box<dyn Subject>)
        .map_err(|error| error.to_string())
}

fn subject(op: &Op) -> candle_core::Result<CandleSubject> {
    // Our `[batch, heads, len, dim]` turned into candle's `[batch, len, heads, dim]`.
    let tensor = |seed, scale, [batch, heads, len, dim]: [usize; 4]| {
        let numbers = numbers(seed, batch * heads * len * dim, scale);
        Tensor::from_vec(numbers, (batch, heads, len, dim), &Device::Cpu)?
            .transpose(1, 2)?
            .contiguous()
    };
    let keys = [op.batch, op.heads_kv, op.len_kv, op.dim];
    Ok(CandleSubject {
        query: tensor(
            seed::QUERY,
            QUERY_SCALE,
            [op.batch, op.heads, op.len_q, op.dim],
        )?,
        key: tensor(seed::KEY, 1.0, keys)?,
        value: tensor(seed::VALUE, 1.0, keys)?,
        mask: match op.causal {
            true => AttnMask::causal_with_offset(op.len_kv - op.len_q),
            false => AttnMask::None,
        },
        scale: 1.0 / (op.dim as f32).sqrt(),
    })
}

impl CandleSubject {
    fn forward(&self) -> Tensor {
        flash_attn::<f32>(
            &self.query,
            &self.key,
            &self.value,
            self.scale,
            self.mask.clone(),
            None,
            None,
        )
        .expect("the inputs are in candle's layout")
    }
}

impl Subject for CandleSubject {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        drop(self.forward());
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        let output = self.forward().flatten_all().and_then(|flat| flat.to_vec1());
        vec![("output".into(), output.expect("the output is f32"))]
    }
}
