//! Replicas share a step: its gradients, the norm that limits them, and the optimizer's work.

use burn::{
    module::{Module, ModuleVisitor, Param},
    nn::{BatchNormConfig, LinearConfig},
    optim::{AdamConfig, GradientsParams},
    tensor::{DType, Device, Tensor, TensorData},
    train::TrainStep,
};
use burn_attn_models::{
    language_model::{LanguageModel, LanguageModelConfig},
    train::{
        LanguageModelBatch, MovingAverage, Replicas, Seq2SeqBatch, TokenBatch, clip_by_global_norm,
    },
};
use burn_attn_tests::{compare::difference, numbers::filled, parameters, sentence};

const VOCABULARY: usize = 29;
/// A batch of three rows: the shards of two replicas have two and one.
const TEXTS: [&[u32]; 3] = [&[3, 5, 7, 11, 2], &[13, 17, 19], &[23, 1, 4, 9]];
/// Tokens to predict.
const TOKENS: usize = 9;

fn model() -> LanguageModel {
    model_with(0.0)
}

fn model_with(dropout: f64) -> LanguageModel {
    let config = LanguageModelConfig::new(VOCABULARY)
        .with_d_model(12)
        .with_n_heads(3)
        .with_d_ff(20)
        .with_max_len(11);
    let block = config.block.clone().with_dropout(dropout);
    let device = Device::default().autodiff();
    filled(config.with_block(block).init(&device), 7)
}

fn batch(texts: &[&[u32]]) -> LanguageModelBatch {
    LanguageModelBatch::new(texts, &Device::default().autodiff()).divided_by(TOKENS)
}

/// The gradients of the whole batch by `count` replicas.
fn gradients(model: &LanguageModel, count: usize) -> GradientsParams {
    let parts = match count {
        1 => vec![batch(&TEXTS)],
        2 => vec![batch(&TEXTS[..2]), batch(&TEXTS[2..])],
        _ => TEXTS.map(|text| batch(&[text])).into(),
    };
    Replicas::new(count).step(model, parts).1
}

/// The gradients as numbers, in the order of the parameters.
fn numbers(model: &LanguageModel, gradients: &GradientsParams) -> Vec<f64> {
    struct Numbers<'a>(&'a GradientsParams, Vec<f64>);
    impl ModuleVisitor for Numbers<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = self.0.get::<D>(param.id).expect("it has a gradient");
            self.1.extend(gradient.into_data().iter::<f64>());
        }
    }
    let mut numbers = Numbers(gradients, Vec::new());
    model.visit(&mut numbers);
    numbers.1
}

/// The parameters as numbers.
fn weights(model: &LanguageModel) -> Vec<f64> {
    let values = parameters::values(model).into_values();
    let numbers = values.map(|data| data.iter::<f64>().collect::<Vec<_>>());
    numbers.collect::<Vec<_>>().concat()
}

#[track_caller]
fn assert_all_near(actual: &[f64], expected: &[f64], tolerance: f64) {
    let apart = difference(actual, expected);
    assert!(apart <= tolerance, "{apart} apart");
}

#[test]
fn their_gradients_add_up_to_those_of_the_batch() {
    let model = model();
    let expected = numbers(&model, &gradients(&model, 1));
    for count in [2, 3] {
        let actual = numbers(&model, &gradients(&model, count));
        assert_all_near(&actual, &expected, 1e-5);
    }
}

#[test]
fn clipping_on_all_of_them_is_clipping_on_one() {
    let model = model();
    let gradients = || gradients(&model, 1);
    for limit in [0.01, 1e6] {
        let expected = clip_by_global_norm(gradients(), &model, limit);
        for count in [1, 2, 3] {
            let clipped = Replicas::new(count).clip_by_global_norm(gradients(), &model, limit);
            let [clipped, expected] = [&clipped, &expected].map(|it| numbers(&model, it));
            assert_all_near(&clipped, &expected, 1e-7);
        }
    }
    let nothing = Replicas::new(2).clip_by_global_norm(GradientsParams::new(), &model, 1.0);
    assert!(nothing.is_empty());
}

/// Both are in the norm, which is added up in the type of the first gradient.
#[test]
fn gradients_of_two_types_are_clipped_together() {
    let device = Device::default();
    let mut linear = LinearConfig::new(7, 5).init(&device.clone().autodiff());
    linear.weight = Param::from_tensor(linear.weight.val().cast(DType::F64).detach());
    let bias = linear.bias.as_ref().expect("it has a bias").id;
    let weight = linear.weight.id;
    let clipped = |replicas: Option<usize>| {
        let mut gradients = GradientsParams::new();
        let of_weight = Tensor::<2>::full([7, 5], 3.0, &device).cast(DType::F64);
        gradients.register(weight, of_weight);
        gradients.register(bias, Tensor::<1>::full([5], 4.0, &device));
        let clipped = match replicas {
            None => clip_by_global_norm(gradients, &linear, 0.5),
            Some(count) => Replicas::new(count).clip_by_global_norm(gradients, &linear, 0.5),
        };
        let of_weight = clipped.get::<2>(weight).expect("a gradient");
        let of_bias = clipped.get::<1>(bias).expect("a gradient");
        assert_eq!(
            [of_weight.dtype(), of_bias.dtype()],
            [DType::F64, DType::F32]
        );
        let numbers: Vec<f64> = of_weight.into_data().iter().collect();
        [numbers, of_bias.into_data().iter().collect()].concat()
    };
    // The norm is the root of 35 · 9 + 5 · 16.
    let factor = 0.5 / 395f64.sqrt();
    let expected = [vec![3.0 * factor; 35], vec![4.0 * factor; 5]].concat();
    for replicas in [None, Some(1), Some(2), Some(3)] {
        assert_all_near(&clipped(replicas), &expected, 1e-6);
    }
}

