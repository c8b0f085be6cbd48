//! The layouts that the kernels rely on: they read without checks of bounds.

use burn_attn_kernels_cpu::Problem;
use cubecl::ir::{ElemType, FloatKind, IntKind};

use crate::{Gradients, Inputs, Operand, Upstream};

const F32: ElemType = ElemType::Float(FloatKind::F32);
const I32: ElemType = ElemType::Int(IntKind::I32);

/// Indices are 32 bits wide, some with a sign.
const LARGEST_INDEX: usize = i32::MAX as usize;

/// Panics unless every operand of `inputs` has the shape and layout that its documentation says.
pub(crate) fn inputs(inputs: &Inputs, problem: &Problem) {
    let Problem {
        batch,
        heads_q,
        heads_kv,
        len_q,
        len_kv,
        dim_qk,
        dim_v,
    } = *problem;
    assert!(
        heads_q.is_multiple_of(heads_kv),
        "{heads_q} heads of queries cannot share {heads_kv} heads of keys"
    );
    rows("query", &inputs.query, &[batch, heads_q, len_q, dim_qk]);
    rows("key", &inputs.key, &[batch, heads_kv, len_kv, dim_qk]);
    rows("value", &inputs.value, &[batch, heads_kv, len_kv, dim_v]);
    of_type("key", &inputs.key, inputs.query.elem);
    of_type("value", &inputs.value, inputs.query.elem);
    for (name, operand) in [
        ("bias", &inputs.bias),
        ("distance_bias", &inputs.distance_bias),
        ("sinks", &inputs.sinks),
    ] {
        if let Some(operand) = operand {
            of_type(name, operand, F32);
        }
    }
    let table = inputs.visible_blocks.as_ref().map(|(table, _)| table);
    for (name, operand) in [
        ("masked", inputs.masked.as_ref()),
        ("visible_blocks", table),
    ] {
        if let Some(operand) = operand {
            assert!(
                matches!(operand.elem, ElemType::Int(_) | ElemType::UInt(_)),
                "{name} is of {}, but must be of integers",
                operand.elem
            );
        }
    }
    if let (Some(masked), Some((table, _))) = (&inputs.masked, &inputs.visible_blocks) {
        of_type("visible_blocks", table, masked.elem);
    }
    let all = [batch, heads_q, len_q, len_kv];
    for (name, operand) in [("bias", &inputs.bias), ("masked", &inputs.masked)] {
        broadcast(name, operand.as_ref(), all);
    }
    if let Some((table, size)) = &inputs.visible_blocks {
        let [queries, keys] = size.table(len_q, len_kv);
        broadcast(
            "visible_blocks",
            Some(table),
            [batch, heads_q, queries, keys],
        );
    }
    let lens = len_q + len_kv;
    let entries = match inputs.query_offsets {
        Some(_) => 2 * lens - 1,
        None => lens - 1,
    };
    for (name, operand, shape) in [
        (
            "distance_bias",
            inputs.distance_bias.as_ref(),
            &[heads_q, entries][..],
        ),
        ("sinks", inputs.sinks.as_ref(), &[heads_q]),
        ("key_lengths", inputs.key_lengths.as_ref(), &[batch]),
        ("query_offsets", inputs.query_offsets.as_ref(), &[batch]),
        ("segments", inputs.segments.as_ref(), &[batch, lens]),
    ] {
        row_major(name, operand, shape);
    }
    for (name, operand) in [
        ("key_lengths", inputs.key_lengths.as_ref()),
        ("query_offsets", inputs.query_offsets.as_ref()),
        ("segments", inputs.segments.as_ref()),
    ] {
        if let Some(operand) = operand {
            of_type(name, operand, I32);
        }
    }
}

/// Panics unless the results of the forward pass fit.
pub(crate) fn results(output: &Operand, logsumexp: &Operand, problem: &Problem) {
    let Problem {
        batch,
        heads_q,
        len_q,
        dim_v,
        ..
    } = *problem;
    rows("output", output, &[batch, heads_q, len_q, dim_v]);
    row_major("logsumexp", Some(logsumexp), &[batch, heads_q, len_q]);
    of_type("logsumexp", logsumexp, F32);
}

