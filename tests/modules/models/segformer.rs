//! SegFormer against `transformers`: what it sees, a step of training, and what is refused. On the CPU alone: the convolutions are Burn's, and a software GPU takes minutes to compile them.

use burn::{
    module::Module,
    optim::AdamConfig,
    tensor::{Device, FloatDType, Int, Tensor, TensorData},
    train::{InferenceStep, TrainStep},
};
use burn_attn::{FeedForwardActivation, SublayerConnection, seed};
use burn_attn_models::{
    pretrained::LoadOptions,
    segformer::{self, DecodeHeadConfig, Segformer, SegformerConfig, SegformerStageConfig},
    train::ImageBatch,
};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest, assert_same},
    devices,
    golden::GoldenFile,
    numbers::{alone, tensor},
    sentence,
};
use serde_json::json;

use super::{
    TOLERANCE, folder,
    language_models::{Logits, Model},
};

/// The class that stands for none.
const IGNORED: u32 = 255;

impl Logits for Segformer {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        let images = images(values, &devices::any());
        match &self.head {
            Some(_) => self.classify(images).into_data(),
            None => self.logits(images).into_data(),
        }
    }
}

pub(super) fn models() -> [Model<Segformer>; 3] {
    let table = segformer::table();
    [
        ("segformer", table.clone()),
        ("segformer_classifier", table.clone()),
        ("segformer_bare", table.bare("segformer")),
    ]
    .map(|(name, table)| Model {
        name,
        from_pretrained: |folder, device| segformer::from_pretrained(folder, device),
        table,
    })
}

fn images(values: &GoldenFile, device: &Device) -> Tensor<4> {
    let bytes = values.data("images").convert::<f32>();
    Tensor::from_data(bytes, device) / 64.0 - 2.0
}

#[track_caller]
fn assert_reference(what: &str, actual: TensorData, values: &GoldenFile, name: &str) {
    let what = format!("{what}, {name}");
    assert_close_to_largest(&what, &actual, &values.data(name), TOLERANCE, 0.0);
}

#[test]
fn maps_states_weights_and_logits_are_the_references() {
    let mut count = 0;
    for model in models() {
        let values = model.values();
        for (backend, device) in devices::cpu() {
            let what = format!("{} on {backend}", model.name);
            let loaded = model.load(&device);
            let images = images(&values, &device);
            let output = loaded.forward_with_weights(images.clone());
            let mut check = |actual: TensorData, name: &str| {
                count += 1;
                assert_reference(&what, actual, &values, name);
            };
            for (stage, map) in output.maps.into_iter().enumerate() {
                let name = format!("maps.{stage}");
                match values.data(&name).shape().num_dims() {
                    4 => check(map.into_data(), &name),
                    _ => check(map.flatten::<3>(2, 3).swap_dims(1, 2).into_data(), &name),
                }
            }
            for (block, states) in output.states.into_iter().enumerate() {
                check(states.into_data(), &format!("states.{block}"));
            }
            for (block, weights) in output.weights.into_iter().enumerate() {
                if loaded.head.is_some() || loaded.decode_head.is_some() {
                    check(weights.into_data(), &format!("weights.{block}"));
                }
            }
            if loaded.decode_head.is_some() {
                check(loaded.logits(images.clone()).into_data(), "logits");
            }
            if loaded.head.is_some() {
                check(loaded.classify(images.clone()).into_data(), "logits");
            }
            let alone = loaded.forward(images.clone()).pop().expect("a map");
            let with_weights = loaded.forward_with_weights(images).maps.pop();
            let with_weights = with_weights.expect("a map").into_data();
            assert_close("last map", &alone.into_data(), &with_weights, 1e-6);
        }
    }
    assert_eq!(count, 26 * devices::cpu().len());
}

#[test]
fn pixels_have_the_classes_of_the_reference() {
    let [model, ..] = models();
    let values = model.values();
    for (backend, device) in devices::cpu() {
        let classes = model.load(&device).segment(images(&values, &device));
        assert_eq!(classes.dims(), [2, 25, 37]);
        let classes = classes.into_data();
        let (mut seen, mut unsure) = ([0; 5], 0);
        for (actual, expected) in classes
            .iter::<i64>()
            .zip(values.data("classes").iter::<i64>())
        {
            if expected == i64::from(IGNORED) {
                unsure += 1;
                continue;
            }
            assert_eq!(actual, expected, "on {backend}");
            seen[actual as usize] += 1;
        }
        assert!(unsure < 20 && seen.iter().all(|&count| count > 100));
    }
}

