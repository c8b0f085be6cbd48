//! Rotary positions against the same rotation made of plain tensor operations, forward and backward.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_attn::ops::{RotaryLayout, rotate, split_heads};
use burn_attn_tests::{
    compare::{difference, numbers_f64},
    devices,
    numbers::uniform_f64,
    sentence,
};

use crate::option_tensors::gradient;

const BATCH: usize = 3;
const HEADS: usize = 5;
const LEN: usize = 7;
const D_HEAD: usize = 14;
const POSITIONS: usize = 23;
const SHAPE: [usize; 4] = [BATCH, HEADS, LEN, D_HEAD];
const LAYOUTS: [RotaryLayout; 2] = [RotaryLayout::HalfSplit, RotaryLayout::Interleaved];
const PAIRS: [usize; 4] = [1, 3, 5, 7];
const OFFSETS: [&[usize]; 4] = [&[0], &[16], &[3, 16, 0], &[11, 11, 11]];

fn tensor<const D: usize>(
    shape: [usize; D],
    seed: u64,
    device: &Device,
    dtype: DType,
) -> Tensor<D> {
    let data = TensorData::new(uniform_f64(seed, shape.iter().product()), shape);
    Tensor::from_data(data, (device, dtype))
}

/// Cosines and sines, whose squares need not add up to 1: those of YaRN do not.
fn tables(pairs: usize, device: &Device, dtype: DType) -> [Tensor<2>; 2] {
    [5, 6].map(|seed| tensor([POSITIONS, pairs], seed, device, dtype))
}

/// One number of a pair after the other, gathered and put back by their indices.
fn witness(
    x: Tensor<4>,
    [cos, sin]: [Tensor<2>; 2],
    offsets: &[usize],
    layout: RotaryLayout,
) -> Tensor<4> {
    let [batch, _, len, d_head] = x.dims();
    let [_, pairs] = cos.dims();
    let of_pair: fn(usize, usize) -> [usize; 2] = match layout {
        RotaryLayout::HalfSplit => |pair, pairs| [pair, pair + pairs],
        RotaryLayout::Interleaved => |pair, _| [2 * pair, 2 * pair + 1],
    };
    let mut order: Vec<usize> = Vec::new();
    for which in [0, 1] {
        order.extend((0..pairs).map(|pair| of_pair(pair, pairs)[which]));
    }
    order.extend(2 * pairs..d_head);
    let mut back = vec![0; d_head];
    for (place, &number) in order.iter().enumerate() {
        back[number] = place;
    }
    let [order, back] = [order, back].map(|indices| {
        let indices: Vec<i64> = indices.into_iter().map(|index| index as i64).collect();
        Tensor::<1, Int>::from_data(TensorData::new(indices, [d_head]), &x.device())
    });
    let rows = |table: Tensor<2>| {
        let items = (0..batch).map(|item| {
            let rows = table.clone().narrow(0, offsets[item % offsets.len()], len);
            rows.cast(x.dtype()).reshape([1, 1, len, pairs])
        });
        Tensor::cat(items.collect(), 0)
    };
    let (cos, sin) = (rows(cos), rows(sin));
    let x = x.select(3, order);
    let first = x.clone().narrow(3, 0, pairs);
    let second = x.clone().narrow(3, pairs, pairs);
    let mut parts = vec![
        first.clone() * cos.clone() - second.clone() * sin.clone(),
        second * cos + first * sin,
    ];
    if 2 * pairs < d_head {
        parts.push(x.narrow(3, 2 * pairs, d_head - 2 * pairs));
    }
    Tensor::cat(parts, 3).select(3, back)
}

fn rotated(
    x: Tensor<4>,
    [cos, sin]: [Tensor<2>; 2],
    offsets: &[usize],
    layout: RotaryLayout,
) -> Tensor<4> {
    rotate(x, cos, sin, offsets.to_vec(), layout)
}

