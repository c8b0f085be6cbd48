//! Statistics of attention weights are those of the weights, block by block.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_attn::{
    AttentionBias, AttentionMask, AttentionOptions, AttentionOutput, CrossAttentionConfig,
    CrossAttentionInput, LayerInput, SelfAttentionConfig, SelfAttentionInput, StatisticsOptions,
    Trace, TransformerStackConfig,
    ops::{attention_statistics, attention_weights},
    positions::PositionEncoding,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    sentence,
};

const TOP: usize = 3;
const FAR: usize = 5;

fn options() -> StatisticsOptions {
    StatisticsOptions::new().top_k(TOP).max_distance(FAR)
}

/// The statistics of these weights.
struct Expected {
    entropy: Vec<f32>,
    first_key: Vec<f32>,
    distances: Vec<f32>,
    top_weights: Vec<f32>,
}

impl Expected {
    fn of(weights: &Tensor<4>) -> Self {
        let [batch, heads, len_q, len_kv] = weights.dims();
        let numbers: Vec<f64> = weights.to_data().iter().collect();
        let mut expected = Self {
            entropy: Vec::new(),
            first_key: Vec::new(),
            distances: Vec::new(),
            top_weights: Vec::new(),
        };
        for head in numbers.chunks(len_q * len_kv) {
            let (mut entropy, mut first_key, mut seen) = (0.0, 0.0, 0.0);
            let mut distances = [0.0; FAR + 2];
            for (q, row) in head.chunks(len_kv).enumerate() {
                let bits = row.iter().filter(|weight| **weight > 0.0);
                entropy -= bits.map(|weight| weight * weight.log2()).sum::<f64>();
                first_key += row[0];
                seen += f64::from(row.iter().any(|&weight| weight > 0.0));
                for (k, weight) in row.iter().enumerate() {
                    distances[q.abs_diff(k).min(FAR + 1)] += weight;
                }
                let mut sorted = row.to_vec();
                sorted.sort_by(|a, b| b.total_cmp(a));
                let top = sorted.iter().take(TOP).map(|&weight| weight as f32);
                expected.top_weights.extend(top);
            }
            let mean = |sum: f64| (sum / seen.max(1.0)) as f32;
            expected.entropy.push(mean(entropy));
            expected.first_key.push(mean(first_key));
            expected.distances.extend(distances.map(mean));
        }
        assert_eq!(expected.entropy.len(), batch * heads);
        expected
    }

    #[track_caller]
    fn check(&self, part: &str, trace: &Trace, weights: &Tensor<4>) {
        let [batch, heads, len_q, _] = weights.dims();
        let find = |name: &str| {
            let name = format!("{part}{name}");
            let step = trace.get(&name).cloned();
            step.unwrap_or_else(|| panic!("no {name}"))
        };
        let of_query = vec![batch, heads, len_q, TOP];
        for (name, numbers, shape) in [
            ("entropy", &self.entropy, vec![batch, heads]),
            ("first_key", &self.first_key, vec![batch, heads]),
            ("distances", &self.distances, vec![batch, heads, FAR + 2]),
            ("top_weights", &self.top_weights, of_query),
        ] {
            let expected = TensorData::new(numbers.clone(), shape);
            assert_close(name, &find(name), &expected, 2e-5);
        }
        let device = weights.device();
        let keys = Tensor::<4, burn::tensor::Int>::from_data(find("top_keys"), &device);
        let at_keys = weights.clone().gather(3, keys);
        assert_close("top_keys", &at_keys.into_data(), &find("top_weights"), 0.0);
    }
}

fn check(output: &AttentionOutput, trace: &Trace) {
    Expected::of(&output.weights).check("", trace, &output.weights);
}

#[test]
fn of_modules_with_masks_biases_and_positions() {
    // Blocks of this size take minutes on a GPU in software.
    for (_, device) in devices::cpu() {
        let attention = SelfAttentionConfig::new(14, 4)
            .with_n_kv_heads(Some(2))
            .with_d_head(Some(4))
            .with_causal(true)
            .with_window(Some(211))
            .with_position(PositionEncoding::rotary());
        let attention = filled(attention.init(&device), 1);
        // Two blocks of queries, the second of which the padded sequence does not reach.
        let x = tensor([2, 331, 14], 3, &device);
        let input = || SelfAttentionInput::new(x.clone()).lengths(&[331, 101]);
        let trace = attention.forward_with_statistics(input(), options());
        check(&attention.forward_with_weights(input()), &trace);

        let attention = SelfAttentionConfig::new(15, 3).with_position(PositionEncoding::alibi());
        let attention = filled(attention.init(&device), 2);
        let x = tensor::<3>([1, 293, 15], 4, &device);
        let trace = attention.forward_with_statistics(x.clone(), options());
        check(&attention.forward_with_weights(x), &trace);

        let cross = filled(CrossAttentionConfig::new(15, 3).init(&device), 3);
        let [x, memory] = [5, 7].map(|len| tensor::<3>([2, len, 15], len as u64, &device));
        let input = || CrossAttentionInput::new(x.clone(), memory.clone()).lengths(&[7, 4]);
        let trace = cross.forward_with_statistics(input(), options());
        check(&cross.forward_with_weights(input()), &trace);
    }
}

