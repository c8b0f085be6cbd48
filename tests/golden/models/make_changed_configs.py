"""What `transformers` makes of changed `config.json` files: `changed_configs.json`, for the small models beside this script.

Usage: python make_changed_configs.py, once with transformers 4.57 and once with 5.x; each run writes its own column, and keeps the other's if the rows
are the same ones.

A row is a model, whether its `config.json` has the form from before version 5, and the fields that were set (or taken away: `removed`). `here` is
false if `transformers` computes it and burn-attn refuses it. A column is what this version computes, in float64: the first numbers of the last token
of `TOKENS`, rounded. Or it is why there are none: the exception, or that weights are missing or left over, which `transformers` replaces by random ones
with a warning.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
import torch
import transformers
from changed_mixers import rows_of_mixers
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

HERE = Path(__file__).resolve().parent
OUT = HERE / "changed_configs.json"
COLUMN = "v4" if transformers.__version__.startswith("4.57") else "v5"
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]])
GONE = object()
# What burn-attn refuses although transformers computes it: options that it does not have, and numbers that it wants to be said.
NOT_HERE = {
    "bert": {"hidden_act": "tanh", "is_decoder": True},
    # transformers ignores some of these; that other code for the model reads them says the file is for that.
    "deepseek_v2": {
        "head_dim": 6,
        "hidden_act": "gelu",
        "moe_layer_freq": 2,
        "norm_topk_prob": True,
        "partial_rotary_factor": 0.5,
        "scoring_func": "sigmoid",
        "tie_word_embeddings": True,
    },
    "gemma3": {"hidden_activation": "relu", "sliding_window": GONE, "use_bidirectional_attention": True},
    "gpt2": {"activation_function": "tanh", "n_ctx": 11, "scale_attn_by_inverse_layer_idx": True, "scale_attn_weights": False},
    "gpt_oss": {"attention_bias": GONE, "rope_scaling": GONE},
    "llama": {"hidden_act": "gelu", "max_position_embeddings": GONE, "qk_norm": True, "rms_norm_eps": GONE, "sliding_window": 3},
    "qwen3_next": {"use_sliding_window": True},
    "mistral": {"hidden_act": "gelu", "layer_types": ["sliding_attention", "full_attention"], "max_window_layers": 1},
    "t5_gated": {"dense_act_fn": "relu"},
}
NUMBERS = 5
torch.set_num_threads(1)
transformers.logging.set_verbosity(transformers.logging.CRITICAL)


def older(config):
    """The same model as version 4.57 writes it, without what older versions did not write."""
    config = dict(config)
    for field in ["layer_types", "_sliding_window_pattern", "transformers_version", "use_bidirectional_attention", "is_decoder"]:
        config.pop(field, None)
    config["torch_dtype"] = config.pop("dtype")
    if config["model_type"] == "deepseek_v2":
        for field in ["head_dim", "qk_head_dim", "mlp_bias"]:
            config.pop(field, None)
    if config["model_type"] == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    rope = config.pop("rope_parameters", None)
    if config["model_type"] == "gemma3_text":
        config["rope_theta"] = rope["full_attention"]["rope_theta"]
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config["sliding_window_pattern"] = 6
    elif rope:
        rope = dict(rope)
        base = rope.pop("rope_theta")
        if config["model_type"] == "gpt_neox":
            config["rotary_emb_base"] = base
            config["rotary_pct"] = rope.pop("partial_rotary_factor")
        else:
            config["rope_theta"] = base
        if config["model_type"] == "qwen3_next":
            config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
        config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    return config


def rows():
    """Model, whether its form is the older one, and changed fields."""
    linear = {"rope_type": "linear", "factor": 2.0}
    before = {"type": "linear", "factor": 2.0}
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    llama3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    scalings = [
        {},
        None,
        before,
        linear,
        {**before, "rope_type": "linear"},
        {**before, "rope_type": "default"},
        {**linear, "type": "yarn"},
        {"type": "default"},
        {"rope_type": "default"},
        {"factor": 2.0},
        {"rope_type": "linear"},
        {**linear, "rope_theta": 70.0},
        {"rope_type": "default", "rope_theta": 70.0},
        {"rope_theta": 70.0},
    ]
    stretched = ["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "olmo2", "mixtral", "qwen3_moe", "gpt_oss", "gpt_neox"]
    for model in ["llama", "gemma3", "gpt_neox", "gpt_oss"]:
        for scaling in scalings:
            yield model, True, {"rope_scaling": scaling}
    for model in stretched:
        if model not in ["llama", "gemma3", "gpt_neox", "gpt_oss"]:
            for scaling in [{}, before, {**before, "rope_type": "default"}]:
                yield model, True, {"rope_scaling": scaling}
    for scaling in [
        yarn,
        {**yarn, "type": "yarn"},
        {**yarn, "truncate": False},
        {**yarn, "attention_factor": 1.25},
        {**yarn, "beta_fast": 4.0, "beta_slow": 0.5},
        {"rope_type": "yarn", "factor": 4.0},
        {**yarn, "original_max_position_embeddings": 8},
        {**yarn, "mscale": 1.0, "mscale_all_dim": 0.5},
        {**yarn, "finetuned": True},
        {**yarn, "rope_theta": 70.0},
        {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
        llama3,
        {**llama3, "low_freq_factor": 2.0},
        {field: value for field, value in llama3.items() if field != "original_max_position_embeddings"},
        {field: value for field, value in llama3.items() if field != "high_freq_factor"},
        {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "longrope", "short_factor": [1.0] * 3, "long_factor": [2.0] * 3, "factor": 2.0},
        {"rope_type": "unheard_of", "factor": 2.0},
        "linear",
        [],
    ]:
        yield "llama", True, {"rope_scaling": scaling}
        if isinstance(scaling, dict) and scaling.get("rope_type") in ["yarn", "llama3"] and "rope_theta" not in scaling:
            yield "llama", False, {"rope_parameters": {**scaling, "rope_theta": 70.0}}
    for model in ["llama", "mistral", "qwen2", "qwen3", "gemma2", "olmo2", "mixtral", "qwen3_moe"]:
        yield model, True, {"rope_theta": 70.0}
        yield model, True, {"rope_theta": GONE}
        yield model, False, {"rope_parameters": {"rope_type": "default", "rope_theta": 70.0}}
    for rope in [
        {"rope_type": "linear", "factor": 2.0, "rope_theta": 70.0},
        {"type": "linear", "factor": 2.0, "rope_theta": 70.0},
        {"rope_type": "linear", "type": "linear", "factor": 2.0, "rope_theta": 70.0},
        {"rope_type": "default", "type": "linear", "factor": 2.0, "rope_theta": 70.0},
        {"rope_type": "default"},
        {"rope_theta": 70.0},
        {},
        None,
        GONE,
    ]:
        yield "llama", False, {"rope_parameters": rope}
    yield "llama", False, {"rope_theta": 70.0}
    yield "llama", False, {"rope_theta": 500.0}
    yield "llama", False, {"rope_parameters": {"rope_type": "default"}, "rope_theta": 70.0}
    yield "llama", False, {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "rope_scaling": linear}
    yield "llama", False, {"partial_rotary_factor": 1.0}
    for factor in [1.0, 1]:
        yield "llama", False, {"rope_parameters": {"rope_type": "default", "rope_theta": 70.0, "partial_rotary_factor": factor}}
    yield "llama", True, {"partial_rotary_factor": 1}
    yield "llama", True, {"rope_scaling": {**linear, "partial_rotary_factor": 1.0}}
    yield "llama", True, {"partial_rotary_factor": 0.5}
    yield "llama", True, {"original_max_position_embeddings": 8}

    # GPT-NeoX spells the base and the rotated part of a head in three ways.
    for fields in [
        {"rotary_emb_base": 70.0},
        {"rotary_pct": 0.25},
        {"rotary_pct": 1.0},
        {"rotary_emb_base": GONE, "rope_theta": 70.0},
        {"rotary_emb_base": 1000.0, "rope_theta": 70.0},
        {"rotary_emb_base": 70.0, "rope_theta": 70.0},
        {"rotary_pct": GONE, "partial_rotary_factor": 0.25},
        {"rotary_pct": GONE, "partial_rotary_factor": 0.75},
        {"rotary_pct": 0.25, "partial_rotary_factor": 0.5},
        {"rotary_pct": 0.5, "partial_rotary_factor": 0.5},
        {"rotary_pct": GONE},
        {"rotary_emb_base": GONE},
        {"rotary_pct": 0.6},
        {"rotary_pct": None},
        {"rotary_pct": GONE, "rotary_emb_base": GONE, "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
        {"rotary_pct": GONE, "rotary_emb_base": GONE, "rope_theta": 70.0, "partial_rotary_factor": 0.5},
        {"rotary_pct": 0.5, "rotary_emb_base": 70.0, "rope_theta": 70.0, "partial_rotary_factor": 0.5},
    ]:
        yield "gpt_neox", True, fields
    for fields in [
        {"rope_parameters": {"rope_type": "default", "rope_theta": 70.0, "partial_rotary_factor": 0.75}},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 70.0}},
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.75}},
        {"rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 70.0, "partial_rotary_factor": 0.75}},
        {"rope_parameters": {"type": "linear", "factor": 3.0, "rope_theta": 70.0, "partial_rotary_factor": 0.75}},
        {"rope_parameters": {"rope_type": "default"}, "rotary_emb_base": 70.0, "rotary_pct": 0.75},
        {"rope_parameters": {"rope_type": "default"}, "rope_theta": 70.0, "partial_rotary_factor": 0.75},
        {"rope_parameters": GONE, "rope_theta": 70.0, "partial_rotary_factor": 0.75},
        {"rope_parameters": GONE},
        {"rope_theta": 70.0},
        {"partial_rotary_factor": 0.25},
    ]:
        yield "gpt_neox", False, fields
    for fields in [
        {"attention_bias": False},
        {"use_parallel_residual": False},
        {"hidden_act": "relu"},
        {"hidden_act": "gelu_new"},
        {"layer_norm_eps": 0.1},
        {"tie_word_embeddings": True},
        {"is_decoder": True},
    ]:
        yield "gpt_neox", True, fields

    # Windows and their patterns.
    kinds = ["sliding_attention", "full_attention"]
    for form, fields in [
        (True, {"sliding_window_pattern": 3}),
        (True, {"sliding_window_pattern": GONE}),
        (True, {"sliding_window_pattern": GONE, "_sliding_window_pattern": 3}),
        (True, {"sliding_window_pattern": GONE, "_sliding_window_pattern": 6}),
        (True, {"sliding_window_pattern": 3, "_sliding_window_pattern": 2}),
        (True, {"sliding_window_pattern": 3, "_sliding_window_pattern": 6}),
        (False, {"_sliding_window_pattern": 3}),
        (False, {"layer_types": GONE, "_sliding_window_pattern": 3}),
        (False, {"layer_types": GONE, "_sliding_window_pattern": 6}),
        (False, {"layer_types": GONE, "_sliding_window_pattern": GONE}),
        (False, {"layer_types": GONE, "_sliding_window_pattern": GONE, "sliding_window_pattern": 2}),
        (False, {"layer_types": [kinds[1]] * 7}),
        (False, {"layer_types": [kinds[0]] * 7, "sliding_window_pattern": 2}),
        (False, {"layer_types": [kinds[0]] * 6}),
        (False, {"layer_types": [kinds[0]] * 6 + ["chunked_attention"]}),
        (True, {"sliding_window": 2}),
        (True, {"sliding_window": 17}),
        (True, {"sliding_window": GONE}),
        (True, {"attn_logit_softcapping": 1.5}),
        (False, {"attn_logit_softcapping": 1.5}),
        (True, {"final_logit_softcapping": 1.5}),
        (False, {"final_logit_softcapping": 1.5}),
        (True, {"query_pre_attn_scalar": 2}),
        (True, {"query_pre_attn_scalar": GONE}),
        (True, {"hidden_act": "relu"}),
        (True, {"hidden_activation": "relu"}),
        (True, {"rope_local_base_freq": 70.0}),
        (True, {"rope_local_base_freq": GONE}),
        (True, {"rope_theta": 70.0}),
        (True, {"rope_theta": GONE}),
        (True, {"tie_word_embeddings": GONE}),
        (True, {"use_bidirectional_attention": True}),
        (True, {"attention_bias": True}),
        (False, {"rope_parameters": {kinds[1]: {"rope_type": "linear", "factor": 2.0, "rope_theta": 70.0}, kinds[0]: {"rope_type": "default", "rope_theta": 50.0}}}),
        (False, {"rope_parameters": {kinds[1]: {"type": "linear", "factor": 2.0, "rope_theta": 70.0}, kinds[0]: {"rope_theta": 50.0}}}),
        (False, {"rope_parameters": {kinds[1]: {"rope_type": "default", "rope_theta": 70.0}}}),
        (False, {"rope_parameters": {kinds[0]: {"rope_type": "default", "rope_theta": 70.0}}}),
        (False, {"rope_parameters": {kinds[1]: {"rope_type": "default"}, kinds[0]: {"rope_type": "default"}}, "rope_theta": 70.0}),
        (False, {"rope_parameters": {kinds[1]: {"rope_type": "default"}, kinds[0]: {"rope_type": "default"}}, "rope_local_base_freq": 70.0}),
        (False, {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 70.0}}),
        (False, {"rope_parameters": {}}),
        (False, {"rope_parameters": GONE}),
        (False, {"rope_theta": 70.0}),
        (False, {"rope_scaling": linear}),
        (False, {"rope_scaling": {}}),
    ]:
        yield "gemma3", form, fields
    for form, fields in [
        (True, {"attn_logit_softcapping": None}),
        (True, {"attn_logit_softcapping": 1.5}),
        (True, {"final_logit_softcapping": None}),
        (True, {"final_logit_softcapping": 1.5}),
        (True, {"sliding_window": 2}),
        (True, {"query_pre_attn_scalar": 2}),
        (False, {"layer_types": kinds[::-1]}),
        (True, {"hidden_act": "relu"}),
        (True, {"hidden_activation": GONE}),
        (True, {"sliding_window_size": 2}),
        (True, {"cache_implementation": "hybrid"}),
    ]:
        yield "gemma2", form, fields
    for form, fields in [
        (True, {"sliding_window": None}),
        (True, {"sliding_window": 2}),
        (True, {"attention_bias": False}),
        (True, {"attention_bias": True}),
        (True, {"mlp_bias": False}),
        (True, {"head_dim": GONE}),
        (True, {"hidden_act": "gelu"}),
        (True, {"num_key_value_heads": 3}),
        (True, {"max_window_layers": 1}),
        (False, {"layer_types": kinds}),
    ]:
        yield "mistral", form, fields
    for model in ["qwen2", "qwen3"]:
        for form, fields in [
            (True, {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}),
            (True, {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0}),
            (True, {"use_sliding_window": False, "sliding_window": 3, "max_window_layers": 0}),
            (True, {"use_sliding_window": GONE, "sliding_window": 3, "max_window_layers": 0}),
            (True, {"use_sliding_window": True, "sliding_window": None, "max_window_layers": 0}),
            (False, {"layer_types": kinds, "use_sliding_window": True, "sliding_window": 3}),
            (False, {"layer_types": kinds, "use_sliding_window": False, "sliding_window": 3}),
            (False, {"layer_types": kinds, "use_sliding_window": GONE, "sliding_window": 3}),
            (False, {"layer_types": kinds, "use_sliding_window": True, "sliding_window": None}),
            (True, {"attention_bias": False}),
            (True, {"attention_bias": True}),
        ]:
            yield model, form, fields
    for form, fields in [
        (True, {"attention_bias": False}),
        (True, {"sliding_window": 3}),
        (True, {"num_experts_per_tok": 1}),
        (True, {"num_experts_per_tok": 5}),
        (True, {"output_router_logits": True}),
    ]:
        yield "mixtral", form, fields
    for form, fields in [
        (True, {"norm_topk_prob": False}),
        (True, {"norm_topk_prob": GONE}),
        (True, {"mlp_only_layers": [0]}),
        (True, {"decoder_sparse_step": 2}),
        (True, {"use_sliding_window": True, "sliding_window": 3}),
        (True, {"use_sliding_window": False, "sliding_window": 3}),
        (True, {"max_window_layers": 1}),
        (True, {"attention_bias": False}),
    ]:
        yield "qwen3_moe", form, fields
    for form, fields in [
        (True, {"sliding_window": 2}),
        (False, {"layer_types": kinds[::-1]}),
        (True, {"swiglu_limit": 1.0}),
        (True, {"attention_bias": False}),
        (True, {"attention_bias": GONE}),
        (True, {"rope_theta": GONE}),
        (False, {"rope_parameters": GONE}),
        (False, {"rope_parameters": None}),
        (False, {"rope_parameters": {}}),
        (True, {"rope_scaling": GONE}),
        (True, {"experts_per_token": 1}),
    ]:
        yield "gpt_oss", form, fields
    for form, fields in [
        (True, {"rms_norm_eps": 0.1}),
        (True, {"rms_norm_eps": GONE}),
        (True, {"num_key_value_heads": GONE}),
        (True, {"num_key_value_heads": None}),
        (True, {"head_dim": None}),
        (True, {"attention_bias": True}),
        (True, {"attention_bias": None}),
        (True, {"mlp_bias": None}),
        (True, {"mlp_bias": True}),
        (True, {"mlp_bias": GONE, "attention_bias": GONE}),
        (True, {"hidden_act": "gelu"}),
        (True, {"hidden_act": GONE}),
        (True, {"tie_word_embeddings": True}),
        (True, {"tie_word_embeddings": GONE}),
        (True, {"pretraining_tp": 2}),
        (True, {"max_sequence_length": 8}),
        (True, {"max_position_embeddings": GONE}),
        (True, {"max_position_embeddings": 19}),
        (True, {"sliding_window": 3}),
        (True, {"layer_types": kinds}),
        (True, {"vocab_size": "13"}),
        (True, {"num_hidden_layers": 1}),
        (True, {"num_hidden_layers": 3}),
        (True, {"rope_theta": None}),
        (True, {"rope_interleaved": False}),
        (True, {"qk_norm": True}),
    ]:
        yield "llama", form, fields
    harmless = {
        "attn_implementation": "eager",
        "loss_type": "ForCausalLM",
        "neftune_noise_alpha": 5.0,
        "sentence_transformers": {"version": "4.0.1"},
        "use_cache": False,
        "architectures": ["Whatever"],
        "_name_or_path": "somewhere",
    }
    for model in ["llama", "mistral", "qwen2", "gpt_neox", "gpt2", "bert", "t5"]:
        for field, value in harmless.items():
            yield model, True, {field: value}
    for fields in [
        {"scale_attn_weights": False},
        {"scale_attn_by_inverse_layer_idx": True},
        {"reorder_and_upcast_attn": True},
        {"tie_word_embeddings": False},
        {"tie_word_embeddings": GONE},
        {"activation_function": "relu"},
        {"activation_function": "tanh"},
        {"activation_function": GONE},
        {"layer_norm_epsilon": 0.1},
        {"layer_norm_epsilon": GONE},
        {"n_inner": None},
        {"n_ctx": 19},
        {"n_ctx": 11},
        {"add_cross_attention": True},
    ]:
        yield "gpt2", True, fields
    for fields in [
        {"hidden_act": "relu"},
        {"hidden_act": "gelu_new"},
        {"hidden_act": "tanh"},
        {"hidden_act": GONE},
        {"layer_norm_eps": 0.1},
        {"layer_norm_eps": GONE},
        {"type_vocab_size": GONE},
        {"type_vocab_size": 3},
        {"position_embedding_type": "absolute"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
        {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
        {"gradient_checkpointing": True},
    ]:
        yield "bert", True, fields
    for fields in [
        {"num_hidden_groups": 1},
        {"num_hidden_layers": 2},
        {"num_hidden_layers": 5},
        {"hidden_act": GONE},
        {"hidden_act": "relu"},
        {"inner_group_num": 2},
        {"embedding_size": GONE},
        {"layer_norm_eps": 0.1},
    ]:
        yield "albert", True, fields
    for model, fields in [
        ("t5", {"feed_forward_proj": "gelu", "dense_act_fn": GONE, "is_gated_act": GONE}),
        ("t5", {"feed_forward_proj": "silu", "dense_act_fn": GONE, "is_gated_act": GONE}),
        ("t5", {"feed_forward_proj": GONE, "dense_act_fn": GONE, "is_gated_act": GONE}),
        ("t5", {"feed_forward_proj": "gated-gelu", "dense_act_fn": GONE, "is_gated_act": GONE}),
        ("t5", {"relative_attention_max_distance": 7}),
        ("t5", {"relative_attention_num_buckets": GONE}),
        ("t5", {"relative_attention_max_distance": GONE}),
        ("t5", {"layer_norm_epsilon": 0.1}),
        ("t5", {"layer_norm_epsilon": GONE}),
        ("t5", {"scale_decoder_outputs": GONE}),
        ("t5", {"scale_decoder_outputs": GONE, "tie_word_embeddings": GONE}),
        ("t5", {"num_decoder_layers": GONE}),
        ("t5", {"num_layers": 2}),
        ("t5", {"n_positions": 512}),
        ("t5_gated", {"tie_word_embeddings": False, "scale_decoder_outputs": GONE}),
        ("t5_gated", {"tie_word_embeddings": False}),
        ("t5_gated", {"feed_forward_proj": "gated-silu", "dense_act_fn": GONE, "is_gated_act": GONE}),
        ("t5_gated", {"feed_forward_proj": "gated-relu", "dense_act_fn": GONE, "is_gated_act": GONE}),
        ("t5_gated", {"is_gated_act": False}),
        ("t5_gated", {"dense_act_fn": "relu"}),
    ]:
        yield model, model == "t5", fields
    for model in ["gpt_neox"]:
        for scaling in [yarn, {**yarn, "beta_fast": 2.0, "beta_slow": 0.2}, llama3]:
            yield model, True, {"rope_scaling": scaling}
            yield model, False, {"rope_parameters": {**scaling, "rope_theta": 70.0, "partial_rotary_factor": 0.75}}
    yield from rows_of_mixers(GONE, linear, before, yarn)
    # Null where a number or a flag has to be.
    for model, fields in [
        ("llama", ["rms_norm_eps", "hidden_act", "vocab_size", "attention_dropout", "max_position_embeddings", "tie_word_embeddings"]),
        ("qwen2", ["use_sliding_window", "max_window_layers", "sliding_window"]),
        ("gemma3", ["sliding_window", "query_pre_attn_scalar", "rope_local_base_freq", "head_dim", "num_key_value_heads", "sliding_window_pattern"]),
        ("gpt_neox", ["use_parallel_residual", "rotary_emb_base", "attention_bias", "layer_norm_eps", "hidden_act"]),
        ("gpt2", ["layer_norm_epsilon", "activation_function", "tie_word_embeddings"]),
        ("bert", ["layer_norm_eps", "hidden_act", "type_vocab_size", "hidden_dropout_prob"]),
        ("qwen3_moe", ["norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"]),
        ("t5", ["n_positions"]),
    ]:
        for field in fields:
            yield model, True, {field: None}


def is_here(model, form, fields):
    """Whether burn-attn computes this row if `transformers` does. It refuses files that contradict themselves."""
    for field, value in fields.items():
        if NOT_HERE.get(model, {}).get(field, "anything") == value:
            return False
        if not isinstance(value, dict) or not field.startswith("rope_"):
            continue
        kinds = {value.get("rope_type"), value.get("type")} - {None}
        if len(kinds) > 1 or kinds & {"dynamic", "longrope"}:
            return False
        if model == "gpt_neox" and kinds & {"yarn", "llama3"}:
            return False
        if model == "gemma3" and field == "rope_parameters" and kinds:
            return False
        part = value.get("partial_rotary_factor", 1.0)
        if model == "deepseek_v2" and part != 1.0:
            return False
        if model == "qwen3_next" and fields.get("partial_rotary_factor", GONE) not in [part, GONE]:
            return False
    if model == "gpt_oss" and fields.get("rope_parameters", {}) in [None, GONE]:
        return False
    # The newer form has the base among the parameters.
    return form or not ("rope_scaling" in fields or fields == {"rope_theta": 70.0} and model != "gpt_neox")


def computed(model, config):
    """The last token's numbers, or why there are none."""
    kind = config["model_type"]
    auto = {"bert": AutoModel, "albert": AutoModel, "t5": AutoModelForSeq2SeqLM}.get(kind, AutoModelForCausalLM)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        (Path(folder) / "model.safetensors").symlink_to(HERE / model / "model.safetensors")
        try:
            options = {"experts_implementation": "eager"} if COLUMN == "v5" else {}
            loaded, info = auto.from_pretrained(
                folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True, **options
            )
        except Exception as error:
            return f"refused: {type(error).__name__}"
        for kind in ["missing_keys", "unexpected_keys", "mismatched_keys"]:
            if info[kind]:
                return f"weights: {kind}"
        loaded = loaded.double().eval()
        inputs = {"input_ids": TOKENS}
        if config["model_type"] == "t5":
            inputs["decoder_input_ids"] = TOKENS.flip(1)
        try:
            with torch.no_grad():
                output = loaded(**inputs, return_dict=True)
        except Exception as error:
            return f"refused: {type(error).__name__}"
    numbers = output.last_hidden_state if auto is AutoModel else output.logits
    numbers = numbers[0, -1]
    if not numbers.isfinite().all():
        return "refused: not finite"
    return [float(f"{number:.6g}") for number in numbers[:NUMBERS].tolist()]


