//! One field of a configuration chooses among the encodings.

use burn::{module::Module, nn::Initializer, tensor::Device};
use burn_attn::positions::{
    AlibiConfig, Position, PositionEncoding, Positions, RelativeBiasConfig, RotaryConfig,
};
use burn_attn_tests::{
    compare::{assert_same, differs},
    devices,
    numbers::tensor,
    parameters,
};

use super::scores;

const HEADS: usize = 3;
const LEN: usize = 5;
const D_HEAD: usize = 14;

fn init(encoding: &PositionEncoding, device: &Device) -> Position {
    encoding.init(HEADS, D_HEAD, device)
}

#[test]
fn rotary_rotates_and_adds_nothing() {
    for (_, device) in devices::cpu() {
        let position = init(&PositionEncoding::rotary(), &device);
        let x = tensor([2, HEADS, LEN, D_HEAD], 1, &device);
        let positions = Positions::from(vec![7, 3]);
        let expected = RotaryConfig::new()
            .init(D_HEAD, &device)
            .forward(x.clone(), &positions);
        assert!(differs(&expected, &x));
        assert_same(&position.rotate(x, &positions), &expected);
        assert!(position.bias().is_none());
    }
}

#[test]
fn the_others_do_not_rotate() {
    for (_, device) in devices::cpu() {
        for encoding in [
            PositionEncoding::default(),
            PositionEncoding::alibi(),
            PositionEncoding::relative(),
        ] {
            let x = tensor([2, HEADS, LEN, D_HEAD], 1, &device);
            let position = init(&encoding, &device);
            assert_same(&position.rotate(x.clone(), &Positions::Offset(7)), &x);
        }
        assert!(init(&PositionEncoding::None, &device).bias().is_none());
    }
}

#[test]
fn the_bias_is_that_of_the_chosen_module() {
    for (_, device) in devices::cpu() {
        let bias = |encoding| init(&encoding, &device).bias();
        let scores = |bias| scores(bias, HEADS, LEN, &device);
        let alibi = AlibiConfig::new().init(HEADS, &device).bias();
        assert_eq!(scores(bias(PositionEncoding::alibi())), scores(alibi));
        let config =
            RelativeBiasConfig::new().with_initializer(Initializer::Constant { value: 0.25 });
        let relative = config.init(HEADS, &device).bias();
        assert_eq!(
            scores(bias(PositionEncoding::Relative(config))),
            scores(relative)
        );
    }
}

#[test]
fn parameters_have_plain_names() {
    let device = devices::any();
    let names = |encoding: PositionEncoding| -> Vec<String> {
        let position = init(&encoding, &device);
        parameters::values(&position).into_keys().collect()
    };
    assert!(names(PositionEncoding::None).is_empty());
    assert!(names(PositionEncoding::rotary()).is_empty());
    assert!(names(PositionEncoding::alibi()).is_empty());
    assert_eq!(names(PositionEncoding::relative()), ["relative.table"]);
    let learned = AlibiConfig::new().with_learnable(true);
    assert_eq!(names(PositionEncoding::Alibi(learned)), ["alibi.slopes"]);
}

#[test]
fn tables_move_with_the_module() {
    for (_, device) in devices::cpu() {
        for (_, other) in devices::cpu() {
            let x = tensor([2, HEADS, LEN, D_HEAD], 1, &other);
            let positions = Positions::Offset(7);
            let encoding = PositionEncoding::rotary();
            let moved = init(&encoding, &device).to_device(&other);
            let expected = init(&encoding, &other).rotate(x.clone(), &positions);
            assert_same(&moved.rotate(x, &positions), &expected);
        }
    }
}

#[test]
fn errors_name_the_configuration_around_them() {
    let cases = [
        (
            PositionEncoding::rotary(),
            HEADS,
            13,
            "RotaryConfig: d_head 13 is odd, but numbers are rotated in pairs",
        ),
        (
            PositionEncoding::alibi(),
            0,
            D_HEAD,
            "AlibiConfig: n_heads must be at least 1, got 0",
        ),
        (
            PositionEncoding::Relative(RelativeBiasConfig::new().with_buckets(3)),
            HEADS,
            D_HEAD,
            "RelativeBiasConfig: relative buckets need at least 4 buckets (2 for each direction), but have 3",
        ),
    ];
    for (encoding, n_heads, d_head, sentence) in cases {
        let error = encoding
            .validate("SelfAttentionConfig", n_heads, d_head)
            .expect_err("the configuration is bad");
        let expected = format!("SelfAttentionConfig: position: {sentence}");
        assert_eq!(error.to_string(), expected);
    }
}
