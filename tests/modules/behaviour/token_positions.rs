//! Tokens at any positions are what they are in a sequence that has a token at every position.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionMask, BlockConfig, CrossAttentionConfig, CrossAttentionInput,
    KvCacheConfig, LayerInput, MultiHeadAttentionInput, SelfAttention, SelfAttentionConfig,
    SelfAttentionInput, TransformerStackConfig,
    positions::{
        AlibiConfig, PositionEncoding, Positions, RelativeBiasConfig, RotaryAxes, RotaryConfig,
    },
};
use burn_attn_tests::{
    compare::{assert_close, differs},
    devices,
    numbers::{filled, tensor, uniform},
    parameters, sentence,
};

use crate::cache::one_by_one;

const WIDTH: usize = 13;
/// The positions of a sequence without gaps.
const LEN: usize = 17;
const TOLERANCE: f64 = 5e-6;
/// Where the tokens of two sequences are in the sequence without gaps.
const AT: [[usize; 5]; 2] = [[0, 1, 4, 9, 16], [2, 3, 5, 11, 12]];

fn encodings() -> Vec<(&'static str, PositionEncoding)> {
    let rotary = RotaryConfig::new().with_max_len(LEN);
    let relative = RelativeBiasConfig::new()
        .with_buckets(12)
        .with_max_distance(13);
    vec![
        ("none", PositionEncoding::None),
        ("rotary", PositionEncoding::Rotary(rotary)),
        (
            "ALiBi",
            PositionEncoding::Alibi(AlibiConfig::new().with_learnable(true)),
        ),
        ("relative", PositionEncoding::Relative(relative)),
    ]
}

fn modules(device: &Device) -> Vec<(String, SelfAttention)> {
    let mut modules = Vec::new();
    for (name, encoding) in encodings() {
        for causal in [false, true] {
            for window in [None, Some(4)] {
                let config = SelfAttentionConfig::new(WIDTH, 3)
                    .with_d_head(6)
                    .with_dropout(0.0)
                    .with_causal(causal)
                    .with_window(window)
                    .with_position(encoding.clone());
                let name = format!("{name}, causal {causal}, window {window:?}");
                modules.push((name, filled(config.init(device), 1)));
            }
        }
    }
    modules
}

fn positions() -> Positions {
    AT.map(Vec::from).to_vec().into()
}

/// The tokens that are in the sequences with gaps, of a tensor `[2, LEN, ..]`.
fn there(x: &Tensor<3>) -> Tensor<3> {
    let [_, _, width] = x.dims();
    let rows = AT
        .iter()
        .enumerate()
        .flat_map(|(b, at)| at.map(|at| (b * LEN + at) as i64));
    let rows: Vec<i64> = rows.collect();
    let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [10]), &x.device());
    x.clone()
        .reshape([2 * LEN, width])
        .select(0, rows)
        .reshape([2, 5, width])
}

/// Hides the tokens that are not.
fn gaps(device: &Device) -> AttentionMask {
    let hidden: Vec<bool> = AT
        .iter()
        .flat_map(|at| (0..LEN).map(|key| !at.contains(&key)))
        .collect();
    let hidden = TensorData::new(hidden, [2, 1, 1, LEN]);
    AttentionMask::masked(Tensor::<4, Bool>::from_data(hidden, device))
}

#[test]
fn gaps_are_tokens_that_nobody_sees() {
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, WIDTH], 1, &device);
        for (name, module) in modules(&device) {
            let whole = SelfAttentionInput::new(x.clone()).mask(gaps(&device));
            let whole = there(&module.forward(whole));
            let input = SelfAttentionInput::new(there(&x));
            let actual = module.forward(input.clone().positions(positions()));
            let what = format!("{backend}, {name}");
            assert_close(&what, &actual.to_data(), &whole.to_data(), TOLERANCE);
            let ignores = name.starts_with("none") && name.ends_with("None");
            assert!(ignores || differs(&module.forward(input), &whole), "{name}");
            if !module.causal {
                continue;
            }
            for pieces in [vec![5], vec![2, 1, 1, 1]] {
                let config = KvCacheConfig::new(LEN).with_initial_capacity(1);
                let mut cache = module.cache(2, &config);
                let cached = one_by_one(&pieces, |from, len| {
                    let at = AT.map(|at| at[from..from + len].to_vec()).to_vec();
                    let piece = SelfAttentionInput::new(there(&x).narrow(1, from, len));
                    module.forward_cached(piece.positions(at), &mut cache)
                });
                let cached = cached.into_data();
                let what = format!("{what}, {pieces:?}");
                assert_close(&what, &cached, &whole.to_data(), TOLERANCE);
            }
        }
    }
}

