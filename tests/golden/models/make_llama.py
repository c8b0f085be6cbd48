"""Folders of small models of the Llama family as `transformers` saves them, and what they compute.

Usage: python make_llama.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
torch.manual_seed(17)
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2]])
NEW_TOKENS = 5

SIZES = dict(
    vocab_size=13,
    hidden_size=12,
    intermediate_size=11,
    num_attention_heads=3,
    num_key_value_heads=1,
    max_position_embeddings=17,
)
SMALL_HEADS = dict(SIZES, head_dim=6, num_hidden_layers=2)
LLAMA_3 = dict(
    rope_type="llama3",
    rope_theta=500.0,
    factor=4.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
MODELS = {
    "llama": LlamaForCausalLM(LlamaConfig(**SMALL_HEADS, rope_parameters=LLAMA_3, rms_norm_eps=1e-5)),
    "mistral": MistralForCausalLM(MistralConfig(**SMALL_HEADS, sliding_window=4)),
    "qwen2": Qwen2ForCausalLM(Qwen2Config(**SIZES, num_hidden_layers=2, tie_word_embeddings=True)),
    "qwen3": Qwen3ForCausalLM(Qwen3Config(**SMALL_HEADS)),
    "gemma2": Gemma2ForCausalLM(
        Gemma2Config(
            **SMALL_HEADS,
            query_pre_attn_scalar=5,
            sliding_window=4,
            attn_logit_softcapping=3.0,
            final_logit_softcapping=2.0,
        )
    ),
    "gemma3": Gemma3ForCausalLM(
        Gemma3TextConfig(**{**SMALL_HEADS, "num_hidden_layers": 7}, query_pre_attn_scalar=5, sliding_window=4)
    ),
    "olmo2": Olmo2ForCausalLM(Olmo2Config(**SIZES, num_hidden_layers=2)),
}
values = {"tokens": TOKENS}
for name, model in MODELS.items():
    torch.manual_seed(17)
    model.config._attn_implementation = "eager"
    with torch.no_grad():
        for parameter in model.parameters():
            # Initial weights are so small that every token has the same logits; norms are at 0 or 1.
            parameter.add_(0.2 * torch.randn_like(parameter))
    folder = OUT / name
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    for path in folder.iterdir():
        path.chmod(0o644)
    model = model.double().eval()
    with torch.no_grad():
        output = model(TOKENS, output_hidden_states=True)
        values[f"{name}.logits"] = output.logits.float()
        # The last of them is behind the last norm.
        for layer, states in enumerate(output.hidden_states[1:-1]):
            values[f"{name}.states.{layer}"] = states.float()
        tokens = TOKENS[:, :4]
        for _ in range(NEW_TOKENS):
            following = model(tokens).logits[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, following], 1)
        values[f"{name}.generated"] = tokens[:, 4:]
path = OUT / "llama_values.safetensors"
save_file({name: value.contiguous() for name, value in values.items()}, path)
path.chmod(0o644)
