//! ViT, DeiT and DINOv2 against `transformers`.

use burn::{
    module::Module,
    nn::loss::CrossEntropyLossConfig,
    optim::GradientsParams,
    tensor::{Device, Distribution, Int, Tensor, TensorData},
    train::{InferenceStep, TrainStep},
};
use burn_attn_models::{
    train::ImageBatch,
    vit::{self, Vit, VitConfig, VitFamily},
};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest, assert_same, differs},
    devices,
    golden::GoldenFile,
    sentence,
};

use serde_json::json;

use super::{
    TOLERANCE, assert_dropout, assert_states,
    language_models::{Logits, Model, named},
};

impl Logits for Vit {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        self.logits(values.tensor("images", &devices::any()))
            .into_data()
    }
}

fn model(name: &'static str, family: VitFamily) -> Model<Vit> {
    Model {
        name,
        from_pretrained: |folder, device| vit::from_pretrained(folder, device),
        table: match name.strip_suffix("_bare") {
            Some(body) => family.table().bare(body),
            None => family.table(),
        },
    }
}

pub(super) fn models() -> [Model<Vit>; 6] {
    use VitFamily::{Deit, DeitOneHead, Dinov2, Vit};
    [
        model("vit", Vit),
        model("vit_bare", Vit),
        model("deit", Deit),
        model("deit_one_head", DeitOneHead),
        model("dinov2", Dinov2),
        model("dinov2_bare", Dinov2),
    ]
}

#[test]
fn states_and_logits_are_the_references() {
    let mut count = 0;
    for model in models() {
        let values = model.values();
        for (backend, device) in devices::named() {
            let loaded = model.load(&device);
            for images in ["images", "wide"] {
                if !values.names().any(|name| name == images) {
                    continue;
                }
                let pixels: Tensor<4> = values.tensor(images, &device);
                let states = loaded.forward(pixels.clone());
                let what = format!("{}, {images} on {backend}", model.name);
                let expected = values.tensor(&format!("{images}.states"), &device);
                assert_states(&what, states.clone(), expected);
                let output = loaded.forward_with_hidden_states(pixels.clone());
                assert_eq!(output.hidden_states.len(), 2);
                for (layer, states) in (1..).zip(output.hidden_states) {
                    let expected = values.tensor(&format!("{images}.states.{layer}"), &device);
                    assert_states(&what, states, expected);
                }
                let logits = format!("{images}.logits");
                assert_eq!(
                    loaded.head.is_some(),
                    values.names().any(|name| name == logits)
                );
                if loaded.head.is_none() {
                    continue;
                }
                let expected = values.data(&logits);
                for actual in [loaded.classify(states), loaded.logits(pixels)] {
                    assert_close_to_largest(&what, &actual.into_data(), &expected, TOLERANCE, 0.0);
                    count += 1;
                }
            }
        }
    }
    // Four models have a head, three of them images of another size too, and each is called in two ways.
    assert_eq!(count, 2 * (4 + 3) * devices::named().len());
}

#[test]
fn they_are_written_back_bit_for_bit() {
    for model in models() {
        model.check_export();
    }
}

#[test]
fn mistakes_have_a_sentence() {
    let device = devices::any();
    let config = || {
        VitConfig::new()
            .with_image_size(12)
            .with_patch_size(4)
            .with_d_model(12)
            .with_n_heads(3)
            .with_n_layers(1)
            .with_d_ff(17)
    };
    for (config, expected) in [
        (
            config().with_patch_size(13),
            "VitConfig: image_size 12 is less than patch_size 13",
        ),
        (
            config().with_distilled(true).with_mean_of_patches(true),
            "VitConfig: distilled and mean_of_patches are both true",
        ),
        (
            config().with_n_heads(5),
            "VitConfig: d_model 12 is not divisible by n_heads 5",
        ),
    ] {
        assert_eq!(sentence(|| config.init(&device)), expected);
    }
    let vit = config().init(&device);
    for (shape, expected) in [
        (
            [1, 2, 12, 12],
            "Vit: images of 2 channels for a model that sees 3",
        ),
        ([0, 3, 12, 12], "Vit: there are no images"),
        (
            [1, 3, 3, 12],
            "Vit: images of 3 × 12 have no patch of 4 × 4",
        ),
    ] {
        assert_eq!(
            sentence(|| vit.forward(Tensor::zeros(shape, &device))),
            expected
        );
    }
    assert_eq!(
        sentence(|| vit.logits(Tensor::zeros([1, 3, 12, 12], &device))),
        "Vit: the model has no head"
    );
    let [_, _, _, _, dinov2, _] = models();
    dinov2.assert_unsupported("ViT", [("use_swiglu_ffn", json!(true), "false")]);
}

