//! From logits and boxes to objects.

use burn::tensor::{DType, activation::softmax};

use super::DetrOutput;

/// An object that was found in an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detection {
    /// The number of its class, whose name is in `id2label` of `config.json`.
    pub label: usize,
    /// How probable the class is, from 0 to 1.
    pub score: f32,
    /// The box: left, top, right and bottom (pixels). A predicted box may reach beyond the image.
    pub corners: [f32; 4],
}

/// What was found in each image: for every query whose most probable class, "no object" aside, has a score above `threshold`, that class and the
/// box, in the order of the queries.
///
/// `sizes` are height and width of the original images (pixels), before they were resized and padded; 1 and 1 leave boxes as fractions of them. The
/// usual threshold is 0.5 to 0.9.
///
/// # Panics
///
/// When there is not one size for every image.
///
/// # Cost
///
/// Waits for the device, and reads logits and boxes.
///
/// # Source
///
/// PyTorch equivalent: `DetrImageProcessor.post_process_object_detection` of Hugging Face's `transformers`.
pub fn post_process(
    output: &DetrOutput,
    threshold: f32,
    sizes: &[[usize; 2]],
) -> Vec<Vec<Detection>> {
    let [batch, n_queries, n_logits] = output.logits.dims();
    assert!(
        sizes.len() == batch,
        "post_process: sizes of {} images for {batch}",
        sizes.len()
    );
    let logits = output.logits.clone().cast(DType::F32);
    let scores: Vec<f32> = softmax(logits, 2).into_data().iter().collect();
    let boxes: Vec<f32> = output.boxes.clone().into_data().iter().collect();
    let detection = |query: usize, [height, width]: [f32; 2]| {
        let scores = &scores[query * n_logits..][..n_logits - 1];
        // `max_by` returns the last maximum; reversed, that is the first.
        let scores = scores.iter().copied().enumerate().rev();
        let (label, score) = scores.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let [x, y, wide, high] = [0, 1, 2, 3].map(|side| boxes[query * 4 + side]);
        let (left, right) = (x - 0.5 * wide, x + 0.5 * wide);
        let (top, bottom) = (y - 0.5 * high, y + 0.5 * high);
        (score > threshold).then_some(Detection {
            label,
            score,
            corners: [left * width, top * height, right * width, bottom * height],
        })
    };
    let of_image = |(image, size): (usize, &[usize; 2])| {
        let size = size.map(|pixels| pixels as f32);
        let queries = image * n_queries..(image + 1) * n_queries;
        queries.filter_map(|query| detection(query, size)).collect()
    };
    sizes.iter().enumerate().map(of_image).collect()
}
