//! Steps in bf16 with master weights in f32 train as steps in f32 do.

#[cfg(feature = "flex")]
mod models;

use burn::{
    module::{Module, ModuleVisitor, Param},
    nn::{BatchNorm, BatchNormConfig},
    optim::{AdamConfig, GradientsParams},
    tensor::{DType, Device, FloatDType, Tensor},
    train::{InferenceStep, TrainOutput, TrainStep},
};
use burn_attn_models::{
    seq2seq::{Seq2Seq, Seq2SeqConfig},
    train::{MixedPrecision, Replicas, Seq2SeqBatch, TokenBatch, clip_by_global_norm},
};
use burn_attn_tests::{
    compare::difference_to_largest,
    devices,
    numbers::{filled, mixed, tensor},
    parameters, sentence,
};

const VOCABULARY: usize = 53;
/// The token that begins a translation, and the one that ends every text; 0 is padding.
const BEGIN: u32 = 1;
const END: u32 = 2;
const STEPS: usize = 200;
/// Sentence pairs of a step.
const BATCH: usize = 17;
/// Steps whose mean loss is compared.
const WINDOW: usize = 20;

/// Two layers each, with the sizes of no other test.
fn model(dropout: f64, device: &Device) -> Seq2Seq {
    let model = Seq2SeqConfig::new(VOCABULARY)
        .with_d_model(33)
        .with_n_heads(3)
        .with_n_encoder_layers(2)
        .with_n_decoder_layers(2)
        .with_d_ff(67)
        .with_dropout(dropout)
        .with_max_len(13)
        .init(device);
    filled(model, 5)
}

/// Sentences of a language, some of whose words are frequent, and their translations word by word.
fn batch(step: usize, device: &Device) -> Seq2SeqBatch {
    let words = VOCABULARY as u64 - 3;
    let pair = |row: usize| {
        let number = |at: usize| mixed((step * BATCH + row) as u64 * 100 + at as u64);
        let word = |at: usize| {
            let drawn = [at, at + 50, at + 70].map(|at| number(at) % words);
            drawn.into_iter().min().expect("three words")
        };
        let len = 2 + (number(0) % 6) as usize;
        let source: Vec<u64> = (1..=len).map(word).collect();
        let token = |word: u64| 3 + (word % words) as u32;
        let translated = source.iter().map(|word| token(word * 7 + 5));
        let target: Vec<u32> = [BEGIN].into_iter().chain(translated).chain([END]).collect();
        let source = source.iter().map(|&word| token(word)).chain([END]);
        (source.collect::<Vec<u32>>(), target)
    };
    let (sources, targets): (Vec<_>, Vec<_>) = (0..BATCH).map(pair).unzip();
    Seq2SeqBatch::new(&sources, &targets, device).smoothing(0.1)
}

/// The losses of the first steps in `dtype`, as the translator trains: with Adam, a warm-up, dropout and clipping.
fn losses(steps: usize, dtype: FloatDType, device: &Device) -> Vec<f64> {
    // Elsewhere, dropout is drawn from the device's generator, which is not the same for every type.
    let dropout = if devices::is_cpu(device) { 0.1 } else { 0.0 };
    let mut model = model(dropout, device);
    let mut optimizer = AdamConfig::new().with_beta_2(0.98).init();
    let losses = (0..steps).map(|step| {
        let mixed = MixedPrecision::new(model.clone(), dtype);
        let output = TrainStep::step(&mixed, batch(step, device));
        let gradients = clip_by_global_norm(output.grads, &model, 1.0);
        let rate = 3e-3 * (step + 1) as f64 / STEPS as f64;
        model = optimizer.step(rate, model.clone(), gradients);
        f64::from(output.item.loss.into_scalar::<f32>())
    });
    losses.collect()
}

/// How far apart two runs are in every step, relative to the first.
fn apart(wide: &[f64], half: &[f64]) -> Vec<f64> {
    let pairs = wide.iter().zip(half);
    pairs
        .map(|(wide, half)| (half / wide - 1.0).abs())
        .collect()
}

fn numbers(tensor: Tensor<2>) -> Vec<f64> {
    tensor.into_data().iter().collect()
}

/// A step's gradient of the embedding's weight.
fn of_embedding(gradients: &GradientsParams, model: &Seq2Seq) -> Tensor<2> {
    let gradient = gradients.get::<2>(model.embedding.weight.id);
    gradient.expect("a gradient of the embedding")
}

