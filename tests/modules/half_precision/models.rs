//! Steps in half precision of what the translation model does not have: other positions, norms of queries and keys, experts, burn-nn's embedding.

use burn::{
    module::Param,
    optim::AdamConfig,
    tensor::{DType, Device, FloatDType, Int, Tensor},
    train::TrainStep,
};
use burn_attn::{
    BlockConfig, ExpertsConfig, FeedForwardActivation, NormConfig, NormPlacement, QkNormConfig,
    positions::{AlibiConfig, PositionEncoding},
};
use burn_attn_models::{
    bert::{Bert, BertConfig, BertInput},
    language_model::{AbsolutePosition, LanguageModelConfig},
    train::{LanguageModelBatch, MixedPrecision, clip_by_global_norm},
};
use burn_attn_tests::{
    compare::difference_to_largest,
    numbers::{filled, tensor},
    parameters,
};

const VOCABULARY: usize = 23;
const STEPS: usize = 7;
const TEXTS: [&[u32]; 3] = [
    &[3, 7, 3, 11, 3, 7, 19],
    &[5, 13, 2, 11, 5],
    &[17, 1, 22, 7, 3, 9],
];

fn cases() -> Vec<(&'static str, LanguageModelConfig)> {
    let block = || {
        BlockConfig::new()
            .with_dropout(0.0)
            .with_norm_placement(NormPlacement::Pre)
            .with_d_head(10)
    };
    let at = |position| block().with_position(position);
    let alibi = AlibiConfig::new().with_learnable(true);
    let llama = at(PositionEncoding::rotary())
        .with_norm(NormConfig::rms_norm())
        .with_activation(FeedForwardActivation::SwiGlu)
        .with_bias(false)
        .with_n_kv_heads(1);
    let of_heads = [
        ("Llama", llama),
        ("rotary positions", at(PositionEncoding::rotary())),
        ("ALiBi", at(PositionEncoding::alibi())),
        ("ALiBi, learned", at(PositionEncoding::Alibi(alibi))),
        ("relative positions", at(PositionEncoding::relative())),
        ("QK norm", block().with_qk_norm(QkNormConfig::rms())),
        (
            "QK norm across heads",
            block().with_qk_norm(QkNormConfig::rms_across_heads()),
        ),
        ("QK norm, L2", block().with_qk_norm(QkNormConfig::l2())),
        (
            "mixture of experts",
            block().with_experts(ExpertsConfig::new(5, 2)),
        ),
    ];
    let config = |block| {
        LanguageModelConfig::new(VOCABULARY)
            .with_d_model(33)
            .with_n_heads(3)
            .with_d_ff(29)
            .with_max_len(13)
            .with_block(block)
    };
    let learned = config(block()).with_absolute_position(AbsolutePosition::Learned);
    let mut cases: Vec<_> = of_heads
        .into_iter()
        .map(|(name, block)| (name, config(block)))
        .collect();
    cases.push(("learned positions", learned));
    cases
}

/// The loss before each step.
fn losses(config: &LanguageModelConfig, dtype: FloatDType) -> Vec<f64> {
    let device = Device::flex().autodiff();
    let mut model = filled(config.init(&device), 11);
    let mut optimizer = AdamConfig::new().init();
    let losses = (0..STEPS).map(|_| {
        let mixed = MixedPrecision::new(model.clone(), dtype);
        let output = TrainStep::step(&mixed, LanguageModelBatch::new(&TEXTS, &device));
        let gradients = clip_by_global_norm(output.grads, &model, 1.0);
        model = optimizer.step(3e-3, model.clone(), gradients);
        f64::from(output.item.loss.into_scalar::<f32>())
    });
    losses.collect()
}

#[test]
fn every_kind_of_layer_trains_as_in_f32() {
    for (name, config) in cases() {
        let [wide, half] = [FloatDType::F32, FloatDType::BF16].map(|dtype| losses(&config, dtype));
        let apart = super::apart(&wide, &half);
        let near = apart.iter().all(|apart| *apart < 0.03);
        assert!(near, "{name}: {half:?}, not {wide:?}");
        assert!(apart.iter().any(|apart| *apart > 0.0), "{name}: {half:?}");
        for losses in [&wide, &half] {
            assert!(losses[STEPS - 1] < 0.98 * losses[0], "{name}: {losses:?}");
        }
    }
}

/// Every token adds the same to the gradient of its row, that of its segment and that of its position. A sum of equal numbers ends in bf16 at
/// about 256 of them.
#[test]
fn half_precision_adds_up_the_gradients_of_a_frequent_token_of_bert() {
    const TOKENS: usize = 1009;
    let device = Device::flex().autodiff();
    let config = BertConfig::new(VOCABULARY)
        .with_d_model(15)
        .with_n_heads(3)
        .with_n_layers(1)
        .with_d_ff(29)
        .with_max_len(7)
        .with_block(BertConfig::base_block().with_dropout(0.0));
    let wide = filled(config.init(&device), 3);
    let half = parameters::in_dtype(wide.clone(), DType::BF16);
    let gradients = |bert: &Bert| {
        let all = |index: i64| Tensor::<2, Int>::full([TOKENS, 1], index, &device);
        let states = bert.forward(BertInput::new(all(5)).segments(all(1)));
        let dtype = states.dtype();
        let weights: Tensor<3> = tensor([1, 1, 15], 7, &device);
        let gradients = (states * weights.cast(dtype)).sum().backward();
        let of_row = |table: &Param<Tensor<2>>, row: usize| -> Vec<f64> {
            let gradient = table.val().grad(&gradients).expect("a gradient");
            assert_eq!(gradient.dtype(), dtype);
            gradient.narrow(0, row, 1).into_data().iter().collect()
        };
        [
            of_row(&bert.tokens.weight, 5),
            of_row(&bert.segments.weight, 1),
            of_row(&bert.positions.table, 0),
        ]
    };
    let [expected, actual] = [&wide, &half].map(gradients);
    let what = ["token", "segment", "position"];
    for (what, (actual, expected)) in what.into_iter().zip(actual.iter().zip(&expected)) {
        let largest = expected.iter().copied().map(f64::abs).fold(0.0, f64::max);
        assert!(largest > 10.0, "{what}: {expected:?}");
        let off = difference_to_largest(actual, expected);
        assert!(off < 0.1, "{what} is off by {off}: {actual:?}");
    }
}
