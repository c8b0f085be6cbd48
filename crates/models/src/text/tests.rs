//! Every sequence of a few tokens, and labels.

use super::*;

/// Letters, bytes of `é` and `€`, a special token, and one that has no name.
const POOL: [u32; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 99];

/// A tokenizer that falls back on bytes, as those of Llama 2 and Gemma.
fn with_fallback() -> Tokenizer {
    let fields = r#"{
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "added_tokens": [{"id": 7, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}
        ]},
        "model": {"type": "WordLevel", "unk_token": "a", "vocab": {
            "a": 0, "▁b": 1, "<0xC3>": 2, "<0xA9>": 3, "<0xE2>": 4, "<0x82>": 5, "<0xAC>": 6, "<s>": 7, "<0x0A>": 8, "▁": 9, "<0x20>": 10
        }}
    }"#;
    fields.parse().unwrap()
}

/// A tokenizer of bytes, as those of GPT-2, Llama 3 and Qwen: `Ã©` are the bytes of `é`, `â`, `Ĥ` and `¬` those of `€`.
fn of_bytes() -> Tokenizer {
    let fields = r#"{
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "added_tokens": [{"id": 7, "content": "é<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "WordLevel", "unk_token": "a", "vocab": {
            "a": 0, "Ġb": 1, "Ã": 2, "©": 3, "â": 4, "Ĥ¬â": 5, "¬a": 6, "é<s>": 7, "ĠcafÃ©": 8, "ÐŁÑĢ": 9, "Ċ": 10
        }}
    }"#;
    fields.parse().unwrap()
}

/// All sequences of one to `most` tokens of the pool.
fn sequences(most: usize) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = vec![Vec::new()];
    let mut first = 0;
    for _ in 0..most {
        let longer: Vec<Vec<u32>> = all[first..]
            .iter()
            .flat_map(|row| POOL.map(|token| [&row[..], &[token]].concat()))
            .collect();
        first = all.len();
        all.extend(longer);
    }
    all.split_off(1)
}

fn streamed(tokenizer: &Tokenizer, tokens: &[u32], skip: bool) -> Vec<String> {
    let mut stream = TextStream::new(tokenizer, skip);
    let pieces = tokens.iter().map(|&token| stream.push(token).unwrap());
    let mut pieces: Vec<String> = pieces.collect();
    pieces.push(stream.finish().unwrap());
    pieces
}

#[test]
fn the_pieces_of_any_tokens_are_their_text() {
    let [fallback, bytes] = [with_fallback(), of_bytes()];
    let mut revised = 0;
    for tokens in sequences(4) {
        let of = |tokenizer: &Tokenizer, len: usize, skip| {
            tokenizer.decode(&tokens[..len], skip).unwrap()
        };
        for skip in [true, false] {
            let whole = of(&bytes, tokens.len(), skip);
            assert_eq!(
                streamed(&bytes, &tokens, skip).concat(),
                whole,
                "{tokens:?}"
            );

            let whole = of(&fallback, tokens.len(), skip);
            let pieces = streamed(&fallback, &tokens, skip);
            // What is whole at some time is shown, and the rest of the tokens can take it back.
            let is_revised = (1..tokens.len()).any(|len| {
                let then = of(&fallback, len, skip);
                !then.ends_with('\u{fffd}') && !whole.starts_with(&then)
            });
            if !is_revised {
                assert_eq!(pieces.concat(), whole, "{tokens:?}");
                continue;
            }
            revised += 1;
            let letters = |text: &str| text.replace(|c: char| !c.is_ascii_alphabetic(), "");
            assert_eq!(letters(&pieces.concat()), letters(&whole), "{tokens:?}");
            assert!(pieces.concat().contains('\u{fffd}'), "{tokens:?}");
        }
    }
    assert!(revised > 100, "{revised}");
}

#[test]
fn a_whole_character_is_shown_at_once_and_stays() {
    let tokenizer = with_fallback();
    let pieces = streamed(&tokenizer, &[1, 2, 3, 4, 0, 1], true);
    assert_eq!(pieces, ["b", "", "é", "", "\u{fffd}a", " b", ""]);
    // Bytes that can be no character any more do not wait for the next letter.
    let pieces = streamed(&tokenizer, &[3, 3, 3, 3, 3, 0], true);
    assert_eq!(pieces[..5], ["", "", "", "\u{fffd}", "\u{fffd}"]);
    assert_eq!(pieces.concat(), "\u{fffd}".repeat(5) + "a");
    let pieces = streamed(&tokenizer, &[2, 3, 4, 4, 4, 4, 0], true);
    assert_eq!(
        pieces.concat(),
        "é".to_string() + &"\u{fffd}".repeat(4) + "a"
    );
    // The end of the tokens is the end of a character, too.
    assert_eq!(
        streamed(&tokenizer, &[0, 4, 5], true),
        ["a", "", "", "\u{fffd}\u{fffd}"]
    );
    assert_eq!(TextStream::new(&tokenizer, true).finish().unwrap(), "");
}

#[test]
fn labels_are_what_tokens_say() {
    assert_eq!(
        labels(&of_bytes(), &[0, 1, 8, 9, 10, 2, 5, 7, 99]),
        [
            "a",
            " b",
            " café",
            "Пр",
            "\n",
            "\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}",
            "é<s>",
            "<99>"
        ]
    );
    assert_eq!(
        labels(&with_fallback(), &[0, 1, 9, 2, 8, 10, 7]),
        ["a", "▁b", "▁", "\u{fffd}", "\n", " ", "<s>"]
    );
    let plain: Tokenizer = r#"{
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "Ãb": 1, "<0x0A>": 2}}
    }"#
    .parse()
    .unwrap();
    assert_eq!(labels(&plain, &[1, 2]), ["Ãb", "<0x0A>"]);
}