#[test]
fn gradients_are_those_of_the_sequence_without_gaps() {
    for (backend, device) in devices::cpu() {
        let device = device.autodiff();
        for (name, module) in modules(&device) {
            let x: Tensor<3> = tensor([2, LEN, WIDTH], 1, &device);
            let gradients = |output: Tensor<3>, x: &Tensor<3>| {
                let weights = tensor([2, 5, WIDTH], 2, &device);
                let gradients = (output * weights).sum().backward();
                let of_x = x.grad(&gradients).expect("x is used").into_data();
                (parameters::gradients(&module, &gradients), of_x)
            };
            let with_gaps = there(&x).detach().require_grad();
            let input = SelfAttentionInput::new(with_gaps.clone()).positions(positions());
            let (actual, of_x) = gradients(module.forward(input), &with_gaps);
            let whole = x.detach().require_grad();
            let input = SelfAttentionInput::new(whole.clone()).mask(gaps(&device));
            let (expected, of_whole) = gradients(there(&module.forward(input)), &whole);
            let what = format!("{backend}, {name}");
            let of_whole = there(&Tensor::from_data(of_whole, &device)).into_data();
            assert_close(&format!("{what}, x"), &of_x, &of_whole, 2e-5);
            assert_eq!(actual.len(), expected.len());
            for (path, actual) in &actual {
                assert_close(&format!("{what}, {path}"), actual, &expected[path], 2e-5);
            }
        }
    }
}

/// One number for every distance, in the form for any offset and in the one for all distances that occur.
#[test]
fn numbers_by_distance() {
    const POSITIONS: [usize; 5] = [3, 0, 4, 1, 2];
    for (backend, device) in devices::cpu() {
        let x = || SelfAttentionInput::new(tensor([2, 5, WIDTH], 1, &device));
        let module = SelfAttentionConfig::new(WIDTH, 3).with_d_head(6);
        let module = filled(module.init(&device), 1);
        for zero in [9, 4] {
            let numbers: Tensor<2> = tensor([3, 2 * zero + 1], 3, &device);
            let entries = POSITIONS
                .iter()
                .flat_map(|query| POSITIONS.map(|key| (zero + query - key) as i64));
            let entries: Vec<i64> = entries.collect();
            let entries = Tensor::<1, Int>::from_data(TensorData::new(entries, [25]), &device);
            let dense = numbers.clone().select(1, entries).reshape([1, 3, 5, 5]);
            let expected = module.forward(x().bias(AttentionBias::dense(dense)));
            let by_distance = || x().bias(AttentionBias::distances(numbers.clone()));
            let actual = module.forward(by_distance().positions(vec![POSITIONS.to_vec(); 2]));
            let what = format!("{backend}, {zero}");
            assert_close(&what, &actual.into_data(), &expected.into_data(), TOLERANCE);
            let far = vec![vec![0, 1, 2, 3, 14]; 2];
            assert_eq!(
                sentence(|| module.forward(by_distance().positions(far))),
                format!(
                    "attention: a bias by distance of {} numbers has none for a key that is -14 tokens after its query",
                    2 * zero + 1
                )
            );
        }
        let slopes = AttentionBias::alibi(Tensor::ones([2], &device));
        let input = x().bias(slopes).positions(vec![vec![0, 1, 3, 4, 5]; 2]);
        assert_eq!(
            sentence(|| module.forward(input)),
            "attention: 2 ALiBi slopes were given for 3 query heads"
        );
    }
}

