//! What a model's files say of its special tokens and of its heads.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

use super::languages::{code, known_code};
use crate::{
    pretrained::{
        AUDIO_SETTINGS, ConfigFile, GENERATION_SETTINGS, MODEL_CONFIG, Result, Wanted, object,
        preprocessor_if_any,
    },
    whisper::Whisper,
};

const FILE: &str = "generation_config.json";
/// Fields that would change the text, or end it, unless they are null.
const ONLY_NULL: &str = "min_new_tokens forced_bos_token_id forced_eos_token_id bad_words_ids sequence_bias exponential_decay_length_penalty \
     no_speech_threshold logprob_threshold compression_ratio_threshold prompt_ids constraints dola_layers force_words_ids max_time penalty_alpha \
     stop_strings watermarking_config";
/// Ignored: fields of features that are not supported here (sampling, beams, timestamps, texts before a window), of speed, and of the form of results.
const HARMLESS: &str = "_commit_hash _from_model_config assistant_confidence_threshold assistant_early_exit assistant_ensemble_weight \
     assistant_lookbehind bos_token_id cache_config cache_implementation compile_config condition_on_prev_tokens \
     continuous_batching_config disable_compile diversity_penalty early_stopping epsilon_cutoff eta_cutoff is_assistant length_penalty low_memory \
     max_cache_len max_initial_timestamp_index max_matching_ngram_size min_p num_assistant_tokens num_assistant_tokens_schedule output_attentions \
     output_hidden_states output_logits output_scores pad_token_id prefill_chunk_size prev_sot_token_id prompt_condition_type \
     prompt_lookup_num_tokens remove_invalid_values renormalize_logits return_dict_in_generate return_segments return_token_timestamps \
     speculation_type target_lookbehind temperature time_precision top_h top_k top_p transformers_version typical_p use_cache use_mtp";

/// The special tokens of a model, and the heads whose attention follows the speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeechSettings {
    /// The token that every text begins with.
    pub start: u32,
    /// The tokens that end a text.
    pub ends: Vec<u32>,
    /// The token that says that a text has no timestamps, if the model knows others.
    pub no_timestamps: Option<u32>,
    /// Tokens that are never chosen.
    pub suppressed: Vec<u32>,
    /// Tokens that are not chosen first.
    pub suppressed_first: Vec<u32>,
    /// Layer and head of the cross-attentions that say when a word begins. Default: all heads of the upper half of the layers.
    pub alignment_heads: Vec<(usize, usize)>,
    /// The token of each language, by its code: `en`. Empty in models that know English only.
    pub languages: BTreeMap<String, u32>,
    /// The code of the language of all recordings. Default: that which is detected in each window.
    pub language: Option<String>,
    /// The token that asks for a text in the language that is spoken, in models of several languages.
    pub transcribe: Option<u32>,
    /// The tokens after the first one in models whose files name no languages.
    pub forced: Vec<u32>,
    /// The most tokens of a text. Default: as many as the model has positions for.
    pub max_tokens: Option<usize>,
}