/// Every operand that belongs to some queries or keys.
fn operands(device: &Device) -> (Tensor<4>, Tensor<4>, AttentionOptions) {
    let (len_q, len_kv) = (301, 307);
    let blocks = TensorData::new((0..19 * 20).map(|at| at % 3 != 1).collect(), [1, 1, 19, 20]);
    let visible = AttentionMask::visible_blocks(Tensor::from_data(blocks, device), 16);
    let hidden = TensorData::new(
        (0..len_q * len_kv).map(|at| at % 7 == 1).collect(),
        [1, 1, len_q, len_kv],
    );
    let segments = |len: usize| {
        let numbers = (0..2 * len).map(|at| (at % len / 50) as i32);
        Tensor::from_data(TensorData::new(numbers.collect(), [2, len]), device)
    };
    let mask = visible
        .and(AttentionMask::masked(Tensor::from_data(hidden, device)))
        .and(AttentionMask::segments(segments(len_q), segments(len_kv)))
        .or(AttentionMask::window(3, 2));
    let bias = AttentionBias::dense(tensor([1, 2, len_q, len_kv], 8, device));
    let options = AttentionOptions::default().mask(mask).bias(bias);
    let options = options.query_offsets(Tensor::from_data([2, 5], device));
    let sinks = tensor([2], 9, device);
    (
        tensor([2, 2, len_q, 5], 6, device),
        tensor([2, 1, len_kv, 5], 7, device),
        options.sinks(sinks).softcap(2.0),
    )
}

#[test]
fn of_the_operation_with_every_kind_of_operand() {
    // Blocks of this size take minutes on a GPU in software.
    for (_, device) in devices::with_and_without_autodiff() {
        let (query, key, of_call) = operands(&device);
        let query = match device.is_autodiff() {
            true => query.require_grad(),
            false => query,
        };
        let weights = attention_weights(query.clone(), key.clone(), of_call.clone());
        let statistics = attention_statistics(query, key, of_call, options());
        assert!(!statistics.entropy.is_autodiff());
        let mut trace = Trace::new();
        trace.add("entropy", statistics.entropy);
        trace.add("first_key", statistics.first_key);
        trace.add("distances", statistics.distances);
        trace.add("top_keys", statistics.top_keys);
        trace.add("top_weights", statistics.top_weights);
        Expected::of(&weights).check("", &trace, &weights);
    }
}

#[test]
fn distances_beyond_the_sequences_have_no_weight() {
    let device = devices::any();
    let of = |max_distance: usize| {
        let [query, key] =
            [(6, 5), (7, 11)].map(|(seed, len)| tensor([2, 3, len, 7], seed, &device));
        let options = StatisticsOptions::new().max_distance(max_distance);
        attention_statistics(query, key, AttentionOptions::default(), options).distances
    };
    let [few, many] = [10, 100_003].map(of);
    assert_eq!(many.dims(), [2, 3, 100_005]);
    let [first, rest] =
        [(0, 12), (12, 99_993)].map(|(from, len)| many.clone().narrow(2, from, len));
    assert_close("distances", &first.into_data(), &few.into_data(), 1e-6);
    assert_eq!(rest.abs().max().into_scalar::<f32>(), 0.0);
    assert_eq!(
        sentence(|| of(usize::MAX)),
        format!(
            "attention_statistics: max_distance must be at most 1073741824, got {}",
            usize::MAX
        )
    );
}

#[test]
fn half_precision_has_statistics_in_f32() {
    let devices = devices::cpu().into_iter().map(|(_, device)| device);
    for device in devices.filter(|device| device.supports_dtype(FloatDType::BF16)) {
        let [query, key] = [6, 7].map(|seed| tensor::<4>([1, 2, 301, 5], seed, &device));
        let causal = || AttentionOptions::default().causal();
        let [query, key] = [query, key].map(|x| x.cast(DType::BF16));
        let half = attention_statistics(query.clone(), key.clone(), causal(), options());
        let [query, key] = [query, key].map(|x| x.cast(DType::F32));
        let whole = attention_statistics(query, key, causal(), options());
        assert_eq!(half.entropy.dtype(), DType::F32);
        // Weights in bf16 have 8 bits.
        let [of_half, of_whole] = [half.entropy, whole.entropy].map(Tensor::into_data);
        assert_close("entropy", &of_half, &of_whole, 0.02);
        let [of_half, of_whole] = [half.distances, whole.distances].map(Tensor::into_data);
        assert_close("distances", &of_half, &of_whole, 0.004);
    }
}

#[test]
fn statistics_of_stacks_and_of_empty_input() {
    for (_, device) in devices::named() {
        let layers = if devices::is_sampled(&device) { 1 } else { 2 };
        let stack = TransformerStackConfig::causal(12, 17, 3, layers).init(&device);
        let stack = filled(stack, 5);
        let x = || LayerInput::new(tensor([2, 11, 12], 6, &device));
        let trace = stack.forward_with_statistics(x(), options());
        let weights = stack.forward_with_weights(x()).self_weights;
        assert_eq!(trace.tensors().count(), layers * 5);
        for (layer, weights) in weights.iter().enumerate() {
            Expected::of(weights).check(&format!("{layer}.self."), &trace, weights);
        }
        let empty = |shape: [usize; 4]| Tensor::zeros(shape, &device);
        let none = AttentionOptions::default;
        let statistics =
            attention_statistics(empty([2, 3, 0, 4]), empty([2, 3, 7, 4]), none(), options());
        assert_eq!(statistics.top_keys.dims(), [2, 3, 0, TOP]);
        let statistics =
            attention_statistics(empty([2, 3, 5, 4]), empty([2, 3, 0, 4]), none(), options());
        assert_eq!(statistics.top_weights.dims(), [2, 3, 5, 0]);
        assert_eq!(
            statistics.entropy.into_data().iter::<f32>().sum::<f32>(),
            0.0
        );
    }
}
