use super::*;

/// Reads "[CLS] question [SEP] passage [SEP]" in pieces of words.
fn tokenizer() -> Tokenizer {
    let words = "[UNK] [CLS] [SEP] who où is a ##nna ##ï ##t ol ##d caf ##é café .";
    let vocabulary: serde_json::Map<_, _> = (words.split(' ').zip(0..))
        .map(|(word, id): (&str, u32)| (word.to_string(), id.into()))
        .collect();
    let vocab_size = vocabulary.len();
    let special = |token: &str, type_id: u32| serde_json::json!({"SpecialToken": {"id": token, "type_id": type_id}});
    let text =
        |id: &str, type_id: u32| serde_json::json!({"Sequence": {"id": id, "type_id": type_id}});
    let of_special =
        |token: &str, id: u32| serde_json::json!({"id": token, "ids": [id], "tokens": [token]});
    let fields = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": null,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special("[CLS]", 0), text("A", 0), special("[SEP]", 0)],
            "pair": [special("[CLS]", 0), text("A", 0), special("[SEP]", 0), text("B", 1), special("[SEP]", 1)],
            "special_tokens": {"[CLS]": of_special("[CLS]", 1), "[SEP]": of_special("[SEP]", 2)}
        },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary
        }
    });
    Tokenizer {
        tokenizer: fields.to_string().parse().unwrap(),
        vocab_size,
        max_len: 100,
    }
}

#[test]
fn tokens_and_bytes_of_an_answer_belong_together() {
    let passage = "old café. anna is old. naïf";
    let reading = Reading::new(&tokenizer(), "où is anna", passage).unwrap();
    // [CLS] où is a ##nna [SEP], and then the passage.
    assert_eq!(reading.passage.start, 6);
    let tokens = reading.tokens.get_tokens();
    assert_eq!(
        tokens[reading.passage.clone()],
        [
            "ol", "##d", "café", ".", "a", "##nna", "is", "ol", "##d", ".", "[UNK]"
        ]
    );
    for answer in ["café", "old café", "anna", "anna is old", "naïf"] {
        let start = passage.find(answer).unwrap();
        let bytes = start..start + answer.len();
        let tokens = reading.tokens_of(&bytes).unwrap();
        assert_eq!(&passage[reading.bytes_of(tokens)], answer);
    }
    // A part of a word is the whole piece that has it.
    let tokens = reading.tokens_of(&(1..2)).unwrap();
    assert_eq!((tokens, reading.bytes_of(tokens)), ([6, 6], 0..2));
    assert_eq!(reading.tokens_of(&(3..3)), None);
}

#[test]
fn the_best_answer_is_in_the_passage_and_ends_after_it_starts() {
    let reading = Reading::new(&tokenizer(), "who", "anna is old").unwrap();
    // [CLS] who [SEP] a ##nna is ol ##d [SEP]
    let len = reading.tokens.len();
    let [mut starts, mut ends] = [vec![-9.0; len], vec![-9.0; len]];
    // Outside, and an end before its start.
    (starts[1], ends[8]) = (0.0, 0.0);
    (starts[6], ends[4]) = (-1.0, -1.0);
    (starts[3], ends[7]) = (-2.0, -3.0);
    let answer = best(&reading, (&starts, &ends));
    // From "ol" to "##d": -4 beside the -3 of "anna".
    assert_eq!(answer.bytes, 0..4);
    assert!((answer.probability - (-3.0_f32).exp()).abs() < 1e-6);

    let words = "old ".repeat(40);
    let reading = Reading::new(&tokenizer(), "who", &words).unwrap();
    let [mut starts, mut ends] = [(); 2].map(|()| vec![-9.0; reading.tokens.len()]);
    (starts[3], ends[3 + LONGEST]) = (0.0, 0.0);
    let answer = best(&reading, (&starts, &ends));
    assert!(answer.bytes.len() < 4 * LONGEST / 2);
}
