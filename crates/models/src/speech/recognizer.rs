//! From samples to text.

use std::path::Path;

use burn::tensor::Tensor;

use super::{
    Alignment, LogMel, SpeechError, SpeechSettings, alignment::first_frames, languages::known_code,
    settings::check_spectrograms, words::words,
};
use crate::{
    generate::{Autoregressive, FinishReason, GenerateOptions, stream},
    pretrained::{self, LoadOptions, Tokenizer, Wanted, folder_with},
    seq2seq::{Memory, Seq2SeqState},
    tokens::padded_tokens,
    whisper::{self, Whisper},
};

/// Samples of a frame of the memory: 20 ms.
const SAMPLES_OF_FRAME: usize = LogMel::SAMPLE_RATE / 50;

/// A [`Whisper`] with what turns recordings into text beside it.
///
/// See [the module](super) for an example.
#[derive(Debug)]
pub struct SpeechRecognizer {
    /// The model.
    pub model: Whisper,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// Special tokens, and heads that follow the speech.
    pub settings: SpeechSettings,
    log_mel: LogMel,
}

/// The text of a window.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The text.
    pub text: String,
    /// The tokens that the model chose after the special tokens before a text, without the end token. There may be timestamps, which the text does not have.
    pub tokens: Vec<u32>,
    /// The code of the language, in models of several languages.
    pub language: Option<String>,
    /// The states of the encoder.
    pub memory: Memory,
    /// How many of these states, 20 ms each, belong to the samples; the others belong to the padding.
    pub n_frames: usize,
}

impl SpeechRecognizer {
    /// Loads a [`Whisper`] and the files beside it, from a folder or a [name on the Hub](crate::pretrained).
    ///
    /// # Errors
    ///
    /// As [`whisper::from_pretrained`], and when a file beside the weights is missing or cannot be read.
    ///
    /// # Cost
    ///
    /// The cost of [`whisper::from_pretrained`].
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, SpeechError> {
        let model = whisper::from_pretrained(source.as_ref(), options)?;
        let folder = folder_with(source.as_ref(), Wanted::Speech)?;
        check_spectrograms(&folder, &model)?;
        Ok(Self {
            tokenizer: pretrained::tokenizer(&folder)?,
            settings: SpeechSettings::of(&folder, &model)?,
            log_mel: LogMel::new(model.n_mels()),
            model,
        })
    }

    /// The language of all recordings, by its code or its English name, in upper or lower case: `en`, `English`. Default: that of the files, or else that
    /// which is detected in each window.
    ///
    /// # Errors
    ///
    /// When the model does not know the language, or only one.
    pub fn with_language(mut self, language: &str) -> Result<Self, SpeechError> {
        let known = &self.settings.languages;
        if known.is_empty() {
            return Err(SpeechError::OneLanguage(language.into()));
        }
        let Some(code) = known_code(known, language) else {
            let known: Vec<&str> = known.keys().map(String::as_str).collect();
            return Err(SpeechError::Language {
                language: language.into(),
                known: known.join(", "),
            });
        };
        self.settings.language = Some(code);
        Ok(self)
    }

    /// The most samples that the model reads at once: 30 seconds in published models.
    pub fn window(&self) -> usize {
        self.model.max_frames() * SAMPLES_OF_FRAME
    }

