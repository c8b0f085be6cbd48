//! Padding needs no positions, tokens do.

use burn::tensor::{DType, Device, Tensor};
use burn_attn::positions::{
    Learned, LearnedConfig, Positions, Rotary, RotaryConfig, RotaryLayout, Sinusoidal,
    SinusoidalConfig,
};
use burn_attn_tests::{
    compare::{assert_same, differs, numbers},
    devices,
    numbers::{filled, tensor},
    sentence,
};

const MAX_LEN: usize = 13;
const HEADS: usize = 3;
const D_HEAD: usize = 6;
const LAYOUTS: [RotaryLayout; 2] = [RotaryLayout::HalfSplit, RotaryLayout::Interleaved];
/// Three rows of each sequence, of which so many are tokens, from these positions on.
const LEN: usize = 3;
const LENGTHS: [usize; 4] = [1, 3, 0, 2];

/// With padding that would stand on positions 13 to 15, for which there is no row, and without.
const OFFSETS: [[usize; 4]; 2] = [[12, 5, 13, 11], [10, 5, 0, 7]];

fn padded(offsets: [usize; 4]) -> Positions {
    Positions::padded(offsets.into(), LENGTHS.into())
}

fn rotary(layout: RotaryLayout, device: &Device) -> Rotary {
    let config = RotaryConfig::new()
        .with_max_len(MAX_LEN)
        .with_layout(layout);
    config.init(D_HEAD, device)
}

fn sinusoidal(device: &Device) -> Sinusoidal {
    let config = SinusoidalConfig::new(D_HEAD).with_max_len(MAX_LEN);
    config.init(device)
}

fn learned(device: &Device) -> Learned {
    filled(LearnedConfig::new(D_HEAD, MAX_LEN).init(device), 1)
}

/// Every table, in a form that reads `[batch, 1, len, D_HEAD]`.
type Module = (&'static str, Box<dyn Fn(Tensor<4>, Positions) -> Tensor<4>>);

fn modules(device: &Device) -> Vec<Module> {
    let (sinusoidal, learned) = (sinusoidal(device), learned(device));
    let [half_split, interleaved] = LAYOUTS.map(|layout| rotary(layout, device));
    vec![
        ("Rotary", Box::new(move |x, at| half_split.forward(x, &at))),
        ("Rotary", Box::new(move |x, at| interleaved.forward(x, &at))),
        (
            "Sinusoidal",
            Box::new(move |x, at| {
                let rows = sinusoidal.forward_from(x.squeeze_dim(1), at);
                rows.unsqueeze_dim(1)
            }),
        ),
        (
            "Learned",
            Box::new(move |x, at| learned.forward_from(x.squeeze_dim(1), at).unsqueeze_dim(1)),
        ),
    ]
}

#[test]
fn tokens_before_padding_stand_where_they_stand_alone() {
    for (_, device) in devices::cpu() {
        let x = tensor([4, 1, LEN, D_HEAD], 1, &device);
        for (_, forward) in modules(&device) {
            for offsets in OFFSETS {
                let output = forward(x.clone(), padded(offsets));
                assert_eq!(output.dims(), x.dims());
                assert!(numbers(&output).iter().all(|number| number.is_finite()));
                for (b, (offset, length)) in offsets.into_iter().zip(LENGTHS).enumerate() {
                    if length == 0 {
                        continue;
                    }
                    let tokens = |of: &Tensor<4>| of.clone().narrow(0, b, 1).narrow(2, 0, length);
                    let alone = forward(tokens(&x), offset.into());
                    assert_same(&tokens(&output), &alone);
                    assert!(differs(&alone, &tokens(&x)));
                }
            }
        }
    }
}

#[test]
fn padding_within_the_table_stands_where_it_would_as_tokens() {
    for (_, device) in devices::cpu() {
        let x = tensor([4, 1, LEN, D_HEAD], 1, &device);
        for (_, forward) in modules(&device) {
            for offsets in [[10, 5, 0, 7], [10; 4]] {
                let expected = forward(x.clone(), offsets.to_vec().into());
                assert_same(&forward(x.clone(), padded(offsets)), &expected);
            }
        }
    }
}

#[test]
fn rotated_heads_are_all_those_of_their_sequence() {
    for (_, device) in devices::cpu() {
        let x = tensor([4, HEADS, LEN, D_HEAD], 1, &device);
        for layout in LAYOUTS {
            let rotary = rotary(layout, &device);
            let rotated = rotary.forward(x.clone(), &padded(OFFSETS[0]));
            for head in 0..HEADS {
                let one = rotary.forward(x.clone().narrow(1, head, 1), &padded(OFFSETS[0]));
                assert_same(&rotated.clone().narrow(1, head, 1), &one);
            }
        }
    }
}

/// Flex alone computes in half precision.
#[test]
#[cfg(feature = "flex")]
fn rotations_follow_the_type_of_the_input() {
    let device = Device::flex();
    for dtype in [DType::F64, DType::F16, DType::BF16] {
        let x = tensor([4, HEADS, LEN, D_HEAD], 1, &device).cast(dtype);
        for layout in LAYOUTS {
            let rotary = rotary(layout, &device);
            let rotated = rotary.forward(x.clone(), &padded(OFFSETS[0]));
            assert_eq!(rotated.dtype(), dtype);
            let tokens = |of: &Tensor<4>| of.clone().narrow(0, 3, 1).narrow(2, 0, 2);
            let alone = rotary.forward(tokens(&x), &Positions::Offset(11));
            assert_same(&tokens(&rotated), &alone);
        }
    }
}

#[test]
fn gradients_of_tokens_are_those_of_tokens_alone() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        // Nobody looks at what comes out for padding.
        let of_tokens =
            |b: usize| Tensor::<3>::ones([1, LENGTHS[b], D_HEAD], &device) * (b as f64 + 0.5);
        let masks = (0..4).map(|b| {
            let padding = Tensor::<3>::zeros([1, LEN - LENGTHS[b], D_HEAD], &device);
            match LENGTHS[b] {
                0 => padding,
                LEN => of_tokens(b),
                _ => Tensor::cat(vec![of_tokens(b), padding], 1),
            }
        });
        let mask = Tensor::cat(masks.collect(), 0);
        let x = tensor([4, LEN, D_HEAD], 1, &device);

        let learned = learned(&device);
        let loss = (learned.forward_from(x.clone(), padded(OFFSETS[0])) * mask.clone()).sum();
        let gradient = learned.table.grad(&loss.backward()).expect("a gradient");
        // Sequence 0 has position 12, 1 has 5 to 7, 3 has 11 and 12.
        let expected = (0..MAX_LEN).map(|position| match position {
            5..=7 => 1.5,
            11 => 3.5,
            12 => 0.5 + 3.5,
            _ => 0.0,
        });
        let rows = numbers(&gradient);
        for (row, expected) in rows.chunks(D_HEAD).zip(expected) {
            assert_eq!(row, [expected; D_HEAD]);
        }

        for layout in LAYOUTS {
            let rotary = rotary(layout, &device);
            let gradient = |x: Tensor<3>, mask: Tensor<3>, at: Positions| {
                let x = x.detach().require_grad();
                let rotated = rotary.forward(x.clone().unsqueeze_dim(1), &at);
                let loss = (rotated * mask.unsqueeze_dim(1)).sum();
                x.grad(&loss.backward()).expect("a gradient")
            };
            let whole = gradient(x.clone(), mask.clone(), padded(OFFSETS[0]));
            for (b, length) in LENGTHS.into_iter().enumerate() {
                let mine = whole.clone().narrow(0, b, 1);
                if length < LEN {
                    let padding = mine.clone().narrow(1, length, LEN - length);
                    assert!(numbers(&padding).iter().all(|&number| number == 0.0));
                }
                if length > 0 {
                    let tokens = |of: &Tensor<3>| of.clone().narrow(0, b, 1).narrow(1, 0, length);
                    let alone = gradient(tokens(&x), tokens(&mask), OFFSETS[0][b].into());
                    assert_same(&mine.narrow(1, 0, length), &alone);
                }
            }
        }
    }
}