#[track_caller]
fn assert_close(what: &str, actual: &[f64], expected: &[f64], dtype: DType) {
    // Sums of two products of numbers below 1, and a few such sums in gradients.
    let tolerance = match dtype {
        DType::F64 => 2e-15,
        _ => 1e-6,
    };
    let error = difference(actual, expected);
    assert!(error <= tolerance, "{what} is off by {error:e}");
}

#[test]
fn every_layout_width_and_offset() {
    for dtype in [DType::F32, DType::F64] {
        for device in devices::with(dtype) {
            let x = tensor(SHAPE, 1, &device, dtype);
            // Tables in another precision are converted.
            for of_tables in [DType::F32, dtype] {
                for pairs in PAIRS {
                    let tables = tables(pairs, &device, of_tables);
                    for layout in LAYOUTS {
                        for offsets in OFFSETS {
                            let what =
                                format!("{device:?} {dtype:?} {pairs} {layout:?} {offsets:?}");
                            let actual = rotated(x.clone(), tables.clone(), offsets, layout);
                            assert_eq!((actual.dims(), actual.dtype()), (SHAPE, dtype), "{what}");
                            let expected = witness(x.clone(), tables.clone(), offsets, layout);
                            let [actual, expected] = [&actual, &expected].map(numbers_f64);
                            assert_close(&what, &actual, &expected, dtype);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn gradients_are_those_of_the_plain_operations() {
    type Rotate = fn(Tensor<4>, [Tensor<2>; 2], &[usize], RotaryLayout) -> Tensor<4>;
    for dtype in [DType::F32, DType::F64] {
        for device in devices::with(dtype) {
            for device in [
                device.clone().autodiff(),
                device.autodiff().gradient_checkpointing(),
            ] {
                let upstream = tensor([BATCH, HEADS, D_HEAD, LEN], 2, &device, dtype);
                for pairs in PAIRS {
                    for layout in LAYOUTS {
                        for offsets in OFFSETS {
                            let gradient = |rotate: Rotate| {
                                let x = tensor(SHAPE, 1, &device, dtype).require_grad();
                                let tables = tables(pairs, &device, dtype);
                                // A cheap operation before, which a balanced strategy recomputes, and one after whose
                                // gradient has its rows in columns.
                                let y = rotate(x.clone() * 0.5, tables, offsets, layout);
                                let square = y.clone() * y.clone();
                                let loss = (y.swap_dims(2, 3) * upstream.clone()).sum();
                                gradient(&x, &(loss + square.sum()).backward())
                            };
                            let what =
                                format!("{device:?} {dtype:?} {pairs} {layout:?} {offsets:?}");
                            assert_close(&what, &gradient(rotated), &gradient(witness), dtype);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn tables_and_untracked_rows_get_no_gradient() {
    for device in devices::all() {
        let device = device.autodiff();
        let [cos, sin] = tables(3, &device, DType::F32).map(Tensor::require_grad);
        let x = tensor(SHAPE, 1, &device, DType::F32).require_grad();
        let of = |x: Tensor<4>| {
            let tables = [cos.clone(), sin.clone()];
            rotated(x, tables, &[0], RotaryLayout::HalfSplit)
        };
        let untracked = of(x.clone().detach());
        let gradients = (of(x.clone()) + untracked).sum().backward();
        assert!(x.grad(&gradients).is_some());
        assert!(cos.grad(&gradients).is_none() && sin.grad(&gradients).is_none());
    }
}

#[test]
fn views_are_rotated_as_their_copies() {
    for device in devices::all() {
        let width = 3 * HEADS * D_HEAD;
        let projection = tensor([BATCH, LEN, width], 1, &device, DType::F32);
        let [_, key, _] = split_heads(projection, [HEADS; 3]);
        let columns = tensor([BATCH, HEADS, D_HEAD, LEN], 2, &device, DType::F32);
        let one = tensor([1, 1, LEN, D_HEAD], 3, &device, DType::F32);
        let longer = tensor([BATCH, HEADS, LEN + 4, D_HEAD + 3], 4, &device, DType::F32);
        let views = [
            ("one of three in a projection", key),
            ("columns", columns.swap_dims(2, 3)),
            ("repeated", one.expand(SHAPE)),
            ("a piece", longer.narrow(2, 2, LEN).narrow(3, 1, D_HEAD)),
        ];
        for (name, view) in views {
            let copy = Tensor::from_data(view.to_data(), &device);
            for layout in LAYOUTS {
                for pairs in PAIRS {
                    // The tables are views as well.
                    let tables = tables(pairs, &device, DType::F32)
                        .map(|table| Tensor::cat(vec![table.clone(), table], 0).narrow(0, 5, LEN));
                    let of = |x| numbers_f64(&rotated(x, tables.clone(), &[0], layout));
                    assert_eq!(
                        of(view.clone()),
                        of(Tensor::clone(&copy)),
                        "{name} {layout:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_result_merges_as_it_lies() {
    // Large enough that it is shared out among threads.
    for device in devices::all() {
        let shape = [2, 7, 1031, 22];
        let x = tensor(shape, 1, &device, DType::F32);
        let tables = [5, 6].map(|seed| tensor([1033, 11], seed, &device, DType::F32));
        for layout in LAYOUTS {
            let actual = rotated(x.clone(), tables.clone(), &[2, 0], layout);
            let merged = actual.clone().swap_dims(1, 2).reshape([2, 1031, 7 * 22]);
            let expected = witness(x.clone(), tables.clone(), &[2, 0], layout);
            let [heads, of_heads] = [&actual, &expected].map(numbers_f64);
            assert_close("heads", &heads, &of_heads, DType::F32);
            let expected = numbers_f64(&expected.swap_dims(1, 2));
            assert_close("merged", &numbers_f64(&merged), &expected, DType::F32);
        }
    }
}

#[test]
fn nothing_to_rotate() {
    for device in devices::all() {
        for device in [device.clone(), device.autodiff()] {
            for layout in LAYOUTS {
                for (shape, offsets) in [
                    ([0, HEADS, LEN, D_HEAD], &[][..]),
                    ([BATCH, HEADS, 0, D_HEAD], &[POSITIONS]),
                ] {
                    let x = Tensor::zeros(shape, &device);
                    let tables = tables(3, &device, DType::F32);
                    assert_eq!(rotated(x, tables, offsets, layout).dims(), shape);
                }
                let x = tensor(SHAPE, 1, &device, DType::F32);
                let none = [(); 2].map(|()| Tensor::zeros([POSITIONS, 0], &device));
                let same = rotated(x.clone(), none, &[0], layout);
                assert_eq!(numbers_f64(&same), numbers_f64(&x), "no pairs");
            }
        }
    }
}

#[test]
fn bad_input_is_refused() {
    let device = &devices::all()[0];
    let message = |[cos, sin]: [[usize; 2]; 2], offsets: &[usize]| {
        sentence(|| {
            let tables = [Tensor::zeros(cos, device), Tensor::zeros(sin, device)];
            let x = Tensor::zeros(SHAPE, device);
            rotated(x, tables, offsets, RotaryLayout::HalfSplit)
        })
    };
    for (tables, offsets, sentence) in [
        (
            [[23, 7], [23, 5]],
            &[0][..],
            "rotate: cosines are [23, 7], but sines are [23, 5]",
        ),
        (
            [[23, 8]; 2],
            &[0],
            "rotate: 8 pairs do not fit into 14 numbers",
        ),
        ([[23, 7]; 2], &[0, 1], "rotate: 2 offsets for 3 sequences"),
        ([[23, 7]; 2], &[], "rotate: 0 offsets for 3 sequences"),
        (
            [[23, 7]; 2],
            &[0, 17, 3],
            "rotate: 7 rows from position 17 on need 24 positions, but there are 23",
        ),
    ] {
        assert_eq!(message(tables, offsets), sentence);
    }
}
