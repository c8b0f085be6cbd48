"""Checkpoints of small models as `transformers` saves them, and their logits.

Usage: python make_weights.py [OUT_DIR]

Parameters are float32 values (stored exactly); logits are computed in float64 and rounded to float32 once.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
torch.manual_seed(17)
(OUT / "llama").mkdir(parents=True, exist_ok=True)

models = {
    "gpt2": GPT2LMHeadModel(
        GPT2Config(vocab_size=11, n_positions=7, n_embd=15, n_layer=2, n_head=3, n_inner=13, bos_token_id=0, eos_token_id=0)
    ),
    "llama": LlamaForCausalLM(
        LlamaConfig(
            vocab_size=13,
            hidden_size=18,
            intermediate_size=11,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            max_position_embeddings=7,
            rms_norm_eps=1e-5,
        )
    ),
    # One after the other, not parallel: the blocks of today.
    "gpt_neox": GPTNeoXForCausalLM(
        GPTNeoXConfig(
            vocab_size=13,
            hidden_size=24,
            intermediate_size=11,
            num_hidden_layers=2,
            num_attention_heads=3,
            max_position_embeddings=7,
            use_parallel_residual=False,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
        )
    ),
}
tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])
values = {"tokens": tokens}
for name, model in models.items():
    with torch.no_grad():
        for parameter in model.parameters():
            # Initial weights are so small that every token has the same logits; biases are at 0, norms at 1.
            parameter.add_(0.2 * torch.randn_like(parameter))
    with tempfile.TemporaryDirectory() as folder:
        # Two or more shards and their index for Llama.
        model.save_pretrained(folder, max_shard_size="4KB" if name == "llama" else "1GB")
        for path in Path(folder).glob("model*"):
            path.chmod(0o644)
            shutil.move(path, OUT / (f"llama/{path.name}" if name == "llama" else path.name.replace("model", name)))
    # As `torch.save` keeps them, tied weights are there twice.
    if name == "gpt2":
        torch.save(model.state_dict(), OUT / "gpt2.bin")
    with torch.no_grad():
        values[f"{name}.logits"] = model.double().eval()(tokens).logits.float().contiguous()
save_file(values, OUT / "values.safetensors")
