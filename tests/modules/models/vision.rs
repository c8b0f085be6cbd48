//! Image processors and classifiers against `transformers`.

use std::fs;

use burn::tensor::{DType, FloatDType, Tensor, activation::softmax};
use burn_attn_models::pretrained::LoadOptions;
use burn_attn_models::{
    detr::post_process,
    segformer::{DecodeHeadConfig, SegformerConfig, SegformerStageConfig},
    vision::{
        ImageClassifier, ImageProcessor, ImageSegmenter, ImageSize, ObjectDetector,
        attention_rollout,
    },
};
use burn_attn_tests::{
    compare::{assert_close, assert_close_to_largest, difference},
    devices,
    golden::GoldenFile,
    sentence,
};
use image::{DynamicImage, RgbImage, RgbaImage};
use serde_json::json;
use tempfile::TempDir;

use super::{folder, refused::copied};

/// The image of `make_image_processors.py`.
pub(super) fn formula() -> DynamicImage {
    let pixel = |column: u32, row: u32| {
        let value = |channel: u32| row * row * 3 + column * 5 * (channel + 1) + row * column;
        image::Rgb([0, 1, 2].map(|channel| (value(channel) % 256) as u8))
    };
    RgbImage::from_fn(47, 31, pixel).into()
}

#[test]
fn images_become_what_the_reference_makes_of_them() {
    let values = GoldenFile::open("models/image_processors/values");
    let device = devices::any();
    let mut count = 0;
    for name in values.names() {
        let processor =
            ImageProcessor::from_pretrained(folder(&format!("image_processors/{name}")));
        let processor = processor.unwrap();
        let made = processor.forward(&formula(), &device).unwrap();
        // Each value was rounded to one of 255 after resizing, here and there.
        let least = processor.std.iter().copied().fold(f64::INFINITY, f64::min);
        let one = if name == "bytes" {
            0.0
        } else {
            processor.scale / least
        };
        let (made, expected) = (made.into_data(), values.data(name));
        assert_eq!(made.shape(), expected.shape());
        let [made, expected] = [made, expected].map(|data| data.iter::<f64>().collect::<Vec<_>>());
        let apart = difference(&made, &expected);
        assert!(apart < 1.01 * one + 1e-6, "{name}: {apart}");
        count += 1;
    }
    assert_eq!(count, 10);
}

