//! Functions that users write, on one part of a call.

use burn::{
    backend::{
        Backend, Dispatch,
        tensor::{BoolTensor, FloatTensor, IntTensor},
    },
    tensor::{Bool, Device, Int, Tensor, TensorData, kind::Basic},
};

use burn_attn_kernels_cpu::PositionMask;

use super::{
    dtype::{counting, expand, of_device},
    part::{Part, aligned_distances, clamped_offsets, narrow},
    position::either,
    relative::relative_shift,
};
use crate::{
    function::{
        Block, MaskFunction, Pairs, ScoreFunction, Slot,
        captured::{Captures, Entries, Frame},
    },
    routed,
};

/// Where a part is, for a function that counts in this frame.
pub(crate) fn block<B: Backend>(
    frame: &Frame,
    [batch, heads]: [usize; 2],
    part: &Part,
    query_offsets: Option<&IntTensor<B>>,
    by_position: PositionMask,
    device: &Device,
) -> Block {
    let lengths @ [len_q, len_kv] = [part.len_q, part.len_kv];
    let first_position = match query_offsets {
        Some(offsets) => routed::int_tensor::<B, 1>(clamped_offsets::<B>(offsets, lengths)),
        None => {
            let offset = by_position.offset(len_q, len_kv) as i64;
            Tensor::from_data(TensorData::from([offset]), counting(device))
        }
    };
    Block {
        frame: frame.clone(),
        batch,
        heads,
        queries: part.queries.clone(),
        keys: part.keys.clone(),
        has_offsets: query_offsets.is_some(),
        first_position,
    }
}

/// What the functions of a mask hide of a part, of dimensions that broadcast to the scores; `None` if there is no function that may hide a pair. `block` says where the part
/// is.
pub(crate) fn hidden<B: Backend>(
    functions: &[MaskFunction],
    part: &Part,
    block: impl Fn(&Frame) -> Block,
) -> Option<BoolTensor<B>> {
    let shows_all = |call: &&MaskFunction| {
        let table = call.table.as_ref();
        table.is_some_and(|table| table.shows_all(&part.queries, &part.keys))
    };
    let some_hidden = functions.iter().filter(|call| !shows_all(call));
    let hidden = some_hidden.map(|call| {
        let floats = call.captures.floats();
        let pairs = Pairs {
            block: block(&call.captures.frame),
            floats: floats.map(|(x, entries)| of_part(x, entries, part)).collect(),
            ints: ints_of_part(&call.captures, part),
        };
        let visible = (call.function)(&pairs);
        let (dims, sizes) = (visible.dims(), pairs.sizes());
        assert!(
            (0..4).all(|dim| dims[dim] == sizes[dim] || dims[dim] == 1),
            "attention: the mask function '{}' returned {dims:?}, which does not broadcast to the block {sizes:?} [batch, heads, queries, keys]",
            call.captures.frame.name
        );
        check_device("mask", visible.device(), &pairs.block);
        of_device::<B>(routed::bool_primitive::<B, 4>(visible.bool_not()))
    });
    hidden.reduce(either::<B>)
}

/// Panics unless a function has returned a tensor of the call's device.
fn check_device(kind: &str, found: Device, block: &Block) {
    let expected = block.first_position.device();
    assert!(
        found == expected,
        "attention: the {kind} function '{}' returned a tensor on {found:?} in a call on {expected:?}",
        block.frame.name
    );
}

/// The entries of a captured tensor that belong to a part.
fn of_part<K: Basic>(tensor: &Tensor<4, K>, entries: Entries, part: &Part) -> Tensor<4, K> {
    let ranges = [(2, &part.queries), (3, &part.keys)];
    ranges
        .into_iter()
        .fold(tensor.clone(), |tensor, (dim, range)| {
            let size = tensor.dims()[dim];
            match entries == Entries::Pairs && size != 1 && size != range.len() {
                true => tensor.narrow(dim, range.start, range.len()),
                false => tensor,
            }
        })
}

fn ints_of_part(captures: &Captures, part: &Part) -> Vec<Tensor<4, Int>> {
    let ints = captures.ints();
    ints.map(|(x, entries)| of_part(x, entries, part)).collect()
}

/// What a score function sees in place of the score and the captured numbers of a hidden pair: by 1 it may divide, and it may take the logarithm.
const OF_HIDDEN: f64 = 1.0;

/// A score function on one part: everything that it needs to run, and to run again for its gradient.
pub(crate) struct ScorePart {
    pub(crate) call: ScoreFunction,
    /// Scaled; [`OF_HIDDEN`] where a pair is hidden.
    pub(crate) scores: Tensor<4>,
    /// With the captured floats as they were given, which [`by_pair`](Self::by_pair) expands.
    pairs: Pairs,
    /// True where a pair is hidden, of the shape of the scores.
    hidden: Option<Tensor<4, Bool>>,
}

impl ScorePart {
    /// `captured` has the floats of the whole call.
    pub(super) fn new<B: Backend>(
        call: ScoreFunction,
        block: Block,
        scores: FloatTensor<B>,
        captured: Option<&FloatTensor<B>>,
        hidden: Option<BoolTensor<B>>,
        part: &Part,
    ) -> Self {
        let captured = captured.map(|captured| routed::tensor::<B, 1>(captured.clone()));
        let floats = captured.iter().flat_map(|captured| {
            let of_slot = |slot| slot_of_part(slot, captured, &block, part);
            call.slots.iter().map(of_slot)
        });
        let pairs = Pairs {
            floats: floats.collect(),
            ints: ints_of_part(&call.captures, part),
            block,
        };
        let scores = routed::tensor::<B, 4>(scores);
        let hidden = hidden.map(routed::bool_tensor::<B, 4>);
        Self {
            scores: match hidden.clone() {
                Some(hidden) => scores.mask_fill(hidden, OF_HIDDEN),
                None => scores,
            },
            pairs,
            call,
            hidden,
        }
    }

