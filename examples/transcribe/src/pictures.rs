//! Pictures of what each step of a transcription listened to.

use burn_attn_models::{
    speech::{Alignment, SpeechRecognizer, Transcript},
    text::labels,
};
use burn_attn_viz::AttentionMap;
use example_common::error::Error;

/// Frames of a column: 0.1 seconds.
const FRAMES: usize = 5;

/// What a reader has to know of the pictures.
pub const NOTE: &str = "A row is the step that has just read its token, and chooses the next one. Columns are tenths of a second of the recording; one in \
     which a word begins has the word. These are the heads that follow the speech, of all layers. The rest of a row is attention to the padding after the recording.";

/// The attention of the steps that read the tokens of a window, which begins at `start` (seconds), to each tenth of a second.
///
/// # Errors
///
/// When a weight is not finite.
pub fn map(
    recognizer: &SpeechRecognizer,
    transcript: &Transcript,
    alignment: Alignment,
    start: f64,
) -> Result<AttentionMap, Error> {
    let Alignment { words, weights, .. } = alignment;
    let [_, _, frames] = weights.dims();
    let weights: Vec<f32> = weights.into_data().iter::<f32>().collect();
    let tenths = weights
        .chunks(frames)
        .flat_map(|row| row.chunks(FRAMES).map(|frames| frames.iter().sum()));
    let mut keys: Vec<String> = (0..frames.div_ceil(FRAMES))
        .map(|column| format!("{:.1}", start + column as f64 / 10.0))
        .collect();
    for word in &words {
        let key = &mut keys[(word.start * 50.0).round() as usize / FRAMES];
        *key = format!("{key} {}", word.text);
    }
    let title = format!("from {start:.0} s");
    let queries = labels(&recognizer.tokenizer, &transcript.tokens);
    Ok(AttentionMap::new(title, queries, keys, tenths.collect())?)
}