    /// A recording in windows of as many samples as the model reads at once. The last one has the rest, which is left out if it is shorter than a frame
    /// of 20 ms, unless it is the whole recording.
    pub fn windows<'a>(&self, samples: &'a [f32]) -> impl Iterator<Item = &'a [f32]> + use<'a> {
        let window = self.window();
        let rest = samples.len() % window;
        let is_left_out = rest < SAMPLES_OF_FRAME && samples.len() > window;
        let end = samples.len() - if is_left_out { rest } else { 0 };
        samples[..end].chunks(window)
    }

    /// The text of a window: samples in −1 to 1, [`LogMel::SAMPLE_RATE`] a second.
    ///
    /// # Errors
    ///
    /// When there are more samples than a [`window`](Self::window) has or fewer than a frame of 20 ms, a sample is not finite, or generation fails. Silence is no
    /// error: the model invents a text for it, as it does in `transformers`.
    ///
    /// # Cost
    ///
    /// The cost of the encoder for a whole window, however short the recording is, and a step of the decoder for each token.
    pub fn recognize(&self, samples: &[f32]) -> Result<Transcript, SpeechError> {
        let most = self.window();
        if samples.len() > most {
            let samples = samples.len();
            return Err(SpeechError::TooLong { samples, most });
        }
        if samples.len() < SAMPLES_OF_FRAME {
            let (samples, least) = (samples.len(), SAMPLES_OF_FRAME);
            return Err(SpeechError::TooShort { samples, least });
        }
        SpeechError::check(samples)?;
        let device = self.model.positions.table.device();
        let spectrogram = self
            .log_mel
            .forward(samples, 2 * self.model.max_frames(), &device);
        let memory = self.model.encode(spectrogram);
        let mut state = self.model.seq2seq.start_from(memory.clone());
        let language = match (&self.settings.language, self.settings.languages.is_empty()) {
            (None, false) => Some(self.detect_language(&mut state)),
            (language, _) => language.clone(),
        };
        let prompt = self.settings.prompt(language.as_deref());
        // Detection has read the first token.
        let read = self.model.seq2seq.lengths(&state)[0];
        let tokens = self.generate_tokens(state, prompt[read..].to_vec())?;
        let of_text = tokens.iter().copied();
        let of_text: Vec<u32> = of_text.filter(|token| self.is_text(token)).collect();
        let text = self.tokenizer.decode(&of_text, true)?;
        Ok(Transcript {
            text: text.trim().to_owned(),
            tokens,
            language,
            memory,
            // As `transformers` counts them, in halves.
            n_frames: samples.len().div_ceil(SAMPLES_OF_FRAME / 2) / 2,
        })
    }

    /// When each word of a text begins, by the attention of the decoder to the states of the encoder.
    ///
    /// # Errors
    ///
    /// When the text has no tokens, or the recording no whole frame of 20 ms, the model does not have the heads that its files name, or the
    /// tokenizer fails.
    ///
    /// # Panics
    ///
    /// When the transcript is not of this model.
    ///
    /// # Cost
    ///
    /// The cost of the decoder for all tokens at once, with memory for `n_layers · n_heads · len · (len + max_frames)` weights.
    ///
    /// # Source
    ///
    /// PyTorch equivalent: the `token_timestamps` of `generate` of Hugging Face's `transformers`, after `openai-whisper`. Words are divided at
    /// spaces alone. Of a text that was cut off, the last token counts as well, as it does in `openai-whisper`.
    pub fn align(&self, transcript: &Transcript) -> Result<Alignment, SpeechError> {
        let Transcript {
            tokens,
            memory,
            n_frames,
            ..
        } = transcript;
        if tokens.is_empty() || *n_frames == 0 {
            return Err(SpeechError::NothingToAlign {
                tokens: tokens.len(),
                frames: *n_frames,
            });
        }
        let language = transcript.language.as_deref();
        let prompt = self.settings.prompt(language);
        let all = [prompt.as_slice(), tokens].concat();
        let model = &self.model.seq2seq;
        let target = padded_tokens(&[all], &memory.states.device());
        let input = model.decoder_input(target, memory);
        let weights = model.transformer.decoder.forward_with_weights(input);
        let weights = weights.cross_weights;
        let (heads, n_layers) = (&self.settings.alignment_heads, weights.len());
        let [_, n_heads, _, _] = weights[0].dims();
        let is_there = |(layer, head): &(usize, usize)| *layer < n_layers && *head < n_heads;
        if heads.is_empty() || !heads.iter().all(is_there) {
            return Err(SpeechError::AlignmentHeads {
                heads: heads.clone(),
                n_heads,
                n_layers,
            });
        }
        let of_head = |&(layer, head): &(usize, usize)| {
            let weights = weights[layer].clone().narrow(1, head, 1);
            let weights = weights.narrow(2, prompt.len(), tokens.len());
            weights.narrow(3, 0, *n_frames).squeeze_dim::<3>(0)
        };
        let weights = Tensor::cat(heads.iter().map(of_head).collect(), 0);
        let frames = first_frames(weights.clone());
        let token_starts: Vec<f64> = frames.iter().map(|&frame| frame as f64 / 50.0).collect();
        let is_text = |token: &u32| self.is_text(token);
        let words = words(&self.tokenizer, (tokens, &token_starts), is_text, language)?;
        Ok(Alignment {
            token_starts,
            words,
            weights,
        })
    }

    /// Whether a token belongs to the text: it is in the tokenizer, and neither special nor a timestamp, `<|1.08|>`.
    fn is_text(&self, token: &u32) -> bool {
        let Some(text) = self.tokenizer.id_to_token(*token) else {
            return false;
        };
        let inner = text.strip_prefix("<|").and_then(|it| it.strip_suffix("|>"));
        let is_seconds = |it: &str| it.contains('.') && it.parse::<f64>().is_ok();
        let added = self.tokenizer.get_added_vocabulary();
        !inner.is_some_and(is_seconds) && !added.is_special_token(&text)
    }

    /// The most probable language of a state that has read nothing, which then has read the first token.
    fn detect_language(&self, state: &mut Seq2SeqState) -> String {
        let first = [self.settings.start];
        let logits = self.model.seq2seq.advance(state, &[&first]);
        let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
        let languages = self.settings.languages.iter();
        // Settings are public: a token may be outside the vocabulary.
        let languages =
            languages.filter_map(|(code, &token)| Some((code, logits.get(token as usize)?)));
        let probable = languages.max_by(|(_, a), (_, b)| f32::total_cmp(a, b));
        probable.map_or_else(String::new, |(code, _)| code.clone())
    }

    /// The tokens that follow the prompt, without the end token.
    fn generate_tokens(
        &self,
        state: Seq2SeqState,
        prompt: Vec<u32>,
    ) -> Result<Vec<u32>, SpeechError> {
        let settings = &self.settings;
        let model = &self.model.seq2seq;
        let read = model.lengths(&state)[0];
        let most = model.max_len().saturating_sub(read + prompt.len());
        let most = settings.max_tokens.map_or(most, |tokens| tokens.min(most));
        let options = GenerateOptions::new(most).stop_tokens(settings.ends.iter().copied());
        let before = prompt.len();
        let steps = stream(model, state, &[prompt], &options)?.logits_processor(
            move |_, tokens, logits: &mut [f32]| {
                let first = match tokens.len() == before {
                    true => settings.suppressed_first.as_slice(),
                    false => &[],
                };
                for &token in settings.suppressed.iter().chain(first) {
                    if let Some(logit) = logits.get_mut(token as usize) {
                        *logit = f32::NEG_INFINITY;
                    }
                }
            },
        );
        let mut tokens = Vec::new();
        for step in steps {
            let chosen = step?[0];
            if !matches!(chosen.finish_reason, Some(FinishReason::Stop(_))) {
                tokens.push(chosen.token);
            }
        }
        Ok(tokens)
    }
}
