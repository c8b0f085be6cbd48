//! Every kind of bad input panics with one sentence that names the values.

use burn::tensor::{Bool, Device, Int, Tensor};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, CausalAlignment, RelativeBuckets,
    ops::{attention, attention_weights, linear},
};
use burn_attn_tests::{devices, sentence};

fn zeros(shape: [usize; 4], device: &Device) -> Tensor<4> {
    Tensor::zeros(shape, device)
}

/// The sentence with which attention over these shapes panics.
fn message(shapes: [[usize; 4]; 3], options: impl FnOnce(&Device) -> AttentionOptions) -> String {
    let device = &devices::any();
    sentence(|| {
        let [query, key, value] = shapes.map(|shape| zeros(shape, device));
        attention(query, key, value, options(device))
    })
}

const GOOD: [[usize; 4]; 3] = [[2, 6, 5, 7], [2, 3, 11, 7], [2, 3, 11, 13]];

fn plain(_: &Device) -> AttentionOptions {
    AttentionOptions::default()
}

/// What a call of good shapes says to this mask.
fn of_mask(mask: AttentionMask) -> String {
    message(GOOD, |_| AttentionOptions::default().mask(mask))
}

#[test]
fn a_linear_layer_that_does_not_fit() {
    let device = &devices::any();
    let message = |x: [usize; 2], bias: usize| {
        sentence(|| {
            let weight = Tensor::<2>::zeros([5, 7], device);
            linear(
                Tensor::zeros(x, device),
                weight,
                Some(Tensor::zeros([bias], device)),
            )
        })
    };
    assert_eq!(
        message([3, 4], 7),
        "linear: x [3, 4] does not fit weight [5, 7]"
    );
    assert_eq!(
        message([3, 5], 1),
        "linear: bias [1] does not fit weight [5, 7]"
    );
}

#[cfg(all(feature = "flex", feature = "ndarray"))]
#[test]
fn tensors_on_two_devices() {
    let [first, second] = devices::two();
    let of_mask = AttentionMask::key_lengths(Tensor::from_data([3, 5], &second));
    let of_mask = AttentionOptions::default().mask(AttentionMask::causal().or(of_mask));
    let bias = AttentionBias::paper_alibi(6, &second);
    let cases = [
        ("the key is", 1, plain(&first)),
        ("the value is", 2, plain(&first)),
        ("a tensor of the mask is", 3, of_mask),
        ("the bias is", 3, AttentionOptions::default().bias(bias)),
        (
            "the sinks are",
            3,
            AttentionOptions::default().sinks(Tensor::zeros([6], &second)),
        ),
        (
            "the query offsets are",
            3,
            AttentionOptions::default().query_offsets(Tensor::zeros([2], &second)),
        ),
    ];
    for (what, elsewhere, options) in cases {
        let message = sentence(|| {
            let operand = |index: usize| {
                let device = if index == elsewhere { &second } else { &first };
                zeros(GOOD[index], device)
            };
            attention(operand(0), operand(1), operand(2), options)
        });
        let expected = format!("attention: the query is on {first:?}, but {what} on {second:?}");
        assert_eq!(message, expected);
    }
    // A mask without autodiff beside a query with it is on the same device.
    let [query, key, value] = GOOD.map(|shape| zeros(shape, &first.clone().autodiff()));
    let mask = AttentionMask::key_lengths(Tensor::from_data([3, 5], &first));
    attention(query, key, value, AttentionOptions::default().mask(mask));
}

#[test]
fn shapes_that_do_not_fit() {
    let cases = [
        (
            0,
            [3, 6, 5, 7],
            "attention: query [3, 6, 5, 7] has batch 3 but key [2, 3, 11, 7] has batch 2",
        ),
        (
            0,
            [2, 6, 5, 8],
            "attention: query [2, 6, 5, 8] has width 8 but key [2, 3, 11, 7] has width 7",
        ),
        (
            0,
            [2, 5, 5, 7],
            "attention: 5 query heads cannot share 3 key/value heads evenly",
        ),
        (
            0,
            [2, 0, 5, 7],
            "attention: query [2, 0, 5, 7] has 0 heads of width 7, but needs at least 1 head of width 1",
        ),
        (
            2,
            [2, 3, 11, 0],
            "attention: value [2, 3, 11, 0] has width 0",
        ),
        (
            2,
            [2, 3, 10, 13],
            "attention: key [2, 3, 11, 7] and value [2, 3, 10, 13] must have the same batch, heads and length",
        ),
    ];
    for (which, shape, sentence) in cases {
        let mut shapes = GOOD;
        shapes[which] = shape;
        assert_eq!(message(shapes, plain), sentence);
    }
}

