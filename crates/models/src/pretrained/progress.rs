//! The progress of downloads.

use std::sync::{Arc, PoisonError, RwLock};

use hf_hub::progress::{DownloadEvent, ProgressEvent, ProgressHandler};

/// A file that is being downloaded from the Hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Download<'a> {
    /// The name of the file in the model's folder.
    pub file: &'a str,
    /// Bytes that have arrived.
    pub received: u64,
    /// Bytes of the whole file.
    pub size: u64,
}

type Show = dyn Fn(&Download) + Send + Sync;

static SHOW: RwLock<Option<Arc<Show>>> = RwLock::new(None);

/// Calls `show` for every file that this process downloads from now on: at its start, again and again as bytes arrive, and when it is complete.
/// A second call replaces `show`. Without a call nothing is shown.
///
/// `show` is called from other threads, in the middle of the download, which waits for it.
///
/// # Example
///
/// ```
/// use burn_attn_models::pretrained;
///
/// pretrained::on_download(|download| {
///     eprint!("\r{} {} of {} bytes", download.file, download.received, download.size);
/// });
/// ```
pub fn on_download(show: impl Fn(&Download) + Send + Sync + 'static) {
    *SHOW.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(show));
}

/// Passes on the events of `hf-hub` for the download of one file.
pub(super) struct Progress {
    pub(super) file: String,
    pub(super) size: u64,
}

impl ProgressHandler for Progress {
    fn on_progress(&self, event: &ProgressEvent) {
        let show = SHOW.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (ProgressEvent::Download(event), Some(show)) = (event, show) else {
            return;
        };
        let received = match event {
            DownloadEvent::Start { .. } => 0,
            DownloadEvent::Progress { files } => match files.last() {
                Some(file) => file.bytes_completed,
                None => return,
            },
            DownloadEvent::AggregateProgress {
                bytes_completed, ..
            } => *bytes_completed,
            DownloadEvent::Complete => self.size,
        };
        show(&Download {
            file: &self.file,
            received: received.min(self.size),
            size: self.size,
        });
    }
}
