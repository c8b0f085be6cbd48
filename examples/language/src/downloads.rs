//! How far the download of a model is.

use std::sync::Mutex;

use burn_attn_models::pretrained;
use example_common::input;
use indicatif::ProgressBar;

const STYLE: &str = "{prefix} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

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
            *bar = input::bar(download.size, STYLE).with_prefix(file.clone());
        }
        bar.set_position(download.received);
        if download.received == download.size {
            bar.finish_and_clear();
        }
    });
}
