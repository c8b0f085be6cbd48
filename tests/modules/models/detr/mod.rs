//! DETR against `transformers`. On the CPU alone: the convolutions are Burn's, and a software GPU takes minutes to compile them.

mod files;

use burn::{
    module::Module,
    nn::conv::Conv2dConfig,
    optim::GradientsParams,
    tensor::{Bool, Device, Distribution, Tensor, TensorData},
};
use burn_attn::LayerInput;
use burn_attn_models::{
    detr::{self, Detection, Detr, DetrConfig, post_process, sine_positions},
    resnet::{ResNetConfig, ResNetNames},
};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest, difference},
    devices,
    golden::GoldenFile,
    sentence,
};

use super::{
    TOLERANCE, assert_states,
    language_models::{Logits, Model},
};

impl Logits for Detr {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        let device = devices::any();
        let mask = mask(values, &device);
        let shape = match mask {
            Some(_) => [2, 3, 29, 43],
            None => [2, 1, 21, 37],
        };
        self.forward(formula(shape, &device), mask)
            .logits
            .into_data()
    }
}

pub(super) fn model(name: &'static str) -> Model<Detr> {
    Model {
        name,
        from_pretrained: |folder, device| detr::from_pretrained(folder, device),
        table: detr::table(ResNetNames::Transformers),
    }
}