/// Several texts in one row, each from 0 on, in a stack of windows and whole layers.
#[test]
fn packed_texts_are_what_they_are_alone() {
    const TEXTS: [(usize, usize); 3] = [(0, 6), (6, 3), (9, 8)];
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([1, LEN, WIDTH], 1, &device);
        let ids = TEXTS
            .iter()
            .zip(0_i32..)
            .flat_map(|((_, len), id)| vec![id; *len]);
        let ids = TensorData::new(ids.collect::<Vec<_>>(), [1, LEN]);
        let ids = Tensor::<2, Int>::from_data(ids, &device);
        let at: Vec<usize> = TEXTS.iter().flat_map(|(_, len)| 0..*len).collect();
        for (name, encoding) in encodings() {
            for causal in [false, true] {
                let block = BlockConfig::new()
                    .with_d_head(6)
                    .with_position(encoding.clone());
                let near = block.clone().with_window(2);
                let config = TransformerStackConfig::new(WIDTH, 19, 3, 2).with_causal(causal);
                let cycle = burn_attn::LayerPattern::Cycle(vec![near, block]);
                let stack = filled(config.with_pattern(cycle).init(&device), 1);
                let packed = LayerInput::new(x.clone())
                    .mask(AttentionMask::segments(ids.clone(), ids.clone()))
                    .positions(vec![at.clone()]);
                let packed = stack.forward(packed);
                for (from, len) in TEXTS {
                    let alone = stack.forward(x.clone().narrow(1, from, len)).into_data();
                    let actual = packed.clone().narrow(1, from, len).into_data();
                    let what = format!("{backend}, {name}, causal {causal}, from {from}");
                    assert_close(&what, &actual, &alone, 1e-5);
                }
            }
        }
    }
}

#[test]
fn queries_and_keys_of_two_sequences() {
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, WIDTH], 1, &device);
        let memory: Tensor<3> = tensor([2, LEN, WIDTH], 2, &device);
        let queries = || vec![vec![3, 0, 7]; 2];
        for (name, encoding) in encodings() {
            for window in [false, true] {
                let mask = || match window {
                    true => AttentionMask::window(2, 3),
                    false => AttentionMask::none(),
                };
                let config = CrossAttentionConfig::new(WIDTH, 3).with_dropout(0.0);
                let config = config.with_d_head(6).with_position(encoding.clone());
                let cross = filled(config.init(&device), 1);
                let whole = CrossAttentionInput::new(x.clone(), memory.clone());
                let whole = cross.forward(whole.mask(mask()).mask(gaps(&device)));
                let rows = Tensor::<1, Int>::from_data([3, 0, 7], &device);
                let expected = whole.select(1, rows.clone()).into_data();
                let query = x.clone().select(1, rows);
                let memory = there(&memory);
                let input = CrossAttentionInput::new(query.clone(), memory.clone());
                let input = input.mask(mask()).positions(queries());
                let actual = cross.forward(input.key_positions(positions())).into_data();
                let what = format!("{backend}, {name}, window {window}");
                assert_close(&what, &actual, &expected, TOLERANCE);
                let general = cross.into_multi_head();
                let input = MultiHeadAttentionInput::cross_attention(query, memory);
                let input = input.mask(mask()).positions(queries());
                let actual = general.forward(input.key_positions(positions()));
                assert_close(&what, &actual.into_data(), &expected, TOLERANCE);
            }
        }
    }
}

