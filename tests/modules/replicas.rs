//! Replicas share a step: its gradients, the norm that limits them, and the optimizer's work.

use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Tensor},
    train::TrainStep,
};
use burn_attn_models::{
    language_model::{LanguageModel, LanguageModelConfig},
    train::{LanguageModelBatch, MovingAverage, Replicas, clip_by_global_norm},
};
use burn_attn_tests::{numbers::filled, parameters};

const VOCABULARY: usize = 29;
/// Of three rows: parts of two replicas have two and one.
const TEXTS: [&[u32]; 3] = [&[3, 5, 7, 11, 2], &[13, 17, 19], &[23, 1, 4, 9]];
/// Tokens to predict.
const TOKENS: usize = 9;

fn model() -> LanguageModel {
    let config = LanguageModelConfig::new(VOCABULARY)
        .with_d_model(12)
        .with_n_heads(3)
        .with_d_ff(20)
        .with_max_len(11);
    let block = config.block.clone().with_dropout(0.0);
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
fn numbers(model: &LanguageModel, gradients: &GradientsParams) -> Vec<f32> {
    struct Numbers<'a>(&'a GradientsParams, Vec<f32>);
    impl ModuleVisitor for Numbers<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = self.0.get::<D>(param.id).expect("it has a gradient");
            self.1.extend(gradient.into_data().iter::<f32>());
        }
    }
    let mut numbers = Numbers(gradients, Vec::new());
    model.visit(&mut numbers);
    numbers.1
}

/// The parameters as numbers.
fn weights(model: &LanguageModel) -> Vec<f32> {
    let values = parameters::values(model).into_values();
    values
        .flat_map(|data| data.iter::<f32>().collect::<Vec<_>>())
        .collect()
}

/// The largest difference.
fn apart(actual: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(actual.len(), expected.len());
    let apart = actual.iter().zip(expected).map(|(a, b)| (a - b).abs());
    apart.fold(0.0, f32::max)
}

#[track_caller]
fn assert_near(actual: &[f32], expected: &[f32], tolerance: f32) {
    let apart = apart(actual, expected);
    assert!(apart <= tolerance, "{apart} apart");
}

#[test]
fn their_gradients_add_up_to_those_of_the_batch() {
    let model = model();
    let expected = numbers(&model, &gradients(&model, 1));
    for count in [2, 3] {
        let actual = numbers(&model, &gradients(&model, count));
        assert_near(&actual, &expected, 1e-5);
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
            assert_near(
                &numbers(&model, &clipped),
                &numbers(&model, &expected),
                1e-7,
            );
        }
    }
    let nothing = Replicas::new(2).clip_by_global_norm(GradientsParams::new(), &model, 1.0);
    assert!(nothing.is_empty());
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
    assert!(apart(&expected, &weights(&first)) > 0.005);
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
    let expected: Vec<f32> = weights(&first)
        .into_iter()
        .zip(weights(&second))
        .map(|(first, second)| 0.75 * first + 0.25 * second)
        .collect();
    assert_near(&weights(average.model()), &expected, 1e-6);
}
