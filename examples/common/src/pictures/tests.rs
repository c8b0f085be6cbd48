use std::fs;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    pictures: Pictures,
}

fn pictures(args: &[&str]) -> Result<Pictures, clap::Error> {
    let args = ["program"].iter().chain(args);
    Cli::try_parse_from(args).map(|cli| cli.pictures)
}

/// Two kinds of attention: one layer of one head, and two of three.
fn page() -> AttentionPage {
    let tokens = ["le", "chat"].map(String::from).to_vec();
    let layer = |layer: usize, heads: usize| {
        let weights = [0.75, 0.25, 0.0, 1.0].repeat(heads);
        AttentionMap::new(
            format!("layer {layer}"),
            tokens.clone(),
            tokens.clone(),
            weights,
        )
        .unwrap()
    };
    let encoder = AttentionGroup::new("Encoder self-attention", vec![layer(1, 1)]);
    let cross = AttentionGroup::new("Cross-attention", vec![layer(1, 3), layer(2, 3)]);
    AttentionPage::new("What is looked at")
        .group(encoder)
        .group(cross)
}

/// The title and the head that are drawn, or what is wrong.
fn chosen(text: &str) -> Result<(String, Option<usize>), String> {
    let choice: Choice = text.parse()?;
    assert_eq!(choice.to_string(), text);
    let found = choice.of(page().groups());
    found
        .map(|(map, head)| (map.title().into(), head))
        .map_err(|error| error.to_string())
}

#[test]
fn a_choice_is_a_kind_a_layer_and_a_head() {
    for (text, title, head) in [
        ("1", "Cross-attention, layer 1", None),
        ("2:3", "Cross-attention, layer 2", Some(2)),
        ("cross", "Cross-attention, layer 2", None),
        ("Enc:1", "Encoder self-attention, layer 1", None),
        ("encoder:1:1", "Encoder self-attention, layer 1", Some(0)),
    ] {
        assert_eq!(chosen(text), Ok((title.into(), head)), "{text}");
    }
    let (map, head) = Choice::default().of(page().groups()).unwrap();
    assert_eq!((map.title(), head), ("Cross-attention, layer 2", None));
}

#[test]
fn a_layer_and_a_head_are_two_numbers() {
    let numbers = |text: &str| text.parse::<Choice>().unwrap().layer_and_head();
    assert_eq!(numbers("6:12"), Some([6, 12]));
    for text in ["6", "cross", "cross:6", "cross:6:12"] {
        assert_eq!(numbers(text), None, "{text}");
    }
}

#[test]
fn what_is_not_there_is_refused() {
    for text in [
        "", "0:1", "1:0", "6:", "1:2:3", "-1:2", "cross:a", ":1", "1:cross",
    ] {
        assert!(text.parse::<Choice>().is_err(), "{text:?}");
    }
    for (text, problem) in [
        ("3:1", "Cross-attention has 2 maps of 3 heads"),
        ("2:4", "Cross-attention has 2 maps of 3 heads"),
        ("encoder:2", "Encoder self-attention has 1 map of 1 head"),
        (
            "self:1",
            "the kinds of attention are Encoder self-attention, Cross-attention",
        ),
    ] {
        assert_eq!(chosen(text), Err(format!("--draw {text}: {problem}")));
    }
    let empty = [AttentionGroup::new("Cross-attention", vec![])];
    assert!(Choice::default().of(&empty).is_err());
}

#[test]
fn files_have_what_was_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (html, svg) = (path("a.html"), path("a.svg"));
    let draw = |args: &[&str]| {
        let pictures = pictures(args).unwrap();
        assert!(pictures.are_wanted());
        pictures.probe().unwrap();
        pictures.draw(&page()).unwrap();
    };
    draw(&["--html", &html, "--svg", &svg]);
    assert!(
        fs::read_to_string(&html)
            .unwrap()
            .contains("What is looked at")
    );
    let all = fs::read_to_string(&svg).unwrap();
    assert!(
        all.contains("<title>Cross-attention, layer 2, 3 heads</title>"),
        "{all}"
    );
    draw(&["--svg", &svg, "--draw", "1:2"]);
    let one = fs::read_to_string(&svg).unwrap();
    assert!(
        one.contains("<title>Cross-attention, layer 1, head 2 of 3</title>"),
        "{one}"
    );
}

#[test]
fn what_is_drawn_has_a_place() {
    assert!(!pictures(&[]).unwrap().are_wanted());
    assert!(pictures(&["--text"]).unwrap().are_wanted());
    assert!(pictures(&["--svg", "a.svg", "--text", "--draw", "6:12"]).is_ok());
    for alone in [
        &["--draw", "6"][..],
        &["--draw", "6", "--html", "a.html"],
        &["--text", "--draw", "0"],
    ] {
        assert!(pictures(alone).is_err(), "{alone:?}");
    }
    let text = pictures(&["--text"]).unwrap();
    let refused = text.probe_for(&[], "text", None).unwrap_err().to_string();
    assert_eq!(
        refused,
        "--text: there is no text on the command line to draw"
    );
    let both = pictures(&["--svg", "a", "--html", "a", "--text"]).unwrap();
    assert_eq!(
        both.probe_for(&[], "question", None)
            .unwrap_err()
            .to_string(),
        "--html and --svg and --text: there is no question on the command line to draw"
    );
    assert_eq!(
        both.probe().unwrap_err().to_string(),
        "--html and --svg name the same file, a"
    );
    let missing = pictures(&["--svg", "missing/a.svg"]).unwrap().probe();
    assert!(
        missing
            .unwrap_err()
            .to_string()
            .starts_with("cannot write missing/a.svg: ")
    );
}
