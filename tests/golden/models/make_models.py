"""Folders of small models as `transformers` saves them, and what they compute.

Usage: python make_models.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForMaskedLM, BertModel

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def saved(name, model, **inputs):
    """Saves `model` below `name`, and what it makes of `inputs` beside it."""
    torch.manual_seed(17)
    with torch.no_grad():
        for parameter in model.parameters():
            # Initial weights are so small that every token has the same state; biases are at 0, norms at 1.
            parameter.add_(0.2 * torch.randn_like(parameter))
    folder = OUT / name
    model.save_pretrained(folder)
    for path in folder.iterdir():
        path.chmod(0o644)
    with torch.no_grad():
        return model.double().eval()(**inputs, output_hidden_states=True)


def bert():
    config = BertConfig(
        vocab_size=23,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=17,
        max_position_embeddings=11,
        type_vocab_size=2,
        hidden_act="gelu",
    )
    config._attn_implementation = "eager"
    tokens = torch.tensor([[2, 7, 11, 3, 5, 13, 3], [2, 19, 22, 3, 0, 0, 0]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0]])
    lengths = torch.tensor([7, 4])
    mask = (torch.arange(7) < lengths[:, None]).long()
    output = saved("bert", BertModel(config), input_ids=tokens, token_type_ids=segments, attention_mask=mask)
    values = {"tokens": tokens, "segments": segments, "lengths": lengths, "pooled": output.pooler_output}
    for index, states in enumerate(output.hidden_states[1:]):
        values[f"states.{index}"] = states
    # What only padding sees does not matter.
    for name, value in values.items():
        if name.startswith("states"):
            values[name] = value * mask[:, :, None]
    # The same encoder below a head, without a pooler.
    headed = saved("bert_masked_lm", BertForMaskedLM(config), input_ids=tokens, attention_mask=mask)
    values["headed"] = headed.hidden_states[-1] * mask[:, :, None]
    return values


values = {f"bert.{name}": value for name, value in bert().items()}
values = {name: value.float() if value.is_floating_point() else value for name, value in values.items()}
path = OUT / "values.safetensors"
save_file({name: value.contiguous() for name, value in values.items()}, path)
path.chmod(0o644)
