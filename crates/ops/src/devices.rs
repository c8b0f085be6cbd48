//! Whether the tensors of a call are on one device.

use burn::tensor::{Device, Tensor};

use crate::{
    bias::{AttentionBias, DistancePart},
    function::captured::{Captures, Numbers},
    mask::AttentionMask,
    options::AttentionOptions,
};

/// Panics unless the tensors of the options are where the query is, with autodiff or without.
pub(crate) fn of_options(query: &Tensor<4>, options: &AttentionOptions) {
    let device = query.device();
    of_mask(&device, &options.mask);
    of_bias(&device, &options.bias);
    if let Some(function) = &options.score_function {
        of_captures(&device, &function.captures);
    }
    if let Some(sinks) = &options.sinks {
        is_there(&device, "the sinks are", &sinks.device());
    }
    if let Some(offsets) = &options.query_offsets {
        is_there(&device, "the query offsets are", &offsets.device());
    }
}

/// The same for a mask.
pub(crate) fn of_mask(device: &Device, mask: &AttentionMask) {
    let found = [
        mask.masked.as_ref().map(Tensor::device),
        mask.key_lengths.as_ref().map(Tensor::device),
        mask.segments.as_ref().map(|it| it.query.device()),
        mask.segments.as_ref().map(|it| it.key.device()),
    ];
    // The table of a function is not always read, and moves to the query's device where it is.
    let tables = mask.visible_blocks.iter().map(|it| it.table.device());
    for found in found.into_iter().flatten().chain(tables) {
        is_there(device, "a tensor of the mask is", &found);
    }
    for function in &mask.functions {
        of_captures(device, &function.captures);
    }
    for mask in mask.unions.iter().flatten() {
        of_mask(device, mask);
    }
}

fn of_bias(device: &Device, bias: &AttentionBias) {
    let by_distance = bias.by_distance.iter().map(|part| match part {
        DistancePart::Alibi(slopes) => slopes.device(),
        DistancePart::PaperAlibi(_, device) => device.clone(),
        DistancePart::Relative(table, _) => table.device(),
        DistancePart::Numbers(numbers) => numbers.device(),
    });
    for found in bias.dense.iter().map(Tensor::device).chain(by_distance) {
        is_there(device, "the bias is", &found);
    }
}

fn of_captures(device: &Device, captures: &Captures) {
    for captured in &captures.tensors {
        let found = match &captured.tensor {
            Numbers::Float(tensor) => tensor.device(),
            Numbers::Int(tensor) => tensor.device(),
        };
        let name = &captures.frame.name;
        let what = format!("what the function '{name}' has captured is");
        is_there(device, &what, &found);
    }
}

/// Panics unless a tensor is on the query's device.
pub(crate) fn is_there(query: &Device, what: &str, found: &Device) {
    assert!(
        found == query,
        "attention: the query is on {query:?}, but {what} on {found:?}"
    );
}
