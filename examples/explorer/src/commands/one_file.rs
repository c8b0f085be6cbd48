//! The page as one HTML file: `page/one-file.js` finds the other files in it.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use example_common::{
    error::Error,
    exit::println,
    files::{self, FileError},
};

/// What a file from the disk may do: run what stands in it, and load nothing.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; style-src 'unsafe-inline'; \
     img-src data:; form-action 'none'; base-uri 'none'";

/// Options of `one-file`.
#[derive(Args)]
pub struct OneFileArgs {
    /// Where to write it
    #[arg(long, value_name = "FILE", default_value = "explorer.html")]
    out: PathBuf,
}

/// Writes the file.
pub fn run(args: &OneFileArgs, page: &Path) -> Result<(), Error> {
    let text = |name: &str| {
        let path = page.join(name);
        let bytes = super::page_files::read(&path)?;
        String::from_utf8(bytes).map_err(|_| Error::from(format!("{} is no text", path.display())))
    };
    let mut html = String::new();
    for line in text("index.html")?.lines() {
        let is = |what: &str| line.contains(what);
        if is("rel=\"modulepreload\"") || is("rel=\"preload\"") {
            continue;
        } else if is("Content-Security-Policy") {
            html += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">");
        } else if is("href=\"style.css\"") {
            html += &format!("<style>\n{}</style>", text("style.css")?);
        } else if is("href=\"icon.svg\"") {
            let icon = STANDARD.encode(text("icon.svg")?);
            html += &format!("<link rel=\"icon\" href=\"data:image/svg+xml;base64,{icon}\">");
        } else if is("src=\"main.js\"") {
            html += &embedded(page)?;
            html += &format!(
                "<script type=\"module\">\n{}</script>",
                text("one-file.js")?
            );
        } else {
            html += line;
        }
        html.push('\n');
    }
    files::replace(&args.out, html.as_bytes())?;
    println(&format!("{}: {} bytes", args.out.display(), html.len()));
    Ok(())
}

/// Every module and every file that a module reads, as an element with its name and its bytes in base64.
fn embedded(page: &Path) -> Result<String, Error> {
    let mut html = String::new();
    for folder in ["", "screens/"] {
        let path = page.join(folder);
        let listed = std::fs::read_dir(&path).map_err(FileError::of("list", &path))?;
        let mut names = listed
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<std::io::Result<Vec<_>>>()?;
        names.sort();
        for name in names {
            let is_embedded = [".js", ".json", ".gz"]
                .iter()
                .any(|end| name.ends_with(end));
            if is_embedded && !["one-file.js", "built.json", "package.json"].contains(&&*name) {
                let bytes = STANDARD.encode(super::page_files::read(&path.join(&name))?);
                writeln!(
                    html,
                    "<script type=\"application/base64\" data-file=\"{folder}{name}\">{bytes}</script>"
                )?;
            }
        }
    }
    Ok(html)
}