    /// The pairs as the function sees them, with these captured floats, one number for each pair.
    fn by_pair(&self, floats: &[Tensor<4>]) -> Pairs {
        let shape = self.scores.shape();
        let floats = floats.iter().zip(&self.call.slots).map(|(numbers, slot)| {
            if slot.entries == Entries::Whole {
                return numbers.clone();
            }
            let numbers = expand::<Dispatch>(numbers.clone().into_dispatch(), &shape);
            let numbers = Tensor::from_dispatch(numbers);
            match self.hidden.clone().filter(|_| numbers.is_autodiff()) {
                // Selects the gradient too, before it is summed over pairs: that of a hidden one may be 0 times a derivative that is not finite.
                Some(hidden) => numbers.mask_fill(hidden, OF_HIDDEN),
                None => numbers,
            }
        });
        Pairs {
            floats: floats.collect(),
            ..self.pairs.clone()
        }
    }

    /// Where the function reads a NaN, of the shape of the scores.
    pub(crate) fn reads_nan(&self) -> Tensor<4, Bool> {
        let dims = self.scores.dims();
        let floats = self.by_pair(&self.pairs.floats).floats.into_iter();
        let nan = floats.zip(&self.call.slots).map(|(numbers, slot)| {
            let nan = numbers.is_nan();
            match slot.entries {
                // Any entry may be read for any pair.
                Entries::Whole => nan.any().reshape([1; 4]).expand(dims),
                _ => nan,
            }
        });
        nan.fold(self.scores.clone().is_nan(), Tensor::bool_or)
    }

    /// What the function makes of the scores.
    pub(crate) fn result<B: Backend>(&self) -> FloatTensor<B> {
        let pairs = self.by_pair(&self.pairs.floats);
        let result = (self.call.function)(self.scores.clone(), &pairs);
        let name = &self.call.captures.frame.name;
        let (dims, sizes) = (result.dims(), self.scores.dims());
        assert!(
            dims == sizes,
            "attention: the score function '{name}' returned {dims:?} for scores {sizes:?} [batch, heads, queries, keys]"
        );
        let (dtype, of_scores) = (result.dtype(), self.scores.dtype());
        assert!(
            dtype == of_scores,
            "attention: the score function '{name}' returned {dtype:?} for scores of {of_scores:?}"
        );
        check_device("score", result.device(), &pairs.block);
        let floats = self.pairs.floats.iter();
        let tracks = floats.chain([&self.scores]).any(Tensor::is_autodiff);
        assert!(
            tracks || !result.is_autodiff(),
            "attention: the score function '{name}' uses a tensor with autodiff that it has not captured; one without a gradient can be moved into it by without_autodiff()"
        );
        routed::primitive::<B, 4>(result)
    }

    /// The gradients of the scores and of each float of [`slots`](ScoreFunction::slots) in this part, from that of the result.
    #[cfg(feature = "autodiff")]
    pub(crate) fn gradients<B: Backend>(
        self,
        gradient: FloatTensor<B>,
    ) -> (FloatTensor<B>, Vec<Tensor<4>>) {
        let leaf = |x: &Tensor<4>| x.clone().autodiff().require_grad();
        let scores = leaf(&self.scores);
        let floats: Vec<_> = self.pairs.floats.iter().map(leaf).collect();
        let result = (self.call.function)(scores.clone(), &self.by_pair(&floats));
        let zeros = |x: &Tensor<4>| x.clone().inner().zeros_like();
        if !result.is_autodiff() {
            let of_floats = floats.iter().map(zeros).collect();
            return (routed::primitive::<B, 4>(zeros(&scores)), of_floats);
        }
        let gradient = routed::tensor::<B, 4>(gradient);
        let gradients = (result * gradient).sum().backward();
        let gradient = |x: &Tensor<4>| x.grad(&gradients).unwrap_or_else(|| zeros(x));
        let of_floats = floats.iter().map(gradient).collect();
        (routed::primitive::<B, 4>(gradient(&scores)), of_floats)
    }
}

#[cfg(not(feature = "autodiff"))]
impl ScorePart {
    /// Nothing asks for gradients without autodiff.
    pub(crate) fn gradients<B: Backend>(
        self,
        _: FloatTensor<B>,
    ) -> (FloatTensor<B>, Vec<Tensor<4>>) {
        unreachable!("the gradient of a score function needs the feature autodiff")
    }
}

/// The numbers of a captured tensor that belong to a part.
fn slot_of_part(slot: &Slot, captured: &Tensor<1>, block: &Block, part: &Part) -> Tensor<4> {
    let numbers = slot.tensor(captured);
    if slot.entries != Entries::Distances {
        return of_part(&numbers, slot.entries, part);
    }
    let [_, heads, _, distances] = slot.shape;
    let numbers = numbers.reshape([heads, distances]).into_dispatch();
    let offsets = block
        .has_offsets
        .then(|| block.first_position.clone().into_dispatch());
    let lengths = [part.len_q, part.len_kv];
    let numbers = aligned_distances::<Dispatch>(numbers, offsets.as_ref(), lengths);
    let numbers = narrow::<Dispatch>(numbers, 2, &part.distances());
    let numbers = relative_shift::<Dispatch>(numbers, part.queries.len(), part.keys.len());
    Tensor::from_dispatch(numbers)
}
