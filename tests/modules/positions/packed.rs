//! Each of several texts packed into one row stands where it would stand alone.

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, BlockConfig, LayerInput,
    positions::{LearnedConfig, PositionEncoding, Positions, RotaryConfig, SinusoidalConfig},
};
use burn_attn_models::language_model::{AbsolutePosition, LanguageModelConfig};
use burn_attn_tests::{
    compare::{assert_close, assert_same, differs},
    devices,
    numbers::{filled, tensor},
    sentence,
};

const MAX_LEN: usize = 5;
const D_MODEL: usize = 18;
/// How long the texts of two rows are, of which each is longer than the table.
const ROWS: [[usize; 3]; 2] = [[3, 3, 1], [1, 1, 5]];
const LEN: usize = 7;

fn positions() -> Positions {
    let rows = ROWS.map(|texts| texts.into_iter().flat_map(|len| 0..len).collect());
    Positions::PerToken(rows.into())
}

/// Each text: its row, where it starts in it, and its length.
fn texts() -> Vec<[usize; 3]> {
    let mut texts = Vec::new();
    for (row, lengths) in ROWS.into_iter().enumerate() {
        let mut first = 0;
        for len in lengths {
            texts.push([row, first, len]);
            first += len;
        }
        assert_eq!(first, LEN);
    }
    texts
}

fn text<const D: usize>(of: &Tensor<D>, [row, first, len]: [usize; 3]) -> Tensor<D> {
    of.clone().narrow(0, row, 1).narrow(D - 2, first, len)
}

#[test]
fn every_table_begins_anew_with_every_text() {
    for (_, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        let learned = filled(LearnedConfig::new(D_MODEL, MAX_LEN).init(&device), 1);
        let sinusoidal = SinusoidalConfig::new(D_MODEL).with_max_len(MAX_LEN);
        let sinusoidal = sinusoidal.init(&device);
        let added = [
            learned.forward_from(x.clone(), positions()),
            sinusoidal.forward_from(x.clone(), positions()),
        ];
        for at in texts() {
            let alone = [
                learned.forward(text(&x, at)),
                sinusoidal.forward(text(&x, at)),
            ];
            for (added, alone) in added.iter().zip(alone) {
                assert_same(&text(added, at), &alone);
                assert!(differs(&alone, &text(&x, at)));
            }
        }
        let rotary = RotaryConfig::new().with_max_len(MAX_LEN);
        let rotary = rotary.init(6, &device);
        let heads: Tensor<4> = tensor([2, 3, LEN, 6], 2, &device);
        let rotated = rotary.forward(heads.clone(), &positions());
        for at in texts() {
            let alone = rotary.forward(text(&heads, at), &Positions::default());
            assert_same(&text(&rotated, at), &alone);
        }
    }
}

#[test]
fn a_language_model_reads_packed_texts_as_it_reads_them_alone() {
    const VOCABULARY: usize = 23;
    for (backend, device) in devices::cpu() {
        for (position, of_heads) in [
            (AbsolutePosition::Learned, PositionEncoding::None),
            (AbsolutePosition::Sinusoidal, PositionEncoding::None),
            (AbsolutePosition::None, PositionEncoding::rotary()),
        ] {
            let config = LanguageModelConfig::new(VOCABULARY)
                .with_d_model(D_MODEL)
                .with_n_heads(3)
                .with_d_ff(29)
                .with_max_len(LEN)
                .with_block(BlockConfig::new().with_position(of_heads))
                .with_absolute_position(position);
            let model = filled(config.init(&device), 1);
            let tokens: Vec<i32> = (0..2 * LEN as i32).map(|at| at * 5 % 23).collect();
            let tokens = TensorData::new(tokens, [2, LEN]);
            let tokens = Tensor::<2, Int>::from_data(tokens, &device);
            let segments = ROWS.map(|texts| {
                let numbered = texts.into_iter().enumerate();
                numbered.flat_map(|(text, len)| vec![text as i32; len])
            });
            let segments: Vec<i32> = segments.into_iter().flatten().collect();
            let segments = TensorData::new(segments, [2, LEN]);
            let segments = Tensor::<2, Int>::from_data(segments, &device);
            let input = LayerInput::new(model.embed(tokens.clone(), positions()))
                .mask(AttentionMask::segments(segments.clone(), segments));
            let packed = model.logits(model.transformer.forward(input));
            for [row, first, len] in texts() {
                let alone = tokens.clone().narrow(0, row, 1).narrow(1, first, len);
                let alone = model.forward(alone);
                let what = format!("{backend}, {position:?}, row {row} at {first}");
                let packed = text(&packed, [row, first, len]);
                assert_close(&what, &packed.into_data(), &alone.into_data(), 1e-5);
            }
        }
    }
}

#[test]
fn mistakes_have_a_sentence() {
    let device = devices::any();
    let learned = LearnedConfig::new(D_MODEL, MAX_LEN).init(&device);
    let refused = |positions: Vec<Vec<usize>>| {
        sentence(|| learned.forward_from(Tensor::zeros([2, 3, D_MODEL], &device), positions))
    };
    assert_eq!(
        refused(vec![vec![0, 1, 0]]),
        "Learned: positions of 1 sequences for 2"
    );
    assert_eq!(
        refused(vec![vec![0, 1, 0], vec![0, 1]]),
        "Learned: 2 positions for the 3 tokens of sequence 1"
    );
    assert_eq!(
        refused(vec![vec![0, 1, 0], vec![0, 5, 1]]),
        "Learned: sequence 1 has a token at position 5, but there are 5 positions"
    );
    for batch in [0, 2] {
        let nothing = learned.forward_from(
            Tensor::zeros([batch, 0, D_MODEL], &device),
            vec![Vec::<usize>::new(); batch],
        );
        assert_eq!(nothing.dims(), [batch, 0, D_MODEL]);
    }
}
