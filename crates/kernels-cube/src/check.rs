//! Checks of the operands: the kernels read and write without bounds checks.

use burn_attn_kernels_cpu::{BlockSize, Problem};
use cubecl::ir::{ElemType, FloatKind, IntKind};

use crate::{
    Gradients, Inputs, Operand, Upstream,
    supports::{LARGEST_TENSOR, SCALES, SOFTCAPS, supports_scalars},
};

const F32: ElemType = ElemType::Float(FloatKind::F32);
const I32: ElemType = ElemType::Int(IntKind::I32);

/// The sizes of an operand, by which others are checked. Panics unless there are four.
pub(crate) fn sizes(name: &str, operand: &Operand) -> [usize; 4] {
    let shape = &operand.shape;
    shape[..]
        .try_into()
        .unwrap_or_else(|_| panic!("{name} is {shape:?}, but must have four dimensions"))
}

/// Panics unless `inputs` are as their documentation says.
pub(crate) fn inputs(inputs: &Inputs, problem: &Problem) {
    let p = problem;
    scalars(inputs);
    let (batch, heads_q, heads_kv) = (p.batch, p.heads_q, p.heads_kv);
    assert!(
        heads_q.is_multiple_of(heads_kv),
        "{heads_q} heads of queries cannot share {heads_kv} heads of keys"
    );
    for (name, operand, shape) in [
        ("query", &inputs.query, [batch, heads_q, p.len_q, p.dim_qk]),
        ("key", &inputs.key, [batch, heads_kv, p.len_kv, p.dim_qk]),
        ("value", &inputs.value, [batch, heads_kv, p.len_kv, p.dim_v]),
    ] {
        rows(name, operand, &shape, inputs.query.elem);
    }
    let all = [batch, heads_q, p.len_q, p.len_kv];
    if let Some(bias) = &inputs.bias {
        broadcast("bias", bias, all);
        of_type("bias", bias, F32);
    }
    let table = inputs.visible_blocks.as_ref().map(|(table, size)| {
        let [rows, columns] = size.table(p.len_q, p.len_kv);
        (table, [batch, heads_q, rows, columns])
    });
    let masked = inputs.masked.as_ref().map(|masked| (masked, all));
    for (name, operand) in [("masked", masked), ("visible_blocks", table)] {
        if let Some((operand, whole)) = operand {
            broadcast(name, operand, whole);
            assert!(
                matches!(operand.elem, ElemType::Int(_) | ElemType::UInt(_)),
                "{name} is of {}, but must be of integers",
                operand.elem
            );
        }
    }
    if let (Some((masked, _)), Some((table, _))) = (masked, table) {
        of_type("visible_blocks", table, masked.elem);
    }
    let lens = p.len_q + p.len_kv;
    let entries = match inputs.query_offsets {
        Some(_) => (2 * lens).saturating_sub(1),
        None => lens.saturating_sub(1),
    };
    for (name, operand, shape, elem) in [
        (
            "distance_bias",
            &inputs.distance_bias,
            &[heads_q, entries][..],
            F32,
        ),
        ("sinks", &inputs.sinks, &[heads_q], F32),
        ("key_lengths", &inputs.key_lengths, &[batch], I32),
        ("first_keys", &inputs.first_keys, &[batch], I32),
        ("query_offsets", &inputs.query_offsets, &[batch], I32),
        ("segments", &inputs.segments, &[batch, lens], I32),
    ] {
        if let Some(operand) = operand {
            row_major(name, operand, shape, elem);
        }
    }
}

