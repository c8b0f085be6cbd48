use std::{fs, ops::ControlFlow, path::Path};

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{Device, Distribution, Tensor, TensorData},
};
use burn_attn_models::{
    segformer::Segformer,
    train::{Checkpoint, CurvePoint, Trainer, TrainingData},
    vision::ImageSegmenter,
};
use example_common::{error::Error, run_folder::RunFolder};
use tempfile::tempdir;

use super::{RESULTS, Run, trainer};
use crate::{
    detect::SceneDetector,
    detector::Detector,
    digits::Digits,
    images,
    mnist::Mnist,
    objects::Objects,
    segments::{self, Segments},
    training_task::{Recipe, TrainingTask, tests::alone},
};

const EPOCHS: usize = 2;
const STEPS_OF_EPOCH: usize = 3;

/// The first steps of each epoch, and the first batch of the validation part.
struct First<D>(D);

impl<D: TrainingData> TrainingData for First<D> {
    type Batch = D::Batch;

    fn steps(&self, epoch: usize) -> Vec<Vec<usize>> {
        self.0
            .steps(epoch)
            .into_iter()
            .take(STEPS_OF_EPOCH)
            .collect()
    }

    fn tokens(&self, sample: usize) -> usize {
        self.0.tokens(sample)
    }

    fn batch(&self, samples: &[usize], device: &Device) -> D::Batch {
        self.0.batch(samples, device)
    }

    fn validation(&self, device: &Device) -> impl Iterator<Item = D::Batch> {
        self.0.validation(device).take(1)
    }
}

/// All numbers of a model, running statistics as well.
struct Numbers(Vec<TensorData>);

impl ModuleVisitor for Numbers {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(param.val().into_data());
    }
}

/// Trains in a folder until this step or to the end, from its newest checkpoint if there is one: the curve, and the numbers of the model.
fn train<D: TrainingTask>(
    folder: &Path,
    devices: &[Device],
    until: Option<usize>,
) -> (Vec<CurvePoint>, Vec<TensorData>) {
    let mnist = Mnist::of(60, |at| if at / 28 < 20 && at % 28 < 9 { 200 } else { 0 });
    let recipe = Recipe {
        epochs: EPOCHS,
        batch: 2,
        ..D::RECIPE
    };
    let data = D::new(mnist, &recipe);
    let run = Run {
        task: "test".into(),
        recipe,
        data: String::new(),
    };
    let run_folder = RunFolder::new(folder, RESULTS);
    let mut trainer = trainer(&run_folder, run, &data, devices).expect("a run");
    if let Ok(checkpoint) = Checkpoint::newest(folder) {
        trainer = trainer.resume(&checkpoint).expect("the same model");
    }
    let at_step = |trainer: &Trainer<_, _>, _| -> Result<_, Error> {
        Ok(match until {
            Some(step) if trainer.state.step == step => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    };
    trainer.run(&First(data), at_step).expect("trained");
    let end = EPOCHS * STEPS_OF_EPOCH;
    assert_eq!(trainer.state.step, until.unwrap_or(end));
    let mut numbers = Numbers(Vec::new());
    trainer.trained().visit(&mut numbers);
    (trainer.state.curve, numbers.0)
}

/// Stopped after an epoch, and within one.
#[track_caller]
fn resumes_on_the_same_curve<D: TrainingTask>(devices: usize) {
    let _alone = alone();
    let [whole, parts] = [tempdir().unwrap(), tempdir().unwrap()];
    let devices = vec![Device::default(); devices];
    let (curve, numbers) = train::<D>(whole.path(), &devices, None);
    for until in [STEPS_OF_EPOCH, STEPS_OF_EPOCH + 1] {
        train::<D>(parts.path(), &devices, Some(until));
    }
    let resumed = train::<D>(parts.path(), &devices, None);
    assert_eq!(curve.len(), EPOCHS);
    assert_eq!(resumed.0, curve);
    assert!(resumed.1 == numbers, "the models differ");
}

/// What `train` saves is what the other commands read.
#[test]
fn models_of_scenes_are_saved_and_read() {
    let _alone = alone();
    let device = Device::default();
    let folder = tempdir().unwrap();
    let path = folder.path().join("model.bpk");
    let images = Tensor::random([2, 1, 96, 96], Distribution::Default, &device);
    // Coordinates of boxes and logits are near each other in int8 and in f16.
    let close = |most: f32, expected: Tensor<3>, actual: Tensor<3>| {
        let largest = expected.clone().abs().max().into_scalar::<f32>();
        let apart = (expected - actual).abs().max().into_scalar::<f32>();
        assert!(
            apart > 0.0 && apart < most * largest,
            "{apart} of {largest}"
        );
    };
    let detector = || images::model::<SceneDetector>(Some(folder.path()), &device);
    let refused = || detector().err().expect("there is no model").to_string();
    let model = Objects::init(&device);
    Objects::save(model.clone(), folder.path()).unwrap();
    let bytes = fs::read(&path).unwrap();
    // A byte for each of 1.6 million parameters, two for those of convolutions and norms.
    let len = bytes.len();
    assert!((1_600_000..1_800_000).contains(&len), "{len}");
    let proposals = |model: &Detector| {
        let output = model.forward(images.clone(), true);
        assert_eq!(output.grid, [12, 12]);
        let weights = output.weights.map(|weights| weights.dims());
        assert_eq!(weights, Some([2, 8, 10, 144]));
        let boxes = output.layers.iter().map(|layer| layer.boxes.dims());
        assert!(boxes.eq([144, 10, 10, 10].map(|count| [2, count, 4])));
        output.layers[0].logits.clone()
    };
    let read = detector().unwrap().model;
    close(0.02, proposals(&model), proposals(&read));
    fs::write(&path, &bytes[..len / 2]).unwrap();
    let broken = refused();
    assert!(broken.contains("is not such a model"), "{broken}");
    let model = Segments::init(&device);
    Segments::save(model.clone(), folder.path()).unwrap();
    let pixels = |model: &Segformer| model.pixel_logits(images.clone(), [96, 96]);
    let half: ImageSegmenter = images::model(Some(folder.path()), &device).unwrap();
    close(0.03, pixels(&model), pixels(&half.model));
    assert_eq!(half.labels, segments::labels());
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    let int8: ImageSegmenter = images::model(Some(folder.path()), &device).unwrap();
    close(0.03, pixels(&model), pixels(&int8.model));
    fs::remove_file(&path).unwrap();
    let missing = refused();
    assert!(
        missing.starts_with("cannot read ") && missing.contains("model.bpk"),
        "{missing}"
    );
}

#[test]
fn recognise_resumes_on_the_same_curve() {
    resumes_on_the_same_curve::<Digits>(1);
}

#[test]
fn detect_resumes_on_the_same_curve() {
    resumes_on_the_same_curve::<Objects>(1);
}

#[test]
fn segment_resumes_on_the_same_curve() {
    resumes_on_the_same_curve::<Segments>(1);
}

/// Its batch norm has running statistics, which only one of two replicas updates.
#[test]
fn segment_on_two_devices_resumes_on_the_same_curve() {
    resumes_on_the_same_curve::<Segments>(2);
}
