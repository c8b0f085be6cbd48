//! The text of the tokens of CTC models.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde_json::{Map, Value, json};

use crate::pretrained::{
    ConfigFile, PretrainedError, Result, TOKENIZER_CONFIG, Wanted, folder_with, object, text_of,
    tokenizer_fields,
};

const EXPECTED: &str = "tokens and their numbers";
/// Special tokens with a role, and their texts if no file has them.
const ROLES: [(&str, Option<&str>); 7] = [
    ("bos_token", Some("<s>")),
    ("eos_token", Some("</s>")),
    ("unk_token", Some("<unk>")),
    ("pad_token", Some("<pad>")),
    ("sep_token", None),
    ("cls_token", None),
    ("mask_token", None),
];
/// The replacements if `clean_up_tokenization_spaces` is true, in this order.
const CLEANED: [(&str, &str); 10] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

/// The letters of a [`Wav2Vec2`](crate::wav2vec2::Wav2Vec2) with a head.
///
/// # Source
///
/// PyTorch equivalent: `decode` of `Wav2Vec2CTCTokenizer` of Hugging Face's `transformers` with `skip_special_tokens=True` and `group_tokens=False`, for
/// tokens without repetitions and blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CtcVocabulary {
    /// The letters of tokens that are not special.
    letters: BTreeMap<u32, String>,
    is_lower_case: bool,
    cleans_up_spaces: bool,
}

impl CtcVocabulary {
    /// What `vocab.json` says, in a folder or of a [name on the Hub](crate::pretrained), and, where they are there, `tokenizer_config.json`,
    /// `special_tokens_map.json` and `added_tokens.json`: which tokens are special, which one is between words (`word_delimiter_token`, which
    /// `from_pretrained` of version 5.24 of `transformers` loses) and what it becomes, and whether texts are in lower case.
    ///
    /// # Errors
    ///
    /// When `vocab.json` is missing, or is no list of tokens and their numbers, and when another file says what is not supported: another
    /// `tokenizer_class`, or the `target_lang` of models with several languages, such as MMS, which have one list for each.
    pub fn from_pretrained(source: impl AsRef<Path>) -> Result<Self, PretrainedError> {
        let wanted = Wanted::Vocabulary;
        let folder = folder_with(source.as_ref(), wanted)?;
        let mut letters = letters(&folder.join(wanted.file()))?;
        let path = folder.join(TOKENIZER_CONFIG);
        let mut fields = tokenizer_fields(&folder)?;
        let mut added = BTreeMap::new();
        // With this field, `transformers` does not read `added_tokens.json` either.
        if let Some(tokens) = fields.remove("added_tokens_decoder") {
            for (token, content) in tokens.as_object().into_iter().flatten() {
                added.extend(token.parse().ok().zip(text_of(content).map(String::from)));
            }
        } else {
            let path = folder.join("added_tokens.json");
            if path.exists() {
                added = self::letters(&path)?;
            }
        }
        for (token, letter) in added {
            letters.entry(token).or_insert(letter);
        }
        let special = special(&mut fields);
        let mut file = ConfigFile::of_fields(path, "the vocabulary of a CTC model", fields);
        file.only("tokenizer_class", json!("Wav2Vec2CTCTokenizer"))?;
        file.only("target_lang", Value::Null)?;
        // Fields for encoding, for recordings, and for how the file was made.
        file.ignore(
            "add_prefix_space additional_special_tokens auto_map backend do_normalize extra_special_tokens is_local local_files_only \
             max_length model_max_length name_or_path pad_to_multiple_of pad_token_type_id padding padding_side processor_class \
             return_attention_mask special_tokens_map_file split_special_tokens stride tokenizer_file truncation truncation_side \
             truncation_strategy",
        );
        let text = |value: &Value| text_of(value).map(String::from);
        let mut named =
            |field: &str, missing: &str| file.parsed_or(field, "a text", text, missing.into());
        let delimiter = named("word_delimiter_token", "|")?;
        let between_words = named("replace_word_delimiter_char", " ")?;
        letters.retain(|_, letter| *letter == delimiter || !special.contains(letter));
        for letter in letters.values_mut().filter(|it| **it == delimiter) {
            letter.clone_from(&between_words);
        }
        let vocabulary = Self {
            letters,
            is_lower_case: file.flag("do_lower_case", false)?,
            cleans_up_spaces: file.flag("clean_up_tokenization_spaces", false)?,
        };
        file.finish()?;
        Ok(vocabulary)
    }

    /// The text of tokens, as [`Wav2Vec2::decode`](crate::wav2vec2::Wav2Vec2::decode) returns them. Special tokens, as `<s>`, and those that are not in the
    /// vocabulary have none.
    pub fn text(&self, tokens: &[u32]) -> String {
        let letters = tokens.iter().filter_map(|token| self.letters.get(token));
        let text: String = letters.map(String::as_str).collect();
        let mut text = text.trim().to_owned();
        if self.is_lower_case {
            text = text.to_lowercase();
        }
        if self.cleans_up_spaces {
            for (from, to) in CLEANED {
                text = text.replace(from, to);
            }
        }
        text
    }
}

/// The tokens that a file lists, by their numbers.
fn letters(path: &Path) -> Result<BTreeMap<u32, String>> {
    let letters = object(path, EXPECTED)?.into_iter().map(|(token, number)| {
        let known = number
            .as_u64()
            .and_then(|number| u32::try_from(number).ok());
        known.map(|number| (number, token)).ok_or(number)
    });
    let letters: Result<_, Value> = letters.collect();
    letters.map_err(|number| {
        PretrainedError::file(
            path,
            EXPECTED,
            format!("{number} is not the number of a token"),
        )
    })
}

/// The special tokens that these fields name, which are taken out: those with a role, those of any other field that ends with `_token`, and lists of more.
fn special(fields: &mut Map<String, Value>) -> BTreeSet<String> {
    let mut special = BTreeSet::new();
    for (role, missing) in ROLES {
        special.extend(match fields.remove(role) {
            Some(token) => text_of(&token).map(String::from),
            None => missing.map(String::from),
        });
    }
    for list in ["additional_special_tokens", "extra_special_tokens"] {
        let tokens: Vec<&Value> = match fields.get(list) {
            Some(Value::Array(tokens)) => tokens.iter().collect(),
            Some(Value::Object(tokens)) => tokens.values().collect(),
            _ => Vec::new(),
        };
        special.extend(tokens.into_iter().filter_map(text_of).map(String::from));
    }
    fields.retain(|field, token| {
        let is_kept =
            !field.ends_with("_token") || field == "word_delimiter_token" || !token.is_string();
        if !is_kept {
            special.extend(text_of(token).map(String::from));
        }
        is_kept
    });
    special
}
