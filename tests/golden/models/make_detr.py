"""Folders of small DETRs as `transformers` saves them, and what they find in images.

Usage: python make_detr.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once. Images are a formula, which
the tests have too.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import DetrConfig, DetrForObjectDetection, DetrImageProcessor, DetrModel, ResNetConfig
from transformers.models.detr.modeling_detr import DetrFrozenBatchNorm2d

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
# Parameters whose weights are larger, so that queries find different things.
LARGE = ["encoder_attn", "q_proj", "k_proj", "query_position", "classifier", "input_projection"]
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def formula(*shape):
    """Numbers from -1 to 1."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7919 % 251).float() / 125 - 1).reshape(shape)


def perturb(model):
    """Moves every bias away from 0 and every norm away from 1."""
    for name, parameter in model.named_parameters():
        is_large = any(part in name for part in LARGE) and "bias" not in name
        parameter.add_((0.9 if is_large else 0.3) * torch.randn_like(parameter))
    for norm in model.modules():
        if isinstance(norm, DetrFrozenBatchNorm2d):
            for buffer in (norm.weight, norm.bias, norm.running_mean):
                buffer.add_(0.3 * torch.randn_like(buffer))
            norm.running_var.mul_(0.5 + torch.rand_like(norm.running_var))


def made(name, kind, channels, size, inside, backbone, **sizes):
    """A model of `kind`, and what it finds in two images, the second of which is padded unless `inside` is its size."""
    stages = len(backbone["depths"])
    backbone = ResNetConfig(num_channels=channels, out_features=[f"stage{stages}"], **backbone)
    config = DetrConfig(use_timm_backbone=False, backbone_config=backbone, num_channels=channels, **sizes)
    config._attn_implementation = "eager"
    torch.manual_seed(37)
    model = kind(config)
    with torch.no_grad():
        perturb(model)
    folder = OUT / name
    model.save_pretrained(folder)
    model = model.double().eval()
    images = formula(2, channels, *size).double()
    mask = torch.ones(2, *size, dtype=torch.int64)
    mask[1, inside[0] :, :] = 0
    mask[1, :, inside[1] :] = 0
    body = getattr(model, "model", model)
    values = {}

    def keep(name):
        def hook(module, inputs, output):
            values[name] = output[0] if isinstance(output, tuple) else output

        return hook

    body.backbone.register_forward_hook(lambda module, inputs, output: values.update(features=output[-1][0]))
    for stack in ("encoder", "decoder"):
        for index, layer in enumerate(getattr(body, stack).layers):
            layer.register_forward_hook(keep(f"{stack}.{index}"))
    with torch.no_grad():
        is_padded = inside != size
        output = model(images, pixel_mask=mask if is_padded else None, output_attentions=True)
        for index in range(config.decoder_layers):
            values[f"decoder.{index}"] = body.decoder.layernorm(values[f"decoder.{index}"])
    assert torch.equal(values[f"decoder.{config.decoder_layers - 1}"], output.last_hidden_state)
    if body is not model:
        values |= {"logits": output.logits, "boxes": output.pred_boxes}
        scores = output.logits.softmax(-1)[..., :-1].amax(-1).flatten().sort().values
        # Half of them are found.
        threshold = scores[len(scores) // 2 - 1 :][:2].mean().float().item()
        sizes = [tuple(size), tuple(inside)]
        found = DetrImageProcessor.post_process_object_detection(None, output, threshold, sizes)
        values["threshold"] = torch.tensor([threshold])
        for index, image in enumerate(found):
            values |= {f"found.{index}.scores": image["scores"], f"found.{index}.corners": image["boxes"]}
            values[f"found.{index}.labels"] = image["labels"].double()
        values["cross_weights"] = output.cross_attentions[-1]
    values = {key: value.float().contiguous() for key, value in values.items()}
    if is_padded:
        values["mask"] = mask.bool()
    save_file(values, folder / "values.safetensors")
    for file in folder.glob("*.safetensors"):
        file.chmod(0o644)
    print(name, {key: tuple(value.shape) for key, value in values.items()})


def classes(count):
    return {index: f"class {index}" for index in range(count)}


made(
    "detr", DetrForObjectDetection, 3, [29, 43], [18, 35],
    dict(layer_type="bottleneck", embedding_size=3, hidden_sizes=[8, 12], depths=[1, 2]),
    d_model=8, encoder_attention_heads=2, decoder_attention_heads=2, encoder_layers=2, decoder_layers=2,
    encoder_ffn_dim=17, decoder_ffn_dim=17, num_queries=5, id2label=classes(6),
)  # fmt: skip
made(
    "detr_basic", DetrForObjectDetection, 1, [21, 37], [21, 37],
    dict(layer_type="basic", embedding_size=2, hidden_sizes=[3, 5], depths=[2, 1]),
    d_model=8, encoder_attention_heads=2, decoder_attention_heads=2, encoder_layers=1, decoder_layers=1,
    encoder_ffn_dim=11, decoder_ffn_dim=11, num_queries=7, id2label=classes(2),
)  # fmt: skip
made(
    "detr_bare", DetrModel, 1, [21, 29], [13, 29],
    dict(layer_type="basic", embedding_size=2, hidden_sizes=[3], depths=[1]),
    d_model=4, encoder_attention_heads=1, decoder_attention_heads=1, encoder_layers=1, decoder_layers=1,
    encoder_ffn_dim=5, decoder_ffn_dim=5, num_queries=3,
)  # fmt: skip