/// The images of `make_detr.py`.
fn formula(shape: [usize; 4], device: &Device) -> Tensor<4> {
    let count = shape.iter().product();
    let value = |index: usize| (index * 7919 % 251) as f32 / 125.0 - 1.0;
    let values = (0..count).map(value).collect::<Vec<f32>>();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn mask(values: &GoldenFile, device: &Device) -> Option<Tensor<3, Bool>> {
    let is_padded = values.names().any(|name| name == "mask");
    is_padded.then(|| Tensor::from_data(values.data("mask"), device))
}

/// Each model, and the shape of its images.
fn models() -> [(Model<Detr>, [usize; 4]); 3] {
    [
        (model("detr"), [2, 3, 29, 43]),
        (model("detr_basic"), [2, 1, 21, 37]),
        (model("detr_bare"), [2, 1, 21, 29]),
    ]
}

#[test]
fn features_states_logits_and_boxes_are_the_references() {
    let mut with_heads = 0;
    for (model, shape) in models() {
        let values = model.values();
        for (backend, device) in devices::cpu() {
            let loaded = model.load(&device);
            let what = |name: &str| format!("{}, {name} on {backend}", model.name);
            let compare = |name: &str, actual: TensorData| {
                let expected = values.data(name);
                assert_close_to_largest(&what(name), &actual, &expected, TOLERANCE, 0.0);
            };
            let (images, mask) = (formula(shape, &device), mask(&values, &device));
            let backbone = loaded.backbone.as_ref().expect("a backbone");
            let features = backbone.forward(images.clone());
            compare("features", features.clone().into_data());

            let memory = loaded.encode(features.clone(), mask.clone());
            let [rows, columns] = memory.grid;
            assert_eq!(features.dims()[2..], [rows, columns]);
            let x = loaded.projection.forward(features.clone());
            let [_, d_model, _, _] = x.dims();
            let x = x.reshape([2, d_model, rows * columns]).swap_dims(1, 2);
            let input = LayerInput::new(x)
                .query_key_position_embedding(memory.positions.clone())
                .mask(memory.mask.clone());
            let encoder = loaded.encoder.forward_with_hidden_states(input);
            for (layer, states) in encoder.hidden_states.into_iter().enumerate() {
                let name = format!("encoder.{layer}");
                assert_states(&what(&name), states, values.tensor(&name, &device));
            }

            let states = loaded.states(&memory);
            let last = loaded.decoder.layers.len() - 1;
            compare(&format!("decoder.{last}"), states.into_data());
            if loaded.class_head.is_none() {
                continue;
            }
            with_heads += 1;
            let memory = loaded.encode_images(images, mask.clone());
            let output = loaded.decode_with_auxiliary(&memory);
            assert_eq!(output.auxiliary.len(), last);
            for (layer, auxiliary) in output.auxiliary.iter().enumerate() {
                compare(
                    &format!("decoder.{layer}"),
                    auxiliary.states.clone().into_data(),
                );
            }
            compare("logits", output.logits.clone().into_data());
            compare("boxes", output.boxes.clone().into_data());
            let output = loaded.decode_with_weights(&memory);
            let weights = output.cross_weights.last().expect("the last layer's");
            compare("cross_weights", weights.clone().into_data());
            let output = loaded.forward_features(features, mask);
            compare("boxes", output.boxes.into_data());
        }
    }
    assert_eq!(with_heads, 2 * devices::cpu().len());
}

#[test]
fn what_is_found_is_the_references() {
    let sizes = [[[29, 43], [18, 35]], [[21, 37], [21, 37]]];
    for ((model, shape), sizes) in models().into_iter().zip(sizes) {
        let (values, device) = (model.values(), devices::any());
        let images = formula(shape, &device);
        let output = model.load(&device).forward(images, mask(&values, &device));
        let threshold: Vec<f32> = values.data("threshold").iter().collect();
        let found = post_process(&output, threshold[0], &sizes);
        let mut kept = 0;
        for (image, found) in found.iter().enumerate() {
            let expected = |name: &str| values.data(&format!("found.{image}.{name}"));
            let of = |number: fn(&Detection) -> f64| found.iter().map(number).collect::<Vec<_>>();
            let [labels, scores] =
                ["labels", "scores"].map(|name| expected(name).iter::<f64>().collect::<Vec<f64>>());
            assert_eq!(of(|found| found.label as f64), labels);
            assert!(difference(&of(|found| f64::from(found.score)), &scores) < 1e-5);
            let corners = found.iter().flat_map(|found| found.corners.map(f64::from));
            let corners: Vec<f64> = corners.collect();
            let expected: Vec<f64> = expected("corners").iter().collect();
            assert!(difference(&corners, &expected) < 1e-3);
            kept += found.len();
        }
        let all = post_process(&output, 0.0, &sizes);
        assert!(kept > 0 && kept < all.concat().len());
    }
}

#[test]
fn padding_is_not_there() {
    let device = devices::any();
    let model = small().init(&device);
    let features = Tensor::random([1, 6, 5, 7], Distribution::Default, &device);
    let alone = model.forward_features(features.clone(), None);
    let noise = |shape: [usize; 4]| Tensor::random(shape, Distribution::Default, &device);
    let padded = Tensor::cat(vec![features, noise([1, 6, 5, 4])], 3);
    let padded = Tensor::cat(vec![padded, noise([1, 6, 3, 11])], 2);
    // Four pixels for each place, some of them beyond the last.
    let visible = |row: usize, column: usize| row < 10 && column < 14;
    let visible = (0..16).flat_map(|row| (0..22).map(move |column| visible(row, column)));
    let visible = TensorData::new(visible.collect::<Vec<bool>>(), [1, 16, 22]);
    let mask = Tensor::<3, Bool>::from_data(visible, &device);
    let padded = model.forward_features(padded, Some(mask));
    for (alone, padded) in [(alone.logits, padded.logits), (alone.boxes, padded.boxes)] {
        assert_close("padded", &padded.into_data(), &alone.into_data(), 1e-5);
    }
}

#[test]
fn positions_are_those_of_the_formula() {
    let device = devices::any();
    let mask = [[true, true, false], [true, true, false]];
    let mask = Tensor::<3, Bool>::from_data([mask], &device);
    let positions: Vec<f64> = sine_positions(mask, 8).into_data().iter().collect();
    let angle = |count: f64, total: f64, pair: f64| {
        std::f64::consts::TAU * count / (total + 1e-6) / 10_000f64.powf(pair / 2.0)
    };
    // Row 0 of 2, and column 1 of 2: the middle and the end.
    let expected = [(1.0, 0.0), (1.0, 1.0), (2.0, 0.0), (2.0, 1.0)]
        .map(|(count, pair)| angle(count, 2.0, pair))
        .map(|angle| [angle.sin(), angle.cos()]);
    assert!(difference(&positions[8..16], expected.as_flattened()) < 1e-5);
    assert_eq!(
        sentence(|| sine_positions(Tensor::full([1, 2, 3], true, &device), 6)),
        "sine_positions: d_model 6 is not divisible by 4"
    );
}

fn small() -> DetrConfig {
    DetrConfig::new()
        .with_d_features(6)
        .with_d_model(8)
        .with_n_heads(2)
        .with_n_encoder_layers(1)
        .with_n_decoder_layers(2)
        .with_d_ff(5)
        .with_n_queries(3)
        .with_n_classes(6)
}

#[test]
fn training_changes_all_but_the_norms_of_the_backbone() {
    let device = Device::default().autodiff();
    let backbone = ResNetConfig::new().with_d_stem(2).with_widths([4, 6]);
    let backbone = backbone.with_depths([1, 1]).with_bottleneck(false);
    let model = small().with_backbone(backbone).init(&device);
    let stem = Conv2dConfig::new([1, 3], [3, 3]).init(&device);
    let images = Tensor::random([2, 1, 19, 23], Distribution::Default, &device);
    let memory = model.encode_images(stem.forward(images), None);
    let output = model.decode_with_auxiliary(&memory);
    let loss =
        output.boxes.sum() + output.logits.exp().sum() + output.auxiliary[0].boxes.clone().sum();
    let gradients = loss.backward();
    assert!(stem.weight.val().grad(&gradients).is_some());
    let of_model = GradientsParams::from_grads(gradients, &model);
    let first = &model.backbone.as_ref().unwrap().stem;
    assert!(of_model.get::<4>(first.convolution.weight.id).is_some());
    assert!(of_model.get::<2>(model.queries.id).is_some());
    for fixed in [&first.gamma, &first.beta, &first.mean, &first.variance] {
        assert!(of_model.get::<1>(fixed.id).is_none());
    }
    assert_eq!(model.valid().queries.dims(), [3, 8]);
}

#[test]
fn mistakes_have_a_sentence() {
    let device = devices::any();
    let resnet = || ResNetConfig::new().with_d_stem(2).with_widths([4, 6]);
    for (config, expected) in [
        (
            small().with_d_model(6),
            "DetrConfig: d_model 6 is not divisible by 4",
        ),
        (
            small().with_n_heads(3),
            "DetrConfig: d_model 8 is not divisible by n_heads 3",
        ),
        (
            small().with_n_queries(0),
            "DetrConfig: n_queries must be at least 1, got 0",
        ),
        (
            small().with_backbone(resnet()),
            "ResNetConfig: widths [4, 6] and depths [3, 4, 6, 3] are not of the same stages",
        ),
        (
            small().with_backbone(resnet().with_depths([1, 0])),
            "ResNetConfig: depths must be at least 1, got 0",
        ),
        (
            small().with_backbone(resnet().with_depths([1, 1])),
            "ResNetConfig: width 6 of bottleneck layers is not divisible by 4",
        ),
        (
            small().with_backbone(resnet().with_widths([8]).with_depths([1])),
            "DetrConfig: d_features 6 is not the backbone's 8",
        ),
    ] {
        assert_eq!(sentence(|| config.init(&device)), expected);
    }
    let zeros = |shape: [usize; 4]| Tensor::<4>::zeros(shape, &device);
    let no_backbone = small().init(&device);
    let bare = small().with_n_classes(None).init(&device);
    let basic = resnet().with_depths([1, 1]).with_bottleneck(false);
    let whole = small().with_backbone(basic).init(&device);
    let mask = Tensor::<3, Bool>::full([1, 9, 8], true, &device);
    let output = no_backbone.forward_features(zeros([2, 6, 3, 4]), None);
    let sentences = [
        sentence(|| no_backbone.forward(zeros([1, 3, 9, 9]), None)),
        sentence(|| bare.forward_features(zeros([1, 6, 3, 4]), None)),
        sentence(|| bare.forward_features(zeros([1, 5, 3, 4]), None)),
        sentence(|| whole.forward(zeros([1, 2, 9, 9]), None)),
        sentence(|| whole.forward(zeros([1, 3, 0, 9]), None)),
        sentence(|| whole.forward(zeros([0, 3, 9, 9]), None)),
        sentence(|| no_backbone.forward_features(zeros([0, 6, 3, 4]), None)),
        sentence(|| whole.forward(zeros([1, 3, 9, 9]), Some(mask.clone()))),
        sentence(|| post_process(&output, 0.5, &[[3, 4]])),
    ];
    assert_eq!(
        sentences,
        [
            "Detr: the model has no backbone",
            "Detr: the model has no heads",
            "Detr: features of 5 channels for a model that reads 6",
            "ResNet: images of 2 channels for a model that sees 3",
            "ResNet: images of 0 × 9 have no pixels",
            "ResNet: there are no images",
            "Detr: there are no images",
            "Detr: a mask of shape [1, 9, 8] for 1 images of 9 × 9",
            "post_process: sizes of 1 images for 2",
        ]
    );
}
