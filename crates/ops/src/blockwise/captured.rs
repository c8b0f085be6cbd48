//! The gradient of what a score function has captured, which adds up over blocks.

use core::ops::Range;

use burn::{
    backend::{
        Backend, Dispatch,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Int, Tensor},
};

use super::sums::{BlockSums, DistanceSums};
use crate::{
    composed::part::{Part, aligned_distances},
    function::{ScoreFunction, captured::Entries},
    routed,
};

/// One sum for each captured tensor.
pub(super) struct CapturedSums {
    sums: Vec<Sum>,
    query_offsets: Option<Tensor<1, Int>>,
}

enum Sum {
    Pairs(BlockSums<Dispatch>),
    /// The numbers `[heads_q, _]`, and their sum.
    Distances(Tensor<2>, DistanceSums<Dispatch>),
    Whole(Tensor<4>),
}

impl CapturedSums {
    /// Sums of the gradient of the function's captured floats, for blocks of these queries and keys.
    pub(super) fn new<B: Backend>(
        call: &ScoreFunction,
        captured: &FloatTensor<B>,
        query_offsets: Option<&IntTensor<B>>,
        lengths @ [_, len_kv]: [usize; 2],
        [queries, keys]: [&[Range<usize>]; 2],
    ) -> Self {
        let query_offsets = query_offsets.map(|x| routed::int_tensor::<B, 1>(x.clone()));
        let offsets = query_offsets.clone().map(Tensor::into_dispatch);
        let captured = routed::tensor::<B, 1>(captured.clone());
        let sums = call.slots.iter().map(|slot| {
            let numbers = slot.tensor(&captured);
            match slot.entries {
                Entries::Pairs => {
                    Sum::Pairs(BlockSums::new(&numbers.into_dispatch(), queries, keys))
                }
                Entries::Distances => {
                    let [_, heads, _, distances] = slot.shape;
                    let numbers = numbers.reshape([heads, distances]);
                    let like = numbers.clone().into_dispatch();
                    let like = aligned_distances::<Dispatch>(like, offsets.as_ref(), lengths);
                    Sum::Distances(numbers, DistanceSums::new(&like, len_kv))
                }
                Entries::Whole => Sum::Whole(numbers.zeros_like()),
            }
        });
        Self {
            sums: sums.collect(),
            query_offsets,
        }
    }

    /// Adds the gradients of the block at this row and column.
    pub(super) fn add(
        &mut self,
        [row, column]: [usize; 2],
        part: &Part,
        gradients: Vec<Tensor<4>>,
    ) {
        for (sum, gradient) in self.sums.iter_mut().zip(gradients) {
            match sum {
                Sum::Pairs(sum) => sum.add(row, column, gradient.into_dispatch()),
                Sum::Distances(_, sum) => {
                    sum.add(gradient.into_dispatch(), &part.queries, &part.keys);
                }
                Sum::Whole(sum) => *sum = sum.clone() + gradient,
            }
        }
    }

    /// The gradient of the operand.
    pub(super) fn into_gradient<B: Backend>(self, len_q: usize) -> FloatTensor<B> {
        let offsets = self.query_offsets.map(Tensor::into_dispatch);
        let gradients = self.sums.into_iter().map(|sum| match sum {
            Sum::Pairs(sum) => flat(Tensor::<4>::from_dispatch(sum.join())),
            Sum::Distances(like, sum) => {
                let sum = sum.into_gradient(&like.into_dispatch(), offsets.as_ref(), len_q);
                flat(Tensor::<2>::from_dispatch(sum))
            }
            Sum::Whole(sum) => flat(sum),
        });
        routed::primitive::<B, 1>(Tensor::cat(gradients.collect(), 0))
    }
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let len = tensor.shape().num_elements();
    tensor.reshape([len])
}
