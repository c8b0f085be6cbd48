//! Conversations: what a turn reads, draws, penalises, forgets and says.

use std::fs;

use burn::{
    module::Param,
    tensor::{Device, Tensor, TensorData},
};
use burn_attn_models::{
    chat::{Conversation, Template},
    generate::{GenerateOptions, Sampling, generate},
    language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig},
    pretrained::Tokenizer,
};
use burn_attn_tests::{devices, numbers::filled};
use serde_json::{Map, Value, json};
use tempfile::tempdir;

/// Tokens by their ids.
const NAMES: [&str; 17] = [
    "<|start|>",
    "<|channel|>",
    "<|message|>",
    "<|end|>",
    "<|return|>",
    "assistant",
    "analysis",
    "final",
    "commentary",
    "think",
    "hello",
    "there",
    "go",
    "a",
    "b",
    "c",
    "d",
];

fn id(name: &str) -> u32 {
    let id = NAMES.iter().position(|known| *known == name);
    id.expect("a known token") as u32
}

/// A tokenizer of these tokens, the first five of which are special if it has channels. Other words have no token.
fn tokenizer(has_channels: bool) -> Tokenizer {
    let vocabulary = NAMES.iter().map(|name| (name.to_string(), json!(id(name))));
    let vocabulary: Map<String, Value> = vocabulary.collect();
    let added = NAMES[..5].iter().filter(|_| has_channels).map(|name| {
        json!({
            "id": id(name), "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true
        })
    });
    let fields = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "none", "vocab": vocabulary}
    });
    fields.to_string().parse().expect("a tokenizer")
}

/// All contents, with spaces between them.
fn template() -> Option<Template> {
    let folder = tempdir().expect("a folder");
    let source = "{% for message in messages %}{{ message.content }} {% endfor %}";
    fs::write(folder.path().join("chat_template.jinja"), source).expect("written");
    Template::of(folder.path()).expect("a template")
}

fn config(d_model: usize, max_len: usize) -> LanguageModelConfig {
    LanguageModelConfig::new(NAMES.len())
        .with_d_model(d_model)
        .with_n_heads(1)
        .with_n_layers(1)
        .with_d_ff(5)
        .with_max_len(max_len)
        .with_absolute_position(AbsolutePosition::Learned)
        .with_scaled_embedding(false)
}

/// A model that reads 23 tokens at most.
fn model() -> LanguageModel {
    filled(config(24, 23).init(&devices::any()), 7)
}

/// Draws, with a penalty that all but forbids tokens that occurred before.
fn drawn() -> GenerateOptions {
    GenerateOptions::new(5)
        .sampling(Sampling::temperature(1.0))
        .repetition_penalty(100.0)
        .seed(u64::MAX)
}

#[test]
fn a_turn_penalises_the_whole_conversation_and_draws_other_numbers_than_the_last() {
    let (model, tokenizer) = (model(), tokenizer(false));
    let mut conversation = Conversation::new(&model, &tokenizer, None, 5);
    for (seed, read) in [(u64::MAX, 3), (0, 4)] {
        let before = conversation.tokens().len();
        let turn = conversation.say("a b c", &drawn(), |_| true);
        assert_eq!(turn.expect("an answer").read, read);
        let (prompt, answer) = conversation.tokens().split_at(before + 3);
        let options = drawn().seed(seed);
        let expected = generate(&model, model.start(1), &[prompt.to_vec()], &options);
        assert_eq!(answer, expected.expect("tokens")[0].tokens);
    }
}

#[test]
fn a_failed_turn_changes_no_later_draw_or_penalty() {
    let (model, tokenizer) = (model(), tokenizer(false));
    let after = |fails: bool| {
        let mut conversation = Conversation::new(&model, &tokenizer, None, 5);
        let mut say = |text: &str, options: &GenerateOptions| {
            conversation.say(text, options, |_| true).is_ok()
        };
        assert!(say("a b c", &drawn()));
        if fails {
            assert!(!say("d", &drawn().stop_tokens([99])));
        }
        assert!(say("go", &drawn()));
        conversation.tokens().to_vec()
    };
    assert_eq!(after(true), after(false));
}

