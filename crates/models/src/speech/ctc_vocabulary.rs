//! The text of the tokens of CTC models.

use std::{collections::BTreeMap, path::Path};

use crate::pretrained::{PretrainedError, Wanted, folder_with, object};

const EXPECTED: &str = "tokens and their numbers";
/// The token between words.
const DELIMITER: &str = "|";

/// The letters of a [`Wav2Vec2`](crate::wav2vec2::Wav2Vec2) with a head.
///
/// # Source
///
/// PyTorch equivalent: `decode` of `Wav2Vec2CTCTokenizer` of Hugging Face's `transformers` with `skip_special_tokens=True`, for tokens of which repetitions
/// and the blank are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CtcVocabulary {
    letters: BTreeMap<u32, String>,
}

impl CtcVocabulary {
    /// What `vocab.json` says, in a folder or of a [name on the Hub](crate::pretrained).
    ///
    /// # Errors
    ///
    /// When the file is missing, or is no list of tokens and their numbers. Those of models with several languages, such as MMS, have one list for each.
    pub fn from_pretrained(source: impl AsRef<Path>) -> Result<Self, PretrainedError> {
        let wanted = Wanted::Vocabulary;
        let path = folder_with(source.as_ref(), wanted)?.join(wanted.file());
        let fields = object(&path, EXPECTED)?;
        let letters = fields.into_iter().map(|(token, number)| {
            let known = number
                .as_u64()
                .and_then(|number| u32::try_from(number).ok());
            known.map(|number| (number, token)).ok_or(number)
        });
        let letters: Result<BTreeMap<u32, String>, _> = letters.collect();
        let letters = letters.map_err(|number| PretrainedError::File {
            path,
            expected: EXPECTED,
            reason: format!("{number} is not the number of a token"),
        })?;
        Ok(Self { letters })
    }

    /// The text of tokens, as [`Wav2Vec2::decode`](crate::wav2vec2::Wav2Vec2::decode) returns them. Special tokens, as `<s>`, and those that are not in the
    /// vocabulary have none.
    pub fn text(&self, tokens: &[u32]) -> String {
        let letters = tokens.iter().filter_map(|token| self.letters.get(token));
        let letters = letters.filter(|letter| !(letter.starts_with('<') && letter.ends_with('>')));
        let text: String = letters
            .map(|letter| if letter == DELIMITER { " " } else { letter })
            .collect();
        text.trim().to_owned()
    }
}
