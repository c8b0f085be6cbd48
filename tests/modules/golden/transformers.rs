//! What modules of Hugging Face's `transformers` compute; `tests/golden/transformers` says how it was made.

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{DType, Device, Gradients, Tensor, TensorData},
};
use burn_attn::{
    FeedForwardActivation, HeadsConfig, KvCacheConfig, MixtureOfExpertsConfig,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, NormConfig, ProjectionBias, QkNormConfig,
    SelfAttentionInput, load_balancing_loss,
    positions::{PositionEncoding, RotaryConfig, SinusoidalConfig, SinusoidalLayout},
};
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden::GoldenFile};

use super::on_every_device;

/// Everything is f64; about a hundred times its rounding.
pub(super) const TOLERANCE: f64 = 1e-13;

/// Burn 0.22.1 computes sigmoids in f32 on ndarray; about three times the worst error that was seen there.
pub(super) const TOLERANCE_OF_SIGMOIDS: f64 = 5e-7;

/// The same where the router is of sigmoids.
const TOLERANCE_OF_SIGMOID_ROUTERS: f64 = 3e-6;

pub(super) fn open(name: &str) -> GoldenFile {
    GoldenFile::open(&format!("transformers/{name}"))
}

pub(super) fn tracked<const D: usize>(file: &GoldenFile, name: &str, device: &Device) -> Tensor<D> {
    Tensor::from_data(file.data(name), (device, DType::F64)).require_grad()
}

/// A module with the parameters of a file in f64; `find` gives the numbers of one from its path.
pub(super) fn loaded<M: Module>(
    module: M,
    find: impl Fn(&str) -> TensorData,
    device: &Device,
) -> M {
    struct Loader<'a, F> {
        path: Vec<String>,
        find: F,
        device: &'a Device,
    }
    impl<F: Fn(&str) -> TensorData> ModuleMapper for Loader<'_, F> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.to_owned());
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }

        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let data = (self.find)(&self.path.join("."));
            let shape: [usize; D] = parameter.lazy_shape().dims();
            assert_eq!(data.shape().as_slice(), shape, "{:?}", self.path);
            Param::from_tensor(Tensor::from_data(data, (self.device, DType::F64)))
        }
    }
    module.map(&mut Loader {
        path: Vec::new(),
        find,
        device,
    })
}

/// Compares every parameter's gradient with what `find` gives for its path.
fn compare_gradients<M: Module>(
    module: &M,
    gradients: &Gradients,
    tolerance: f64,
    find: impl Fn(&str) -> TensorData,
) {
    struct Visitor<'a, F> {
        path: Vec<String>,
        gradients: &'a Gradients,
        tolerance: f64,
        find: F,
    }
    impl<F: Fn(&str) -> TensorData> ModuleVisitor for Visitor<'_, F> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.to_owned());
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }

        fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
            let path = self.path.join(".");
            let gradient = parameter.val().grad(self.gradients);
            if path == "expert_bias" {
                return assert!(gradient.is_none(), "{path} has a gradient");
            }
            let gradient = gradient.unwrap_or_else(|| panic!("{path} has no gradient"));
            let expected = (self.find)(&path);
            assert_close_to_largest(&path, &gradient.into_data(), &expected, self.tolerance, 0.0);
        }
    }
    module.visit(&mut Visitor {
        path: Vec::new(),
        gradients,
        tolerance,
        find,
    });
}

/// The gradient of a parameter that a file has, from its path.
pub(super) fn of_file(file: &GoldenFile) -> impl Fn(&str) -> TensorData {
    move |path| file.data(&format!("grad.{path}"))
}

/// Compares the output of a module, and the gradients of its input and of every parameter, which `find` gives for its path.
pub(super) fn compare<M: Module>(
    file: &GoldenFile,
    module: &M,
    [x, output]: [Tensor<3>; 2],
    tolerance: f64,
    find: impl Fn(&str) -> TensorData,
) {
    let close = |what: &str, actual: TensorData| {
        assert_close_to_largest(what, &actual, &file.data(what), tolerance, 0.0);
    };
    close("output", output.to_data());
    let weights: Tensor<3> = tracked(file, "loss_weight", &output.device());
    let gradients = (output * weights).sum().backward();
    let of_x = x.grad(&gradients).expect("a gradient");
    close("grad.x", of_x.into_data());
    compare_gradients(module, &gradients, tolerance, find);
}

fn transposed(data: TensorData) -> TensorData {
    let [rows, columns] = *data.shape().as_slice() else {
        panic!("a matrix has two sizes, not {:?}", data.shape())
    };
    let numbers: Vec<f64> = data.iter().collect();
    let at = |index: usize| numbers[index % rows * columns + index / rows];
    TensorData::new(
        (0..rows * columns).map(at).collect::<Vec<f64>>(),
        [columns, rows],
    )
}

