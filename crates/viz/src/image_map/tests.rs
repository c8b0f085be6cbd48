//! The pixels that are drawn.

use super::*;
use crate::TextOptions;

fn decoded(png: &[u8]) -> ([usize; 2], Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    ([frame.height as usize, frame.width as usize], pixels)
}

#[test]
fn the_largest_weight_has_the_strongest_colour() {
    // Two patches side by side, of 150 × 151 pixels each.
    let map = ImageMap::new([150, 302], vec![100; 150 * 302 * 3]).unwrap();
    let map = map.attention([1, 2], vec![0.25, 0.75]).unwrap();
    let (size, pixels) = decoded(&map.to_png());
    assert_eq!(size, [150, 2 * 302 + GAP]);
    let at = |row: usize, column: usize| &pixels[(row * size[1] + column) * 3..][..3];
    let second = 302 + GAP;
    assert_eq!(at(149, 301), [100; 3]);
    assert_eq!(at(0, 302), [255; 3]);
    // Up to the middle of the first patch, and from the middle of the second one on.
    assert_eq!(at(75, second), [100; 3]);
    assert_eq!(at(75, second + 301), [204, 98, 20]);
    // Half of it between the patches.
    assert_eq!(at(75, second + 151), [152, 99, 60]);
}

#[test]
fn a_small_image_is_enlarged() {
    let pixels: Vec<u8> = (0..28 * 28 * 3).map(|at| (at % 256) as u8).collect();
    let map = ImageMap::new([28, 28], pixels.clone()).unwrap();
    let map = map.attention([4, 4], vec![1.0 / 9.0; 16]).unwrap();
    let (size, drawn) = decoded(&map.to_png());
    assert_eq!(size, [280, 572]);
    assert_eq!(
        drawn[(13 * 572 + 27) * 3..][..3],
        pixels[(28 + 2) * 3..][..3]
    );
    // Equal weights have no colour.
    for row in drawn.chunks(572 * 3) {
        assert_eq!(row[..280 * 3], row[(280 + GAP) * 3..]);
    }
}

#[test]
fn classes_and_boxes_have_their_colours() {
    let map = ImageMap::new([300, 400], vec![100; 300 * 400 * 3]).unwrap();
    let mut classes = vec![0; 300 * 400];
    (classes[0], classes[1], classes[2]) = (10, 1, 20);
    let map = map.classes(classes.clone(), Some(0)).unwrap();
    let map = map.boxed([100.0, 50.0, 200.0, 150.0], 4).unwrap();
    let (size, pixels) = decoded(&map.to_png());
    assert_eq!(size, [300, 2 * 400 + GAP]);
    let at = |row: usize, column: usize| &pixels[(row * size[1] + column) * 3..][..3];
    let second = 400 + GAP;
    assert_eq!(at(0, second), [204, 147, 20]);
    assert_eq!(at(0, second + 1), [89, 164, 206]);
    assert_eq!(at(0, second + 2), at(0, second));
    assert_eq!(at(0, second + 3), [100; 3]);
    assert_eq!(at(0, 0), [100; 3]);
    // Three pixels wide, on both panels.
    for panel in [0, second] {
        for column in [99, 100, 199, 200] {
            assert_eq!(at(60, panel + column), [0, 114, 178]);
        }
        for column in [97, 102, 197, 202] {
            assert_eq!(at(60, panel + column), [100; 3]);
        }
        assert_eq!(at(50, panel + 150), [0, 114, 178]);
        assert_eq!(at(100, panel + 150), [100; 3]);
    }
    assert_eq!(class_color(4), [0, 114, 178]);
    // Without a background, every class has a colour.
    let map = ImageMap::new([300, 400], vec![100; 300 * 400 * 3]).unwrap();
    let (_, pixels) = decoded(&map.classes(classes, None).unwrap().to_png());
    assert_eq!(pixels[(second + 3) * 3..][..3], [204, 147, 20]);
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let error = |size, bytes, grid, weights| {
        let map = ImageMap::new(size, vec![0; bytes]);
        let map = map.and_then(|map| map.attention(grid, weights));
        map.unwrap_err().to_string()
    };
    assert_eq!(
        error([2, 3], 17, [1, 1], vec![1.0]),
        "17 bytes are not the 18 of an image 2 high and 3 wide, 3 for each pixel"
    );
    assert_eq!(
        error([0, 3], 0, [1, 1], vec![1.0]),
        "an image 0 high and 3 wide has no pixels"
    );
    assert_eq!(
        error([2, 3], 18, [2, 2], vec![1.0; 3]),
        "3 weights are not one for each of 2 rows × 2 columns = 4 patches"
    );
    let all = usize::MAX as u128;
    assert_eq!(
        error([usize::MAX, 2], 3, [1, 1], vec![1.0]),
        format!(
            "3 bytes are not the {} of an image {all} high and 2 wide, 3 for each pixel",
            6 * all
        )
    );
    assert_eq!(
        error([2, 3], 18, [usize::MAX, 2], vec![1.0; 3]),
        format!(
            "3 weights are not one for each of {all} rows × 2 columns = {} patches",
            2 * all
        )
    );
    assert_eq!(
        error([2, 3], 18, [0, 2], vec![]),
        "0 rows × 2 columns are no patches"
    );
    assert_eq!(
        error([2, 3], 18, [1, 2], vec![0.5, -0.5]),
        "the weight of patch 1 is -0.5; it must be finite and at least 0"
    );
    assert_eq!(
        error([2, 3], 18, [1, 2], vec![f32::NAN, 0.5]),
        "the weight of patch 0 is NaN; it must be finite and at least 0"
    );
    let map = ImageMap::new([2, 3], vec![0; 18]).unwrap();
    assert_eq!(
        map.classes(vec![0; 5], None).unwrap_err().to_string(),
        "5 classes are not one for each of the 6 pixels of an image 2 high and 3 wide"
    );
}