/// Panics unless the numbers of a call are in range.
fn scalars(inputs: &Inputs) {
    assert!(
        supports_scalars(inputs.scale, None),
        "scale is {}, but must be 0 or of a size in {SCALES:?}",
        inputs.scale
    );
    assert!(
        supports_scalars(0.0, inputs.softcap),
        "softcap is {}, but must be in {SOFTCAPS:?}",
        inputs.softcap.unwrap_or_default()
    );
    if let Some(dropout) = inputs.dropout {
        dropout.validate().unwrap_or_else(|error| panic!("{error}"));
    }
    if let Some((_, BlockSize { queries, keys })) = inputs.visible_blocks {
        assert!(
            queries > 0 && keys > 0,
            "visible_blocks are of {queries} queries and {keys} keys, but must have at least one of each"
        );
    }
}

/// Panics unless the results of the forward pass fit; the output is of type `elem`.
pub(crate) fn results(output: &Operand, logsumexp: &Operand, problem: &Problem, elem: ElemType) {
    let p = problem;
    let shape = [p.batch, p.heads_q, p.len_q, p.dim_v];
    rows("output", output, &shape, elem);
    row_major("logsumexp", logsumexp, &shape[..3], F32);
}

/// Panics unless everything that the backward pass reads and writes besides its inputs fits.
pub(crate) fn gradients(
    inputs: &Inputs,
    upstream: &Upstream,
    gradients: &Gradients,
    problem: &Problem,
) {
    let elem = inputs.query.elem;
    results(&upstream.output, &upstream.logsumexp, problem, elem);
    let (of_output, of_logsumexp) = (&upstream.output_gradient, &upstream.logsumexp_gradient);
    rows("output_gradient", of_output, &upstream.output.shape, elem);
    let shape = &upstream.logsumexp.shape;
    row_major("logsumexp_gradient", of_logsumexp, shape, F32);
    for (name, gradient, input) in [
        ("gradient of query", &gradients.query, &inputs.query),
        ("gradient of key", &gradients.key, &inputs.key),
        ("gradient of value", &gradients.value, &inputs.value),
    ] {
        if let Some(gradient) = gradient {
            rows(name, gradient, &input.shape, elem);
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
            row_major(name, gradient, &input.shape, F32);
        }
    }
}

/// Panics unless the shape and type fit and the last stride is 1; the other strides are free.
fn rows(name: &str, operand: &Operand, expected: &[usize], elem: ElemType) {
    fits(name, operand, expected, elem);
    let beside = operand.strides.last() == Some(&1) || operand.shape.last() == Some(&1);
    assert!(
        beside,
        "{name} has strides {:?}, but the last must be 1",
        operand.strides
    );
}

fn row_major(name: &str, operand: &Operand, expected: &[usize], elem: ElemType) {
    fits(name, operand, expected, elem);
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

fn broadcast(name: &str, operand: &Operand, whole: [usize; 4]) {
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

/// Panics unless every element is inside the memory and has an index of at most 31 bits.
fn in_memory(name: &str, operand: &Operand) {
    let sizes = operand.shape.iter().zip(&operand.strides);
    let last = sizes
        .map(|(&size, &stride)| size.saturating_sub(1).saturating_mul(stride))
        .fold(0, usize::saturating_add);
    let bytes = operand.handle.size_in_used() as usize;
    assert!(
        last < bytes / operand.elem.size() && last <= LARGEST_TENSOR,
        "{name} of shape {:?} and strides {:?} ends at number {last}, but its memory has {bytes} bytes and indices end at {LARGEST_TENSOR}",
        operand.shape,
        operand.strides
    );
}

fn of_type(name: &str, operand: &Operand, expected: ElemType) {
    assert!(
        operand.elem == expected,
        "{name} is of {}, but must be of {expected}",
        operand.elem
    );
}

/// Panics unless shape and type are as expected, and every element is inside the memory.
fn fits(name: &str, operand: &Operand, expected: &[usize], elem: ElemType) {
    assert!(
        operand.shape == expected && operand.strides.len() == expected.len(),
        "{name} is {:?} with strides {:?}, but must be {expected:?}",
        operand.shape,
        operand.strides
    );
    in_memory(name, operand);
    of_type(name, operand, elem);
}