#[test]
fn norms_with_a_unit_offset_are_gemmas_and_nemotrons() {
    let rms = NormConfig::rms_norm().with_epsilon(0.03);
    let layer = NormConfig::layer_norm().with_epsilon(0.07);
    for (name, config) in [("gemma2_norm", rms), ("nemotron_norm", layer)] {
        let file = open(name);
        on_every_device(|device| {
            let norm = config.clone().with_unit_offset().init(15, device);
            let norm = loaded(norm, |path| file.data(path), device);
            let x: Tensor<3> = tracked(&file, "x", device);
            let output = norm.forward(x.clone());
            println!("{name}");
            compare(&file, &norm, [x, output], TOLERANCE, of_file(&file));
        });
    }
}

#[test]
fn qk_norm_across_heads_is_olmo_2s() {
    let file = open("olmo2_attention");
    let config = MultiHeadAttentionConfig::new(15, 6)
        .with_n_kv_heads(2)
        .with_d_head(5)
        .with_dropout(0.0)
        .with_bias(ProjectionBias::none())
        .with_qk_norm(QkNormConfig::RmsAcrossHeads { epsilon: 0.03 });
    let find = |prefix: &str, path: &str| {
        if let Some(norm) = path.strip_prefix("heads.qk_norm.") {
            let norm = norm.trim_end_matches(".gamma");
            return file.data(&format!("{prefix}norm.{norm}"));
        }
        let projection = path.trim_end_matches(".weight");
        transposed(file.data(&format!("{prefix}projection.{projection}")))
    };
    on_every_device(|device| {
        let module = loaded(config.init(device), |path| find("", path), device);
        let x: Tensor<3> = tracked(&file, "x", device);
        let output = module.forward(MultiHeadAttentionInput::self_attention(x.clone()));
        let fused = module.clone().into_self_attention();
        let of_fused = fused.forward(x.clone()).into_data();
        assert_close_to_largest("fused", &of_fused, &file.data("output"), TOLERANCE, 0.0);
        let find = |path: &str| find("grad.", path);
        compare(&file, &module, [x, output], TOLERANCE, find);
    });
}

/// Output and gradients of causal self-attention over tokens at positions with gaps, and the output token by token.
fn check_attention(name: &str, bias: bool, heads: HeadsConfig) {
    let file = open(name);
    let config = MultiHeadAttentionConfig::new(24, 4)
        .with_heads(heads.with_n_kv_heads(2))
        .with_causal(true)
        .with_dropout(0.0)
        .with_bias(bias);
    let positions: Vec<f64> = file.data("positions").iter().collect();
    let positions = positions.chunks(7);
    let positions = positions.map(|row| row.iter().map(|&position| position as usize).collect());
    let positions: Vec<Vec<usize>> = positions.collect();
    for (backend, device) in devices::cpu() {
        let device = &device.autodiff();
        let tolerance = match backend {
            "ndarray" => TOLERANCE_OF_SIGMOIDS,
            _ => TOLERANCE,
        };
        let module = loaded(config.init(device), |path| file.data(path), device);
        let x: Tensor<3> = tracked(&file, "x", device);
        let input = MultiHeadAttentionInput::self_attention(x.clone());
        let output = module.forward(input.positions(positions.clone()));

        let fused = module.clone().into_self_attention();
        let mut cache = fused.cache(2, &KvCacheConfig::new(7));
        for token in 0..7 {
            let input = SelfAttentionInput::new(x.clone().narrow(1, token, 1));
            let at: Vec<Vec<usize>> = positions.iter().map(|row| vec![row[token]]).collect();
            let state = fused.forward_cached(input.positions(at), &mut cache);
            let expected = output.clone().narrow(1, token, 1).into_data();
            assert_close_to_largest("token", &state.into_data(), &expected, tolerance, 0.0);
        }
        compare(&file, &module, [x, output], tolerance, of_file(&file));
    }
}

fn rotary() -> RotaryConfig {
    RotaryConfig::new().with_base(100.0)
}

#[test]
fn qk_norm_after_rotary_is_hunyuans() {
    let heads = HeadsConfig::new()
        .with_qk_norm(QkNormConfig::Rms { epsilon: 0.03 })
        .with_norm_after_rotary(true)
        .with_position(PositionEncoding::Rotary(rotary()));
    check_attention("hunyuan_attention", false, heads);
}

#[test]
fn layer_norm_of_each_head_is_phis() {
    let norm = NormConfig::layer_norm().with_epsilon(0.07);
    let heads = HeadsConfig::new()
        .with_qk_norm(QkNormConfig::PerHead(norm))
        .with_position(PositionEncoding::Rotary(rotary().with_rotary_dim(4)));
    check_attention("phi_attention", true, heads);
}

