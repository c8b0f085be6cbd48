//! Small random models as `transformers` would save them, and a tokenizer of a few words.

use std::{fs, path::Path};

use burn::tensor::Device;
use burn_attn::{
    BlockConfig, FeedForwardActivation, LayerPattern, NormConfig, NormPlacement,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_models::{
    bert::BertConfig,
    gpt_neox, gpt2,
    language_model::{AbsolutePosition, LanguageModelConfig},
    seq2seq::Seq2SeqConfig,
    t5,
    weights::{Table, save},
};
use serde_json::json;

/// The words of the tokenizer, after `</s>` and the like.
const WORDS: [&str; 13] = [
    "a", "bird", "cat", "dog", "eats", "fish", "goes", "home", "in", "the", "sleeps", "sun", "two",
];
const SPECIAL: [&str; 4] = ["<pad>", "</s>", "[UNK]", "[CLS]"];
const VOCAB_SIZE: usize = SPECIAL.len() + WORDS.len();

fn device() -> Device {
    let device = Device::default();
    burn_attn::seed(&device, 7);
    device
}

fn write(folder: &Path, name: &str, fields: &serde_json::Value) {
    fs::write(folder.join(name), fields.to_string()).unwrap();
}

/// The tokenizer, with tokens at the ends of a text or without.
pub fn tokenizer(folder: &Path, with_ends: bool) {
    let words = SPECIAL.iter().chain(&WORDS).enumerate();
    let vocabulary: serde_json::Map<_, _> = words
        .map(|(id, word)| (word.to_string(), json!(id)))
        .collect();
    let special = |token: &str, id: usize| json!({"id": token, "ids": [id], "tokens": [token]});
    let part = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let second = json!({"Sequence": {"id": "B", "type_id": 1}});
    let ends = json!({
        "type": "TemplateProcessing",
        "single": [part("[CLS]"), text, part("</s>")],
        "pair": [part("[CLS]"), text, part("</s>"), second, part("</s>")],
        "special_tokens": {"[CLS]": special("[CLS]", 3), "</s>": special("</s>", 1)}
    });
    let added = SPECIAL.iter().enumerate().map(|(id, token)| {
        json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
    });
    let fields = json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": if with_ends { ends } else { json!(null) },
        "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocabulary}
    });
    write(folder, "tokenizer.json", &fields);
}

/// A BERT of 2 layers and 3 heads that reads at most 11 tokens.
pub fn bert(folder: &Path) {
    bert_of_len(folder, 11);
}

/// A [`bert`] that reads at most so many tokens.
pub fn bert_of_len(folder: &Path, max_len: usize) {
    write_bert(folder, bert_config(max_len), "bert", &BertConfig::table());
}

/// An ALBERT of 2 layers with the same weights and 3 heads.
pub fn albert(folder: &Path) {
    let config = bert_config(11)
        .with_d_embedding(Some(13))
        .with_pattern(LayerPattern::Shared(1));
    write_bert(folder, config, "albert", &BertConfig::albert_table());
}

fn bert_config(max_len: usize) -> BertConfig {
    BertConfig::new(VOCAB_SIZE)
        .with_d_model(24)
        .with_n_heads(3)
        .with_n_layers(2)
        .with_d_ff(31)
        .with_max_len(max_len)
}

fn write_bert(folder: &Path, config: BertConfig, model_type: &str, table: &Table) {
    let weights = folder.join("model.safetensors");
    save(table, &config.init(&device()), weights).unwrap();
    let mut fields = json!({
        "model_type": model_type, "vocab_size": VOCAB_SIZE, "hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2,
        "intermediate_size": 31, "max_position_embeddings": config.max_len
    });
    if let Some(d_embedding) = config.d_embedding {
        fields["embedding_size"] = d_embedding.into();
    }
    write(folder, "config.json", &fields);
    tokenizer(folder, true);
}

/// A GPT-2 of 2 layers and 3 heads that reads at most 23 tokens.
pub fn gpt(folder: &Path) {
    let block = BlockConfig::new()
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(FeedForwardActivation::GeluTanh);
    let config = LanguageModelConfig::new(VOCAB_SIZE)
        .with_d_model(24)
        .with_n_heads(3)
        .with_n_layers(2)
        .with_d_ff(96)
        .with_max_len(23)
        .with_block(block)
        .with_absolute_position(AbsolutePosition::Learned)
        .with_scaled_embedding(false);
    let weights = folder.join("model.safetensors");
    save(&gpt2::table(), &config.init(&device()), weights).unwrap();
    let fields = json!({
        "model_type": "gpt2", "vocab_size": VOCAB_SIZE, "n_positions": 23, "n_embd": 24, "n_layer": 2, "n_head": 3
    });
    write(folder, "config.json", &fields);
    tokenizer(folder, false);
}

/// A GPT-NeoX without its head, as `AutoModel` saves it.
pub fn bare_gpt_neox(folder: &Path) {
    let rotary = RotaryConfig::new().with_rotary_dim(2).with_max_len(23);
    let block = BlockConfig::new()
        .with_norm_placement(NormPlacement::Pre)
        .with_parallel(true)
        .with_separate_norms(true)
        .with_position(PositionEncoding::Rotary(rotary));
    let config = LanguageModelConfig::new(VOCAB_SIZE)
        .with_d_model(24)
        .with_n_heads(3)
        .with_n_layers(2)
        .with_d_ff(31)
        .with_max_len(23)
        .with_block(block)
        .with_tied(false)
        .with_scaled_embedding(false);
    let mut model = config.init(&device());
    model.head = None;
    let weights = folder.join("model.safetensors");
    save(&gpt_neox::table(8).bare("gpt_neox"), &model, weights).unwrap();
    let fields = json!({
        "model_type": "gpt_neox", "vocab_size": VOCAB_SIZE, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 31, "max_position_embeddings": 23, "rotary_pct": 0.25
    });
    write(folder, "config.json", &fields);
    tokenizer(folder, false);
}

/// A T5 1.1 of 2 + 2 layers and 3 heads.
pub fn t5(folder: &Path) {
    let block = BlockConfig::new()
        .with_norm(NormConfig::rms_norm())
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(FeedForwardActivation::GeGluTanh)
        .with_bias(false)
        .with_scale(1.0)
        .with_position(PositionEncoding::relative());
    let config = Seq2SeqConfig::new(VOCAB_SIZE)
        .with_d_model(24)
        .with_n_heads(3)
        .with_n_encoder_layers(2)
        .with_n_decoder_layers(2)
        .with_d_ff(31)
        .with_block(block)
        .with_absolute_position(AbsolutePosition::None)
        .with_scaled_embedding(false)
        .with_tied(false);
    let weights = folder.join("model.safetensors");
    save(&t5::table(true), &config.init(&device()), weights).unwrap();
    let fields = json!({
        "model_type": "t5", "vocab_size": VOCAB_SIZE, "d_model": 24, "d_kv": 8, "d_ff": 31, "num_layers": 2, "num_heads": 3,
        "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false
    });
    write(folder, "config.json", &fields);
    tokenizer(folder, true);
}
