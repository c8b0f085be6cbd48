//! Masks and biases that do not fit the scores.

use burn::tensor::{Bool, Int, Tensor};
use burn_attn::{
    AttentionBias, AttentionMask, CausalAlignment, MultiHeadAttentionConfig,
    MultiHeadAttentionInput, SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_tests::{
    devices,
    numbers::{filled, tensor},
    sentence,
};

/// What the module says to 7 queries, 11 keys, a batch of 2 and 3 heads under this mask.
fn refused(mask: AttentionMask) -> String {
    let device = devices::any();
    let module = filled(MultiHeadAttentionConfig::new(15, 3).init(&device), 1);
    let input = MultiHeadAttentionInput::cross_attention(
        tensor([2, 7, 15], 3, &device),
        tensor([2, 11, 15], 4, &device),
    )
    .mask(mask);
    let with_weights = sentence(|| module.forward_with_weights(input.clone()));
    let without = sentence(|| module.forward(input));
    assert_eq!(with_weights, without);
    without
}

fn masked(dims: [usize; 4]) -> AttentionMask {
    let zeros = Tensor::<4, Int>::zeros(dims, &devices::any());
    let masked: Tensor<4, Bool> = zeros.equal_elem(1);
    AttentionMask::masked(masked)
}

#[test]
fn dense_masks() {
    let cases = [[3, 3, 7, 11], [2, 2, 7, 11], [2, 3, 8, 11], [2, 3, 7, 10]];
    for dims in cases {
        assert_eq!(
            refused(masked(dims)),
            format!(
                "attention: mask {dims:?} does not broadcast to the scores [2, 3, 7, 11] [batch, heads, len_q, len_kv]"
            )
        );
    }
}

#[test]
fn masks_of_other_sizes() {
    let device = devices::any();
    let lengths = Tensor::<1, Int>::from_data([11, 8, 5], &device);
    assert_eq!(
        refused(AttentionMask::key_lengths(lengths)),
        "attention: 3 key lengths were given for a batch of 2"
    );
    let zeros = |dims: [usize; 2]| Tensor::<2, Int>::zeros(dims, &device);
    assert_eq!(
        refused(AttentionMask::padding(zeros([2, 10]), 1)),
        "attention: a mask of padding [2, 10] does not fit batch 2 and 11 keys"
    );
    for (query, key) in [
        ([2, 8], [2, 11]),
        ([2, 7], [2, 10]),
        ([3, 7], [3, 11]),
        ([1, 7], [1, 11]),
    ] {
        assert_eq!(
            refused(AttentionMask::segments(zeros(query), zeros(key))),
            format!(
                "attention: segments of shapes {query:?} and {key:?} do not fit batch 2, 7 queries and 11 keys"
            )
        );
    }
}

#[test]
fn masks_that_cannot_be_combined() {
    let lengths = |lengths: &[i64]| {
        AttentionMask::key_lengths(Tensor::<1, Int>::from_data(lengths, &devices::any()))
    };
    for (first, second) in [(&[5, 3][..], &[5][..]), (&[5], &[5, 3])] {
        assert_eq!(
            sentence(|| lengths(first).and(lengths(second))),
            format!(
                "masks of {} and {} key lengths belong to different batches",
                first.len(),
                second.len()
            )
        );
    }
    assert_eq!(
        sentence(|| masked([2, 1, 7, 11]).and(masked([2, 1, 8, 11]))),
        "masks of shapes [2, 1, 7, 11] and [2, 1, 8, 11] do not broadcast: dimension 2 is 7 and 8"
    );
    let aligned = AttentionMask::causal_aligned;
    assert_eq!(
        sentence(|| aligned(CausalAlignment::TopLeft).and(aligned(CausalAlignment::BottomRight))),
        "a mask has one causal alignment, but TopLeft and BottomRight were combined"
    );
}

#[cfg(all(feature = "flex", feature = "ndarray"))]
#[test]
fn masks_on_two_devices() {
    use burn::tensor::Device;

    let [first, second] = devices::two();
    let numbers = |device: &Device| Tensor::<2, Int>::zeros([2, 7], device);
    let lengths = |device: &Device| AttentionMask::key_lengths(Tensor::zeros([2], device));
    let dense = |device: &Device| AttentionMask::padding(numbers(device), 1);
    let one = AttentionMask::segments(numbers(&first), numbers(&first));
    let packings = AttentionMask::segments(numbers(&first), numbers(&second));
    for (mask, other) in [
        (lengths(&first), lengths(&second)),
        (dense(&first), dense(&second)),
        (one, packings),
    ] {
        assert_eq!(
            sentence(|| mask.and(other)),
            format!("masks with tensors on {first:?} and {second:?} cannot be combined")
        );
    }
}

#[test]
fn biases() {
    let device = devices::any();
    let module = filled(SelfAttentionConfig::new(15, 3).init(&device), 1);
    let input = SelfAttentionInput::new(tensor([2, 7, 15], 3, &device))
        .bias(AttentionBias::dense(tensor([1, 3, 7, 11], 5, &device)));
    assert_eq!(
        sentence(|| module.forward(input)),
        "attention: bias [1, 3, 7, 11] does not broadcast to the scores [2, 3, 7, 7] [batch, heads, len_q, len_kv]"
    );
}