#[test]
fn masks_that_do_not_fit() {
    let device = &devices::any();
    let bools = |shape: [usize; 4]| Tensor::<4, Bool>::full(shape, true, device);
    let ids = |shape: [usize; 2]| Tensor::<2, Int>::zeros(shape, device);
    let segments = |query, key| AttentionMask::segments(ids(query), ids(key));
    let cases = [
        (
            AttentionMask::masked(bools([2, 1, 1, 10])),
            "mask [2, 1, 1, 10] does not broadcast to the scores [2, 6, 5, 11] [batch, heads, len_q, len_kv]",
        ),
        (
            AttentionMask::visible(bools([1, 6, 4, 11])),
            "mask [1, 6, 4, 11] does not broadcast to the scores [2, 6, 5, 11] [batch, heads, len_q, len_kv]",
        ),
        (
            AttentionMask::key_lengths(Tensor::from_data([5, 5, 5], device)),
            "3 key lengths were given for a batch of 2",
        ),
        (
            segments([2, 5], [2, 5]),
            "segments of shapes [2, 5] and [2, 5] do not fit batch 2, 5 queries and 11 keys",
        ),
        // Of two, the second is a dense mask, which could be broadcast.
        (
            segments([2, 5], [2, 11]).and(segments([1, 5], [1, 11])),
            "segments of shapes [1, 5] and [1, 11] do not fit batch 2, 5 queries and 11 keys",
        ),
    ];
    for (mask, expected) in cases {
        assert_eq!(of_mask(mask), format!("attention: {expected}"));
    }
    for shape in [[2, 10], [2, 1], [1, 11]] {
        assert_eq!(
            of_mask(AttentionMask::causal().and(AttentionMask::padding(ids(shape), 1))),
            format!("attention: a mask of padding {shape:?} does not fit batch 2 and 11 keys")
        );
    }
}

#[test]
fn queries_that_stand_far_from_the_keys() {
    let of_offsets = |offsets: &[i64]| {
        message(GOOD, |device| {
            AttentionOptions::default().query_offsets(Tensor::from_data(offsets, device))
        })
    };
    for (offsets, item, offset) in [([0, 12], 1, 12), ([-6, 0], 0, -6)] {
        assert_eq!(
            of_offsets(&offsets),
            format!(
                "attention: the query offset of batch item {item} is {offset}, but must be from -5 to 11, for 5 queries and 11 keys"
            )
        );
    }
    assert_eq!(
        of_offsets(&[0, 0, 0]),
        "attention: 3 query offsets were given for a batch of 2"
    );
}

#[test]
fn key_lengths_beyond_the_keys() {
    for device in devices::all() {
        let lengths = |lengths: [i64; 2]| {
            let lengths = Tensor::<1, Int>::from_data(lengths, &device);
            AttentionOptions::default().mask(AttentionMask::key_lengths(lengths))
        };
        let run = |given: [i64; 2], weights: bool| {
            let [query, key, value] = GOOD.map(|shape| zeros(shape, &device));
            if weights {
                attention_weights(query, key, lengths(given))
            } else {
                attention(query, key, value, lengths(given))
            }
        };
        // A GPU would have to be waited for.
        let checked = devices::is_cpu(&device);
        for (given, item, length) in [([11, 12], 1, 12), ([-1, 11], 0, -1)] {
            for weights in [false, true] {
                if !checked {
                    run(given, weights);
                    continue;
                }
                assert_eq!(
                    sentence(|| run(given, weights)),
                    format!(
                        "attention: the key length of batch item {item} is {length}, but there are 11 keys"
                    )
                );
            }
        }
        run([0, 11], false);
    }
}

#[test]
fn tables_of_blocks_that_do_not_fit() {
    let device = &devices::any();
    let table = |shape: [usize; 4]| Tensor::<4, Bool>::full(shape, true, device);
    let good = || AttentionMask::visible_blocks(table([2, 6, 2, 3]), [3, 4]);
    let expected = "attention: visible_blocks [1, 6, 2, 4] do not broadcast to [2, 6, 2, 3], the [batch, heads, rows, columns] of \
                    5 queries in blocks of 3 and 11 keys in blocks of 4";
    let bad = || AttentionMask::visible_blocks(table([1, 6, 2, 4]), [3, 4]);
    assert_eq!(of_mask(bad()), expected);
    // Also behind one that fits.
    assert_eq!(of_mask(good().and(bad())), expected);
    assert_eq!(
        sentence(|| AttentionMask::visible_blocks(table([1; 4]), [64, 0])),
        "a block of a mask needs at least 1 query and 1 key, but has 64 and 0"
    );
}