#[test]
fn a_box_without_an_inside_is_refused() {
    let boxed = |corners| {
        let map = ImageMap::new([2, 3], vec![0; 18]).unwrap();
        map.boxed(corners, 0)
    };
    assert_eq!(
        boxed([2.0, 0.0, 1.0, 2.0]).unwrap_err().to_string(),
        "the box from 2, 0 (left, top) to 1, 2 (right, bottom) must be finite, with right at least left and bottom at least top"
    );
    for corners in [
        [0.0, 2.0, 1.0, 1.0],
        [0.0, f32::NAN, 1.0, 1.0],
        [0.0, 0.0, f32::INFINITY, 1.0],
    ] {
        assert!(boxed(corners).is_err(), "{corners:?}");
    }
    // A single point, and what is beyond the image.
    assert!(boxed([1.0; 4]).is_ok());
    assert!(boxed([-5.0, 0.0, 1.0, 9.0]).is_ok());
}

#[test]
fn the_terminal_shows_patches_and_classes() {
    let map = ImageMap::new([2, 4], vec![128; 24]).unwrap();
    assert_eq!(map.to_text(&TextOptions::default()), "");
    let weights = vec![0.0, 0.02, 0.1, 0.2, 0.3, 0.08];
    let read = map.clone().attention([2, 3], weights).unwrap();
    let read = read.boxed([1.0, 0.4, 3.2, 2.0], 1).unwrap();
    assert_eq!(
        read.to_text(&TextOptions::default()),
        "\
attention to 2 × 3 patches, weights from 0.0000 to 0.3000; box from 1, 0 to 3, 2
··░░▒▒
▓▓██▒▒
from the smallest weight (0) to the largest one (1): · <0.05  ░ <0.25  ▒ <0.5  ▓ <0.75  █ ≥0.75
"
    );
    // A narrow line has the largest weight of the patches that a character covers.
    let narrow = TextOptions::default().max_width(3);
    let lines: Vec<_> = read.to_text(&narrow).lines().map(String::from).collect();
    let legend = "from the smallest weight (0) to the largest one (1): · <0.05  ░ <0.25  ▒ <0.5  ▓ <0.75  █ ≥0.75";
    assert_eq!(lines[1..], ["▓█▒", legend]);
    let classes = map.classes(vec![0, 1, 1, 2, 0, 0, 2, 11], Some(0)).unwrap();
    let drawn = |map: &ImageMap| map.to_text(&TextOptions::default());
    assert_eq!(
        drawn(&classes),
        "classes of an image 2 pixels high and 4 wide\n··aaaabb\n····bbcc\nclasses: a class 1, b class 2, c class 11\n"
    );
    let mut names: Vec<String> = (0..12).map(|name| format!("no {name}")).collect();
    (names[1], names[2], names[11]) = ("7".into(), "3".into(), "x".into());
    assert_eq!(
        drawn(&classes.clone().class_names(names.clone())),
        "classes of an image 2 pixels high and 4 wide\n··777733\n····33xx\nclasses: 7, 3, x\n"
    );
    let background = classes.clone().classes(vec![0; 8], Some(0)).unwrap();
    assert!(drawn(&background).ends_with("\nclasses: none\n"));
    names[2] = "sky".into();
    assert!(drawn(&classes.class_names(names)).ends_with("classes: a 7, b sky, c x\n"));
}

#[test]
fn an_svg_says_the_weight_of_every_patch() {
    let pixels: Vec<u8> = (0..24).map(|at| at * 10).collect();
    let map = ImageMap::new([2, 4], pixels.clone()).unwrap();
    let map = map.attention([1, 2], vec![0.25, 0.75]).unwrap();
    let svg = map.boxed([1.0, 0.5, 3.0, 2.0], 4).unwrap().to_svg();
    // 70 times as large, and beside it the same.
    assert!(svg.contains("viewBox=\"0 0 572 140\""), "{svg}");
    assert!(
        svg.contains("An image 2 pixels high and 4 wide; beside it, attention to 1 × 2 patches")
    );
    let patches = [
        "<rect x=\"0.00\" y=\"0.00\" width=\"140.00\" height=\"140.00\" fill-opacity=\"0.000\"><title>row 1, column 1: 0.2500</title></rect>",
        "<rect x=\"140.00\" y=\"0.00\" width=\"140.00\" height=\"140.00\" fill-opacity=\"0.800\"><title>row 1, column 2: 0.7500</title></rect>",
    ];
    for patch in patches {
        assert!(svg.contains(patch), "{svg}");
    }
    let outline = "<rect x=\"70.0\" y=\"35.0\" width=\"140.0\" height=\"105.0\" fill=\"none\" stroke=\"#0072b2\"";
    assert_eq!(svg.matches(outline).count(), 2);
    // The image itself is there once.
    let (_, image) = svg.split_once("base64,").unwrap();
    let (image, rest) = image.split_once('"').unwrap();
    assert!(!rest.contains("base64,"));
    let png = base64::engine::general_purpose::STANDARD;
    let png = base64::Engine::decode(&png, image).unwrap();
    assert_eq!(decoded(&png), ([2, 4], pixels));
}

#[test]
fn images_of_the_same_pixels_and_another_size_have_another_name() {
    let names = [[2, 4], [4, 2]].map(|size| {
        let svg = ImageMap::new(size, vec![7; 24]).unwrap().to_svg();
        let (_, name) = svg.split_once("<g id=\"").unwrap();
        name.split_once('"').unwrap().0.to_string()
    });
    assert_ne!(names[0], names[1]);
}
