"""State dicts of PyTorch modules, as files that a user would bring, and what the modules make of their inputs.

Usage: python make_import.py [OUT_DIR]

Parameters and inputs are float32 values (stored exactly); outputs are computed in float64 and rounded to float32 once.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
torch.manual_seed(11)

D_MODEL, HEADS, D_FF = 12, 3, 7


def prepare(module):
    """Moves biases off 0 and norm weights off 1, then switches to float64 and training mode."""
    with torch.no_grad():
        for p in module.parameters():
            if p.dim() == 1:
                p.add_(0.2 * torch.randn_like(p))
    return module.double().train()  # training mode: the inference fast path is off


def attention(**options):
    return nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, **options)


def layer(kind, norm_first=False, activation="relu", **options):
    return kind(
        D_MODEL, HEADS, D_FF, dropout=0.0, norm_first=norm_first, activation=activation, batch_first=True, **options
    )


encoder_layer, decoder_layer = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
modules = {
    "packed": attention(),
    "separate": attention(kdim=5, vdim=7),
    "one_memory": attention(kdim=5, vdim=5),
    "no_bias": attention(bias=False),
    "separate_no_bias": attention(kdim=5, vdim=7, bias=False),
    "half": attention(),
    "encoder_layer_post": layer(encoder_layer),
    "encoder_layer_pre": layer(encoder_layer, norm_first=True, activation="gelu"),
    "encoder_layer_no_bias": layer(encoder_layer, bias=False),
    "decoder_layer_post": layer(decoder_layer),
    "decoder_layer_pre": layer(decoder_layer, norm_first=True, activation="gelu"),
    "encoder": nn.TransformerEncoder(layer(encoder_layer), 2),
    "decoder": nn.TransformerDecoder(layer(decoder_layer, norm_first=True), 1, norm=nn.LayerNorm(D_MODEL)),
    "transformer": nn.Transformer(D_MODEL, HEADS, 1, 1, D_FF, dropout=0.0, batch_first=True),
}
for name, module in modules.items():
    prepare(module)
with torch.no_grad():
    # Copies of one layer start alike; only different ones tell whether they come in order.
    for p in modules["encoder"].layers[1].parameters():
        p.mul_(1.25)
    for p in modules["half"].parameters():
        p.copy_(p.half())

values = {
    "x": torch.randn(2, 5, 12),
    "memory": torch.randn(2, 7, 12),
    "narrow_memory": torch.randn(2, 7, 5),
    "key": torch.randn(2, 7, 5),
    "value": torch.randn(2, 7, 7),
}
x, memory, narrow_memory, key, value = (v.double() for v in values.values())
causal = torch.ones(5, 5, dtype=torch.bool).triu(1)  # True = hidden
outputs = {
    "packed.self_attention": modules["packed"](x, x, x)[0],
    "packed.causal": modules["packed"](x, x, x, attn_mask=causal)[0],
    "packed.cross_attention": modules["packed"](x, memory, memory)[0],
    "separate.output": modules["separate"](x, key, value)[0],
    "one_memory.output": modules["one_memory"](x, narrow_memory, narrow_memory)[0],
    "no_bias.output": modules["no_bias"](x, x, x)[0],
    "separate_no_bias.output": modules["separate_no_bias"](x, key, value)[0],
    "half.output": modules["half"](x, x, x)[0],
    "decoder.output": modules["decoder"](x, memory, tgt_mask=causal),
    "encoder.output": modules["encoder"](x),
    "encoder.causal": modules["encoder"](x, mask=causal),
    "transformer.output": modules["transformer"](memory, x, tgt_mask=causal),
}
# A key and value of zeros, of which the weights hold no trace.
modules["packed"].add_zero_attn = True
outputs["packed.zero_attn"] = modules["packed"](x, x, x)[0]
outputs["packed.zero_attn_causal"] = modules["packed"](x, x, x, attn_mask=causal)[0]
modules["packed"].add_zero_attn = False
for name in ("encoder_layer_post", "encoder_layer_pre", "encoder_layer_no_bias"):
    outputs[f"{name}.output"] = modules[name](x)
for name in ("decoder_layer_post", "decoder_layer_pre"):
    outputs[f"{name}.output"] = modules[name](x, memory, tgt_mask=causal)


def state(module, dtype=torch.float32):
    return {k: v.detach().to(dtype, copy=True).contiguous() for k, v in module.state_dict().items()}


def prefixed(states):
    return {f"{prefix}.{name}": tensor for prefix, tensors in states.items() for name, tensor in tensors.items()}


def save(file, names):
    model = prefixed({name: states[name] for name in names})
    torch.save(model, OUT / f"{file}.pt")
    save_file(model, OUT / f"{file}.safetensors")


states = {name: state(module) for name, module in modules.items()}
states["half"] = state(modules["half"], torch.float16)
states["double"] = state(modules["packed"], torch.float64)
stacks = ["encoder", "decoder", "transformer"]
layers = [name for name in modules if "coder_layer" in name]
save("attention", [name for name in states if name not in stacks + layers])
save("layers", layers)
save("stacks", stacks)

# What must be refused, each under its own name in a dictionary of dictionaries, as checkpoints of a training run are.
def packed():
    return state(modules["packed"])


bad = {
    "missing": packed(),
    "extra": {**packed(), "relative_bias": torch.zeros(3)},
    "shape": {**packed(), "in_proj_weight": torch.zeros(35, 12)},
    "dtype": {**packed(), "in_proj_bias": torch.arange(36)},
    "bias_kv": state(attention(add_bias_kv=True)),
}
del bad["missing"]["out_proj.bias"]
torch.save({"epoch": 3, **bad}, OUT / "bad.pt")
save_file(prefixed(bad), OUT / "bad.safetensors")

values |= {name: output.detach().float().contiguous() for name, output in outputs.items()}
save_file(values, OUT / "values.safetensors")