/// Panics unless everything that the backward pass reads and writes besides its inputs fits.
pub(crate) fn gradients(
    inputs: &Inputs,
    upstream: &Upstream,
    gradients: &Gradients,
    problem: &Problem,
) {
    results(&upstream.output, &upstream.logsumexp, problem);
    of_type("output", &upstream.output, inputs.query.elem);
    of_type(
        "output_gradient",
        &upstream.output_gradient,
        inputs.query.elem,
    );
    of_type("logsumexp_gradient", &upstream.logsumexp_gradient, F32);
    rows(
        "output_gradient",
        &upstream.output_gradient,
        &upstream.output.shape,
    );
    row_major(
        "logsumexp_gradient",
        Some(&upstream.logsumexp_gradient),
        &upstream.logsumexp.shape,
    );
    for (name, gradient, input) in [
        ("gradient of query", &gradients.query, &inputs.query),
        ("gradient of key", &gradients.key, &inputs.key),
        ("gradient of value", &gradients.value, &inputs.value),
    ] {
        if let Some(gradient) = gradient {
            rows(name, gradient, &input.shape);
            of_type(name, gradient, inputs.query.elem);
        }
    }
    for (name, gradient, input) in [
        ("gradient of bias", &gradients.bias, &inputs.bias),
        (
            "gradient of distance_bias",
            &gradients.distance_bias,
            &inputs.distance_bias,
        ),
        ("gradient of sinks", &gradients.sinks, &inputs.sinks),
    ] {
        if let Some(gradient) = gradient {
            let input = input.as_ref();
            let input =
                input.unwrap_or_else(|| panic!("there is a {name}, but nothing that it is of"));
            row_major(name, Some(gradient), &input.shape);
            of_type(name, gradient, F32);
        }
    }
}

/// Of any strides, but with the numbers of a row beside each other.
fn rows(name: &str, operand: &Operand, expected: &[usize]) {
    shape(name, operand, expected);
    in_memory(name, operand);
    let beside = operand.strides.last() == Some(&1) || operand.shape.last() == Some(&1);
    assert!(
        beside,
        "{name} has strides {:?}, but the last must be 1",
        operand.strides
    );
}

fn row_major(name: &str, operand: Option<&Operand>, expected: &[usize]) {
    let Some(operand) = operand else {
        return;
    };
    shape(name, operand, expected);
    in_memory(name, operand);
    let mut step = 1;
    for (&size, &stride) in operand.shape.iter().zip(&operand.strides).rev() {
        assert!(
            size == 1 || stride == step,
            "{name} of shape {:?} has strides {:?}, but must be row-major",
            operand.shape,
            operand.strides
        );
        step *= size;
    }
}

fn broadcast(name: &str, operand: Option<&Operand>, whole: [usize; 4]) {
    let Some(operand) = operand else {
        return;
    };
    let fits = [operand.shape.len(), operand.strides.len()] == [4; 2]
        && operand
            .shape
            .iter()
            .zip(whole)
            .all(|(&size, whole)| size == 1 || size == whole);
    assert!(
        fits,
        "{name} is {:?}, but cannot be repeated to {whole:?}",
        operand.shape
    );
    in_memory(name, operand);
}

/// All of it in its memory, and where indices of 31 bits reach.
fn in_memory(name: &str, operand: &Operand) {
    let sizes = operand.shape.iter().zip(&operand.strides);
    let last = sizes
        .map(|(&size, &stride)| size.saturating_sub(1).saturating_mul(stride))
        .fold(0, usize::saturating_add);
    let bytes = operand.handle.size_in_used() as usize;
    assert!(
        last < bytes / operand.elem.size() && last <= LARGEST_INDEX,
        "{name} of shape {:?} and strides {:?} ends at number {last}, but its memory has {bytes} bytes and indices end at {LARGEST_INDEX}",
        operand.shape,
        operand.strides
    );
}

pub(crate) fn of_type(name: &str, operand: &Operand, expected: ElemType) {
    assert!(
        operand.elem == expected,
        "{name} is of {}, but must be of {expected}",
        operand.elem
    );
}

fn shape(name: &str, operand: &Operand, expected: &[usize]) {
    assert!(
        operand.shape == expected && operand.strides.len() == expected.len(),
        "{name} is {:?} with strides {:?}, but must be {expected:?}",
        operand.shape,
        operand.strides
    );
}
