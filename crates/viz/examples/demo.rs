//! Writes a page, an SVG and a terminal picture of made-up attention, to see what the pictures look like:
//!
//! ```text
//! cargo run -p burn-attn-viz --example demo -- /tmp/attention
//! ```

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use burn_attn_viz::{
    AttentionGroup, AttentionMap, AttentionPage, Background, SvgOptions, TextOptions, render_svg,
    render_text,
};

const ENGLISH: [&str; 7] = ["The", "cat", "sat", "on", "the", "mat", "."];
const GERMAN: [&str; 7] = ["<s>", "Die", "Katze", "saß", "auf", "der", "Matte"];

/// What the decoder writes after each of its tokens.
const WRITTEN: [&str; 7] = ["Die", "Katze", "saß", "auf", "der", "Matte", "."];

const USAGE: &str = "usage: cargo run -p burn-attn-viz --example demo -- [FOLDER]
Writes attention.html, head.svg and layer.svg into FOLDER (target if there is none), and prints two heads.";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match folder(&arguments) {
        Ok(Some(folder)) => draw(&folder).map(|()| ExitCode::SUCCESS),
        Ok(None) => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

/// Where to write, or `None` to print the help.
fn folder(arguments: &[OsString]) -> Result<Option<PathBuf>, String> {
    match arguments {
        [] => Ok(Some("target".into())),
        [help] if help == "--help" || help == "-h" => Ok(None),
        [option] if option.as_encoded_bytes().starts_with(b"-") => {
            Err(format!("unknown option {}", option.display()))
        }
        [folder] => Ok(Some(folder.into())),
        [_, ..] => Err(format!("one folder, not {}", arguments.len())),
    }
}

fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;

    let encoder = layers(&ENGLISH, &ENGLISH, false)?;
    let decoder = layers(&GERMAN, &GERMAN, true)?;
    let cross = layers(&GERMAN, &ENGLISH, false)?;

    print!("{}", render_text(&encoder[0], 0, &TextOptions::default()));
    let in_color = TextOptions::default().color(Background::Dark);
    print!("\n{}", render_text(&cross[1], 2, &in_color));

    let one_head = SvgOptions::default().head(2);
    std::fs::write(folder.join("head.svg"), render_svg(&cross[1], &one_head))?;
    let all_heads = SvgOptions::default();
    std::fs::write(
        folder.join("layer.svg"),
        render_svg(&decoder[0], &all_heads),
    )?;

    let page = AttentionPage::new("The cat sat on the mat: what every head looks at")
        .source("The cat sat on the mat.")
        .translation("Die Katze saß auf der Matte.")
        .metadata("model", "made-up weights, no model")
        .metadata("decoding", "greedy")
        .group(AttentionGroup::new("Encoder self-attention", encoder))
        .group(AttentionGroup::new("Decoder self-attention", decoder).written(strings(&WRITTEN)))
        .group(AttentionGroup::new("Cross-attention", cross).written(strings(&WRITTEN)));
    let path = folder.join("attention.html");
    std::fs::write(&path, page.to_html())?;
    println!("\nwrote head.svg, layer.svg and {}", path.display());
    Ok(())
}

/// Two layers of four heads, each with a habit that trained transformers are known for.
fn layers(
    queries: &[&str],
    keys: &[&str],
    causal: bool,
) -> Result<Vec<AttentionMap>, Box<dyn Error>> {
    let crossing = queries != keys;
    let mut maps = Vec::new();
    for layer in 0..2_usize {
        let mut weights = Vec::new();
        for head in 0..4_usize {
            for i in 0..queries.len() {
                let score = |j: usize| {
                    let distance = j as f32 - i as f32;
                    let unevenness = ((i * 7 + j * 13 + head * 5 + layer * 3) % 11) as f32 / 11.0;
                    let habit = match (head + layer, crossing) {
                        (2, true) => 4.0 * f32::from(i == j) - 0.5 * distance.abs(),
                        (3, true) => 2.5 * f32::from(i == j),
                        (_, true) => -0.4 * distance.abs(),
                        (0, _) => 4.0 * f32::from(j + 1 == i), // the token before
                        (1, _) => 2.0 * f32::from(i == j) - 0.3 * distance.abs(),
                        (2, _) => 3.5 * f32::from(j == 0), // the first token, when there is nothing to say
                        (3, _) => 2.5 * f32::from(j == 2), // the verb
                        _ => 0.0,
                    };
                    habit + unevenness
                };
                let visible = if causal { i + 1 } else { keys.len() };
                let mut shares: Vec<f32> = (0..visible).map(|j| score(j).exp()).collect();
                shares.resize(keys.len(), 0.0);
                let sum: f32 = shares.iter().sum();
                weights.extend(shares.iter().map(|share| share / sum));
            }
        }
        let title = format!("layer {}", layer + 1);
        let (queries, keys) = (strings(queries), strings(keys));
        maps.push(AttentionMap::new(title, queries, keys, weights)?);
    }
    Ok(maps)
}

fn strings(tokens: &[&str]) -> Vec<String> {
    tokens.iter().map(ToString::to_string).collect()
}

#[test]
fn options_are_not_folders() {
    let folder = |arguments: &[&str]| {
        let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
        folder(&arguments)
    };
    assert_eq!(folder(&[]), Ok(Some("target".into())));
    assert_eq!(folder(&["pictures"]), Ok(Some("pictures".into())));
    assert_eq!(folder(&["--help"]), Ok(None));
    assert_eq!(folder(&["-h"]), Ok(None));
    assert_eq!(folder(&["--out"]), Err("unknown option --out".into()));
    assert_eq!(folder(&["a", "b"]), Err("one folder, not 2".into()));
}