#[test]
fn settings_that_are_not_supported_are_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("preprocessor_config.json");
    let of = |fields: serde_json::Value| {
        fs::write(&file, fields.to_string()).unwrap();
        ImageProcessor::from_pretrained(folder.path())
    };
    let valid = json!({"size": {"height": 4, "width": 4}, "resample": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]});
    let read = |field: &str, value: serde_json::Value| {
        let mut fields = valid.clone();
        fields[field] = value;
        of(fields)
    };
    assert!(read("resample", json!(3)).is_ok());
    let plain = read("do_resize", json!(true)).unwrap();
    for (field, value) in [
        ("do_center_crop", json!(null)),
        ("crop_size", json!(null)),
        ("do_convert_rgb", json!(null)),
        ("use_square_size", json!(false)),
    ] {
        assert_eq!(read(field, value).unwrap(), plain, "{field}");
    }
    for (kind, more) in [
        ("SiglipImageProcessor", "_valid_processor_keys"),
        ("SegformerFeatureExtractor", "reduce_labels"),
    ] {
        read("image_processor_type", json!(kind)).unwrap();
        read(more, json!(true)).unwrap();
    }
    // As Google's ViT has it, which names neither its kind nor a filter.
    let fields = json!({"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "size": 224});
    let vit = of(fields).unwrap();
    assert_eq!(vit.size, Some(ImageSize::Exact([224, 224])));
    assert_eq!(vit.filter, image::imageops::FilterType::Triangle);
    assert_eq!(vit.crop, None);
    // As OpenAI's CLIP has it.
    let fields = json!({"feature_extractor_type": "CLIPFeatureExtractor", "size": 5, "crop_size": 4, "resample": 3,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]});
    let clip = of(fields).unwrap();
    assert_eq!(clip.size, Some(ImageSize::ShorterSide(5)));
    assert_eq!(clip.crop, Some([4, 4]));
    // As Facebook's DETR has it.
    let fields = json!({"feature_extractor_type": "DetrFeatureExtractor", "format": "coco_detection", "size": 8, "max_size": 13,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]});
    let detr = of(fields).unwrap();
    let (shorter, longer) = (8, 13);
    assert_eq!(detr.size, Some(ImageSize::Limits { shorter, longer }));
    assert_eq!(detr.filter, image::imageops::FilterType::Triangle);
    let sizes = r#"{"height", "width"}, {"shortest_edge"}, with or without "longest_edge", or one number, from 1 to 65535"#;
    for (field, value, expected) in [
        ("size", json!({"longest_edge": 5}), format!(r#"size is {{"longest_edge":5}}, but vision supports {sizes}"#)),
        ("size", json!(0), format!("size is 0, but vision supports {sizes}")),
        ("resample", json!(0), "resample is 0, but vision supports 2 (bilinear) or 3 (bicubic)".into()),
        ("do_pad", json!(true), "do_pad is true, but vision supports false".into()),
        ("use_square_size", json!(true), "use_square_size is true, but vision supports false".into()),
        ("do_center_crop", json!(true), format!("crop_size is missing, but vision supports {sizes}")),
        ("image_mean", json!([1.0, 2.0]), "image_mean is [1.0,2.0], but vision supports one or three numbers".into()),
        ("image_std", json!([1.0, 0.0, 1.0]), "image_std is [1.0,0.0,1.0], but vision supports 3 numbers other than 0, as image_mean has".into()),
        ("invert", json!(true), "invert".into()),
        (
            "image_processor_type",
            json!("LevitImageProcessor"),
            "image_processor_type is \"LevitImageProcessor\", but vision supports the image processors of ViT, DeiT, BiT, CLIP, SigLIP, DETR and SegFormer".into(),
        ),
        ("image_mean", json!(null), "image_mean".into()),
    ] {
        let error = read(field, value).unwrap_err().to_string();
        assert!(error.contains(&expected), "{error}");
    }
    fs::remove_file(&file).unwrap();
    let error = ImageProcessor::from_pretrained(folder.path())
        .unwrap_err()
        .to_string();
    assert!(error.contains("preprocessor_config.json"), "{error}");
}

/// As `CLIPProcessor` of version 5 of `transformers` writes them.
#[test]
fn settings_of_images_beside_those_of_texts() {
    let folder = TempDir::new().unwrap();
    let write = |file: &str, settings: &serde_json::Value| {
        fs::write(folder.path().join(file), settings.to_string()).unwrap();
    };
    let settings = |size: usize| {
        json!({"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": size}, "crop_size": 4, "resample": 3,
        "do_convert_rgb": true, "image_mean": [0.5, 0.25, 0.5], "image_std": [0.5, 0.5, 0.25]})
    };
    let read = || ImageProcessor::from_pretrained(folder.path()).unwrap();
    write("preprocessor_config.json", &settings(5));
    let alone = read();
    assert_eq!(alone.size, Some(ImageSize::ShorterSide(5)));
    let both = |settings| json!({"image_processor": settings, "processor_class": "CLIPProcessor"});
    write("processor_config.json", &both(settings(7)));
    assert_eq!(read().size, Some(ImageSize::ShorterSide(7)));
    write("processor_config.json", &both(settings(5)));
    fs::remove_file(folder.path().join("preprocessor_config.json")).unwrap();
    assert_eq!(read(), alone);
    let mut unknown = settings(5);
    unknown["invert"] = json!(true);
    write("processor_config.json", &both(unknown));
    let error = ImageProcessor::from_pretrained(folder.path()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("/processor_config.json") && error.contains("invert"),
        "{error}"
    );
}

/// A copy of the folder of a small model, with names of two of its classes and a processor beside it.
pub(super) fn with_processor(model: &str) -> TempDir {
    let copy = copied(model, |config| {
        config.insert("id2label".into(), json!({"0": "cat", "3": "dog"}));
    });
    let processor = json!({"image_processor_type": "ViTImageProcessor", "size": 12, "resample": 2, "image_mean": 0.5, "image_std": 0.5});
    let file = copy.path().join("preprocessor_config.json");
    fs::write(file, processor.to_string()).unwrap();
    copy
}

#[test]
fn classes_are_sorted_and_have_their_names() {
    for (backend, device) in devices::cpu() {
        for model in ["vit", "deit", "dinov2"] {
            let copy = with_processor(model);
            let classifier = ImageClassifier::from_pretrained(copy.path(), &device).unwrap();
            assert_eq!(classifier.labels, ["cat", "1", "2", "dog", "4"]);
            let (guesses, rollout) = classifier.classify_with_rollout(&formula()).unwrap();
            let same = classifier.classify(&formula()).unwrap();
            for (guess, other) in guesses.iter().zip(&same) {
                assert_eq!((guess.class, &guess.label), (other.class, &other.label));
                assert!((guess.probability - other.probability).abs() < 1e-5);
            }
            assert!(guesses.is_sorted_by(|a, b| a.probability >= b.probability));
            let image = classifier.processor.forward(&formula(), &device).unwrap();
            let expected = softmax(classifier.model.logits(image.clone()), 1);
            let expected: Vec<f32> = expected.into_data().iter::<f32>().collect();
            for guess in &same {
                assert_eq!(guess.label, classifier.labels[guess.class]);
                assert!(
                    (guess.probability - expected[guess.class]).abs() < 1e-5,
                    "{backend}"
                );
            }
            // The patches' part of the class token's row, row by row.
            assert_eq!(rollout.dims(), [3, 3]);
            let layers = classifier.model.forward_with_weights(image).self_weights;
            let row: Vec<f32> = attention_rollout(&layers)
                .narrow(1, 0, 1)
                .into_data()
                .iter()
                .collect();
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            let rollout: Vec<f32> = rollout.into_data().iter().collect();
            assert_eq!(rollout, row[row.len() - 9..]);
        }
    }
}

