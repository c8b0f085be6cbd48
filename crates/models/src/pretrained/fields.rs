//! Fields of a `config.json` that do not affect what a model computes, and its names of activations.

use std::collections::BTreeSet;

use burn_attn::FeedForwardActivation;
use serde_json::{Map, Value, json};

/// How a model was made, run or saved.
const NO_MATTER: &str = "_attn_implementation _attn_implementation_autoset _name_or_path _num_labels architectures \
     attn_implementation auto_map bad_words_ids begin_suppress_tokens bos_token_id \
     chunk_size_feed_forward cls_token_id custom_pipelines decoder_start_token_id \
     diversity_penalty do_sample dtype early_stopping encoder_no_repeat_ngram_size eos_token_id \
     eos_token_ids exponential_decay_length_penalty finetuning_task forced_bos_token_id \
     forced_eos_token_id gradient_checkpointing id2label initializer_range is_encoder_decoder \
     label2id length_penalty loss_type mask_token_id max_length max_sequence_length min_length \
     min_new_tokens neftune_noise_alpha no_repeat_ngram_size num_beam_groups num_beams num_labels \
     num_return_sequences output_attentions output_hidden_states output_past output_scores \
     pad_token_id prefix problem_type remove_invalid_values repetition_penalty return_dict \
     return_dict_in_generate sbert_ce_default_activation_function sentence_transformers \
     sep_token_id suppress_tokens task_specific_params temperature tf_legacy_loss tokenizer_class \
     top_k top_p torch_dtype torchscript transformers.js_config transformers_version typical_p \
     unsloth_fixed unsloth_version use_cache xla_device";

/// The activations of feed-forward networks, by their names in `transformers`.
pub(super) const ACTIVATIONS: [(&str, FeedForwardActivation); 12] = {
    use FeedForwardActivation::{Gelu, GeluTanh, QuickGelu, Relu, ReluSquared, Silu};
    [
        ("gelu", Gelu),
        ("gelu_python", Gelu),
        ("gelu_new", GeluTanh),
        ("gelu_fast", GeluTanh),
        ("gelu_accurate", GeluTanh),
        ("gelu_pytorch_tanh", GeluTanh),
        ("gelu_python_tanh", GeluTanh),
        ("quick_gelu", QuickGelu),
        ("relu", Relu),
        ("relu2", ReluSquared),
        ("silu", Silu),
        ("swish", Silu),
    ]
};

/// The names of those `fields` that change nothing in any family: some whatever their value, some because of their value.
pub(super) fn of_no_matter(fields: &Map<String, Value>) -> BTreeSet<String> {
    // Every configuration that was once written in full has these.
    let harmless = [
        ("add_cross_attention", json!(false)),
        ("is_decoder", json!(false)),
        ("mlp_bias", json!(false)),
        ("partial_rotary_factor", json!(1.0)),
        ("pruned_heads", json!({})),
        ("tie_encoder_decoder", json!(false)),
        ("use_bfloat16", json!(false)),
    ];
    let is_harmless = |(field, value): &(&str, Value)| {
        let found = fields.get(*field);
        found.is_some_and(|found| is_equal(found, value))
    };
    let harmless = harmless.into_iter().filter(is_harmless);
    let names = NO_MATTER.split(' ').chain(harmless.map(|(field, _)| field));
    names.map(str::to_owned).collect()
}

/// Whether two values are equal, 1 and 1.0 among them.
pub(super) fn is_equal(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a))
}