#[test]
fn a_step_has_the_loss_the_gradients_and_the_statistics_of_the_reference() {
    let [model, ..] = models();
    let values = model.values();
    for (backend, device) in devices::cpu() {
        let device = device.autodiff();
        let loaded = model.load(&device);
        let classes: Vec<u32> = values.data("labels").iter().collect();
        let batch = ImageBatch::of_pixels(images(&values, &device), &classes, Some(IGNORED));
        let step = TrainStep::step(&loaded, batch);
        assert_reference(backend, step.item.loss.into_data(), &values, "loss");
        let head = loaded.decode_head.as_ref().expect("a head");
        let first = loaded.stages[0].patches.projection.weight.id;
        let first = step.grads.get::<4>(first).expect("a gradient");
        assert_reference(backend, first.into_data(), &values, "gradient.first");
        let last = step.grads.get::<2>(head.projections[3].weight.id);
        // PyTorch has the outputs first.
        let last = last.expect("a gradient").transpose();
        assert_reference(backend, last.into_data(), &values, "gradient.last");
        let statistics = loaded.valid().decode_head.expect("a head").norm;
        let [mean, variance] = [&statistics.running_mean, &statistics.running_var];
        let mean = mean.value().into_data();
        assert_reference(backend, mean, &values, "running_mean");
        let variance = variance.value().into_data();
        assert_reference(backend, variance, &values, "running_var");
    }
}

/// Images of light and dark squares with noise on them, and which pixels are light.
fn squares(number: u64, device: &Device) -> (Tensor<4>, Tensor<3, Int>) {
    let squares: Tensor<4> = tensor([3, 1, 4, 5], number, device);
    let light = squares.greater_scalar(0.0).float().reshape([3, 4, 1, 5, 1]);
    let light = light.expand([3, 4, 4, 5, 4]).reshape([3, 1, 16, 20]);
    let noise: Tensor<4> = tensor([3, 1, 16, 20], number + 1, device);
    (
        light.clone() - 0.5 + noise * 0.3,
        light.squeeze_dim::<3>(1).int(),
    )
}

#[test]
fn it_learns_on_a_cpu_from_random_parameters() {
    let _alone = alone();
    let device = devices::any().autodiff();
    seed(&device, 5);
    let stages = vec![
        SegformerStageConfig::new(8, 1, 1, 2),
        SegformerStageConfig::new(12, 1, 2, 1),
    ];
    let head = DecodeHeadConfig::new(2).with_d_model(16);
    let mut model = SegformerConfig::new()
        .with_n_channels(1)
        .with_stages(stages)
        .with_decode_head(head)
        .init(&device);
    let mut optimizer = AdamConfig::new().init();
    for step in 0..40 {
        let (images, classes) = squares(2 * step, &device);
        let classes: Vec<u32> = classes.into_data().iter().collect();
        let batch = ImageBatch::of_pixels(images, &classes, None);
        let gradients = TrainStep::step(&model, batch).grads;
        model = optimizer.step(1e-2, model, gradients);
    }
    let model = model.valid();
    let (images, classes) = squares(1000, &device.inner());
    let step = |class: u32| {
        let classes = [class; 3 * 16 * 20];
        InferenceStep::step(
            &model,
            ImageBatch::of_pixels(images.clone(), &classes, Some(IGNORED)),
        )
    };
    let nothing = step(IGNORED).loss.into_scalar::<f32>();
    assert_eq!(nothing, 0.0);
    assert_eq!(
        sentence(|| step(2)),
        "a batch has token or class 2, for a model of 2"
    );
    let right = model.segment(images.clone()).equal(classes);
    let right = right.int().sum().into_scalar::<i64>();
    assert!(right > 900, "{right} of 960 pixels");
}

#[test]
fn stochastic_depth_grows_from_block_to_block() {
    let stage = SegformerStageConfig::new(6, 2, 3, 2);
    let config = SegformerConfig::new().with_stages(vec![stage.clone(), stage]);
    let device = Device::default().autodiff();
    let model = config.with_stochastic_depth(0.9).init(&device);
    let zeros = Tensor::<3>::zeros([400, 1, 6], &device);
    let sums = |model: &Segformer| -> Vec<Tensor<3>> {
        let blocks = model.stages.iter().flat_map(|stage| &stage.blocks);
        let residuals =
            blocks.flat_map(|block| [&block.attention_residual, &block.feed_forward_residual]);
        let sum = |residual: &SublayerConnection| residual.sum(zeros.clone(), zeros.ones_like());
        residuals.map(sum).collect()
    };
    let rates = [0.0, 0.0, 0.3, 0.3, 0.6, 0.6, 0.9, 0.9];
    let training = sums(&model);
    assert_eq!(training.len(), rates.len());
    for (sums, rate) in training.into_iter().zip(rates) {
        // What is not left out is multiplied, so that the mean stays. Of 400 images, a few are never left out.
        let factor = sums.max().into_scalar::<f64>();
        assert!(
            (factor * (1.0 - rate) - 1.0).abs() < 1e-5,
            "{factor}, {rate}"
        );
    }
    for sums in sums(&model.valid()) {
        assert_same(&sums, &zeros.ones_like());
    }
}