def main():
    known = json.loads(OUT.read_text()) if OUT.exists() else {"rows": []}
    columns = {json.dumps({key: row[key] for key in ["model", "older", "set", "removed"]}): row for row in known["rows"]}
    written = []
    versions = known.get("versions", {}) | {COLUMN: transformers.__version__}
    bases = {}
    for model, form, fields in rows():
        config = json.loads((HERE / model / "config.json").read_text())
        config = older(config) if form else config
        bases.setdefault(model, {})["older" if form else "newer"] = dict(config)
        row = {
            "model": model,
            "older": form,
            "set": {field: value for field, value in fields.items() if value is not GONE},
            "removed": [field for field, value in fields.items() if value is GONE],
        }
        config = {field: value for field, value in (config | row["set"]).items() if field not in row["removed"]}
        key = json.dumps(row)
        other = columns.get(key, {})
        row["here"] = is_here(model, form, fields)
        row |= {column: other[column] for column in ["v4", "v5"] if column in other}
        row[COLUMN] = computed(model, config)
        written.append(row)
        if len(written) % 50 == 0:
            print(len(written), file=sys.stderr)
    keys = {json.dumps({key: row[key] for key in ["model", "older", "set", "removed"]}) for row in written}
    assert len(keys) == len(written), "a row is there twice"
    lines = ",\n".join(json.dumps(row) for row in written)
    bases = json.dumps({model: forms["older"] for model, forms in bases.items() if "older" in forms})
    OUT.write_text(f'{{"versions": {json.dumps(versions)},\n"older": {bases},\n"rows": [\n{lines}\n]}}\n')


main()
