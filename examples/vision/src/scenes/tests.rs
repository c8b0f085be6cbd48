use std::path::Path;

use super::*;

#[test]
fn scenes_are_what_they_are_said_to_be() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/weights/mnist");
    let folder = Path::new(folder);
    if !folder.is_dir() {
        eprintln!("skipped: weights not fetched");
        return;
    }
    let mnist = Mnist::test(folder).expect("the files of MNIST");
    let scenes = Scenes {
        augments: true,
        ..Scenes::unseen(100..200, 0)
    };
    let mut digits = [0; MOST + 1];
    for number in 0..200 {
        let scene = scenes.scene(&mnist, number);
        assert_eq!(scene, scenes.scene(&mnist, number));
        digits[scene.objects.len()] += 1;
        for (index, object) in scene.objects.iter().enumerate() {
            let [left, top, right, bottom] = object.corners;
            assert!(left >= 0.0 && top >= 0.0 && right <= 96.0 && bottom <= 96.0);
            let longer = (right - left).max(bottom - top);
            assert!((14.0..=40.0).contains(&longer), "{longer}");
            for other in &scene.objects[..index] {
                assert!(intersection_over_union(&object.corners, &other.corners) <= OVERLAP);
            }
        }
        // Pixels of a class are light, and in the box of such a digit.
        for (at, &class) in scene.classes.iter().enumerate() {
            let Some(digit) = class.checked_sub(1) else {
                continue;
            };
            assert!(scene.pixels[at] >= INK);
            let [x, y] = [at % SIDE, at / SIDE].map(|side| side as f32 + 0.5);
            let holds = |object: &&Object| {
                let [left, top, right, bottom] = object.corners;
                object.digit == digit && x > left && x < right && y > top && y < bottom
            };
            assert!(scene.objects.iter().any(|object| holds(&object)));
        }
    }
    assert_eq!(digits[0], 0);
    assert!(digits[1..].iter().all(|&scenes| scenes > 20), "{digits:?}");
}

#[test]
fn areas_that_boxes_share() {
    let iou = |other| intersection_over_union(&[0.0, 0.0, 4.0, 2.0], &other);
    assert_eq!(iou([0.0, 0.0, 4.0, 2.0]), 1.0);
    assert_eq!(iou([2.0, 0.0, 6.0, 2.0]), 1.0 / 3.0);
    assert_eq!(iou([4.0, 0.0, 6.0, 2.0]), 0.0);
    assert_eq!(iou([1.0, 0.0, 1.0, 0.0]), 0.0);
}
