//! `chat`.

use std::{fs, path::Path};

use burn::{
    module::Param,
    tensor::{Device, Tensor, TensorData},
};
use burn_attn_models::{
    chat::{Conversation, Template},
    generate::{GenerateOptions, generate},
    language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig},
    pretrained::{self, Tokenizer},
};
use serde_json::{Value, json};

use super::{args, printed, program, refused, small};

const CHAT: &str = env!("CARGO_BIN_EXE_chat");

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    small::gpt(folder.path());
    folder
}

fn model(folder: &Path) -> (LanguageModel, Tokenizer) {
    let model = LanguageModel::from_pretrained(folder, &Device::default()).unwrap();
    (model, pretrained::tokenizer(folder).unwrap())
}

/// How many tokens the model read and wrote in each turn.
fn counts(error: &str) -> Vec<(usize, usize)> {
    let turns = error.lines().filter(|line| line.starts_with('['));
    let numbers = turns.map(|line| {
        let mut numbers = line
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|number| number.parse().ok());
        (numbers.next().unwrap(), numbers.next().unwrap())
    });
    numbers.collect()
}

#[test]
fn a_turn_reads_only_what_is_new() {
    let folder = folder();
    let args = args("--model . --tokens 4", &["the cat eats", "two", "a bird"]);
    let output = program(CHAT, folder.path(), &args, "");
    let error = String::from_utf8(output.stderr).unwrap();
    // The last token of an answer is read in the next turn.
    assert_eq!(counts(&error), [(3, 4), (2, 4), (3, 4)], "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("> the cat eats\n"), "{text}");

    // Turns from a pipe have the same answers.
    let piped = printed(
        CHAT,
        folder.path(),
        &args[..4],
        "the cat eats\n\ntwo\na bird\n",
    );
    let answers: Vec<&str> = text.lines().filter(|line| !line.starts_with('>')).collect();
    assert_eq!(piped.lines().collect::<Vec<_>>(), answers);
}

#[test]
fn an_answer_is_what_the_model_would_write_after_the_whole_conversation() {
    let (model, tokenizer) = model(folder().path());
    let options = GenerateOptions::new(5);
    let mut conversation = Conversation::new(&model, &tokenizer, None, 5);
    conversation
        .say("the cat eats", &options, |_| true)
        .unwrap();
    let before = conversation.tokens().to_vec();
    conversation.say("two fish", &options, |_| true).unwrap();
    let after = conversation.tokens();

    let prompt = &after[..before.len() + 2];
    assert_eq!(&prompt[..before.len()], before);
    let expected = generate(&model, model.start(1), &[prompt.to_vec()], &options).unwrap();
    assert_eq!(after[prompt.len()..], expected[0].tokens);
}

#[test]
fn a_turn_that_fails_leaves_no_trace() {
    let (model, tokenizer) = model(folder().path());
    let options = GenerateOptions::new(5);
    let after = |fails: bool| {
        let mut conversation = Conversation::new(&model, &tokenizer, None, 5);
        conversation
            .say("the cat eats", &options, |_| true)
            .unwrap();
        if fails {
            let wrong = options.clone().stop_tokens([99]);
            assert!(conversation.say("a bird", &wrong, |_| true).is_err());
            assert!(conversation.say(" ", &options, |_| true).is_err());
        }
        conversation.say("two fish", &options, |_| true).unwrap();
        conversation.tokens().to_vec()
    };
    assert_eq!(after(true), after(false));
}

#[test]
fn an_end_is_no_part_of_what_goes_on() {
    let (model, tokenizer) = model(folder().path());
    let mut conversation = Conversation::new(&model, &tokenizer, None, 5);
    let options = GenerateOptions::new(5);
    conversation
        .say("the cat eats", &options, |_| true)
        .unwrap();
    let first = conversation.tokens()[3];
    let mut conversation = Conversation::new(&model, &tokenizer, None, 5);
    let turn = conversation
        .say("the cat eats", &options.stop_tokens([first]), |_| true)
        .unwrap();
    assert_eq!((turn.written, conversation.tokens().len()), (1, 3));
}

#[test]
fn a_chat_template_is_followed() {
    let folder = folder();
    let template = "{% for message in messages %}{{ 'a ' if message.role == 'user' else 'two ' }}{{ message.content }} {% endfor %}sun";
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let (model, tokenizer) = model(folder.path());
    let template = Template::of(folder.path()).unwrap();
    let mut conversation = Conversation::new(&model, &tokenizer, template, 3)
        .with_system("fish")
        .unwrap();
    let mut say = |text: &str| {
        let turn = conversation
            .say(text, &GenerateOptions::new(3), |_| true)
            .unwrap();
        // Two fish: what the system said is never forgotten.
        assert_eq!(conversation.tokens()[..2], [16, 9]);
        (turn.read, turn.forgotten, conversation.tokens().len())
    };
    // two fish a dog sun
    assert_eq!(say("dog"), (5, 0, 8));
    // With two more for what is said, two and at most three for each answer, no tenth turn fits: the first ones are forgotten.
    let turns: Vec<_> = (0..9).map(|_| say("cat")).collect();
    // The last token that is chosen need not be read.
    assert_eq!(turns[0].1, 0);
    assert!(
        turns.iter().any(|&(_, forgotten, _)| forgotten > 0),
        "{turns:?}"
    );
    assert!(
        turns.iter().all(|&(_, _, tokens)| tokens <= 24),
        "{turns:?}"
    );
}

/// A model that writes these tokens after a prompt of one, whatever it is.
fn that_writes(tokens: &[u32], vocab_size: usize) -> LanguageModel {
    let device = Device::default();
    let mut model = LanguageModelConfig::new(vocab_size)
        .with_d_model(vocab_size)
        .with_n_heads(1)
        .with_n_layers(1)
        .with_d_ff(5)
        .with_max_len(tokens.len() + 1)
        .with_absolute_position(AbsolutePosition::Learned)
        .with_scaled_embedding(false)
        .init(&device);
    let table = |rows: usize, row: &dyn Fn(usize) -> (usize, f32)| {
        let mut numbers = vec![0.0; rows * vocab_size];
        for place in 0..rows {
            let (column, number) = row(place);
            numbers[place * vocab_size + column] = number;
        }
        let data = TensorData::new(numbers, [rows, vocab_size]);
        Param::from_tensor(Tensor::<2>::from_data(data, &device))
    };
    // A position is the token that follows it, far longer than what the layer adds.
    model.embedding.weight = table(vocab_size, &|token| (token, 1.0));
    let next = |place: usize| (tokens.get(place).map_or(0, |&token| token as usize), 1e4);
    model.learned.as_mut().unwrap().table = table(tokens.len() + 1, &next);
    model
}

#[test]
fn an_answer_goes_on_after_a_broken_character() {
    let words = ["</s>", "a", "b", "▁b", "<0xC3>", "<0xA9>", "<0xE2>"];
    let vocabulary: serde_json::Map<String, Value> = (words.iter().zip(0..))
        .map(|(word, id): (_, u32)| (word.to_string(), id.into()))
        .collect();
    let decoders = [
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
        json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}),
    ];
    let fields = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {"type": "WordLevel", "unk_token": "a", "vocab": vocabulary}
    });
    let tokenizer: Tokenizer = fields.to_string().parse().unwrap();
    for (tokens, expected) in [
        (&[3, 4, 5, 1, 2, 0][..], &["b", "é", "a", "b"][..]),
        (&[3, 4, 5, 6, 1, 2, 0], &["b", "é", "\u{fffd}a", "b"]),
        (&[3, 6, 0], &["b", "\u{fffd}"]),
    ] {
        let model = that_writes(tokens, words.len());
        let mut conversation = Conversation::new(&model, &tokenizer, None, 1);
        let mut pieces = Vec::new();
        let options = GenerateOptions::new(9).stop_tokens([0]);
        let turn = conversation.say("a", &options, |piece| {
            pieces.push(piece.to_string());
            true
        });
        assert_eq!(turn.unwrap().written, tokens.len());
        assert_eq!(pieces, expected);
        assert_eq!(conversation.tokens()[1..], tokens[..tokens.len() - 1]);
    }
}

