//! The loss of a detector's boxes against `transformers`.

use burn::tensor::{Tensor, TensorData};
use burn_attn_models::train::{DetectionBatch, Predictions, TokenBatch};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest},
    devices,
    golden::GoldenFile,
    numbers::alone,
    sentence,
};

use super::TOLERANCE;

fn numbers(data: TensorData) -> Vec<f32> {
    data.iter().collect()
}

/// Three objects, none, and one.
fn objects(values: &GoldenFile) -> Vec<Vec<(u32, [f32; 4])>> {
    let classes = values.data("classes");
    let boxes = numbers(values.data("expected"));
    let objects = classes
        .iter::<u32>()
        .zip(boxes.chunks(4))
        .map(|(class, sides)| (class, [sides[0], sides[1], sides[2], sides[3]]));
    let mut first: Vec<_> = objects.collect();
    let last = first.split_off(3);
    vec![first, Vec::new(), last]
}

#[test]
fn the_loss_and_its_gradients_are_those_of_the_reference() {
    let values = GoldenFile::open("models/detection/values");
    for (backend, device) in devices::named() {
        let device = device.autodiff();
        let of = |name: &str| Tensor::<3>::from_data(values.data(name), &device).require_grad();
        let (logits, boxes) = (of("logits"), of("boxes"));
        let layer = Predictions {
            logits: logits.clone(),
            boxes: boxes.clone(),
        };
        let images = Tensor::zeros([3, 1, 2, 2], &device);
        let batch = DetectionBatch::new(images, objects(&values));
        let (loss, output) = batch.loss(&[layer.clone(), layer.clone()]);
        let expected = values.data("loss");
        let reference = |what: &str, actual: TensorData, name: &str| {
            let what = format!("{what} on {backend}");
            assert_close_to_largest(&what, &actual, &values.data(name), TOLERANCE, 0.0);
        };
        // The sum over two layers that say the same.
        reference("loss", (loss.clone() / 2.0).into_data(), "loss");
        reference("metrics", (output.loss / 2.0).into_data(), "loss");
        assert_eq!(output.logits.dims(), [3, 3, 4]);
        let gradients = loss.backward();
        for (tensor, name) in [(&logits, "gradient.logits"), (&boxes, "gradient.boxes")] {
            let gradient = tensor.grad(&gradients).expect("a gradient") / 2.0;
            reference("gradient", gradient.into_data(), name);
        }
        // A part of a batch of eight objects.
        let (part, output) = batch.divided_by(8).loss(&[layer]);
        let part = part.into_data();
        let half = Tensor::<1>::from_data(expected.clone(), &device) / 2.0;
        assert_close("part", &part, &half.into_data(), 1e-5);
        reference("metrics", output.loss.into_data(), "loss");
    }
}

#[test]
fn a_match_is_the_best_of_all_not_of_each() {
    let _alone = alone();
    let device = devices::any();
    // The first box suits both objects best, but the second object has nothing else.
    let sides = [
        [0.3, 0.5, 0.2, 0.2],
        [0.2, 0.5, 0.2, 0.2],
        [0.9, 0.9, 0.1, 0.1],
    ];
    let boxes = Tensor::<3>::from_data([sides], &device);
    let logits = Tensor::<3>::from_data([[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]], &device);
    let objects = vec![(0, [0.26, 0.5, 0.2, 0.2]), (1, [0.4, 0.5, 0.2, 0.2])];
    let batch = DetectionBatch::new(Tensor::zeros([1, 1, 2, 2], &device), vec![objects]);
    let (_, output) = batch.loss(&[Predictions { logits, boxes }]);
    let matched = numbers(output.logits.into_data());
    assert_eq!(matched, [0.3, 0.4, 0.1, 0.2]);
}