#[test]
fn a_full_model_forgets_half_so_that_the_next_turns_read_what_is_new() {
    let (model, tokenizer) = (model(), tokenizer(false));
    let conversation = Conversation::new(&model, &tokenizer, template(), 3);
    let mut conversation = conversation.with_system("a b").expect("a template");
    let turns = [(); 9].map(|()| {
        let turn = conversation.say("go", &GenerateOptions::new(3), |_| true);
        turn.expect("an answer")
    });
    // The system's two tokens and four for each turn: at 23, of at most 20, three turns are left out, and 11 tokens stay.
    let forgotten = turns.each_ref().map(|turn| turn.forgotten);
    assert_eq!(forgotten, [0, 0, 0, 0, 0, 12, 0, 0, 12]);
    // The last token of an answer is read in the next turn.
    for turn in turns[1..].iter().filter(|turn| turn.forgotten == 0) {
        assert_eq!(turn.read, 2);
    }
}

#[test]
fn what_a_text_is_refused_for_is_said_of_it() {
    let (model, tokenizer) = (model(), tokenizer(false));
    let conversation = Conversation::new(&model, &tokenizer, template(), 3);
    let mut conversation = conversation.with_system("a b").expect("a template");
    let mut refused = |text: &str| {
        let turn = conversation.say(text, &GenerateOptions::new(3), |_| true);
        turn.expect_err("refused").to_string()
    };
    let text = "d ".repeat(21);
    assert_eq!(
        refused(&text),
        format!(
            "{text:?}: with the system messages and the template, this makes 23 tokens, but the model reads at most 22 and answers"
        )
    );
    let unknown = refused("zebra");
    assert!(
        unknown.starts_with("\"zebra\": the tokenizer failed: "),
        "{unknown}"
    );
}

/// A model that writes these tokens after a prompt of one, whatever it is.
fn that_writes(tokens: &[u32], device: &Device) -> LanguageModel {
    let mut model = config(NAMES.len(), tokens.len()).init(device);
    model.embedding.weight = Param::from_tensor(Tensor::eye(NAMES.len(), device));
    // A position is the token that follows it, far longer than what the layer adds.
    let mut numbers = vec![0.0f32; tokens.len() * NAMES.len()];
    for (row, &token) in numbers.chunks_mut(NAMES.len()).zip(tokens) {
        row[token as usize] = 1e4;
    }
    let table = TensorData::new(numbers, [tokens.len(), NAMES.len()]);
    let table = Tensor::<2>::from_data(table, device);
    model.learned.as_mut().expect("positions").table = Param::from_tensor(table);
    model
}

/// As gpt-oss answers: its template takes the channel `final` as the content of a message.
#[test]
fn only_the_final_channel_is_the_answer() {
    let written = "<|channel|> analysis <|message|> think there <|end|> <|start|> assistant <|channel|> commentary <|message|> go \
        <|end|> <|start|> assistant <|channel|> final go <|message|> hello there <|return|>";
    let tokens: Vec<u32> = written.split(' ').map(id).collect();
    let (model, tokenizer) = (that_writes(&tokens, &devices::any()), tokenizer(true));
    let options = GenerateOptions::new(30).stop_tokens([id("<|return|>")]);
    let mut conversation = Conversation::new(&model, &tokenizer, template(), 1);
    let mut pieces = Vec::new();
    let turn = conversation.say("go", &options, |piece| {
        pieces.push(piece.to_string());
        true
    });
    let turn = turn.expect("an answer");
    assert_eq!(turn.answer, "hello there");
    // In the other channels, a caller can still end the turn.
    assert!(pieces.contains(&String::new()));
    pieces.retain(|piece| !piece.is_empty());
    assert_eq!(pieces, ["hello", " there"]);
    assert_eq!(turn.written, tokens.len());
    assert_eq!(conversation.tokens()[1..], tokens[..tokens.len() - 1]);

    let options = GenerateOptions::new(1);
    conversation.say("a", &options, |_| true).expect("a turn");
    let prompt = ["go", "hello", "there", "a"].map(id);
    assert_eq!(conversation.tokens()[..4], prompt);
}
