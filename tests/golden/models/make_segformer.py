"""Folders of small SegFormers as `transformers` saves them, and what they see; of one with a decode head also a step of training.

Usage: python make_segformer.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once. Images are bytes, of which a model sees
`byte / 64 - 2`.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import SegformerConfig, SegformerForImageClassification, SegformerForSemanticSegmentation, SegformerModel
from transformers.models.segformer.modeling_segformer import SegformerAttention, SegformerLayer

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
SIZE = [25, 37]
CLASSES = {index: f"class {index}" for index in range(5)}
IGNORED = 255
BIAS = [0.01, 0.13, -0.08, 0.27, -0.17]
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def segmented(logits):
    """The classes of pixels, and `IGNORED` where rounding may decide between two."""
    scores = torch.nn.functional.interpolate(logits, size=SIZE, mode="bilinear", align_corners=False)
    (best, second), classes = scores.topk(2, dim=1).values.unbind(1), scores.argmax(1)
    return classes.where(best - second > 1e-3 * scores.abs().max(), IGNORED).to(torch.uint8)


def trained(model, pixels, generator):
    """Loss and gradients of a step without dropout, and the running statistics after it."""
    norm, old = model.decode_head.batch_norm, model.decode_head.batch_norm.running_var.clone()
    labels = torch.randint(0, 6, [len(pixels), *SIZE], generator=generator)
    labels = labels.where(labels < 5, IGNORED)
    output = model.train()(pixels, labels=labels)
    output.loss.backward()
    # Burn takes the variance of the batch as it is, PyTorch that of the population.
    count = output.logits[:, 0].numel()
    return {
        "labels": labels.to(torch.uint8),
        "loss": output.loss.detach().reshape(1),
        "gradient.first": model.segformer.stages[0].patch_embeddings.proj.weight.grad,
        "gradient.last": model.decode_head.linear_projections[3].proj.weight.grad,
        "running_mean": norm.running_mean,
        "running_var": 0.9 * old + (norm.running_var - 0.9 * old) * (count - 1) / count,
    }


def made(name, kind, config):
    config._attn_implementation = "eager"
    torch.manual_seed(23)
    model = kind(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        for buffer, values in model.named_buffers():
            if "running" in buffer:
                values.add_(0.3 * torch.rand_like(values))
        if kind is SegformerForSemanticSegmentation:
            # Every class shall win somewhere.
            model.decode_head.classifier.bias.copy_(torch.tensor(BIAS))
    folder = OUT / name
    model.save_pretrained(folder)
    model = model.double().eval()
    states, weights = [], []
    for module in model.modules():
        if isinstance(module, SegformerLayer):
            module.register_forward_hook(lambda _module, _input, output: states.append(output))
        if isinstance(module, SegformerAttention):
            module.register_forward_hook(lambda _module, _input, output: weights.append(output[1]))
    generator = torch.Generator().manual_seed(5)
    batch = 2 if kind is SegformerForSemanticSegmentation else 1
    images = torch.randint(0, 256, [batch, config.num_channels, *SIZE], generator=generator)
    pixels = images.double() / 64 - 2
    with torch.no_grad():
        seen = model(pixels, output_hidden_states=True)
    values = {f"maps.{stage}": states for stage, states in enumerate(seen.hidden_states)}
    values |= {f"states.{block}": values for block, values in enumerate(states)}
    if kind is not SegformerModel:
        values |= {f"weights.{block}": values for block, values in enumerate(weights)}
        values["logits"] = seen.logits
    if kind is SegformerForSemanticSegmentation:
        values["classes"] = segmented(seen.logits)
        print(seen.logits.mean([0, 2, 3]))
        print("unsure:", (values["classes"] == IGNORED).sum().item(), "classes:", values["classes"].unique(return_counts=True))
        values |= trained(model, pixels, generator)
    values["images"] = images.to(torch.uint8)
    values = {key: (value if value.dtype == torch.uint8 else value.float()).contiguous() for key, value in values.items()}
    save_file(values, folder / "values.safetensors")
    for file in folder.glob("*.safetensors"):
        file.chmod(0o644)
    print(name, {key: tuple(value.shape) for key, value in values.items()})


made(
    "segformer",
    SegformerForSemanticSegmentation,
    SegformerConfig(
        num_channels=2,
        depths=[1, 1, 1, 1],
        sr_ratios=[3, 2, 1, 1],
        hidden_sizes=[4, 6, 3, 10],
        patch_sizes=[7, 3, 5, 3],
        strides=[4, 2, 2, 1],
        num_attention_heads=[1, 2, 3, 2],
        mlp_ratios=[2, 3, 2, 1],
        drop_path_rate=0.0,
        classifier_dropout_prob=0.0,
        decoder_hidden_size=7,
        id2label=CLASSES,
    ),
)
made(
    "segformer_classifier",
    SegformerForImageClassification,
    SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 2],
        sr_ratios=[5, 2],
        hidden_sizes=[3, 4],
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 3],
        hidden_act="gelu_new",
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        drop_path_rate=0.3,
        id2label=CLASSES,
    ),
)
made(
    "segformer_bare",
    SegformerModel,
    SegformerConfig(
        num_channels=1,
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[3, 1],
        hidden_sizes=[4, 3],
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 3],
        mlp_ratios=[1, 2],
        reshape_last_stage=False,
    ),
)