#[test]
fn positions_of_empty_input() {
    for (_, device) in devices::cpu() {
        let (sinusoidal, learned) = (sinusoidal(&device), learned(&device));
        for (batch, len, offsets) in [(0, LEN, vec![]), (2, 0, vec![13, 5])] {
            let positions = [
                Positions::padded(offsets.clone(), vec![0; batch]),
                Positions::from(offsets),
            ];
            for positions in positions {
                let x = Tensor::zeros([batch, len, D_HEAD], &device);
                for output in [
                    sinusoidal.forward_from(x.clone(), positions.clone()),
                    learned.forward_from(x.clone(), positions.clone()),
                ] {
                    assert_eq!(output.dims(), x.dims());
                }
                for layout in LAYOUTS {
                    let x = Tensor::zeros([batch, HEADS, len, D_HEAD], &device);
                    let rotated = rotary(layout, &device).forward(x.clone(), &positions);
                    assert_eq!(rotated.dims(), x.dims());
                }
            }
        }
    }
}

#[test]
fn mistakes_have_a_sentence() {
    let device = devices::any();
    for (name, forward) in modules(&device) {
        let refused = |offsets: &[usize], lengths: &[usize]| {
            let x = Tensor::zeros([2, 1, LEN, D_HEAD], &device);
            sentence(|| forward(x, Positions::padded(offsets.into(), lengths.into())))
        };
        let overflow = format!("1 tokens from position {0} on need {0}", usize::MAX);
        for (offsets, lengths, reason) in [
            ([12, 5], [2, 3], "2 tokens from position 12 on need 14"),
            ([5, 11], [0, 3], "3 tokens from position 11 on need 14"),
            ([5, usize::MAX], [0, 1], &*overflow),
        ] {
            assert_eq!(
                refused(&offsets, &lengths),
                format!("{name}: {reason} positions, but there are 13")
            );
        }
        assert_eq!(
            refused(&[5, 7, 2], &[1, 3]),
            format!("{name}: 3 offsets for 2 sequences")
        );
        for lengths in [&[1, 3, 2][..], &[4, 3]] {
            assert_eq!(
                refused(&[5, 7], lengths),
                format!("{name}: lengths {lengths:?} do not fit 2 sequences of 3 tokens")
            );
        }
        // Without lengths, all rows are tokens.
        assert_eq!(
            sentence(|| forward(
                Tensor::zeros([2, 1, LEN, D_HEAD], &device),
                vec![12, 5].into()
            )),
            format!("{name}: 3 tokens from position 12 on need 15 positions, but there are 13")
        );
    }
}
