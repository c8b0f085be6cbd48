//! How many of the objects that are there a detector finds, and how many of those that it finds are there.

use crate::{
    detect::Detection,
    scenes::{Object, SIDE, intersection_over_union},
};

/// A box is right if it shares this much with that of an object, as intersection over union.
const OVERLAP: f32 = 0.5;

/// The mean average precision at an overlap of 0.5 (mAP@0.5), from 0 to 1: for each digit, the area below the curve of the highest precision at each recall or above; of
/// these, the mean.
pub fn mean_average_precision(images: &[(Vec<Detection>, Vec<Object>)]) -> f64 {
    let precisions = (0..10).filter_map(|digit| average_precision(images, digit));
    let precisions: Vec<f64> = precisions.collect();
    precisions.iter().sum::<f64>() / precisions.len().max(1) as f64
}

/// The average precision of one digit, unless no image has it.
fn average_precision(images: &[(Vec<Detection>, Vec<Object>)], digit: usize) -> Option<f64> {
    let is_digit = |object: &&Object| usize::from(object.digit) == digit;
    let objects = images
        .iter()
        .map(|(_, objects)| objects.iter().filter(is_digit).count())
        .sum::<usize>();
    // Whether each detection is right, with its score.
    let mut found: Vec<(f32, bool)> = Vec::new();
    for (detections, objects) in images {
        let mut left: Vec<&Object> = objects.iter().filter(is_digit).collect();
        let mut detections: Vec<&Detection> = detections.iter().collect();
        detections.retain(|detection| detection.digit == digit);
        detections.sort_by(|a, b| b.score.total_cmp(&a.score));
        for detection in detections {
            let corners = detection.corners.map(|side| side * SIDE as f32);
            let overlap = |object: &&Object| intersection_over_union(&object.corners, &corners);
            let best =
                (0..left.len()).max_by(|&a, &b| overlap(&left[a]).total_cmp(&overlap(&left[b])));
            let best = best.filter(|&best| overlap(&left[best]) >= OVERLAP);
            // An object is found once.
            if let Some(best) = best {
                left.swap_remove(best);
            }
            found.push((detection.score, best.is_some()));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut right = 0;
    let precisions = found.iter().zip(1..).map(|((_, is_right), rank)| {
        right += usize::from(*is_right);
        (right as f64 / rank as f64, *is_right)
    });
    let precisions: Vec<(f64, bool)> = precisions.collect();
    let (mut highest, mut area) = (0.0f64, 0.0);
    for (precision, is_right) in precisions.into_iter().rev() {
        highest = highest.max(precision);
        if is_right {
            area += highest;
        }
    }
    (objects > 0).then(|| area / objects as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detection(score: f32, left: f32, digit: usize) -> Detection {
        Detection {
            digit,
            score,
            corners: [left, 0.0, left + 0.25, 0.25],
            query: 0,
        }
    }

    #[test]
    fn precision_falls_with_what_is_not_there_and_what_is_not_found() {
        let object = |left: f32, digit| Object {
            digit,
            corners: [left * 96.0, 0.0, (left + 0.25) * 96.0, 24.0],
        };
        let objects = vec![object(0.0, 3), object(0.5, 3)];
        let precision = |detections| mean_average_precision(&[(detections, objects.clone())]);
        let (first, second) = (detection(0.9, 0.0, 3), detection(0.8, 0.5, 3));
        assert_eq!(precision(vec![first, second]), 1.0);
        assert_eq!(precision(vec![second]), 0.5);
        // The same object again, with a score between theirs.
        assert_eq!(
            precision(vec![first, detection(0.85, 0.01, 3), second]),
            (1.0 + 2.0 / 3.0) / 2.0
        );
        // With a lower score it costs nothing.
        assert_eq!(precision(vec![first, second, detection(0.1, 0.01, 3)]), 1.0);
        // Another digit, and too far away.
        assert_eq!(precision(vec![detection(0.9, 0.0, 4), second]), 0.5);
        assert_eq!(precision(vec![detection(0.9, 0.1, 3), second]), 0.25);
    }
}
