"""Folders of a small CLIP and a small SigLIP as `transformers` saves them, and what they see and read.

Usage: python make_clip.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import CLIPConfig, CLIPModel, CLIPTextModel, CLIPVisionModel, SiglipConfig, SiglipModel

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
VISION = dict(hidden_size=6, num_hidden_layers=2, num_attention_heads=2, intermediate_size=11, image_size=7, patch_size=2)
TEXT = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=4, intermediate_size=7, max_position_embeddings=11, vocab_size=23)
# The end is 20, or else the largest token; what follows is padding. One text has several ends, another has 20 before the largest.
TEXTS = torch.tensor([[1, 7, 3, 9, 20, 0, 0], [1, 20, 20, 20, 20, 20, 20], [1, 5, 20, 4, 22, 22, 2]])
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def saved(name, model):
    """A folder with the model, which has no bias of zero and no norm of one, and the model in float64."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(OUT / name)
    return model.double().eval()


def states(name, output, norm=None):
    """The states of all tokens, normalised, and those after every layer."""
    last = output.last_hidden_state if norm is None else norm(output.last_hidden_state)
    layers = {f"{name}.states.{layer}": states for layer, states in enumerate(output.hidden_states[1:], 1)}
    return {f"{name}.states": last, **layers}


def made(name, kind, config):
    config._attn_implementation = "eager"
    torch.manual_seed(17)
    model = saved(name, kind(config))
    is_clip = kind is CLIPModel
    values = {"tokens": TEXTS}
    with torch.no_grad():
        for images, size in (("images", [7, 7]), ("wide", [5, 8])):
            pixels = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(3)).float()
            values[images] = pixels
            options = {"interpolate_pos_encoding": size != [7, 7]}
            seen = model.vision_model(pixels.double(), output_hidden_states=True, **options)
            norm = model.vision_model.post_layernorm if is_clip else None
            values |= states(images, seen, norm)
            values[f"{images}.pooled"] = seen.pooler_output
            values[f"{images}.features"] = model.get_image_features(pixels.double(), **options).pooler_output
            values[f"{images}.logits"] = model(TEXTS, pixels.double(), **options).logits_per_image
        read = model.text_model(TEXTS, output_hidden_states=True)
        values |= states("texts", read)
        # That of a SigLIP is projected.
        values["texts.pooled"] = read.pooler_output if is_clip else read.last_hidden_state[:, -1]
        values["texts.features"] = model.get_text_features(TEXTS).pooler_output
        if is_clip:
            # Padding after the end changes nothing, hidden or not.
            mask = torch.tensor([[1] * 5 + [0] * 2, [1] * 2 + [0] * 5, [1] * 5 + [0] * 2])
            hidden = model.get_text_features(TEXTS, attention_mask=mask).pooler_output
            assert (hidden - values["texts.features"]).abs().max() < 1e-12
    values = {key: value if value is TEXTS else value.float().contiguous() for key, value in values.items()}
    save_file(values, OUT / name / "values.safetensors")
    print(name, {key: tuple(value.shape) for key, value in values.items()})
    return model


def alone(name, kind, whole):
    """A folder of one encoder of a whole model, and what it sees or reads."""
    model = kind(whole.config)
    model.load_state_dict(whole.state_dict())
    model.float().save_pretrained(OUT / name)
    model = kind.from_pretrained(OUT / name, attn_implementation="eager").double().eval()
    given, norm = ("texts", None) if kind is CLIPTextModel else ("images", model.post_layernorm)
    inputs = TEXTS if kind is CLIPTextModel else torch.randn(2, 3, 7, 7, generator=torch.Generator().manual_seed(3)).float()
    with torch.no_grad():
        output = model(inputs if inputs is TEXTS else inputs.double(), output_hidden_states=True)
        values = {**states(given, output, norm), f"{given}.pooled": output.pooler_output}
    values = {given: inputs} | {key: value.float().contiguous() for key, value in values.items()}
    save_file(values, OUT / name / "values.safetensors")


# The end token of the first configurations.
made("clip", CLIPModel, CLIPConfig(text_config=dict(TEXT, eos_token_id=2), vision_config=VISION, projection_dim=5))
gelu = dict(hidden_act="gelu", attention_dropout=0.1, layer_norm_eps=1e-3)
text, vision = dict(TEXT, eos_token_id=20, **gelu), dict(VISION, num_channels=3, **gelu)
clip = made("clip_gelu", CLIPModel, CLIPConfig(text_config=text, vision_config=vision, projection_dim=7))
alone("clip_vision", CLIPVisionModel, clip.vision_model)
alone("clip_text", CLIPTextModel, clip.text_model)
made("siglip", SiglipModel, SiglipConfig(text_config=dict(TEXT, projection_size=6), vision_config=VISION))
for folder in ("clip", "clip_gelu", "clip_vision", "clip_text", "siglip"):
    for file in (OUT / folder).glob("*.safetensors"):
        file.chmod(0o644)
