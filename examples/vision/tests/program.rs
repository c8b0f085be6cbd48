//! The program, on scans that are made here, and with the model that this repository has.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use image::{DynamicImage, GrayImage, ImageFormat, Luma, RgbaImage};
use tempfile::tempdir;

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vision"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[track_caller]
fn printed(output: Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn refused(output: Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr)
}

fn digit(name: &str) -> String {
    format!("{}/images/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Files of MNIST with so many scans: a bar for each digit, longer from one to the next.
fn write_scans(folder: &Path, part: &str, count: usize) {
    let header = |words: &[u32]| -> Vec<u8> {
        let bytes = words.iter().flat_map(|word| word.to_be_bytes());
        bytes.collect()
    };
    let mut images = header(&[0x803, count as u32, 28, 28]);
    for scan in 0..count {
        let long = 2 * (scan % 10) + 3;
        let is_bar = |at: usize| at / 28 < long && at % 28 < 9;
        images.extend((0..28 * 28).map(|at| if is_bar(at) { 200 } else { 0 }));
    }
    let mut digits = header(&[0x801, count as u32]);
    digits.extend((0..count).map(|scan| (scan % 10) as u8));
    fs::write(folder.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
    fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), digits).unwrap();
}

#[test]
fn a_run_is_trained_resumed_tested_and_used() {
    let folder = tempdir().unwrap();
    write_scans(folder.path(), "train", 60);
    write_scans(folder.path(), "t10k", 20);
    let train = |more: &[&str]| {
        run(
            folder.path(),
            &[&["train", "recognise", "--data", "."], more].concat(),
        )
    };
    assert_eq!(
        refused(train(&["--resume"])),
        "error: vision-run: there is no checkpoint here: train without --resume\n"
    );
    let out = printed(train(&["--epochs", "2", "--batch", "8"]));
    // 55 scans in steps of 8.
    assert!(out.starts_with("205962 parameters, 14 steps\n"), "{out}");
    assert!(out.ends_with("the model is in vision-run\n"), "{out}");
    let weights = fs::read(folder.path().join("vision-run/model.safetensors")).unwrap();
    assert!(
        (400_000..450_000).contains(&weights.len()),
        "{}",
        weights.len()
    );
    assert_eq!(
        refused(train(&[])),
        "error: vision-run: there is a run here already: go on with it by --resume, or choose another --out\n"
    );
    // It is at its end, and saves the same model again.
    assert_eq!(
        printed(train(&["--resume"])).lines().last(),
        Some("the model is in vision-run")
    );
    assert_eq!(
        fs::read(folder.path().join("vision-run/model.safetensors")).unwrap(),
        weights
    );
    let model = ["--model", "vision-run"];
    let tested = run(
        folder.path(),
        &[&["test", "recognise", "--data", "."], &model[..]].concat(),
    );
    assert!(printed(tested).ends_with(" %\n"));
    let seven = digit("7.png");
    let recognised = run(
        folder.path(),
        &[&["recognise", &seven], &model[..]].concat(),
    );
    assert!(printed(recognised).starts_with(&seven));
    write_scans(folder.path(), "train", 61);
    assert_eq!(
        refused(train(&["--resume"])),
        "error: vision-run: . is not the data of this run\n"
    );
}

#[test]
fn digits_are_recognised_and_drawn() {
    let folder = tempdir().unwrap();
    for name in ["7", "4", "0"] {
        let image = digit(&format!("{name}.png"));
        let options = ["--picture", "map.png", "--svg", "map.svg", "--text"];
        let out = printed(run(
            folder.path(),
            &[&["recognise", &image], &options[..]].concat(),
        ));
        assert!(out.starts_with(&format!("{image}: {name} (")), "{out}");
        // The first line, a title, four rows of patches and a legend.
        assert_eq!(out.lines().count(), 7, "{out}");
        assert!(
            out.contains("\nattention to 4 × 4 patches, weights from 0.0"),
            "{out}"
        );
        let svg = fs::read_to_string(folder.path().join("map.svg")).unwrap();
        assert_eq!(svg.matches("<title>row ").count(), 16);
        let map = image::open(folder.path().join("map.png")).unwrap();
        assert_eq!((map.width(), map.height()), (572, 280));
    }
}

#[test]
fn digits_are_found_in_a_scene_and_drawn() {
    let folder = tempdir().unwrap();
    let scene = digit("scene-7.png");
    let look = |task| printed(run(folder.path(), &[task, &scene, "--picture", "map.png"]));
    let width = || image::open(folder.path().join("map.png")).unwrap().width();
    let found = look("detect");
    assert!(found.starts_with(&format!("{scene}: 0 (0.")), "{found}");
    assert!(found.ends_with(" at 2, 41 to 23, 59\n"), "{found}");
    // The scene, and where the query looked that found the digit.
    assert_eq!(width(), 2 * 288 + 12);
    let lines = printed(run(folder.path(), &["segment", &scene, "--text"]));
    assert!(lines.ends_with("\nclasses: 0\n"), "{lines}");
    let found = look("segment");
    assert!(found.starts_with(&format!("{scene}: 0 (")), "{found}");
    assert!(found.contains(" %, #56b4e9)"), "{found}");
    assert_eq!(width(), 2 * 288 + 12);
}

#[test]
fn other_scenes_are_not_measured() {
    let folder = tempdir().unwrap();
    write_scans(folder.path(), "t10k", 20);
    for task in ["detect", "segment"] {
        let error = refused(run(folder.path(), &["test", task, "--data", "."]));
        assert!(
            error.starts_with("error: the data is not MNIST's, "),
            "{error}"
        );
    }
    assert_eq!(
        printed(run(folder.path(), &["scene", "3", "3.png", "--data", "."])),
        ""
    );
    let scene = image::open(folder.path().join("3.png")).unwrap();
    assert_eq!((scene.width(), scene.height()), (96, 96));
}

#[test]
fn images_of_any_kind_are_the_same_digit() {
    let folder = tempdir().unwrap();
    let seven = image::open(digit("7.png")).unwrap();
    let grey = seven.to_luma8();
    let save = |name: &str, image: &DynamicImage| {
        let format = ImageFormat::from_path(name).unwrap();
        image
            .save_with_format(folder.path().join(name), format)
            .unwrap();
    };
    save("grey.png", &seven);
    save("colour.jpg", &DynamicImage::ImageRgb8(seven.to_rgb8()));
    save("sixteen.png", &DynamicImage::ImageLuma16(seven.to_luma16()));
    save("opaque.png", &DynamicImage::ImageRgba8(seven.to_rgba8()));
    save(
        "large.bmp",
        &seven.resize_exact(140, 140, image::imageops::FilterType::Triangle),
    );
    let names = [
        "grey.png",
        "colour.jpg",
        "sixteen.png",
        "opaque.png",
        "large.bmp",
    ];
    let output = run(folder.path(), &[&["recognise"], &names[..]].concat());
    assert_eq!(text(&output.stderr), "");
    let out = printed(output);
    assert_eq!(out.lines().count(), names.len());
    for (line, name) in out.lines().zip(names) {
        assert!(line.starts_with(&format!("{name}: 7 (")), "{line}");
    }
    // A quarter turn that the EXIF data of a JPEG turn back.
    let turned = DynamicImage::ImageLuma8(grey.clone()).rotate270();
    let mut jpeg = Vec::new();
    turned
        .write_to(&mut std::io::Cursor::new(&mut jpeg), ImageFormat::Jpeg)
        .unwrap();
    let exif: &[u8] = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let segment = [
        &[0xff, 0xe1][..],
        &(exif.len() as u16 + 2).to_be_bytes(),
        exif,
    ]
    .concat();
    jpeg.splice(2..2, segment);
    fs::write(folder.path().join("turned.jpg"), jpeg).unwrap();
    // Dark on light.
    let mut dark = DynamicImage::ImageLuma8(grey);
    dark.invert();
    save("dark.png", &dark);
    let out = printed(run(folder.path(), &["recognise", "turned.jpg"]));
    assert!(out.starts_with("turned.jpg: 7 ("), "{out}");
    let output = run(folder.path(), &["recognise", "dark.png", "--invert"]);
    assert_eq!(text(&output.stderr), "");
    assert!(printed(output).starts_with("dark.png: 7 ("));
    let output = run(folder.path(), &["recognise", "dark.png"]);
    assert_eq!(
        text(&output.stderr),
        "dark.png: most of it is light, but the model has seen light digits on a dark ground: try with --invert\n"
    );
}

#[test]
fn what_cannot_be_recognised_has_a_sentence() {
    let folder = tempdir().unwrap();
    let refuse = |args: &[&str]| refused(run(folder.path(), &[&["recognise"], args].concat()));
    assert!(refuse(&["none.png"]).starts_with("error: cannot read none.png: "));
    fs::write(folder.path().join("text.png"), "text").unwrap();
    let error = refuse(&["text.png"]);
    assert!(
        error.starts_with("error: text.png is not an image that can be read: "),
        "{error}"
    );
    let seven = fs::read(digit("7.png")).unwrap();
    fs::write(folder.path().join("cut.png"), &seven[..seven.len() / 2]).unwrap();
    let error = refuse(&["cut.png"]);
    assert!(
        error.starts_with("error: cut.png is not an image that can be read: "),
        "{error}"
    );
    RgbaImage::new(5, 5)
        .save(folder.path().join("clear.png"))
        .unwrap();
    assert_eq!(
        refuse(&["clear.png"]),
        "error: clear.png has transparent pixels: give it a background\n"
    );
    GrayImage::from_pixel(9, 5, Luma([7]))
        .save(folder.path().join("blank.png"))
        .unwrap();
    assert_eq!(
        refuse(&["blank.png"]),
        "error: blank.png has the same colour everywhere\n"
    );
    assert_eq!(
        refuse(&["blank.png", "--model", "none"]),
        "error: none is not the folder of a model\n"
    );
    assert_eq!(
        refuse(&["a.png", "b.png", "--picture", "c.png"]),
        "error: --picture draws one image, but there are 2\n"
    );
    fs::copy(digit("7.png"), folder.path().join("7.png")).unwrap();
    assert_eq!(
        refuse(&["7.png", "--picture", "./7.png"]),
        "error: --picture would overwrite ./7.png\n"
    );
    assert_eq!(
        refuse(&["7.png", "--svg", "./7.png"]),
        "error: --svg would overwrite ./7.png\n"
    );
    assert_eq!(
        refuse(&["7.png", "--svg", "./a", "--picture", "a"]),
        "error: --picture and --svg name the same file, ./a\n"
    );
    // The others are recognised all the same.
    let seven = digit("7.png");
    let output = run(folder.path(), &["recognise", "blank.png", &seven]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("7.png: 7 ("));
    let tested = run(folder.path(), &["test", "recognise"]);
    assert_eq!(
        refused(tested),
        "error: target/weights/mnist/t10k-images-idx3-ubyte is not there: in the folder of the repository, `cargo xtask fetch mnist` fetches it\n"
    );
}

/// By the first number that `test` prints of each.
#[test]
fn the_models_of_this_repository_are_as_good_as_they_were() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("target/weights/mnist").is_dir() {
        println!("skipped: MNIST not fetched");
        return;
    }
    for (task, expected) in [
        ("recognise", 9_900.0..=10_000.0),
        ("detect", 0.92..=1.0),
        ("segment", 0.8..=1.0),
    ] {
        let out = printed(run(&root, &["test", task]));
        let mut words = out.split([' ', ',']);
        let number: Option<f64> = words.find_map(|word| word.parse().ok());
        let is_expected = number.is_some_and(|number| expected.contains(&number));
        assert!(is_expected, "{out}");
    }
}