/// The devices that compute in bf16, without autodiff, and those that do not, which it names.
fn by_bf16() -> [Vec<devices::Named>; 2] {
    let (have, have_not): (Vec<_>, Vec<_>) = devices::named()
        .into_iter()
        .partition(|(_, device)| device.supports_dtype(FloatDType::BF16));
    #[cfg(feature = "flex")]
    assert!(have.iter().any(|(name, _)| *name == "flex"), "{have:?}");
    for (name, _) in &have_not {
        eprintln!("skipped on {name}: it does not compute in bf16");
    }
    [have, have_not]
}

/// The first of these, on autodiff devices.
fn in_bf16() -> impl Iterator<Item = devices::Named> {
    let [have, _] = by_bf16();
    have.into_iter()
        .map(|(name, device)| (name, device.autodiff()))
}

#[test]
fn the_loss_is_within_a_hundredth_of_f32() {
    for (name, device) in in_bf16() {
        let means = |dtype| -> Vec<f64> {
            let losses = losses(STEPS, dtype, &device);
            let windows = losses.chunks(WINDOW);
            windows
                .map(|window| window.iter().sum::<f64>() / WINDOW as f64)
                .collect()
        };
        let [wide, half] = [FloatDType::F32, FloatDType::BF16].map(means);
        let most = apart(&wide, &half).into_iter().fold(0.0, f64::max);
        let learned = wide[wide.len() - 1] / wide[0];
        eprintln!(
            "{name}: losses from {:.2} to {:.2}, those of bf16 within {:.2} %",
            wide[0],
            wide[wide.len() - 1],
            100.0 * most
        );
        assert!(most > 0.0 && most < 0.01, "{name}: {half:?}, not {wide:?}");
        assert!(learned < 0.7, "{name}: {wide:?}");
    }
}

/// Nothing scales the loss for f16, whose numbers end at 6e-8: the gradients of this model are large enough.
#[cfg(feature = "flex")]
#[test]
fn f16_is_near_f32_too() {
    let device = Device::flex().autodiff();
    let [wide, half] =
        [FloatDType::F32, FloatDType::F16].map(|dtype| losses(WINDOW, dtype, &device));
    let apart = apart(&wide, &half);
    assert!(
        apart.iter().all(|apart| *apart < 0.01),
        "{half:?}, not {wide:?}"
    );
    assert!(apart.iter().any(|apart| *apart > 0.0), "{half:?}");
}

/// The types and numbers of all gradients of a step, in the order of the parameters.
fn all(gradients: &GradientsParams, model: &Seq2Seq) -> Vec<(DType, Vec<f64>)> {
    struct All<'a>(&'a GradientsParams, Vec<(DType, Vec<f64>)>);
    impl ModuleVisitor for All<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = self.0.get::<D>(param.id).expect("it has a gradient");
            let dtype = gradient.dtype();
            self.1.push((dtype, gradient.into_data().iter().collect()));
        }
    }
    let mut all = All(gradients, Vec::new());
    model.visit(&mut all);
    all.1
}

/// The Euclidean length of a gradient.
fn length<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> f64 {
    let squares = numbers.into_iter().map(|number| number * number);
    squares.sum::<f64>().sqrt()
}

#[test]
fn gradients_fit_the_master_weights() {
    for (name, device) in in_bf16() {
        let model = model(0.0, &device);
        let mixed = MixedPrecision::new(model.clone(), FloatDType::BF16);
        let [wide, half] = [
            TrainStep::step(&model, batch(0, &device)),
            TrainStep::step(&mixed, batch(0, &device)),
        ];
        assert_eq!(half.grads.len(), wide.grads.len());
        assert_eq!(mixed.model.embedding.weight.val().dtype(), DType::F32);
        let [all_wide, all_half] = [&wide, &half].map(|step| all(&step.grads, &model));
        let whole = length(all_wide.iter().flat_map(|(_, numbers)| numbers));
        for (number, ((_, wide), (dtype, half))) in all_wide.iter().zip(&all_half).enumerate() {
            assert_eq!(*dtype, DType::F32, "{name}: parameter {number}");
            let apart: Vec<f64> = wide.iter().zip(half).map(|(a, b)| a - b).collect();
            // The gradient of a key's bias is 0 but for rounding.
            let off = length(&apart) / length(wide).max(0.01 * whole);
            assert!(off < 0.25, "{name}: parameter {number} is off by {off}");
        }
        let [wide, half] = [wide, half].map(|step| of_embedding(&step.grads, &model));
        assert_eq!(half.dtype(), DType::F32);
        // It is not that of f32, but near it.
        let off = difference_to_largest(&numbers(half), &numbers(wide));
        assert!(off > 0.0 && off < 0.02, "{name}: {off}");
    }
}

