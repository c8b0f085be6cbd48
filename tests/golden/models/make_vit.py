"""Folders of small vision transformers as `transformers` saves them, and what they see.

Usage: python make_vit.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (
    DeiTConfig,
    DeiTForImageClassification,
    DeiTForImageClassificationWithTeacher,
    Dinov2Config,
    Dinov2ForImageClassification,
    Dinov2Model,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
CLASSES = {index: f"class {index}" for index in range(5)}
SIZES = dict(hidden_size=12, num_hidden_layers=2, num_attention_heads=3, image_size=12, patch_size=4, num_channels=3, id2label=CLASSES)
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def made(name, kind, config, other_size):
    """A model of `kind`, and what it sees in two images, and in two of another size, wider than high."""
    config._attn_implementation = "eager"
    torch.manual_seed(17)
    model = kind(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    folder = OUT / name
    model.save_pretrained(folder)
    model = model.double().eval()
    values = {}
    for images, size in (("images", [12, 12]), ("wide", [9, 21])):
        options = {} if size == [12, 12] or isinstance(config, Dinov2Config) else {"interpolate_pos_encoding": True}
        if size != [12, 12] and not other_size:
            continue
        pixels = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(3)).float()
        body = model if kind in (ViTModel, Dinov2Model) else getattr(model, config.model_type)
        with torch.no_grad():
            seen = body(pixels.double(), output_hidden_states=True, **options)
            values[f"{images}.states"] = seen.last_hidden_state
            layers = seen.hidden_states[1:]
            values |= {f"{images}.states.{layer}": states for layer, states in enumerate(layers, 1)}
            if body is not model:
                values[f"{images}.logits"] = model(pixels.double(), **options).logits
        values[images] = pixels
    values = {key: value.float().contiguous() for key, value in values.items()}
    save_file(values, folder / "values.safetensors")
    for file in folder.glob("*.safetensors"):
        file.chmod(0o644)
    print(name, {key: tuple(value.shape) for key, value in values.items()})


made("vit", ViTForImageClassification, ViTConfig(intermediate_size=17, **SIZES), True)
made("vit_bare", ViTModel, ViTConfig(intermediate_size=17, **SIZES), False)
made("deit", DeiTForImageClassificationWithTeacher, DeiTConfig(intermediate_size=17, **SIZES), True)
made("deit_one_head", DeiTForImageClassification, DeiTConfig(intermediate_size=17, **SIZES), False)
made("dinov2", Dinov2ForImageClassification, Dinov2Config(mlp_ratio=2, layerscale_value=0.7, **SIZES), True)
made("dinov2_bare", Dinov2Model, Dinov2Config(mlp_ratio=2, **SIZES), False)