impl SpeechSettings {
    /// What `generation_config.json` in this folder says of `model`, and `config.json` of the tokens before a text.
    pub(super) fn of(folder: &Path, model: &Whisper) -> Result<Self> {
        let path = folder.join(FILE);
        let fields = object(&path, GENERATION_SETTINGS)?;
        let mut file = ConfigFile::of_fields(path, "Whisper", fields);
        // Fields that would change the text.
        file.only("do_sample return_timestamps token_healing", json!(false))?;
        file.only("num_beams num_beam_groups num_return_sequences", json!(1))?;
        file.only("repetition_penalty", json!(1.0))?;
        file.only("no_repeat_ngram_size", json!(0))?;
        file.only("task", json!("transcribe"))?;
        file.only("min_length encoder_no_repeat_ngram_size", json!(0))?;
        file.only("encoder_repetition_penalty guidance_scale", json!(1.0))?;
        file.only(ONLY_NULL, Value::Null)?;
        file.ignore(HARMLESS);
        let max_new_tokens = file.value("max_new_tokens", "a number of tokens")?;
        let max_length = file.value("max_length", "a number of tokens")?;
        let vocab_size = model.vocab_size();
        let token = |value: &Value| {
            let token = u32::deserialize(value).ok()?;
            ((token as usize) < vocab_size).then_some(token)
        };
        let one = format!("a token below {vocab_size}");
        let mut special = |field: &str| file.parsed(field, &one, token);
        let start = special("decoder_start_token_id")?;
        let no_timestamps = special("no_timestamps_token_id")?;
        let ends = file.parsed("eos_token_id", &one, |value| match value {
            Value::Array(tokens) => tokens.iter().map(token).collect(),
            one => token(one).map(|token| vec![token]),
        })?;
        let ends = ends.filter(|ends: &Vec<u32>| !ends.is_empty());
        let start = file.needed("decoder_start_token_id", start)?;
        let ends = file.needed("eos_token_id", ends)?;
        let suppressed = tokens(&mut file, "suppress_tokens", vocab_size)?;
        let suppressed_first = tokens(&mut file, "begin_suppress_tokens", vocab_size)?;
        let layers = &model.seq2seq.transformer.decoder.layers;
        let heads = layers[0].cross_attention.as_ref();
        let heads = heads.map_or(0, |attention| attention.heads.n_heads());
        let upper = layers.len() / 2..layers.len();
        let all = upper.flat_map(|layer| (0..heads).map(move |head| (layer, head)));
        let alignment_heads = file.value("alignment_heads", "a list of layers and heads")?;
        let languages: Option<BTreeMap<String, Value>> =
            file.value("lang_to_id", "the tokens of languages")?;
        let languages = languages.unwrap_or_default();
        let is_multilingual = file.flag("is_multilingual", !languages.is_empty())?;
        let languages = languages.into_iter().filter(|_| is_multilingual);
        let languages =
            languages.filter_map(|(name, id)| Some((code(&name).to_owned(), token(&id)?)));
        let languages: BTreeMap<String, u32> = languages.collect();
        let tasks: Option<BTreeMap<String, Value>> =
            file.value("task_to_id", "the tokens of tasks")?;
        let transcribe = tasks.unwrap_or_default().get("transcribe").and_then(token);
        let known = |value: &Value| known_code(&languages, value.as_str()?);
        file.ignore("language");
        let language = match is_multilingual {
            true => file.parsed(
                "language",
                "a language of lang_to_id, by its code or its English name",
                known,
            )?,
            false => None,
        };
        let in_file = forced(&mut file)?;
        let path = folder.join(Wanted::Config.file());
        let mut of_model =
            ConfigFile::of_fields(path.clone(), "Whisper", object(&path, MODEL_CONFIG)?);
        // As in `transformers`, which then does not read `forced_decoder_ids`.
        let is_newer = language.is_some() || file.has("task");
        let (forced, source) = match in_file {
            _ if is_newer => (None, &file),
            Some(forced) => (Some(forced), &file),
            None => (forced(&mut of_model)?, &of_model),
        };
        let (forced, language) = match forced {
            Some(forced) if !languages.is_empty() => {
                let spoken = spoken(&forced, &languages, [transcribe, no_timestamps]);
                let supported = "null or a token of lang_to_id, then that of transcribing, and perhaps that of no timestamps";
                source.check("forced_decoder_ids", spoken.is_some(), || supported)?;
                (Vec::new(), spoken.flatten())
            }
            forced => (forced.unwrap_or_default(), language),
        };
        let forced = forced.into_iter().flatten();
        let forced = forced.filter(|&token| (token as usize) < vocab_size);
        file.finish()?;
        Ok(Self {
            start,
            ends,
            no_timestamps,
            suppressed,
            suppressed_first,
            alignment_heads: alignment_heads.unwrap_or_else(|| all.collect()),
            language,
            transcribe: transcribe.filter(|_| !languages.is_empty()),
            forced: forced.collect(),
            // Neither field counts the tokens before a text.
            max_tokens: max_new_tokens.or(max_length),
            languages,
        })
    }