/// Adds a token to the tokenizer of a folder that the small models do not know.
fn with_unknown_token(folder: &Path) {
    let path = folder.join("tokenizer.json");
    let mut fields: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let token = json!({
        "id": 17, "content": "<image>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true
    });
    fields["added_tokens"].as_array_mut().unwrap().push(token);
    fs::write(path, fields.to_string()).unwrap();
}

#[test]
fn a_token_that_no_text_has_refuses_nothing() {
    let folder = folder();
    with_unknown_token(folder.path());
    let args = ["--model", ".", "--tokens", "2", "the cat"];
    printed(CHAT, folder.path(), &args, "");
    let error = refused(CHAT, folder.path(), &["--model", ".", "the <image>"], "");
    assert!(error.contains("17"), "{error}");

    // An end that the model cannot write is no end.
    let config = r#"{"eos_token": "<image>"}"#;
    fs::write(folder.path().join("tokenizer_config.json"), config).unwrap();
    printed(CHAT, folder.path(), &args, "");

    small::t5(folder.path());
    with_unknown_token(folder.path());
    let summarize = env!("CARGO_BIN_EXE_summarize");
    printed(summarize, folder.path(), &["--model", "."], "the cat");
    let error = refused(summarize, folder.path(), &["--model", "."], "the <image>");
    assert_eq!(
        error,
        "error: the tokenizer makes the token 17 (\"<image>\") of this text, but the model knows 17 tokens\n"
    );
}

