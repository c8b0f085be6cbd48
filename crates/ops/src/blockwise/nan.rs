//! Whether a NaN comes from the score function.

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
    let Some(sizes) = Sizes::of::<Dispatch>(&inputs, value) else {
        return;
    };
    let plan = Plan::forward(sizes, &inputs.mask.tables);
    let dtype = statistics_dtype(float_dtype(inputs.query.dtype()));
    let inputs = aligned::<Dispatch>(inputs.without_autodiff());
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
        let may_be = terms.hidden.map(Tensor::<4, Bool>::from_dispatch);
        let may_be = may_be.into_iter().chain([function.reads_nan()]);
        let nan = may_be.fold(nan, |nan, may_be| nan.bool_and(may_be.bool_not()));
        let found = nan.clone().into_data().iter::<bool>().position(|nan| nan);
        if let Some(index) = found {
            let [_, heads, count_q, count_k] = nan.dims();
            let (key, row) = (index % count_k, index / count_k);
            let (query, head) = (row % count_q, row / count_q);
            let score = function.scores.into_data().iter::<f64>().nth(index);
            panic!(
                "attention: the score function '{}' returned NaN for query {} and key {} of batch item {} in head {}, whose score is {}",
                function.call.captures.frame.name,
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