#[test]
fn what_does_not_fill_a_patch_is_not_seen() {
    let [vit, ..] = models();
    let model = vit.set("image_size", 13).expect("a model");
    let images: Tensor<4> = vit.values().tensor("images", &devices::any());
    let [batch, channels, height, width] = images.dims();
    let border = Tensor::ones([batch, channels, height, 1], &devices::any());
    let larger = Tensor::cat(vec![images.clone(), border], 3);
    let border = Tensor::ones([batch, channels, 1, width + 1], &devices::any());
    let larger = Tensor::cat(vec![larger, border], 2);
    assert_same(&model.logits(larger), &model.logits(images));
}

/// As in `transformers`, DINOv2 has none in its layers, and drops embedded patches alone.
#[test]
fn dropout_is_where_the_reference_has_it() {
    for (name, in_sums) in [("vit", true), ("deit", true), ("dinov2", false)] {
        let vit = named(models(), name);
        let model = vit.set("hidden_dropout_prob", 0.5).expect("a model");
        assert_dropout(&model.encoder.layers[0], [in_sums; 2]);
        let images: Tensor<4> = vit.values().tensor("images", &devices::any().autodiff());
        let model = model.train();
        assert!(differs(
            &model.forward(images.clone()),
            &model.valid().forward(images)
        ));
    }
}

#[test]
fn a_step_takes_the_mean_cross_entropy_of_the_classes() {
    let device = Device::default().autodiff();
    let model = VitConfig::new()
        .with_image_size(6)
        .with_patch_size(3)
        .with_n_channels(1)
        .with_d_model(10)
        .with_n_heads(2)
        .with_n_layers(2)
        .with_d_ff(7)
        .with_n_classes(5)
        .init(&device);
    let images = Tensor::random([3, 1, 6, 6], Distribution::Default, &device);
    let classes = [4, 0, 2];
    let expected = CrossEntropyLossConfig::new().init(&device).forward(
        model.logits(images.clone()),
        Tensor::<1, Int>::from_data(classes.map(|class| class as i32), &device),
    );
    let output = TrainStep::step(&model, ImageBatch::new(images.clone(), &classes));
    let loss = expected.clone().into_data();
    assert_close("loss", &output.item.loss.into_data(), &loss, 1e-6);
    assert_eq!(output.item.logits.dims(), [3, 1, 5]);
    let gradients = GradientsParams::from_grads(expected.backward(), &model);
    let id = model.patches.weight.id;
    let [actual, expected] = [&output.grads, &gradients].map(|all| all.get::<4>(id).unwrap());
    assert_close("patches", &actual.into_data(), &expected.into_data(), 1e-6);

    let batch = ImageBatch::new(images.clone().inner(), &classes);
    let output = InferenceStep::step(&model.valid(), batch);
    assert_close("validation", &output.loss.into_data(), &loss, 1e-6);

    let unknown = ImageBatch::new(images.clone(), &[4, 5, 2]);
    assert_eq!(
        sentence(|| TrainStep::step(&model, unknown.clone())),
        "a batch has token or class 5, for a model of 5"
    );
    assert_eq!(
        sentence(|| ImageBatch::new(images.clone(), &[1])),
        "ImageBatch: there are 3 images, but 1 classes"
    );
    let none = Tensor::<4>::zeros([0, 1, 6, 6], &device);
    assert_eq!(
        sentence(|| ImageBatch::new(none.clone(), &[])),
        "ImageBatch: there are no images"
    );
}

#[test]
fn other_sizes_have_gradients() {
    for (_, device) in devices::cpu() {
        let model = vit::from_pretrained(super::folder("vit"), &device.autodiff()).unwrap();
        let images = Tensor::ones([1, 3, 9, 21], &model.positions.device());
        let gradients = model.forward(images).square().sum().backward();
        let gradient = model.positions.val().grad(&gradients).expect("a gradient");
        assert_eq!(gradient.dims(), [1, 10, 12]);
        let least = gradient.abs().min_dim(2).min().into_scalar::<f32>();
        assert!(least.is_finite());
    }
}