#[test]
fn gate_and_unit_offset_of_qk_norm_are_those_of_qwen_3_next() {
    let norm = NormConfig::rms_norm().with_epsilon(0.03).with_unit_offset();
    let heads = HeadsConfig::new()
        .with_gate(true)
        .with_qk_norm(QkNormConfig::PerHead(norm))
        .with_position(PositionEncoding::Rotary(rotary().with_rotary_dim(4)));
    check_attention("qwen3_next_attention", false, heads);
}

#[test]
fn half_split_sinusoids_are_marians_and_whispers() {
    let file = open("sinusoidal");
    for (name, d_model, layout) in [
        ("marian", 14, SinusoidalLayout::HalfSplit),
        ("marian_odd", 15, SinusoidalLayout::HalfSplit),
        ("whisper", 14, SinusoidalLayout::Tensor2Tensor),
    ] {
        for (device_name, device) in devices::cpu() {
            let config = SinusoidalConfig::new(d_model).with_layout(layout);
            let table = config
                .init(&device)
                .forward(Tensor::zeros([1, 13, d_model], &device));
            let expected: Vec<f64> = file.data(name).iter().collect();
            let actual: Vec<f64> = table.into_data().iter().collect();
            assert_eq!(actual.len(), expected.len());
            for (index, (actual, expected)) in actual.into_iter().zip(expected).enumerate() {
                let (position, column) = (index / d_model, index % d_model);
                // The table is rounded to f32.
                assert!(
                    (actual - expected).abs() < 6e-8,
                    "{name} on {device_name}, position {position}, column {column}: {actual} instead of {expected}"
                );
            }
        }
    }
}

/// Output, gradients of everything and the balancing loss of a block of experts.
fn check_experts(name: &str, config: MixtureOfExpertsConfig) {
    let file = open(name);
    for (backend, device) in devices::cpu() {
        let device = &device.autodiff();
        let tolerance = match backend {
            "ndarray" if config.sigmoid => TOLERANCE_OF_SIGMOID_ROUTERS,
            "ndarray" => TOLERANCE_OF_SIGMOIDS,
            _ => TOLERANCE,
        };
        let close = |what: &str, actual: TensorData| {
            assert_close_to_largest(what, &actual, &file.data(what), tolerance, 0.0);
        };
        let module = loaded(config.init(device), |path| file.data(path), device);
        let x: Tensor<3> = tracked(&file, "x", device);
        let output = module.forward_with_logits(x.clone());
        close("output", output.states.to_data());
        close("logits", output.router_logits.to_data());
        let top_k = config.top_k;
        let logits = output.router_logits;
        let balance = load_balancing_loss(std::slice::from_ref(&logits), top_k, None);
        close("balance", balance.to_data());

        let other: Tensor<2> = tracked(&file, "other_logits", device);
        let mask: Tensor<2> = tracked(&file, "mask", device);
        let mask = mask.reshape([14]).greater_elem(0.5);
        let both = load_balancing_loss(&[logits, other], top_k, Some(mask));
        close("balance_of_both_with_mask", both.into_data());

        let loss = (output.states * tracked(&file, "loss_weight", device)).sum();
        let gradients = (loss + balance * 3.0).backward();
        let of_x = x.grad(&gradients).expect("a gradient");
        close("grad.x", of_x.into_data());
        compare_gradients(&module, &gradients, tolerance, of_file(&file));
    }
}

#[test]
fn experts_with_normalized_weights_are_mixtrals() {
    check_experts("mixtral", MixtureOfExpertsConfig::new(6, 5, 5, 2));
}

#[test]
fn experts_weighted_by_their_shares_are_qwens() {
    let config = MixtureOfExpertsConfig::new(6, 5, 7, 3);
    check_experts("qwen3_moe", config.with_norm_topk_prob(false));
}

#[test]
fn experts_with_biases_are_those_of_gpt_oss() {
    let config = MixtureOfExpertsConfig::new(6, 5, 5, 2)
        .with_activation(FeedForwardActivation::ClampedSwiGlu)
        .with_router_bias(true)
        .with_bias(true);
    check_experts("gpt_oss_moe", config);
}

#[test]
fn a_shared_expert_with_a_gate_is_that_of_qwen_2() {
    let config = MixtureOfExpertsConfig::new(6, 5, 5, 2)
        .with_norm_topk_prob(false)
        .with_d_shared(8)
        .with_shared_gate(true);
    check_experts("qwen2_moe", config);
}

#[test]
fn sigmoids_with_a_bias_for_the_choice_are_those_of_deepseek_v3() {
    let config = MixtureOfExpertsConfig::new(6, 5, 7, 3)
        .with_sigmoid(true)
        .with_expert_bias(true)
        .with_routed_scale(2.5)
        .with_d_shared(10);
    check_experts("deepseek_v3_moe", config);
}