#[test]
fn they_are_written_back_bit_for_bit() {
    for model in models() {
        model.check_export();
    }
}

#[test]
fn half_precision_is_close() {
    let [model, ..] = models();
    let values = model.values();
    let device = devices::any();
    let options = LoadOptions::new(&device).dtype(FloatDType::BF16);
    let loaded = segformer::from_pretrained(folder(model.name), options).expect("loaded");
    let images = images(&values, &device);
    let logits = loaded.logits(images).into_data();
    assert_close_to_largest("bf16", &logits, &values.data("logits"), 0.1, 0.0);
}

#[test]
fn the_default_is_b0() {
    let head = DecodeHeadConfig::new(150);
    let config = SegformerConfig::new().with_decode_head(head);
    let model = config.init(&devices::any());
    // As counted in `transformers`, with the running statistics.
    assert_eq!(model.num_params(), 3_753_206);
}

#[test]
fn fields_that_change_nothing_and_fields_that_are_refused() {
    let [model, ..] = models();
    model.assert_same_model(|config| {
        config.insert("reshape_last_stage".into(), json!(false));
        config.insert("layer_norm_eps".into(), json!(0.1));
        config.insert("downsampling_rates".into(), json!([1, 4, 8, 16]));
        config.remove("num_encoder_blocks");
        config.remove("hidden_act");
    });
    model.assert_unsupported(
        "SegFormer",
        [
            (
                "depths",
                json!([1, 1, 1]),
                "4 numbers, as num_encoder_blocks says",
            ),
            (
                "depths",
                json!([1, 1, 1, 998]),
                "at most 1000 blocks together",
            ),
            ("decoder_hidden_size", json!(65537), "at most 65536"),
        ],
    );
    let expected = "config.json: SegformerConfig: d_model 6 is not divisible by n_heads 4";
    model.assert_refused("num_attention_heads", json!([1, 4, 3, 2]), expected);
}

#[test]
fn mistakes_have_a_sentence() {
    let device = devices::any();
    let stage = || SegformerStageConfig::new(6, 1, 3, 3);
    let config = |stage| SegformerConfig::new().with_stages(vec![stage]);
    for (config, expected) in [
        (
            SegformerConfig::new().with_stages(Vec::new()),
            "SegformerConfig: number of stages must be at least 1, got 0",
        ),
        (
            config(stage().with_stride(0)),
            "SegformerConfig: stride must be at least 1, got 0",
        ),
        (
            config(SegformerStageConfig::new(7, 1, 3, 1)),
            "SegformerConfig: d_model 7 is not divisible by n_heads 3",
        ),
        (
            config(stage()).with_activation(FeedForwardActivation::SwiGlu),
            "SegformerConfig: activation SwiGlu has a gate",
        ),
        (
            config(stage()).with_stochastic_depth(1.0),
            "SegformerConfig: stochastic_depth must be in [0, 1), got 1",
        ),
        (
            config(stage()).with_decode_head(DecodeHeadConfig::new(0)),
            "DecodeHeadConfig: n_classes must be at least 1, got 0",
        ),
    ] {
        assert_eq!(sentence(|| config.init(&device)), expected);
    }
    let model = config(stage()).init(&device);
    let zeros = |shape: [usize; 4]| Tensor::zeros(shape, &device);
    assert_eq!(
        sentence(|| model.forward(zeros([1, 2, 12, 12]))),
        "Segformer: images of 2 channels for a model that sees 3"
    );
    assert_eq!(
        sentence(|| model.forward(zeros([0, 3, 12, 12]))),
        "Segformer: there are no images"
    );
    assert_eq!(
        sentence(|| model.forward(zeros([1, 3, 4, 12]))),
        "Segformer: 2 × 6 tokens cannot be reduced by 3: the images are too small"
    );
    assert_eq!(
        sentence(|| model.logits(zeros([1, 3, 12, 12]))),
        "Segformer: the model has no head for classes of pixels"
    );
    assert_eq!(
        sentence(|| model.classify(zeros([1, 3, 12, 12]))),
        "Segformer: the model has no head for classes of images"
    );
    assert_eq!(
        sentence(|| ImageBatch::of_pixels(zeros([1, 3, 2, 2]), &[1; 3], None)),
        "ImageBatch: there are 1 images of 2 × 2 pixels, but 3 classes"
    );
    for (shape, expected) in [
        ([0, 3, 2, 2], "ImageBatch: there are no images"),
        ([1, 3, 0, 5], "ImageBatch: there are images of 0 × 5 pixels"),
    ] {
        let refused = sentence(|| ImageBatch::of_pixels(zeros(shape), &[], None));
        assert_eq!(refused, expected);
    }
}