#[test]
fn an_update_by_many_optimizers_is_that_of_one_to_the_bit() {
    let first = model();
    let updated = |replicas: usize, optimizers: usize| {
        let replicas = Replicas::new(replicas);
        let mut optimizers = vec![AdamConfig::new().init(); optimizers];
        // The second update needs the moments of the first.
        (0..2).fold(first.clone(), |model, _| {
            let gradients = gradients(&model, 1);
            replicas.update(&mut optimizers, 0.01, model, gradients)
        })
    };
    let expected = weights(&updated(1, 1));
    assert!(difference(&expected, &weights(&first)) > 0.005);
    // More or fewer optimizers than replicas, and more than parameters.
    for (replicas, optimizers) in [(2, 2), (3, 2), (1, 3), (2, 200)] {
        let actual = weights(&updated(replicas, optimizers));
        assert_eq!(
            actual, expected,
            "{optimizers} optimizers on {replicas} replicas"
        );
    }
}

#[test]
fn an_updated_model_trains_on() {
    let replicas = Replicas::new(2);
    let mut optimizers = vec![AdamConfig::new().init(); 2];
    let mut trained = model();
    let loss = |model: &LanguageModel| model.step(batch(&TEXTS)).item.loss.into_scalar::<f32>();
    let first = loss(&trained);
    for _ in 0..30 {
        let gradients = gradients(&trained, 2);
        trained = replicas.update(&mut optimizers, 0.01, trained, gradients);
    }
    assert!(loss(&trained) < 0.5 * first);
}

#[test]
#[should_panic(expected = "Replicas: there is no optimizer")]
fn an_update_needs_an_optimizer() {
    let model = model();
    let gradients = gradients(&model, 1);
    Replicas::new(1).update(&mut [], 0.01, model, gradients);
}

#[test]
fn a_moving_average_is_between_its_models_and_keeps_their_parameters() {
    let first = model();
    let gradients = gradients(&first, 1);
    let second = AdamConfig::new().init().step(0.1, first.clone(), gradients);
    let average = MovingAverage::new(&first).updated(&second, 0.75);
    let pairs = weights(&first).into_iter().zip(weights(&second));
    let expected = pairs.map(|(first, second)| 0.75 * first + 0.25 * second);
    let expected: Vec<f64> = expected.collect();
    assert_all_near(&weights(average.model()), &expected, 1e-6);
}

#[test]
fn the_clone_of_an_average_has_running_statistics_of_its_own() {
    let device = Device::default().autodiff();
    let norm = BatchNormConfig::new(5).init(&device);
    let first = MovingAverage::new(&norm);
    norm.running_mean.update(Tensor::ones([5], &device));
    let _ = norm.running_mean.value_sync();
    let second = first.clone().updated(&norm, 0.75);
    let [first, second] = [&first, &second].map(|average| {
        let mean = average.model().running_mean.value().into_data();
        mean.iter::<f32>().collect::<Vec<f32>>()
    });
    assert_eq!([first, second], [vec![0.0; 5], vec![0.25; 5]]);
}

