//! What positions add to the scores, which a cache keeps for the next tokens.

use burn::tensor::Tensor;
use burn_attn::{
    SelfAttention, SelfAttentionConfig, SelfAttentionInput,
    positions::{AlibiConfig, PositionEncoding},
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
};

use super::{D_MODEL, in_pieces, small};

fn learned() -> [(&'static str, SelfAttentionConfig); 2] {
    let slopes = AlibiConfig::new().with_learnable(true);
    [
        ("alibi", PositionEncoding::Alibi(slopes)),
        ("relative", PositionEncoding::relative()),
    ]
    .map(|(name, position)| {
        let config = SelfAttentionConfig::new(D_MODEL, 6)
            .with_causal(true)
            .with_dropout(0.0)
            .with_position(position);
        (name, config)
    })
}

#[test]
fn an_emptied_cache_follows_parameters_that_have_changed() {
    let device = devices::any();
    let x = tensor([2, 7, D_MODEL], 1, &device);
    for (name, config) in learned() {
        let module = filled(config.init(&device), 1);
        let mut cache = module.cache(2, &small(7));
        for empty in [0, 1] {
            in_pieces(&module, &mut cache, &x, &[3, 1, 1, 2]);
            match empty {
                0 => cache.reset(),
                _ => cache.truncate(&[0, 0]),
            }
            let other = filled(module.clone(), 5);
            let whole = other.forward(SelfAttentionInput::new(x.clone()));
            let cached = in_pieces(&other, &mut cache, &x, &[3, 1, 1, 2]);
            assert_close(name, &cached.into_data(), &whole.into_data(), 2e-6);
            cache.reset();
        }
    }
}

#[test]
fn it_is_as_long_as_a_token_looks_back() {
    let device = devices::any();
    for (window, kept) in [(None, 8), (Some(2), 3)] {
        let config = |position| {
            let config = SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
            config.with_window(window).with_position(position)
        };
        let bytes = |position| {
            let module = config(position).init(&device);
            let mut cache = module.cache(1, &small(8).with_initial_len(8));
            let x = tensor([1, 5, D_MODEL], 1, &device);
            in_pieces(&module, &mut cache, &x, &[4, 1]);
            cache.bytes()
        };
        let without = bytes(PositionEncoding::None);
        assert_eq!(bytes(PositionEncoding::alibi()), without + 6 * kept * 4);
        assert_eq!(bytes(PositionEncoding::relative()), without + 6 * kept * 4);
    }
}

/// The gradients of slopes or table.
fn gradient(module: &SelfAttention, output: Tensor<3>) -> Tensor<1> {
    let [_, len, _] = output.dims();
    // Every number with a weight of its own.
    let weights = tensor([2, len, D_MODEL], 9, &output.device());
    let gradients = (output * weights).sum().backward();
    let position = &module.heads.position;
    let of_table = position.relative.as_ref().map(|relative| {
        let gradient = relative.table.val().grad(&gradients);
        gradient.expect("the table is used").flatten(0, 1)
    });
    let of_slopes = || {
        let slopes = position.alibi.as_ref().map(|alibi| alibi.slopes());
        slopes.and_then(|slopes| slopes.grad(&gradients))
    };
    of_table.or_else(of_slopes).expect("one of both is there")
}

#[test]
fn gradients_pass_through_a_cache() {
    let device = devices::any().autodiff();
    let x = tensor([2, 7, D_MODEL], 1, &device);
    for (name, config) in learned() {
        let module = filled(config.init(&device), 1);
        let whole = module.forward(SelfAttentionInput::new(x.clone()));
        let mut cache = module.cache(2, &small(7));
        let cached = in_pieces(&module, &mut cache, &x, &[3, 1, 1, 2]);
        assert_close(
            name,
            &gradient(&module, cached).into_data(),
            &gradient(&module, whole).into_data(),
            1e-5,
        );
    }
}
