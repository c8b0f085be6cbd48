//! A union of masks shows what one of them shows.

use std::time::Instant;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_attn::{AttentionBias, AttentionMask, AttentionOptions, CausalAlignment, ops};
use burn_attn_tests::{compare::numbers, devices, numbers::uniform, sentence};

use crate::case::{Case, bools};

type Mask = Box<dyn Fn(&Device) -> AttentionMask>;

fn boxed(mask: impl Fn(&Device) -> AttentionMask + 'static) -> Mask {
    Box::new(mask)
}

fn dense(seed: u64, shape: [usize; 4], device: &Device) -> AttentionMask {
    let numbers = uniform(seed, shape.iter().product());
    let hidden = numbers.iter().map(|&x| x > 0.0).collect();
    AttentionMask::masked(bools(hidden, shape, device))
}

/// For two batch items, five heads, 7 queries and 11 keys.
fn masks() -> Vec<(&'static str, Mask)> {
    let ids = |step: usize, len: usize| {
        let ids: Vec<i32> = (0..2 * len).map(|at| (at * step % 3) as i32).collect();
        TensorData::new(ids, [2, len])
    };
    vec![
        ("causal", boxed(|_| AttentionMask::causal())),
        ("window", boxed(|_| AttentionMask::window(2, 1))),
        (
            "causal window",
            boxed(|_| AttentionMask::causal().and(AttentionMask::window(1, 0))),
        ),
        (
            "top-left",
            boxed(|_| AttentionMask::causal_aligned(CausalAlignment::TopLeft)),
        ),
        (
            "first keys",
            boxed(|device| AttentionMask::key_lengths(Tensor::<1, Int>::from_data([3, 0], device))),
        ),
        (
            "segments",
            boxed(move |device| {
                let [query, key] = [ids(5, 7), ids(7, 11)];
                AttentionMask::segments(
                    Tensor::from_data(query, device),
                    Tensor::from_data(key, device),
                )
            }),
        ),
        (
            "blocks",
            boxed(|device| {
                let table = uniform(9, 3 * 3).iter().map(|&x| x > 0.0).collect();
                AttentionMask::visible_blocks(bools(table, [1, 1, 3, 3], device), [3, 4])
            }),
        ),
        ("queries", boxed(|device| dense(1, [1, 1, 7, 1], device))),
        ("scores", boxed(|device| dense(2, [2, 5, 7, 11], device))),
    ]
}

/// The mask of this name.
fn named(name: &str, device: &Device) -> AttentionMask {
    let found = masks().into_iter().find(|(other, _)| *other == name);
    found.expect("a mask of this name").1(device)
}

/// Whether each weight is more than 0, for queries at the given offset.
fn seen(mask: AttentionMask, offset: Option<i64>, device: &Device) -> Vec<bool> {
    let [query, key, _] = Case::usual("unions").operands(device, DType::F32);
    let mut options = AttentionOptions::default().mask(mask);
    if let Some(offset) = offset {
        options = options.query_offsets(Tensor::from_data([offset; 2], device));
    }
    let weights = numbers(&ops::attention_weights(query, key, options)).into_iter();
    weights.map(|weight| weight > 0.0).collect()
}

#[test]
fn what_one_of_two_masks_shows() {
    for (backend, device) in devices::cpu() {
        for (first_name, first) in masks() {
            for (second_name, second) in masks() {
                for beside in [
                    AttentionMask::none(),
                    AttentionMask::causal(),
                    AttentionMask::window(4, 4),
                ] {
                    let names = [first_name, second_name];
                    // The alignment that one mask names is that of all.
                    let offset = names.contains(&"top-left").then_some(0);
                    let of = |mask: AttentionMask| seen(mask.and(beside.clone()), offset, &device);
                    let pairs = of(first(&device)).into_iter().zip(of(second(&device)));
                    let expected: Vec<bool> =
                        pairs.map(|(first, second)| first || second).collect();
                    let union = first(&device).or(second(&device));
                    for mask in [
                        union.clone().and(beside.clone()),
                        beside.clone().and(union.clone()),
                        union.clone().or(first(&device)).and(beside.clone()),
                        second(&device).or(union).and(beside.clone()),
                    ] {
                        assert!(
                            seen(mask, None, &device) == expected,
                            "{names:?} beside {beside:?} on {backend}"
                        );
                    }
                }
            }
        }
    }
}

