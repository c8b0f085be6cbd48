//! Mixtures of experts; their numbers are compared with published ones in `golden/transformers.rs`.

use burn::tensor::{Bool, DType, FloatDType, Tensor};
use burn_attn::{MixtureOfExperts, MixtureOfExpertsConfig, load_balancing_loss};
use burn_attn_tests::{
    compare::{self, assert_close, numbers},
    devices,
    numbers::{filled, tensor},
    parameters, sentence,
};

use super::{D_FF, D_MODEL};

const N_EXPERTS: usize = 7;

fn config() -> MixtureOfExpertsConfig {
    MixtureOfExpertsConfig::new(D_MODEL, D_FF, N_EXPERTS, 3)
}

fn mixture(device: &burn::tensor::Device) -> MixtureOfExperts {
    filled(config().init(device), 1)
}

#[test]
fn any_rank_and_nothing() {
    for (name, device) in devices::cpu() {
        let module = mixture(&device);
        let x: Tensor<3> = tensor([2, 5, D_MODEL], 3, &device);
        let expected = module.forward(x.clone()).to_data();
        let rows = module.forward(x.reshape([10, D_MODEL]));
        let rows = rows.reshape([2, 5, D_MODEL]).into_data();
        assert_close(name, &rows, &expected, 0.0);
        for shape in [[0, 5, D_MODEL], [2, 0, D_MODEL]] {
            let output = module.forward_with_logits(Tensor::<3>::zeros(shape, &device));
            assert_eq!(output.states.dims(), shape);
            assert_eq!(output.router_logits.dims(), [0, N_EXPERTS]);
        }
    }
}

/// In bf16 too: with the rounded numbers of that, but products and weights that are not rounded.
#[test]
fn a_router_may_compute_in_f32() {
    let cpu = devices::cpu().into_iter().map(|(_, device)| device);
    for device in cpu.filter(|device| device.supports_dtype(DType::BF16)) {
        let module = |in_f32| {
            let module = filled(config().with_router_in_f32(in_f32).init(&device), 1);
            parameters::in_dtype(module, DType::BF16)
        };
        let x: Tensor<2> = tensor([5, D_MODEL], 3, &device);
        let x = x.cast(FloatDType::BF16);
        let [narrow, wide] = [false, true].map(|in_f32| {
            let output = module(in_f32).forward_with_logits(x.clone());
            assert_eq!(output.states.dtype(), DType::BF16);
            output
        });
        assert_eq!(narrow.router_logits.dtype(), DType::BF16);
        assert_eq!(wide.router_logits.dtype(), DType::F32);
        let in_f32 = parameters::in_dtype(module(true), DType::F32);
        let exact = in_f32.forward_with_logits(x.clone().cast(FloatDType::F32));
        let error = |actual: Tensor<2>, expected: &Tensor<2>| {
            let actual = actual.cast(FloatDType::F32).into_data();
            compare::error(&actual, &expected.to_data())
        };
        assert!(error(wide.router_logits, &exact.router_logits) < 1e-6);
        assert!(error(narrow.router_logits, &exact.router_logits) > 1e-3);
        assert!(error(wide.states, &exact.states) < 0.02);
        let nothing = Tensor::<2>::zeros([0, D_MODEL], (&device, DType::BF16));
        let nothing = module(true).forward_with_logits(nothing);
        assert_eq!(nothing.router_logits.dtype(), DType::F32);
    }
}

/// One position, of which three of seven experts learn, and the router of those it chose among.
#[test]
fn only_chosen_experts_learn() {
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let module = mixture(&device);
        let output = module.forward_with_logits(tensor::<2>([1, D_MODEL], 3, &device));
        let logits = numbers(&output.router_logits);
        let gradients = parameters::gradients(&module, &output.states.sum().backward());
        let mut order: Vec<usize> = (0..N_EXPERTS).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        for (rank, expert) in order.into_iter().enumerate() {
            let gradient = gradients.get(&format!("experts.{expert}.linear_outer.weight"));
            let learns = gradient.is_some_and(|data| data.iter::<f32>().any(|x| x != 0.0));
            assert_eq!(
                learns,
                rank < 3,
                "expert {expert}, number {rank} by its logit"
            );
        }
    }
}

#[test]
fn all_experts_together_are_one_sum() {
    for (name, device) in devices::cpu() {
        let config = MixtureOfExpertsConfig::new(D_MODEL, D_FF, N_EXPERTS, N_EXPERTS);
        for norm_topk_prob in [false, true] {
            let config = config.clone().with_norm_topk_prob(norm_topk_prob);
            let module = filled(config.init(&device), 1);
            let x: Tensor<2> = tensor([5, D_MODEL], 3, &device);
            let shares = module.router.forward(x.clone());
            let shares = burn::tensor::activation::softmax(shares, 1);
            let mut expected = x.zeros_like();
            for (index, expert) in module.experts.iter().enumerate() {
                let share = shares.clone().narrow(1, index, 1);
                expected = expected + expert.forward(x.clone()) * share;
            }
            let (actual, expected) = (module.forward(x).to_data(), expected.to_data());
            assert_close(name, &actual, &expected, 1e-6);
        }
    }
}