#[test]
fn mistakes_have_their_sentences() {
    let device = Device::default().autodiff();
    let model = model();
    for (said, sentence) in [
        (
            sentence(|| Replicas::new(0)),
            "Replicas: there must be at least one, got 0",
        ),
        (
            sentence(|| Replicas::new(2).step(&model, vec![])),
            "Replicas: there must be from 1 to 2 shards, one for each replica at most, got 0",
        ),
        (
            sentence(|| Replicas::new(1).step(&model, vec![batch(&TEXTS), batch(&TEXTS)])),
            "Replicas: there must be from 1 to 1 shards, one for each replica at most, got 2",
        ),
        (
            sentence(|| {
                Replicas::new(2).clip_by_global_norm(gradients(&model, 1), &model, f64::NAN)
            }),
            "clip_by_global_norm: the limit must be above 0, got NaN",
        ),
        (
            sentence(|| MovingAverage::new(&model).updated(&model, 1.5)),
            "MovingAverage: decay must be from 0 to 1, got 1.5",
        ),
        (
            sentence(|| LanguageModelBatch::new::<&[u32]>(&[], &device)),
            "LanguageModelBatch: there are no texts",
        ),
        (
            sentence(|| batch(&[&[1, 2], &[3]])),
            "LanguageModelBatch: text 1 must have at least 2 tokens, got 1",
        ),
        (
            sentence(|| LanguageModelBatch::with_prompts(&[[1, 2], [3, 4]], &[2, 3], &device)),
            "LanguageModelBatch: prompts of [2, 3] tokens do not fit texts of [2, 2] tokens",
        ),
        (
            sentence(|| batch(&TEXTS).divided_by(0)),
            "a loss cannot be divided by 0 tokens",
        ),
        (
            sentence(|| batch(&TEXTS).smoothing(1.5)),
            "smoothing must be from 0 to 1, got 1.5",
        ),
        (
            sentence(|| batch(&TEXTS).smoothing(f64::NAN)),
            "smoothing must be from 0 to 1, got NaN",
        ),
        (
            sentence(|| Seq2SeqBatch::new(&[&[3u32][..], &[]], &[[1, 2], [1, 2]], &device)),
            "Seq2SeqBatch: source 1 has no tokens",
        ),
        (
            sentence(|| Seq2SeqBatch::new(&[[3]], &[[1]], &device)),
            "Seq2SeqBatch: target 0 must have at least 2 tokens, got 1",
        ),
        (
            sentence(|| Seq2SeqBatch::new(&[[3], [4]], &[[1, 2]], &device)),
            "Seq2SeqBatch: there are 2 sources, but 1 targets",
        ),
    ] {
        assert_eq!(said, sentence);
    }
    let stranger = sentence(|| MovingAverage::new(&model).updated(&self::model(), 0.5));
    assert!(
        stranger.starts_with("MovingAverage: parameter ")
            && stranger.ends_with(" is not in the model"),
        "{stranger}"
    );
}

#[test]
fn prompts_have_no_loss() {
    let device = Device::default().autodiff();
    // The last prompt is its whole text.
    let batch = LanguageModelBatch::with_prompts(&TEXTS, &[3, 0, 4], &device);
    let targets = &batch.targets;
    assert_eq!((targets.count, targets.divisor), (4, 4));
    let weights = targets.weights.to_data();
    let expected = TensorData::from([[0.0f32, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0; 4]]);
    weights.assert_eq(&expected, true);
    let whole = LanguageModelBatch::new(&TEXTS, &device);
    let tokens = whole.targets.tokens.into_data();
    tokens.assert_eq(&targets.tokens.to_data(), true);
    assert_eq!(whole.targets.largest, targets.largest);
}

/// In f16, the square of the first norm is infinite, and the factor that limits the second one is 0.
#[test]
fn a_norm_that_half_precision_cannot_hold_loses_no_gradient() {
    let linear = LinearConfig::new(31, 41).init(&Device::default().autodiff());
    for dtype in [DType::F16, DType::BF16] {
        for (number, limit) in [(60.0, 1.0), (60_000.0, 0.05)] {
            let mut gradients = GradientsParams::new();
            let large = Tensor::<2>::full([31, 41], number, &Device::default()).cast(dtype);
            gradients.register(linear.weight.id, large);
            let clipped = clip_by_global_norm(gradients, &linear, limit);
            let clipped = clipped.get::<2>(linear.weight.id).unwrap();
            assert_eq!(clipped.dtype(), dtype);
            let squares = clipped.cast(DType::F32).square().sum();
            let norm = f64::from(squares.sqrt().into_scalar::<f32>());
            assert!((norm / limit - 1.0).abs() < 0.01, "{dtype:?}: {norm}");
        }
    }
}

#[test]
fn a_panic_in_a_replica_is_that_of_the_step() {
    let model = model();
    let outside = LanguageModelBatch::new(&[[1, 99]], &Device::default().autodiff());
    let alone = sentence(|| model.step(outside.clone()));
    assert!(
        alone.starts_with("a batch has token or class 99, for a model of"),
        "{alone}"
    );
    let replicas = Replicas::new(2);
    assert_eq!(
        sentence(|| replicas.step(&model, vec![batch(&TEXTS), outside.clone()])),
        alone
    );
    // They are not used up by it.
    let halves = vec![batch(&TEXTS[..2]), batch(&TEXTS[2..])];
    assert_eq!(replicas.step(&model, halves).0.len(), 2);
}

#[test]
fn a_run_with_dropout_repeats_to_the_bit() {
    let first = model_with(0.3);
    let run = || {
        let replicas = Replicas::new(2);
        let mut optimizers = vec![AdamConfig::new().init(); 2];
        let mut model = first.clone();
        for seed in 0..3 {
            let parts = [&TEXTS[..2], &TEXTS[2..]].map(|part| batch(part).seed(seed));
            let (_, gradients) = replicas.step(&model, parts.into());
            let gradients = replicas.clip_by_global_norm(gradients, &model, 0.5);
            model = replicas.update(&mut optimizers, 0.01, model, gradients);
        }
        weights(&model)
    };
    assert_eq!(run(), run());
}