/// The alignment that a union names is that of the distances, and an offset wins over it.
#[test]
fn an_alignment_in_a_union() {
    let device = devices::any();
    let case = Case::usual("unions");
    let attend = |mask: &AttentionMask, offset: Option<i64>, placed: bool| {
        let slopes = AttentionBias::alibi(Tensor::from_data([0.5, 0.4, 0.3, 0.2, 0.1], &device));
        let options = AttentionOptions::default().mask(mask.clone()).bias(slopes);
        let [query, key, value] = case.operands(&device, DType::F32);
        let options = match offset {
            Some(offset) if placed => options.placed(&query, 11, &[offset]),
            Some(offset) => options.query_offsets(Tensor::from_data([offset; 2], &device)),
            None => options,
        };
        numbers(&ops::attention(query, key, value, options))
    };
    let top_left = || AttentionMask::causal_aligned(CausalAlignment::TopLeft);
    for other in ["first keys", "queries"] {
        let other = named(other, &device);
        for mask in [
            top_left().or(other.clone()),
            top_left().or(other.clone()).and(AttentionMask::causal()),
            AttentionMask::causal().and(other.clone().or(top_left())),
        ] {
            assert_eq!(attend(&mask, None, false), attend(&mask, Some(0), false));
            for offset in [0, 3, 4] {
                let expected = attend(&mask, Some(offset), false);
                assert_eq!(attend(&mask, Some(offset), true), expected, "{offset}");
            }
        }
        let bottom_right = AttentionMask::causal_aligned(CausalAlignment::BottomRight);
        let [first, second] = [bottom_right.clone(), bottom_right.or(other.clone())];
        for refused in [
            sentence(|| top_left().or(first.clone())),
            sentence(|| top_left().or(other.clone()).and(first.clone())),
            sentence(|| first.clone().and(top_left().or(other.clone()))),
            sentence(|| top_left().and(second)),
        ] {
            assert!(
                refused.starts_with("a mask has one causal alignment"),
                "{refused}"
            );
        }
    }
}

/// Global tokens: a window, or one of the first keys, or one of the first queries.
#[test]
fn unions_of_unions() {
    for (_, device) in devices::cpu() {
        let seen = |mask: AttentionMask| seen(mask, None, &device);
        let names = ["window", "first keys", "queries"];
        let [window, keys, queries] = names.map(|name| named(name, &device));
        let parts = [&window, &keys, &queries].map(|mask| seen(mask.clone()));
        let expected: Vec<bool> = (0..parts[0].len())
            .map(|at| parts.iter().any(|part| part[at]))
            .collect();
        let of_two = window.clone().or(keys.clone());
        assert_eq!(seen(of_two.or(queries.clone())), expected);
        assert_eq!(seen(queries.or(keys.or(window))), expected);
    }
}

#[test]
fn a_part_that_does_not_fit() {
    let device = devices::any();
    let case = Case::usual("unions");
    let options = AttentionMask::causal().or(dense(1, [1, 1, 7, 7], &device));
    let [query, key, value] = case.operands(&device, DType::F32);
    let options = AttentionOptions::default().mask(options);
    assert_eq!(
        sentence(|| ops::attention(query, key, value, options)),
        "attention: mask [1, 1, 7, 7] does not broadcast to the scores [2, 5, 7, 11] [batch, heads, len_q, len_kv]"
    );
}

/// Time per visible pair of a prefix and of a causal mask, forward and backward, taken in turns.
#[test]
#[ignore = "a timing"]
fn the_rate_of_a_prefix() {
    const LEN: usize = 1024;
    const PREFIX: usize = 256;
    let device = devices::any().autodiff();
    let numbers = |seed| {
        let numbers = uniform(seed, 4 * LEN * 64);
        Tensor::<4>::from_data(TensorData::new(numbers, [1, 4, LEN, 64]), &device)
    };
    let first = Tensor::<1, Int>::from_data([PREFIX as i64], &device);
    let prefix = AttentionMask::causal().or(AttentionMask::key_lengths(first));
    let causal_pairs = LEN * (LEN + 1) / 2;
    let prefix_pairs = causal_pairs + PREFIX * (PREFIX - 1) / 2;
    let mut rates = [const { Vec::new() }; 2];
    for _ in 0..7 {
        for ((mask, pairs), rates) in [
            (AttentionMask::causal(), causal_pairs),
            (prefix.clone(), prefix_pairs),
        ]
        .into_iter()
        .zip(&mut rates)
        {
            let [query, key, value] = [1, 2, 3].map(|seed| numbers(seed).require_grad());
            let start = Instant::now();
            let output = ops::attention(
                query.clone(),
                key,
                value,
                AttentionOptions::default().mask(mask),
            );
            let gradients = output.sum().backward();
            query.grad(&gradients).expect("a gradient").into_data();
            rates.push(start.elapsed().as_secs_f64() / pairs as f64);
        }
    }
    let [causal, prefix] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!(
        "a prefix of {PREFIX} of {LEN} tokens: {:.2} of causal's time per pair",
        prefix / causal
    );
    // Dense, it would be 1.8.
    assert!(prefix < 1.5 * causal);
}

/// A union that shows the first 20 of 11 keys shows all of them, alone and beside a window.
#[test]
fn first_keys_of_a_short_sequence() {
    for (backend, device) in devices::cpu() {
        let first = || AttentionMask::key_lengths(Tensor::<1, Int>::from_data([20; 2], &device));
        for mask in [AttentionMask::causal(), AttentionMask::window(1, 0)] {
            for beside in [AttentionMask::none(), AttentionMask::window(4, 4)] {
                let expected = seen(beside.clone(), None, &device);
                let union = mask.clone().or(first()).and(beside);
                assert_eq!(seen(union, None, &device), expected, "{backend}");
            }
        }
    }
}