#[test]
fn the_end_of_the_tokenizer_ends_an_answer() {
    let folder = folder();
    let args = args("--model . --tokens 4 --temperature 0", &["the cat eats"]);
    let written = || {
        let output = program(CHAT, folder.path(), &args, "");
        counts(&String::from_utf8(output.stderr).unwrap())[0].1
    };
    assert_eq!(written(), 4);
    let (model, tokenizer) = model(folder.path());
    let mut conversation = Conversation::new(&model, &tokenizer, None, 5);
    conversation
        .say("the cat eats", &GenerateOptions::new(4), |_| true)
        .unwrap();
    let first = tokenizer.id_to_token(conversation.tokens()[3]).unwrap();
    fs::write(
        folder.path().join("generation_config.json"),
        r#"{"eos_token_id": 0}"#,
    )
    .unwrap();
    let config = json!({"eos_token": first}).to_string();
    fs::write(folder.path().join("tokenizer_config.json"), config).unwrap();
    assert_eq!(written(), 1);
}

#[test]
fn the_oldest_tokens_make_room() {
    let folder = folder();
    let turns = [
        "the cat eats two fish in the sun",
        "a bird sleeps in the home",
        "the dog goes home",
    ];
    let args = args("--model . --tokens 5", &turns);
    let output = program(CHAT, folder.path(), &args, "");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    // 8 + 5 + 6 + 4, as far as 23 go, and 4 more: 11 stay.
    assert!(
        error
            .lines()
            .last()
            .unwrap()
            .contains("tokens of former turns are forgotten"),
        "{error}"
    );
}

#[test]
fn the_attention_of_the_conversation_is_drawn() {
    let folder = folder();
    let words = "--model . --tokens 40 --html page.html --text --draw 1:2";
    let args = args(words, &["the cat"]);
    let text = printed(CHAT, folder.path(), &args, "");
    assert!(text.contains("layer 1, head 2 of 3"), "{text}");
    assert!(
        fs::read_to_string(folder.path().join("page.html"))
            .unwrap()
            .contains("Self-attention")
    );
}

#[test]
fn what_cannot_work_is_one_sentence() {
    let folder = folder();
    let error =
        |args: &[&str]| refused(CHAT, folder.path(), &[&["--model", "."], args].concat(), "");
    let last = |text: String| text.lines().last().unwrap().to_string();
    assert_eq!(last(error(&[""])), "error: \"\": this text has no tokens");
    let long = "cat ".repeat(23);
    let sentence = format!(
        "error: {:?}…: this makes 23 tokens, but the model reads at most 22 and answers",
        &long[..60]
    );
    assert_eq!(last(error(&[&long])), sentence);
    assert_eq!(
        last(error(&["cat", "--system", "be kind"])),
        "error: --system needs a model with a chat template, and this one has none"
    );
    for (options, sentence) in [
        (
            ["--temperature", "-1"],
            "--temperature must be 0 or more, got -1",
        ),
        (
            ["--temperature", "nan"],
            "--temperature must be 0 or more, got NaN",
        ),
        (["--top-k", "0"], "--top-k must be at least 1, got 0"),
        (
            ["--top-p", "0"],
            "--top-p must be above 0 and at most 1, got 0",
        ),
        (["--min-p", "2"], "--min-p must be between 0 and 1, got 2"),
        (
            ["--repetition-penalty", "0"],
            "--repetition-penalty must be above 0, got 0",
        ),
    ] {
        let option = format!("{}={}", options[0], options[1]);
        assert_eq!(error(&["cat", &option]), format!("error: {sentence}\n"));
    }
    let other = error(&["cat", "--temperature", "0", "--top-k", "5"]);
    assert!(other.contains("but --temperature 0 does not"), "{other}");
    assert!(refused(CHAT, folder.path(), &["cat"], "").contains("`cargo xtask fetch glassllm`"));
    // Before anything is asked of it.
    let bare = tempfile::tempdir().unwrap();
    small::bare_gpt_neox(bare.path());
    let bare = refused(CHAT, bare.path(), &["--model", "."], "");
    assert!(bare.contains("the model has no logits head"), "{bare}");
    small::bert(folder.path());
    let family = error(&["cat"]);
    assert!(
        family.contains("model_type is \"bert\", but LanguageModel supports gpt2, gpt_neox, llama"),
        "{family}"
    );
}