#[test]
fn equally_busy_experts_have_the_least_loss() {
    let device = devices::any();
    // Every position its own expert, and no preference for the others.
    let even = Tensor::<2>::eye(N_EXPERTS, &device) * 1e-4;
    let loss = numbers(&load_balancing_loss(std::slice::from_ref(&even), 1, None));
    assert!((loss[0] - 1.0).abs() < 1e-5, "{loss:?}");
    // Logits of padding may be anything.
    let padding = Tensor::full([1, N_EXPERTS], f32::NAN, &device);
    let padded = Tensor::cat(vec![even, padding], 0);
    let counted: [bool; N_EXPERTS + 1] = std::array::from_fn(|position| position < N_EXPERTS);
    let counted = Tensor::<1, Bool>::from_data(counted, &device);
    let loss = numbers(&load_balancing_loss(&[padded], 1, Some(counted)));
    assert!((loss[0] - 1.0).abs() < 1e-5, "{loss:?}");
    // Everybody chooses the first, and is sure of it.
    let uneven = Tensor::<2>::eye(N_EXPERTS, &device).narrow(0, 0, 1) * 50.0;
    let loss = numbers(&load_balancing_loss(&[uneven.repeat_dim(0, 5)], 1, None));
    assert!((loss[0] - N_EXPERTS as f32).abs() < 1e-4, "{loss:?}");
}

#[test]
fn bad_input_has_its_sentence() {
    let device = devices::any();
    let cases = [
        (
            MixtureOfExpertsConfig::new(D_MODEL, D_FF, 7, 0),
            "top_k must be at least 1, got 0",
        ),
        (
            MixtureOfExpertsConfig::new(D_MODEL, D_FF, 7, 8),
            "top_k 8 is more than n_experts 7",
        ),
        (
            config().with_dropout(1.0),
            "dropout must be in [0, 1), got 1",
        ),
        (
            MixtureOfExpertsConfig::new(D_MODEL, 0, 7, 3),
            "d_ff must be at least 1, got 0",
        ),
    ];
    for (config, expected) in cases {
        let expected = format!("MixtureOfExpertsConfig: {expected}");
        let error = config.validate().expect_err("the configuration is bad");
        assert_eq!(error.to_string(), expected);
        assert_eq!(sentence(|| config.init(&device)), expected);
    }
    let logits = || Tensor::<2>::zeros([5, N_EXPERTS], &device);
    assert_eq!(
        sentence(|| load_balancing_loss(&[logits()], 8, None)),
        "load_balancing_loss: top_k must be between 1 and the 7 experts, got 8"
    );
    let none: Tensor<1, Bool> = Tensor::from_data([true; 4], &device);
    let empty = || Tensor::<2>::zeros([0, N_EXPERTS], &device);
    // Also without positions.
    for (logits, counted, start) in [
        (vec![logits()], Some(none.clone()), "counted, [positions]"),
        (vec![empty()], Some(none), "counted, [positions]"),
        (
            vec![empty(), logits()],
            None,
            "logits, [positions, n_experts]",
        ),
    ] {
        let found = sentence(|| load_balancing_loss(&logits, 2, counted));
        assert!(
            found.starts_with(&format!("assert_shape!({start})")),
            "{found}"
        );
    }
    assert_eq!(numbers(&load_balancing_loss(&[empty()], 2, None)), [0.0]);
}

/// The experts of the two groups with the best ones, of eight in four groups.
#[test]
fn only_experts_of_the_best_groups_are_chosen() {
    for (name, device) in devices::cpu() {
        let config = MixtureOfExpertsConfig::new(D_MODEL, D_FF, 8, 3)
            .with_n_groups(4)
            .with_top_k_groups(2);
        let device = device.autodiff();
        let module = filled(config.init(&device), 1);
        let mut groups_mattered = false;
        for seed in 0..20 {
            let x: Tensor<2> = tensor([1, D_MODEL], seed, &device);
            let output = module.forward_with_logits(x);
            let logits = numbers(&output.router_logits);
            let by_size = |logits: &[f32]| {
                let mut order: Vec<usize> = (0..logits.len()).collect();
                order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
                order
            };
            let best: Vec<f32> = logits.chunks(2).map(|two| two[0].max(two[1])).collect();
            let groups = &by_size(&best)[..2];
            let order = by_size(&logits);
            let mut expected = order.clone();
            expected.retain(|expert| groups.contains(&(expert / 2)));
            groups_mattered |= expected[..3] != order[..3];
            let gradients = parameters::gradients(&module, &output.states.sum().backward());
            for expert in 0..8 {
                let gradient = gradients.get(&format!("experts.{expert}.linear_outer.weight"));
                let learns = gradient.is_some_and(|data| data.iter::<f32>().any(|x| x != 0.0));
                assert_eq!(
                    learns,
                    expected[..3].contains(&expert),
                    "{expert} on {name}"
                );
            }
        }
        assert!(groups_mattered);
    }
}

#[test]
fn groups_that_contradict_each_other() {
    let config = MixtureOfExpertsConfig::new(D_MODEL, D_FF, 8, 3);
    let groups = |n_groups, top_k| {
        let config = config.clone().with_n_groups(n_groups);
        config.with_top_k_groups(top_k)
    };
    for (config, expected) in [
        (groups(0, 1), "n_groups must be at least 1, got 0"),
        (groups(4, 0), "top_k_groups must be at least 1, got 0"),
        (groups(3, 2), "n_experts 8 is not divisible by n_groups 3"),
        (groups(4, 5), "top_k_groups 5 is more than n_groups 4"),
        (
            groups(4, 1),
            "top_k 3 is more than the 2 experts that top_k_groups 1 leaves",
        ),
        (
            groups(4, 2).with_sigmoid(true),
            "n_groups is 4, but groups are for routers without sigmoid and expert_bias",
        ),
        (
            groups(4, 2).with_expert_bias(true),
            "n_groups is 4, but groups are for routers without sigmoid and expert_bias",
        ),
    ] {
        let error = config.validate().expect_err("it is refused").to_string();
        assert_eq!(error, format!("MixtureOfExpertsConfig: {expected}"));
    }
}
