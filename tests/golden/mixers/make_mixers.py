"""Mixers of tokens as `transformers` has them: parameters, outputs and gradients.

Usage: python make_mixers.py [OUT_DIR]

For each mixer, `{name}.safetensors` has its parameters by their names, `{name}_gradients.safetensors` their gradients by the same names, and
`{name}_values.safetensors` inputs and outputs. Parameters and inputs are float32 values (stored exactly); values are computed in float64 and
rounded to float32 once, but for the delta rule and the norms, which `transformers` computes in float32. Made with torch 2.15.0 and
transformers 5.24.0.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import DeepseekV2Config, Qwen3NextConfig
from transformers.cache_utils import DynamicCache
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Attention, DeepseekV2RotaryEmbedding
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
BATCH = 2
# How many tokens the sequences of a padded batch have, and after how many a cache reads one at a time.
LENGTHS = [13, 8]
PROMPT = 5


def write(name, tensors):
    path = OUT / f"{name}.safetensors"
    save_file({key: value.detach().float().contiguous() for key, value in tensors.items()}, path)
    path.chmod(0o644)


def made(name, module, values, run, inputs):
    """Writes the module, what `run` makes of the `inputs`, and the gradients of the last of them."""
    torch.manual_seed(17)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    write(name, dict(module.named_parameters()))
    module.double().eval()
    for key, x in inputs.items():
        values[key] = x
        x = x.double().requires_grad_()
        values[f"{key}.output"] = run(x)
    values["loss_weight"] = torch.randn_like(values[f"{key}.output"]).float()
    (values[f"{key}.output"] * values["loss_weight"]).sum().backward()
    values[f"{key}.grad"] = x.grad
    write(f"{name}_gradients", {key: parameter.grad for key, parameter in module.named_parameters()})
    write(f"{name}_values", values)


def gated_delta_rule():
    config = Qwen3NextConfig(
        hidden_size=11,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=5,
        linear_value_head_dim=3,
        linear_conv_kernel_dim=4,
        num_hidden_layers=1,
        layer_types=["linear_attention"],
        rms_norm_eps=1e-5,
    )
    torch.manual_seed(17)
    module = Qwen3NextGatedDeltaNet(config, 0)
    x = torch.randn(BATCH, LENGTHS[0], 11)
    # Across the 64 tokens that transformers computes at once, and keys so alike that they overwrite each other.
    long, alike = torch.randn(1, 67, 11), torch.randn(1, 1, 11).repeat(1, 31, 1) + 0.01 * torch.randn(1, 31, 11)
    values = {}
    made("gated_delta_rule", module, values, module, {"long": long, "alike": alike, "x": x})
    with torch.no_grad():
        # Padding of transformers is on the left.
        mask = (torch.arange(LENGTHS[0]) >= LENGTHS[0] - torch.tensor(LENGTHS)[:, None]).double()
        left = torch.stack([row.roll(-length, 0) for row, length in zip(x, LENGTHS)])
        values["left.output"] = module(left.double(), attention_mask=mask) * mask[:, :, None]
        cache = DynamicCache(config=config)
        parts = [module(part.double(), cache=cache) for part in x.split([PROMPT] + [1] * (LENGTHS[0] - PROMPT), 1)]
        values["cached.output"] = torch.cat(parts, 1)
    write("gated_delta_rule_values", values)


def latent_attention(name, d_query_latent):
    config = DeepseekV2Config(
        hidden_size=15,
        num_attention_heads=3,
        q_lora_rank=d_query_latent,
        kv_lora_rank=7,
        qk_nope_head_dim=5,
        qk_rope_head_dim=4,
        v_head_dim=6,
        num_hidden_layers=1,
        attn_implementation="eager",
        attention_bias=d_query_latent is not None,
    )
    torch.manual_seed(17)
    module = DeepseekV2Attention(config, 0)
    rotary = DeepseekV2RotaryEmbedding(config)
    x = torch.randn(BATCH, LENGTHS[0], 15)
    hidden = torch.full((LENGTHS[0], LENGTHS[0]), -torch.inf, dtype=torch.float64).triu(1)

    def run(x):
        positions = torch.arange(x.shape[1])[None]
        return module(x, attention_mask=hidden[None, None], position_embeddings=rotary(x, positions))[0]

    made(name, module, {}, run, {"x": x})


gated_delta_rule()
latent_attention("latent_attention", None)
latent_attention("latent_attention_low_rank", 8)
