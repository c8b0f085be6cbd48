//! Whose NaN it is.

use burn::{
    backend::{Dispatch, TensorMetadata, tensor::FloatTensor},
    tensor::{Bool, Tensor},
};

use super::{Plan, Sizes};
use crate::{
    backend::ScoreInputs,
    composed::{float_dtype, part::aligned, scores::scores, statistics_dtype},
};

/// Panics if the call's score function returns NaN for a visible pair, from numbers that are not NaN. It reads the scores, block by block.
pub(crate) fn refuse_nan_of_function(inputs: ScoreInputs<Dispatch>, value: &FloatTensor<Dispatch>) {
    let captured = inputs.captured.as_ref();
    let captured = captured.map(|captured| Tensor::<1>::from_dispatch(captured.clone()));
    let Some(sizes) = Sizes::of::<Dispatch>(&inputs, value) else {
        return;
    };
    if captured.is_some_and(|captured| any(captured.is_nan())) {
        return;
    }
    let plan = Plan::forward(sizes).shown_by(&inputs.mask.tables);
    let dtype = statistics_dtype(float_dtype(inputs.query.dtype()));
    let inputs = aligned::<Dispatch>(inputs);
    for queries in plan.queries() {
        let keys = plan.keys_of(&queries);
        if keys.is_empty() {
            continue;
        }
        let part = plan.part(&queries, &keys);
        let (_, terms) = scores::<Dispatch>(part.of(&inputs), &part, dtype);
        let Some(function) = terms.function else {
            return;
        };
        let nan = Tensor::<4>::from_dispatch(function.result::<Dispatch>()).is_nan();
        let nan = nan.bool_and(function.scores.clone().is_nan().bool_not());
        let nan = match terms.hidden {
            Some(hidden) => nan.bool_and(Tensor::<4, Bool>::from_dispatch(hidden).bool_not()),
            None => nan,
        };
        let found = nan.clone().into_data().iter::<bool>().position(|nan| nan);
        if let Some(index) = found {
            let [_, heads, count_q, count_k] = nan.dims();
            let (key, row) = (index % count_k, index / count_k);
            let (query, head) = (row % count_q, row / count_q);
            let score = function.scores.into_data().iter::<f64>().nth(index);
            panic!(
                "attention: the score function '{}' returned NaN for query {} and key {} of batch item {} in head {}, whose score is {}",
                function.call.frame.name,
                queries.start + query,
                keys.start + key,
                head / heads,
                head % heads,
                score.expect("there are as many scores as results")
            );
        }
    }
}

/// Whether any is true. Waits for the device.
pub(crate) fn any<const D: usize>(bools: Tensor<D, Bool>) -> bool {
    bools.into_data().iter::<bool>().any(|one| one)
}
