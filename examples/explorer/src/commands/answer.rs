//! The page's requests, answered by this program: what the page shows is compared with it.

use std::{io::BufRead, path::Path};

use burn::tensor::Device;
use clap::Args;
use example_common::{error::Error, exit};
use explorer_model::{Answer, Explorer, ModelFile};
use serde::Serialize;
use serde_json::json;

/// Options of `answer`.
#[derive(Args)]
pub struct AnswerArgs {
    /// The model's name
    #[arg(long, default_value = "story")]
    name: String,
}

/// An answer with its numbers, in JSON.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    numbers: &'a [f32],
}

/// Answers each line of the standard input by a line; a wrong one by a sentence, as `error`.
pub fn run(args: &AnswerArgs, page: &Path) -> Result<(), Error> {
    let bytes = super::page_files::read_compressed(&page.join(format!("{}.model.gz", args.name)))?;
    let mut explorer = Explorer::new(ModelFile::from_bytes(&bytes, &Device::flex())?);
    for line in std::io::stdin().lock().lines() {
        let request = serde_json::from_str(&line?).map_err(|error| error.to_string());
        let answer = request.and_then(|request| explorer.answer(&request));
        let line = match &answer {
            Ok(answer) => serde_json::to_string(&Line {
                answer,
                numbers: &answer.numbers,
            }),
            Err(error) => serde_json::to_string(&json!({ "error": error })),
        };
        exit::print(&format!("{}\n", line?));
    }
    Ok(())
}