/// Angles by hand: pair `i` of a head turns with the axis of its section.
#[test]
fn axes_turn_their_own_pairs() {
    let axes = || vec![vec![vec![0, 3, 5]; 2], vec![vec![2, 0, 7], vec![1, 1, 4]]];
    for (backend, device) in devices::cpu() {
        let x: Tensor<4> = tensor([2, 3, 3, 12], 1, &device);
        for (kind, sections, of_pair) in [
            (RotaryAxes::Sections(vec![2, 4]), [2, 4], [0, 1, 2, 3, 4, 5]),
            (RotaryAxes::Equal(2), [3, 3], [0, 2, 4, 0, 2, 4]),
        ] {
            let config = RotaryConfig::new().with_max_len(8).with_axes(kind.clone());
            let rotary = config.init(12, &device);
            let actual = rotary.forward(x.clone(), &axes().into());
            let numbers = uniform(1, 2 * 3 * 3 * 12);
            let mut expected = numbers.clone();
            for (at, row) in numbers.chunks(12).enumerate() {
                let (token, b) = (at % 3, at / 9);
                for pair in 0..6 {
                    let axis = usize::from(pair >= sections[0]);
                    let exponent = match kind {
                        RotaryAxes::Equal(_) => of_pair[pair] as f64 / 6.0,
                        _ => 2.0 * of_pair[pair] as f64 / 12.0,
                    };
                    let angle = axes()[axis][b][token] as f64 / 10_000_f64.powf(exponent);
                    let [first, second] = [row[pair], row[pair + 6]].map(f64::from);
                    expected[at * 12 + pair] = (first * angle.cos() - second * angle.sin()) as f32;
                    expected[at * 12 + pair + 6] =
                        (second * angle.cos() + first * angle.sin()) as f32;
                }
            }
            let expected = TensorData::new(expected, [2, 3, 3, 12]);
            let what = format!("{backend}, {kind:?}");
            assert_close(&what, &actual.into_data(), &expected, 1e-6);
            // One number is the position on every axis.
            let alike = rotary.forward(x.clone(), &Positions::Offset(3));
            let at = vec![vec![vec![3, 4, 5]; 2]; 2];
            let on_axes = rotary.forward(x.clone(), &at.into());
            assert_close(backend, &on_axes.into_data(), &alike.into_data(), 1e-7);
        }
    }
}

#[test]
fn positions_that_do_not_fit() {
    let device = devices::any();
    let module = |encoding| {
        let config = SelfAttentionConfig::new(WIDTH, 3).with_d_head(6);
        config.with_position(encoding).init(&device)
    };
    let said = |encoding, positions: Positions| {
        let module = module(encoding);
        let input = SelfAttentionInput::new(tensor([2, 3, WIDTH], 1, &device));
        sentence(|| module.forward(input.positions(positions)))
    };
    let rotary = || PositionEncoding::Rotary(RotaryConfig::new().with_max_len(9));
    assert_eq!(
        said(rotary(), vec![vec![0, 1, 9], vec![0, 1, 2]].into()),
        "Rotary: sequence 0 has a token at position 9, but there are 9 positions"
    );
    assert_eq!(
        said(rotary(), vec![vec![vec![0, 1, 2]; 2]; 2].into()),
        "Rotary: positions on 2 axes were given to an encoding with 1"
    );
    assert_eq!(
        said(PositionEncoding::alibi(), vec![vec![0, 1, 2]].into()),
        "SelfAttention: positions of 1 sequences for 2"
    );
    assert_eq!(
        said(PositionEncoding::alibi(), vec![vec![0, 1]; 2].into()),
        "SelfAttention: 2 positions for the 3 tokens of sequence 0"
    );
    // Also where nothing reads the axes.
    assert_eq!(
        said(PositionEncoding::None, vec![vec![vec![0; 3]]].into()),
        "SelfAttention: positions of 1 sequences for 2"
    );
    let x = || tensor([2, 3, WIDTH], 1, &device);
    let cross = CrossAttentionConfig::new(WIDTH, 1).init(&device);
    let input = || CrossAttentionInput::new(x(), x());
    assert_eq!(
        sentence(|| cross.forward(input().key_positions(3))),
        "CrossAttention: positions of the keys were given without those of the queries"
    );
    assert_eq!(
        sentence(|| cross.forward(input().offset(2).positions(3))),
        "CrossAttention: an offset was given beside the positions of the queries"
    );
    assert_eq!(
        RotaryConfig::new()
            .with_axes(RotaryAxes::Equal(4))
            .validate(12)
            .expect_err("bad")
            .to_string(),
        "RotaryConfig: 6 pairs cannot be shared by axes Equal(4)"
    );
    for sections in [vec![2, 3], vec![usize::MAX, 7]] {
        let axes = RotaryAxes::Sections(sections.clone());
        let config = RotaryConfig::new().with_axes(axes);
        assert_eq!(
            config.validate(12).expect_err("bad").to_string(),
            format!("RotaryConfig: axes Sections{sections:?} do not add up to 6 pairs")
        );
    }
}
