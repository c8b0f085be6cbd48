//! The script of the attention page: parsed by node, and run in a Chromium.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use burn_attn_viz::{AttentionGroup, AttentionMap, AttentionPage};

use crate::command::{NODE, at, exists, has_node, program, read, root, run, skip, words, write};
use crate::times::Clock;

/// Names that a Chromium goes by.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// Longer than the largest page takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Collects what the page throws; stands before its own script.
const WATCH: &str = "<script>const failures = []; \
    addEventListener(\"error\", (event) => failures.push(event.message)); \
    addEventListener(\"unhandledrejection\", ({ reason }) => failures.push(String(reason)));</script>";

/// The sizes of a laptop's, two phones' and a desktop's screen, in pixels.
const SCREENS: [(u32, u32); 4] = [(1280, 800), (390, 844), (412, 915), (1920, 1080)];

/// Parses the script, then opens pages of several sizes, up to the longest rows that a page takes, and moves through
/// them. Without a Chromium the pages are not opened, which only a developer's machine may pass over.
pub fn check() -> Result<(), String> {
    // Said here, before the long checks: the explorer and the guide need it too.
    if has_node() {
        for script in ["elements", "save", "page"] {
            let script = format!("crates/viz/src/{script}.js");
            run(program("node").args(["--check", &script]))?;
        }
    } else {
        skip(&format!("the scripts of pages need {NODE}"))?;
    }
    let Some(browser) = browser("the attention page")? else {
        return Ok(());
    };
    let folder = root().join("target/attention-page");
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let explore = |file: &str, html: String| {
        let path = folder.join(file);
        write(&path, &html)?;
        let shown = format!("{browser} {}", path.display());
        eprintln!("\n$ {shown}");
        let clock = Clock::start();
        let report = open(browser, &folder, &path)?;
        clock.stop(&shown);
        eprintln!("  {report}");
        if report.starts_with("ok: ") {
            return Ok(());
        }
        let path = path.display();
        Err(format!("the attention page in {path}: {report}"))
    };
    explore("screens.html", on_screens(&page(13)))?;
    for tokens in [7, 320, 512, 1024] {
        explore(&format!("{tokens}.html"), explored(&page(tokens)))?;
    }
    Ok(())
}

/// The Chromium that opens `what`, or none on a developer's machine.
fn browser(what: &str) -> Result<Option<&'static str>, String> {
    let found = BROWSERS.into_iter().find(|name| exists(name));
    if found.is_none() {
        if std::env::var_os("CI").is_some_and(|ci| !ci.is_empty()) {
            let names = BROWSERS.join(", ");
            skip(&format!(
                "{what} needs a Chromium where CI is set ({names})"
            ))?;
        } else {
            eprintln!("\nskipped: {what} is not opened, no Chromium is installed");
        }
    }
    Ok(found)
}

/// The script at `path`, which opens `what` in a Chromium; none on a developer's machine without node or a Chromium.
pub fn script(what: &str, path: &str) -> Result<Option<Command>, String> {
    let Some(browser) = browser(what)? else {
        return Ok(None);
    };
    if !has_node() {
        skip(&format!("{what} needs {NODE}"))?;
        return Ok(None);
    }
    let mut node = program("node");
    node.args(["--experimental-websocket", path])
        .env("CHROMIUM", browser);
    Ok(Some(node))
}

