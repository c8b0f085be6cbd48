//! How far the download of a model is.

use std::sync::Mutex;

use burn_attn_models::pretrained;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows a bar for every file that is downloaded from now on, if standard error is a terminal.
pub fn show() {
    let shown = Mutex::new((String::new(), ProgressBar::hidden()));
    pretrained::on_download(move |download| {
        // Nothing that is done here panics.
        let Ok(mut shown) = shown.lock() else {
            return;
        };
        let (file, bar) = &mut *shown;
        if file != download.file {
            *file = download.file.to_owned();
            *bar = new_bar(file, download.size);
        }
        bar.set_position(download.received);
        if download.received == download.size {
            bar.finish_and_clear();
        }
    });
}

fn new_bar(file: &str, size: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{prefix} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
    );
    ProgressBar::new(size)
        .with_prefix(file.to_owned())
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