#[test]
fn a_rollout_is_a_product_of_mixed_matrices() {
    let device = devices::any();
    // The heads' mean is [[0.5, 0.5], [0.25, 0.75]] below, and [[0, 1], [1, 0]] above.
    let below = Tensor::<4>::from_data(
        [[[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]]],
        &device,
    );
    let above = Tensor::<4>::from_data([[[[0.0, 1.0], [1.0, 0.0]]]], &device);
    let rollout = attention_rollout(&[below, above]).into_data();
    let expected = Tensor::<3>::from_data([[[0.4375, 0.5625], [0.4375, 0.5625]]], &device);
    assert_close("rollout", &rollout, &expected.into_data(), 1e-6);
    assert_eq!(
        sentence(|| attention_rollout(&[])),
        "attention_rollout: there are no layers"
    );
    assert_eq!(
        sentence(|| attention_rollout(&[Tensor::zeros([1, 1, 2, 3], &device)])),
        "attention_rollout: weights of 2 queries and 3 keys are not those of self-attention"
    );
}

#[test]
fn half_precision_sees_the_same() {
    let device = devices::any();
    let copy = with_processor("dinov2");
    let options = LoadOptions::new(&device).dtype(FloatDType::BF16);
    let half = ImageClassifier::from_pretrained(copy.path(), options).unwrap();
    let whole = ImageClassifier::from_pretrained(copy.path(), &device).unwrap();
    // Images of another size than the table of positions.
    let image = formula().resize_exact(20, 12, image::imageops::FilterType::Triangle);
    let [few, many] = [&half, &whole].map(|classifier| {
        let (guesses, rollout) = classifier.classify_with_rollout(&image).unwrap();
        let sum: f32 = guesses.iter().map(|guess| guess.probability).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        rollout.into_data()
    });
    assert_close("rollout", &few, &many, 0.02);
    let image = whole.processor.forward(&image, &device).unwrap();
    let wide = Tensor::cat(vec![image.clone(), image], 3);
    let [half, whole] = [half, whole].map(|classifier| {
        let states = classifier.model.forward(wide.clone());
        states.cast(DType::F32).into_data()
    });
    assert_close_to_largest("bf16", &half, &whole, 0.05, 0.0);
}

#[test]
fn pixels_have_the_classes_of_the_model() {
    for (backend, device) in devices::cpu() {
        let copy = with_processor("segformer");
        let mut segmenter = ImageSegmenter::from_pretrained(copy.path(), &device).unwrap();
        assert_eq!(segmenter.labels, ["cat", "1", "2", "dog", "4"]);
        // That model sees two channels.
        let stages = vec![SegformerStageConfig::new(6, 1, 3, 2)];
        let config = SegformerConfig::new().with_stages(stages);
        let head = DecodeHeadConfig::new(5).with_d_model(7);
        segmenter.model = config.with_decode_head(head).init(&device);
        let classes = segmenter.segment(&formula()).unwrap();
        let images = segmenter.processor.forward(&formula(), &device).unwrap();
        let expected = segmenter.model.segment(images).into_data();
        let expected: Vec<usize> = expected.iter::<i64>().map(|class| class as usize).collect();
        assert_eq!(classes.concat(), expected, "{backend}");
        assert_eq!([classes.len(), classes[0].len()], [12, 12]);
    }
}

#[test]
fn objects_have_boxes_in_pixels_of_the_image() {
    for (backend, device) in devices::cpu() {
        let copy = with_processor("detr");
        let mut detector = ObjectDetector::from_pretrained(copy.path(), &device).unwrap();
        assert_eq!(&detector.labels[..2], ["cat", "1"]);
        detector.processor.size = Some(ImageSize::Limits {
            shorter: 29,
            longer: 44,
        });
        let found = detector.detect(&formula(), 0.0).unwrap();
        let images = detector.processor.forward(&formula(), &device).unwrap();
        assert_eq!(images.dims(), [1, 3, 29, 43]);
        let output = detector.model.forward(images, None);
        let expected = post_process(&output, 0.0, &[[31, 47]]).swap_remove(0);
        assert_eq!(found, expected, "{backend}");
        assert!(!found.is_empty());
    }
}

/// What is transparent is in front of white, as for `transformers`.
#[test]
fn transparent_images_are_in_front_of_white() {
    let processor = ImageProcessor::from_pretrained(folder("image_processors/dinov2")).unwrap();
    let processor = ImageProcessor {
        size: None,
        crop: None,
        ..processor
    };
    let colours = [[0, 0, 0, 0], [10, 200, 90, 255], [0, 100, 255, 51]];
    let image = RgbaImage::from_fn(3, 1, |column, _| image::Rgba(colours[column as usize]));
    let seen = [[255, 255, 255], [10, 200, 90], [204, 224, 255]];
    let expected = RgbImage::from_fn(3, 1, |column, _| image::Rgb(seen[column as usize]));
    let cropped = processor.cropped(&image.into()).unwrap();
    assert_eq!(cropped.into_rgb8(), expected);
}