#[test]
fn in_the_type_of_the_weights_a_step_is_the_models_own() {
    for (name, device) in devices::cpu() {
        let on_graph = device.clone().autodiff();
        let model = model(0.1, &on_graph);
        let mixed = MixedPrecision::new(model.clone(), FloatDType::F32);
        let [own, same] = [
            TrainStep::step(&model, batch(0, &on_graph)),
            TrainStep::step(&mixed, batch(0, &on_graph)),
        ]
        .map(|step| {
            let gradient = numbers(of_embedding(&step.grads, &model));
            (step.item.loss.into_scalar::<f32>(), gradient)
        });
        assert_eq!(own, same, "{name}");
        let [own, same] = [
            InferenceStep::step(&model.valid(), batch(0, &device)),
            InferenceStep::step(&mixed.valid(), batch(0, &device)),
        ]
        .map(|output| output.loss.into_scalar::<f32>());
        assert_eq!(own, same, "{name}");
    }
}

#[test]
fn replicas_add_up_gradients_in_f32() {
    for (name, device) in in_bf16() {
        let model = model(0.1, &device);
        let mixed = MixedPrecision::new(model.clone(), FloatDType::BF16);
        let parts = || [0, 1].map(|step| batch(step, &device));
        let alone = parts().map(|part| TrainStep::step(&mixed, part));
        let alone = alone.map(|step| of_embedding(&step.grads, &model));
        let expected = alone.into_iter().reduce(|sum, one| sum + one).unwrap();
        let (_, gradients) = Replicas::new(2).step(&mixed, parts().into());
        let sum = of_embedding(&gradients, &model);
        let off = difference_to_largest(&numbers(sum), &numbers(expected));
        assert!(off < 1e-6, "{name}: {off}");
    }
}

#[test]
fn what_is_frozen_gets_no_gradient() {
    for (name, device) in in_bf16() {
        let mut model = model(0.0, &device);
        model.transformer = model.transformer.freeze();
        let mixed = MixedPrecision::new(model.clone(), FloatDType::BF16);
        let gradients = TrainStep::step(&mixed, batch(0, &device)).grads;
        assert_eq!(gradients.len(), 1, "{name}");
        of_embedding(&gradients, &model);
    }
}

#[test]
fn a_device_without_the_type_is_refused() {
    let [_, have_not] = by_bf16();
    for (_, device) in have_not {
        let device = device.autodiff();
        let mixed = MixedPrecision::new(model(0.0, &device), FloatDType::BF16);
        assert_eq!(
            sentence(|| TrainStep::step(&mixed, batch(0, &device))),
            format!("MixedPrecision: {device:?} does not compute in BF16")
        );
    }
}

#[test]
fn metrics_get_logits_in_f32() {
    for (name, device) in in_bf16() {
        let model = model(0.0, &device);
        let mixed = MixedPrecision::new(model.clone(), FloatDType::BF16);
        let trained = TrainStep::step(&mixed, batch(0, &device)).item;
        assert_eq!(trained.logits.dtype(), DType::F32, "{name}");
        let half = parameters::in_dtype(model, DType::BF16).valid();
        let measured = InferenceStep::step(&half, batch(0, &device.clone().inner()));
        assert_eq!(measured.logits.dtype(), DType::F32, "{name}");
    }
}

/// A batch norm alone, whose running statistics its clones share.
#[derive(Module, Debug)]
struct Normed {
    norm: BatchNorm,
}

impl TrainStep for Normed {
    type Input = Tensor<2>;
    type Output = ();

    fn step(&self, x: Tensor<2>) -> TrainOutput<()> {
        let loss = self.norm.forward(x).square().sum();
        TrainOutput::new(self, loss.backward(), ())
    }
}

#[test]
fn running_statistics_are_refused_and_stay_as_they_were() {
    for (name, device) in in_bf16() {
        let norm = BatchNormConfig::new(5).init(&device);
        let model = Normed { norm };
        let x = || tensor::<2>([7, 5], 3, &device);
        // In the type of the statistics, the step is the model's own, and updates them.
        let mixed = |dtype| MixedPrecision::new(model.clone(), dtype);
        TrainStep::step(&mixed(FloatDType::F32), x());
        let mean = || model.norm.running_mean.value_sync();
        let before: Vec<f64> = mean().into_data().iter().collect();
        assert!(before.iter().any(|mean| *mean != 0.0), "{name}");
        assert_eq!(
            sentence(|| TrainStep::step(&mixed(FloatDType::BF16), x())),
            "MixedPrecision: running statistics, such as those of a batch norm, are not supported",
            "{name}"
        );
        assert_eq!(mean().dtype(), DType::F32, "{name}");
        let after: Vec<f64> = mean().into_data().iter().collect();
        assert_eq!(after, before, "{name}");
    }
}
