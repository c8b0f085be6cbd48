//! The files of `transformers` and of llama.cpp: what they say of a model, and what their tensors are called.

use burn_attn::{FeedForwardActivation, LayerPattern, NormConfig};
use serde_json::json;

use super::BertConfig;
use crate::{
    families::files::{feed_forward, self_attention},
    pretrained::{ConfigFile, Result},
    weights::Table,
};

impl BertConfig {
    /// Which parameter is which tensor of Hugging Face's `BertModel`, alone or below a head, whose tensors it ignores.
    pub fn table() -> Table {
        let projections = ["self.query", "self.key", "self.value", "output.dense"];
        let feed_forward = feed_forward(["intermediate.dense", "output.dense"]);
        let layer = Table::new()
            .part("self_attention", "attention", self_attention(projections))
            .norm("self_attention_residual.norm", "attention.output.LayerNorm")
            .part("feed_forward", "", feed_forward)
            .norm("feed_forward_residual.norm", "output.LayerNorm");
        embeddings()
            .layers("encoder.layers", "encoder.layer", layer)
            .linear("pooler", "pooler.dense")
            // Task heads, which are not part of the encoder.
            .ignore("cls.*")
            .rename("bert.*", "*")
            // The names in the first checkpoints.
            .rename("*.LayerNorm.gamma", "*.LayerNorm.weight")
            .rename("*.LayerNorm.beta", "*.LayerNorm.bias")
    }

    /// Which parameter is which tensor of Hugging Face's `AlbertModel`, alone or below a head, whose tensors it ignores.
    pub fn albert_table() -> Table {
        let projections = ["query", "key", "value", "dense"];
        let layer = Table::new()
            .part("self_attention", "attention", self_attention(projections))
            .norm("self_attention_residual.norm", "attention.LayerNorm")
            .part("feed_forward", "", feed_forward(["ffn", "ffn_output"]))
            .norm("feed_forward_residual.norm", "full_layer_layer_norm");
        let group = "encoder.albert_layer_groups.{group}.albert_layers.0";
        embeddings()
            .linear("projection", "encoder.embedding_hidden_mapping_in")
            .part("encoder.layers.{group}", group, layer)
            .linear("pooler", "pooler")
            .ignore("predictions.* sop_classifier.*")
            .rename("albert.*", "*")
    }

    /// The configuration that a file describes, and the table of its tensors in files of `transformers`.
    pub(super) fn read(file: &mut ConfigFile) -> Result<(Self, Table)> {
        use FeedForwardActivation::{Gelu, GeluTanh};

        let is_albert = file.choice("model_type", &[("bert", false), ("albert", true)])?;
        file.only("position_embedding_type", json!("absolute"))?;
        file.only("is_decoder add_cross_attention use_bfloat16", json!(false))?;
        file.only("pruned_heads", json!({}))?;
        // Fields of task heads; ignored.
        file.ignore(
            "classifier_dropout classifier_dropout_prob tie_word_embeddings directionality pooler_fc_size \
             pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type",
        );
        let epsilon = file.number("layer_norm_eps", 1e-12)?;
        let missing = if is_albert { GeluTanh } else { Gelu };
        let activation = file.activation("hidden_act", missing)?;
        let dropout = if is_albert { 0.0 } else { 0.1 };
        let block = Self::base_block()
            .with_norm(NormConfig::layer_norm().with_epsilon(epsilon))
            .with_activation(activation)
            .with_dropout(file.number("hidden_dropout_prob", dropout)?)
            .with_attention_dropout(file.number("attention_probs_dropout_prob", dropout)?);
        let config = Self::new(file.size("vocab_size")?)
            .with_d_model(file.size("hidden_size")?)
            .with_n_heads(file.size("num_attention_heads")?)
            .with_n_layers(file.layers("num_hidden_layers")?)
            .with_d_ff(file.size("intermediate_size")?)
            .with_max_len(file.size("max_position_embeddings")?)
            .with_n_segments(file.size_or("type_vocab_size", 2)?)
            .with_block(block);
        Ok(match is_albert {
            true => {
                file.only("inner_group_num", json!(1))?;
                // A field of code that was never published.
                file.ignore("down_scale_factor gap_size net_structure_type num_memory_blocks");
                let groups = file.size_or("num_hidden_groups", 1)?;
                let block = config.block.clone().with_feed_forward_residual_dropout(0.0);
                let config = config
                    .with_block(block)
                    .with_d_embedding(file.size_or("embedding_size", 128)?)
                    .with_pattern(LayerPattern::Shared(groups));
                (config, Self::albert_table())
            }
            false => (config, Self::table()),
        })
    }
}

/// The rows that both kinds share.
fn embeddings() -> Table {
    Table::new()
        .row("tokens.weight", "embeddings.word_embeddings.weight")
        .row("segments.weight", "embeddings.token_type_embeddings.weight")
        .row("positions.table", "embeddings.position_embeddings.weight")
        .norm("norm", "embeddings.LayerNorm")
        .ignore("embeddings.position_ids classifier.* qa_outputs.*")
}

/// The table for the names of llama.cpp.
pub(super) fn gguf(table: Table) -> Table {
    let embeddings = [
        ("token_embd", "embeddings.word_embeddings"),
        ("token_types", "embeddings.token_type_embeddings"),
        ("position_embd", "embeddings.position_embeddings"),
        ("token_embd_norm", "embeddings.LayerNorm"),
    ];
    let of_layer = [
        ("attn_q", "attention.self.query"),
        ("attn_k", "attention.self.key"),
        ("attn_v", "attention.self.value"),
        ("attn_output", "attention.output.dense"),
        ("attn_output_norm", "attention.output.LayerNorm"),
        ("ffn_up", "intermediate.dense"),
        ("ffn_down", "output.dense"),
        ("layer_output_norm", "output.LayerNorm"),
    ];
    table
        .rename_all(&embeddings, ["", ""])
        .rename_all(&of_layer, ["blk.*.", "encoder.layer.*."])
}