#[test]
fn a_match_is_of_the_class_too() {
    let _alone = alone();
    let device = devices::any();
    // The box in the middle is as good as the last one, but it says the class more surely; no box with NaN is matched.
    let right = [0.5, 0.5, 0.2, 0.2];
    let boxes = [[f32::NAN, 0.5, 0.2, 0.2], right, right];
    let boxes = Tensor::<3>::from_data([boxes], &device);
    let logits = Tensor::<3>::from_data([[[9.0, 0.5], [2.0, 0.25], [0.0, 0.75]]], &device);
    let batch = |objects| DetectionBatch::new(Tensor::zeros([1, 1, 2, 2], &device), vec![objects]);
    let layer = [Predictions { logits, boxes }];
    let (_, output) = batch(vec![(0, right)]).loss(&layer);
    assert_eq!(numbers(output.logits.into_data()), [2.0, 0.25]);
    let (_, output) = batch(vec![(0, right), (1, right)]).loss(&layer);
    assert_eq!(numbers(output.logits.into_data()), [2.0, 0.25, 0.0, 0.75]);
}

#[test]
fn images_without_objects_teach_what_nothing_is() {
    let _alone = alone();
    let device = devices::any().autodiff();
    let images = Tensor::zeros([2, 1, 2, 2], &device);
    let batch = DetectionBatch::new(images, vec![Vec::new(); 2]);
    assert_eq!((batch.targets.count, batch.targets.divisor), (0, 1));
    let logits = Tensor::<3>::zeros([2, 3, 4], &device).require_grad();
    let boxes = Tensor::<3>::full([2, 3, 4], 0.5, &device);
    let layer = Predictions {
        logits: logits.clone(),
        boxes,
    };
    let (loss, output) = batch.loss(&[layer]);
    assert_eq!(output.logits.dims(), [2, 1, 4]);
    // 2 · 0.75 · 0.5² · ln 2 for each.
    let expected = 24.0 * 2.0 * 0.75 * 0.25 * 2f64.ln();
    assert_close(
        "loss",
        &loss.clone().into_data(),
        &TensorData::from([expected as f32]),
        1e-5,
    );
    let gradient = numbers(
        logits
            .grad(&loss.backward())
            .expect("a gradient")
            .into_data(),
    );
    assert!(gradient.iter().all(|&number| number > 0.01));
}

#[test]
fn mistakes_have_a_sentence() {
    let device = devices::any();
    let images = || Tensor::zeros([2, 1, 2, 2], &device);
    let object = (0, [0.5; 4]);
    assert_eq!(
        sentence(|| DetectionBatch::new(images(), vec![vec![object]])),
        "DetectionBatch: there are 2 images, but objects of 1"
    );
    let wide = (0, [40.0, 31.0, 20.0, 9.0]);
    assert_eq!(
        sentence(|| DetectionBatch::new(images(), vec![Vec::new(), vec![object, wide]])),
        "DetectionBatch: the box [40.0, 31.0, 20.0, 9.0] of image 1 is not in fractions of the image, from 0 to 1"
    );
    let batch = || DetectionBatch::new(images(), vec![vec![object; 3], Vec::new()]);
    let layer = |n_boxes, batch| Predictions {
        logits: Tensor::zeros([2, n_boxes, 4], &device),
        boxes: Tensor::zeros([batch, n_boxes, 4], &device),
    };
    assert_eq!(
        sentence(|| batch().loss(&[])),
        "DetectionBatch: there is no layer"
    );
    assert_eq!(
        sentence(|| batch().loss(&[layer(2, 2)])),
        "DetectionBatch: 3 objects in an image for 2 boxes"
    );
    assert_eq!(
        sentence(|| batch().loss(&[layer(3, 1)])),
        "DetectionBatch: logits of [2, 3, 4] and boxes of [1, 3, 4] for 2 images"
    );
    assert_eq!(
        sentence(|| batch().smoothing(0.1).loss(&[layer(3, 2)])),
        "DetectionBatch: labels of objects are not smoothed, got smoothing 0.1"
    );
    let other = DetectionBatch::new(images(), vec![vec![(4, [0.5; 4])], Vec::new()]);
    assert_eq!(
        sentence(|| other.loss(&[layer(3, 2)])),
        "DetectionBatch: an object of class 4 for a model of 4 classes"
    );
}
