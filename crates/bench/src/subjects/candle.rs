//! candle-nn's CPU flash attention: forward only, it has no gradient.

use candle_core::{Device, Tensor};
use candle_nn::attention::{AttnMask, flash_attn};

use super::subject::{Subject, calls};
use crate::generator::{QUERY_SCALE, numbers, seed};
use crate::work::{Op, Pass, Precision};

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
    // Our `[batch, heads, len, dim]` turned into candle's `[batch, len, heads, dim]`.
    let tensor = |seed, scale, heads, len| {
        let (batch, dim) = (op.batch, op.dim);
        let numbers = numbers(seed, batch * heads * len * dim, scale);
        Tensor::from_vec(numbers, (batch, heads, len, dim), &Device::Cpu)
            .and_then(|tensor| tensor.transpose(1, 2)?.contiguous())
            .map_err(|error| error.to_string())
    };
    let query = tensor(seed::QUERY, QUERY_SCALE, op.heads, op.len_q)?;
    let key = tensor(seed::KEY, 1.0, op.heads_kv, op.len_kv)?;
    let value = tensor(seed::VALUE, 1.0, op.heads_kv, op.len_kv)?;
    let mask = match op.causal {
        true => AttnMask::causal_with_offset(op.len_kv - op.len_q),
        false => AttnMask::None,
    };
    let scale = 1.0 / (op.dim as f32).sqrt();
    let forward = move || {
        flash_attn::<f32>(&query, &key, &value, scale, mask.clone(), None, None)
            .expect("the inputs are in candle's layout")
    };
    Ok(calls(forward, |output: Tensor| {
        let output = output.flatten_all().and_then(|flat| flat.to_vec1());
        vec![("output".into(), output.expect("the output is f32"))]
    }))
}