/// A page of three groups, one causal, and one of a tall map that knows what was written.
fn page(tokens: usize) -> String {
    let labels: Vec<String> = (0..tokens).map(|place| format!("token {place}")).collect();
    let map = |heads: usize, causal: bool| {
        let mut weights = Vec::with_capacity(heads * tokens * tokens);
        for head in 0..heads {
            for i in 0..tokens {
                let visible = if causal { i + 1 } else { tokens };
                let shares: Vec<usize> = (0..visible)
                    .map(|j| 1 + (i * 7 + j * 13 + head * 5) % 11)
                    .collect();
                let sum: usize = shares.iter().sum();
                weights.extend(shares.iter().map(|&share| share as f32 / sum as f32));
                weights.resize(weights.len() + tokens - visible, 0.0);
            }
        }
        AttentionMap::new("layer 1", labels.clone(), labels.clone(), weights)
            .expect("every row sums to 1")
    };
    // The first query sees nothing, and no query sees the last key; the key before it gets a weight that rounds to 0.
    let row = |i: usize| match i {
        0 => [0.0; 4],
        _ => [0.75, 0.25, 1e-6, 0.0],
    };
    let weights = (0..tokens).flat_map(row).collect();
    let written = (1..=tokens).map(|place| format!("token {place}")).collect();
    let tall = AttentionMap::new("layer 1", labels.clone(), labels[..4].to_vec(), weights)
        .expect("a row sums to 1, or sees nothing");
    AttentionPage::new("A page to check")
        .source("What was read, with a word or two more.")
        .translation("What was written, with a word or two more.")
        .metadata("checkpoint", "none")
        .group(AttentionGroup::new("Any", vec![map(2, false)]))
        .group(AttentionGroup::new("Causal", vec![map(1, true)]))
        .group(AttentionGroup::new("Tall", vec![tall]).written(written))
        .to_html()
}

/// `html` with a script that explores it and writes a report at its end.
fn explored(html: &str) -> String {
    let explore = format!("<script>\n{}</script>\n</body>", include_str!("explore.js"));
    html.replacen("<head>", &format!("<head>{WATCH}"), 1)
        .replacen("</body>", &explore, 1)
}

/// `html` in a frame of the size of each screen, with a script that looks at them and writes a report. A browser's own window may not
/// be as narrow as a phone.
fn on_screens(html: &str) -> String {
    let source = html.replace('&', "&amp;").replace('"', "&quot;");
    let frame = |(width, height)| {
        format!(
            "<iframe width=\"{width}\" height=\"{height}\" style=\"border: 0\" srcdoc=\"{source}\"></iframe>\n"
        )
    };
    format!(
        "<!doctype html>\n<head>{WATCH}</head>\n<body>\n{}<script>\n{}</script>\n</body>",
        SCREENS.map(frame).concat(),
        include_str!("screens.js")
    )
}

/// Opens `file` without a window, and returns the report that its script wrote.
fn open(browser: &str, folder: &Path, file: &Path) -> Result<String, String> {
    let dump = folder.join("dump.html");
    let output = fs::File::create(&dump).map_err(at(&dump))?;
    let said = folder.join("stderr.txt");
    let errors = fs::File::create(&said).map_err(at(&said))?;
    // What an earlier run left, above all its lock, would keep the browser from starting.
    let profile = folder.join("profile");
    if profile.exists() {
        fs::remove_dir_all(&profile).map_err(at(&profile))?;
    }
    let fail = |what: String| {
        let said = fs::read_to_string(&said).unwrap_or_default();
        format!("{what}; it wrote to stderr: {}", said.trim())
    };
    let here = |error: std::io::Error| format!("{browser}: {error}");
    let mut child = Command::new(browser)
        // Root, as in a container, cannot have the sandbox, and the page is our own; a container's shared memory is too small for a
        // large page.
        .args(words(
            "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run \
             --disable-background-networking --disable-component-update --disable-sync --window-size=1400,900 --dump-dom",
        ))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(here)?;
    let start = Instant::now();
    while child.try_wait().map_err(here)?.is_none() {
        if start.elapsed() > PATIENCE {
            // It may have ended by itself in between.
            let _ = child.kill();
            let _ = child.wait();
            let (seconds, file) = (PATIENCE.as_secs(), file.display());
            return Err(fail(format!(
                "{browser} took more than {seconds} s over {file}"
            )));
        }
        sleep(Duration::from_millis(50));
    }
    let dump = read(&dump)?;
    let report = dump.split_once("<pre id=\"report\">");
    let report = report.and_then(|(_, rest)| rest.split_once("</pre>"));
    let missing = || fail(format!("{browser} showed no report of {}", file.display()));
    report
        .map(|(report, _)| report.to_owned())
        .ok_or_else(missing)
}
