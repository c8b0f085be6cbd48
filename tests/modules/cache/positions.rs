//! What positions add to the scores, which a cache keeps for the next tokens.

use burn::tensor::Tensor;
use burn_attn::{
    SelfAttention, SelfAttentionConfig, SelfAttentionInput,
    positions::{AlibiConfig, Position, PositionEncoding},
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::{D_MODEL, in_pieces, one_by_one, small};

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
            let mut cache = module.cache(1, &small(8).with_initial_capacity(8));
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
        let [actual, expected] =
            [cached, whole].map(|output| gradient(&module, output).into_data());
        assert_close(name, &actual, &expected, 1e-5);
    }
}

/// Before its tokens are in the cache; for one head, too, whose bias would fit any number.
#[test]
fn an_encoding_of_other_heads_is_refused() {
    let device = devices::any();
    let config = SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
    let module = filled(config.init(&device), 1);
    let mut cache = module.cache(2, &small(7));
    for (heads, len) in [(1, 1), (1, 3), (4, 1), (4, 3)] {
        let position = PositionEncoding::alibi().init(heads, 5, &device);
        let input = SelfAttentionInput::new(tensor([2, len, D_MODEL], 1, &device));
        assert_eq!(
            sentence(|| module.forward_cached(input.position(position), &mut cache)),
            format!("attention: {heads} ALiBi slopes were given for 6 query heads")
        );
        assert_eq!(cache.lengths(), [0, 0]);
    }
}

/// One token at a time and several at once, with one encoding for the first tokens and another for the next.
#[test]
fn another_position_is_followed_at_once() {
    let device = devices::any();
    let encodings: Vec<Position> = (learned().into_iter())
        .flat_map(|(_, config)| [1, 5].map(|seed| (config.clone(), seed)))
        .map(|(config, seed)| filled(config.init(&device), seed).heads.position)
        .chain([PositionEncoding::alibi(), PositionEncoding::None].map(|it| it.init(6, 5, &device)))
        .collect();
    let config = SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
    let module = filled(config.init(&device), 3);
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
    let run = |counts: [usize; 2], pieces: &[usize], [first, second]: [&Position; 2]| {
        // With room for all tokens, the bias of the first one serves the next.
        let mut cache = module.cache(2, &small(9).with_initial_capacity(9));
        let mut step = |from: usize, len: usize, counts: [usize; 2], position: &Position| {
            let input = SelfAttentionInput::new(x.clone().narrow(1, from, len));
            let input = input.lengths(&counts).position(position.clone());
            module.forward_cached(input, &mut cache)
        };
        // With a token that leaves its bias in the cache.
        step(0, 3, counts, first);
        step(3, 1, [1, 1], first);
        one_by_one(pieces, |from, len| step(4 + from, len, [len; 2], second))
    };
    for (i, first) in encodings.iter().enumerate() {
        for (j, second) in encodings.iter().enumerate() {
            // Sequences of one length, and of two.
            for counts in [[3, 3], [3, 1]] {
                let one_by_one = run(counts, &[1, 1, 1], [first, second]);
                let at_once = run(counts, &[3], [first, second]);
                let what = format!("{i} then {j}, {counts:?}");
                assert_close(&what, &one_by_one.into_data(), &at_once.into_data(), 2e-6);
            }
        }
    }
}