#[test]
fn biases_and_sinks_that_do_not_fit() {
    let of_bias = |bias: AttentionBias| message(GOOD, |_| AttentionOptions::default().bias(bias));
    let device = &devices::any();
    assert_eq!(
        of_bias(AttentionBias::alibi(Tensor::zeros([3], device))),
        "attention: 3 ALiBi slopes were given for 6 query heads"
    );
    let buckets = RelativeBuckets {
        buckets: 32,
        max_distance: 128,
        bidirectional: true,
    };
    let relative =
        |shape: [usize; 2], buckets| AttentionBias::relative(Tensor::zeros(shape, device), buckets);
    assert_eq!(
        of_bias(relative([6, 32], buckets)),
        "attention: a relative table [6, 32] does not fit 32 buckets and 6 query heads"
    );
    let near = RelativeBuckets {
        max_distance: 8,
        ..buckets
    };
    assert_eq!(
        of_bias(relative([32, 6], near)),
        "attention: the max_distance of relative buckets must be more than 8, but is 8"
    );
    let few = RelativeBuckets {
        buckets: 3,
        ..buckets
    };
    assert_eq!(
        of_bias(relative([3, 6], few)),
        "attention: relative buckets need at least 4 buckets (2 for each direction), but have 3"
    );
    // A part that does not fit is found alone, and behind one that does.
    let dense = |shape| AttentionBias::dense(zeros(shape, device));
    assert_eq!(
        of_bias(dense([1, 4, 5, 11])),
        "attention: bias [1, 4, 5, 11] does not broadcast to the scores [2, 6, 5, 11] [batch, heads, len_q, len_kv]"
    );
    assert_eq!(
        of_bias(dense([1, 1, 1, 11]).and(dense([1, 1, 1, 5]))),
        "attention: bias [1, 1, 1, 5] does not broadcast to the scores [2, 6, 5, 11] [batch, heads, len_q, len_kv]"
    );
    let sinks = |device: &Device| AttentionOptions::default().sinks(Tensor::zeros([5], device));
    assert_eq!(
        message(GOOD, sinks),
        "attention: 5 sinks were given for 6 query heads"
    );
}

#[test]
fn masks_that_contradict_each_other() {
    let both = |_: &Device| {
        let aligned = AttentionMask::causal_aligned;
        let bottom_right = aligned(CausalAlignment::BottomRight);
        AttentionOptions::default().mask(bottom_right.and(aligned(CausalAlignment::TopLeft)))
    };
    assert_eq!(
        message(GOOD, both),
        "a mask has one causal alignment, but BottomRight and TopLeft were combined"
    );
}

#[test]
fn numbers_out_of_range() {
    let sentence = |options: AttentionOptions| message(GOOD, |_| options);
    let options = AttentionOptions::default;
    for (options, expected) in [
        (
            options().softcap(0.0),
            "softcap must be positive and finite, got 0",
        ),
        (
            options().softcap(f64::NAN),
            "softcap must be positive and finite, got NaN",
        ),
        (
            options().scale(f64::INFINITY),
            "scale must be finite, got inf",
        ),
        (
            options().dropout(1.0, 0),
            "dropout must be in [0, 1), got 1",
        ),
        (
            options().dropout(-0.1, 0),
            "dropout must be in [0, 1), got -0.1",
        ),
    ] {
        assert_eq!(sentence(options), format!("attention: {expected}"));
    }
}

#[cfg(all(feature = "flex", feature = "ndarray"))]
#[test]
fn functions_that_return_tensors_of_another_device() {
    use burn_attn::{MaskFunction, Pairs, ScoreFunction};

    let [first, second] = devices::two();
    for (device, other) in [(&first, &second), (&second, &first)] {
        let (of_score, of_mask) = (other.clone(), other.clone());
        let score = ScoreFunction::new("mine", move |scores, _| {
            Tensor::zeros(scores.dims(), &of_score)
        });
        let mask = MaskFunction::new("mine", move |pairs: &Pairs| {
            Tensor::full(pairs.sizes(), true, &of_mask)
        });
        let options = AttentionOptions::default();
        for (kind, options) in [
            ("score", options.clone().score_function(score)),
            ("mask", options.mask(AttentionMask::function(mask))),
        ] {
            let [query, key, value] = GOOD.map(|shape| zeros(shape, device));
            assert_eq!(
                sentence(|| attention(query, key, value, options)),
                format!(
                    "attention: the {kind} function 'mine' returned a tensor on {other:?} in a call on {device:?}"
                )
            );
        }
    }
}