    /// The special tokens before a text in this language.
    pub(super) fn prompt(&self, language: Option<&str>) -> Vec<u32> {
        let language = language.and_then(|language| self.languages.get(language));
        let mut prompt = vec![self.start];
        prompt.extend(&self.forced);
        prompt.extend(language);
        prompt.extend(self.transcribe);
        if prompt.last().copied() != self.no_timestamps {
            prompt.extend(self.no_timestamps);
        }
        prompt
    }
}

/// Refuses settings in this folder, if there are any, for other spectrograms than those of [`LogMel`](super::LogMel): those in
/// `preprocessor_config.json`, or the `feature_extractor` of `processor_config.json`.
pub(super) fn check_spectrograms(folder: &Path, model: &Whisper) -> Result<()> {
    let part = preprocessor_if_any(folder, "feature_extractor", AUDIO_SETTINGS)?;
    let Some((path, fields)) = part else {
        return Ok(());
    };
    let mut file = ConfigFile::of_fields(path, "Whisper", fields);
    file.only("feature_extractor_type", json!("WhisperFeatureExtractor"))?;
    file.only("sampling_rate", json!(16_000))?;
    file.only("n_fft", json!(400))?;
    file.only("hop_length", json!(160))?;
    file.only("dither padding_value", json!(0.0))?;
    file.only("padding_side", json!("right"))?;
    file.size_as("feature_size", 80, ("num_mel_bins", model.n_mels()))?;
    let seconds = model.max_frames() / 50;
    let window = ("max_source_positions at 50 a second", seconds);
    file.size_as("chunk_length", 30, window)?;
    // Fields of names, of the form of results, and fields that follow from the others.
    file.ignore(
        "processor_class return_attention_mask return_tensors mel_filters n_samples nb_max_frames",
    );
    file.finish().map(drop)
}

/// The tokens after the first one, if the file names them.
fn forced(file: &mut ConfigFile) -> Result<Option<Vec<Option<u32>>>> {
    let expected = "tokens and their places from 1 on";
    let forced = file.parsed("forced_decoder_ids", expected, |value| {
        let forced: Vec<(usize, Option<u32>)> = Vec::deserialize(value).ok()?;
        let mut places = forced.iter().zip(1..);
        places
            .all(|((place, _), expected)| *place == expected)
            .then_some(forced)
    })?;
    let forced = forced.filter(|forced| !forced.is_empty());
    Ok(forced.map(|forced| forced.into_iter().map(|(_, token)| token).collect()))
}

/// The language that the first of `tokens`, which come after the start token, names: `Some(None)` if the file leaves it open. `None` if it is no language,
/// or no tokens follow it, or others than the beginning of `prompt`.
fn spoken(
    tokens: &[Option<u32>],
    languages: &BTreeMap<String, u32>,
    prompt: [Option<u32>; 2],
) -> Option<Option<String>> {
    let (first, others) = tokens.split_first()?;
    if others.is_empty() || !prompt.starts_with(others) {
        return None;
    }
    let of_language = |token: &u32| {
        let mut languages = languages.iter();
        let (code, _) = languages.find(|(_, language)| *language == token)?;
        Some(code.clone())
    };
    match first {
        Some(token) => of_language(token).map(Some),
        None => Some(None),
    }
}

/// Tokens that are suppressed, as far as the model knows them.
fn tokens(file: &mut ConfigFile, field: &str, vocab_size: usize) -> Result<Vec<u32>> {
    let tokens: Option<Vec<i64>> = file.value(field, "a list of tokens")?;
    let tokens = tokens.into_iter().flatten();
    let known = tokens.filter_map(|token| u32::try_from(token).ok());
    let known = known.filter(|&token| (token as usize) < vocab_size);
    Ok(known.collect())
}
