//! Models and images that are refused.

use burn_attn_models::vision::{
    ImageClassifier, ImageProcessor, ImageSegmenter, ImageSize, ObjectDetector,
};
use burn_attn_tests::devices;
use image::DynamicImage;

use super::{folder, refused::copied, vision::with_processor};

#[test]
fn models_without_the_head_are_refused() {
    let device = devices::any();
    for (model, tensor) in [
        ("vit_bare", "classifier.weight"),
        ("detr_bare", "class_labels_classifier.weight"),
        ("segformer_classifier", "decode_head.classifier.weight"),
    ] {
        let copy = with_processor(model);
        let path = copy.path();
        let error = match model {
            "vit_bare" => ImageClassifier::from_pretrained(path, &device).err(),
            "detr_bare" => ObjectDetector::from_pretrained(path, &device).err(),
            _ => ImageSegmenter::from_pretrained(path, &device).err(),
        };
        let expected = format!(
            "{}: the weights have no {tensor}, so the model lacks the head that is needed",
            path.display()
        );
        assert_eq!(error.expect("it is refused").to_string(), expected);
    }
}

#[test]
fn problems_of_another_kind_are_refused() {
    let copy = copied("vit", |config| {
        config.insert("problem_type".into(), "regression".into());
    });
    let error = ImageClassifier::from_pretrained(copy.path(), &devices::any()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: problem_type is \"regression\", but an image classifier has single_label_classification",
            copy.path().display()
        )
    );
}

#[test]
fn images_without_pixels_or_with_too_many_are_refused() {
    let device = devices::any();
    let processor = ImageProcessor::from_pretrained(folder("image_processors/dinov2")).unwrap();
    for (size, crop, image, expected) in [
        (
            ImageSize::Exact([4, 4]),
            None,
            [0, 3],
            "4 × 4: it has no pixels",
        ),
        (
            ImageSize::Limits {
                shorter: 9,
                longer: 2,
            },
            None,
            [300, 3],
            "2 × 0: a side would have no pixels",
        ),
        (
            ImageSize::ShorterSide(65535),
            None,
            [3, 3],
            "65535 × 65535: the resized image, 65535 × 65535, would have more than 268435456 pixels",
        ),
        (
            ImageSize::Exact([1, 65535]),
            None,
            [1, 5000],
            "65535 × 1: the image with resized rows, 65535 × 5000, would have more than 268435456 pixels",
        ),
        (
            ImageSize::Exact([4, 5]),
            Some([30000, 20000]),
            [3, 3],
            "5 × 4: the crop, 20000 × 30000, would have more than 268435456 pixels",
        ),
    ] {
        let size = Some(size);
        let small = ImageProcessor {
            size,
            crop,
            ..processor.clone()
        };
        let [width, height] = image;
        let image = DynamicImage::new_luma8(width, height);
        let error = small.forward(&image, &device).unwrap_err();
        let begins = format!("an image of {width} × {height} pixels cannot become one of ");
        assert_eq!(error.to_string(), begins + expected);
    }
}
