"""What `transformers` 5 makes of changed `config.json` and `preprocessor_config.json` files of models that see and hear:
`changed_vision_and_speech.json`, for the small models beside this script.

Usage: python make_changed_vision_and_speech.py

A row says which fields were set (`GONE`: taken away; `part.field`: inside an object) and what `transformers` gives then: some numbers of the first
result of a model, in float64, or shape and numbers of what a processor makes; or `BEFORE`. Or it is why there are none: the exception, or that weights are
missing or left over, which `transformers` replaces by random ones with a warning. `not_here` are rows that burn-attn refuses although `transformers` computes
them, and `here` rows for which it gives what it gave before although `transformers` refuses them.

Every field has a row with null, one without it and some with other values, unless it changes nothing whatever its value. Those that change nothing
are changed together in one row of each model.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
import numpy
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file
from transformers import AutoFeatureExtractor, AutoImageProcessor

HERE = Path(__file__).resolve().parent
OUT = HERE / "changed_vision_and_speech.json"
BEFORE, GONE = "as before", "(gone)"
TYPE = "refused: FieldValidationError"
NUMBERS = 4
# Each with the fields that are changed; all of them, if none is named.
MODELS = {
    "vit": "",
    "deit": "num_attention_heads hidden_act layer_norm_eps image_size intermediate_size",
    "dinov2": "hidden_act layer_norm_eps mlp_ratio use_swiglu_ffn layerscale_value drop_path_rate image_size patch_size qkv_bias num_channels",
    "detr": "",
    "detr_basic": "backbone_config.layer_type backbone_config.downsample_in_first_stage backbone_config.num_channels num_channels",
    "segformer": "",
    "segformer_classifier": "num_encoder_blocks hidden_act depths layer_norm_eps",
    "clip": "",
    "clip_gelu": "text_config.eos_token_id text_config.hidden_act text_config.layer_norm_eps vision_config.hidden_act vision_config.layer_norm_eps",
    "siglip": "",
    "wav2vec2": "",
    "wav2vec2_large": "do_stable_layer_norm feat_extract_norm conv_bias hidden_act layer_norm_eps",
    "whisper": "",
}
# Names, the form of a result, random initialisation, generation, and what is not part of the model that is read.
LEFT_OUT = (
    "model_type text_config.model_type vision_config.model_type architectures dtype id2label label2id transformers_version use_cache return_dict "
    "stage_names problem_type initializer_factor initializer_range pad_token_id decoder_start_token_id reshape_last_stage use_mask_token "
    "_name_or_path text_config.bos_token_id text_config.pad_token_id text_config.projection_dim vision_config.projection_dim "
    "text_config.initializer_factor vision_config.initializer_factor text_config.initializer_range vision_config.initializer_range"
).split()
LEFT_OUT_OF = {
    "dinov2": ["out_features", "out_indices"],
    "clip": ["logit_scale_init_value"],
    "siglip": ["text_config.eos_token_id"],
    "wav2vec2": ["mask_time_prob", "mask_feature_prob"],
    "detr": ["format"],
}
HEADS, OTHER_HEADS = "encoder_attention_heads", "decoder_attention_heads"
# Rows that burn-attn refuses although transformers computes them: options that it does not have, and numbers that it wants to be said.
GONE_SETTINGS = [{field: GONE} for field in ("size", "image_mean", "image_std")]
SIZES = [{"size": [9, 10]}, {"size": {"max_height": 9, "max_width": 20}}]
FILTERS = [{"resample": 0}, {"resample": 1}]
PADDED = {"pad_size": {"height": 40, "width": 40}}
# A SigLIP with the block of a CLIP.
OF_CLIP = {"text_config.hidden_act": "quick_gelu", "text_config.layer_norm_eps": 1e-5}
NOT_HERE = {
    "vit": [{"image_size": [12, 12]}],
    "detr": [
        *({HEADS: heads} for heads in (GONE, 3, 4)), *({OTHER_HEADS: heads} for heads in (GONE, 3, 4)), {"auxiliary_loss": True},
        {"dilation": True}, {"backbone_config.downsample_in_bottleneck": True}, {"backbone_config.downsample_in_first_stage": True},
        {"backbone_config.hidden_act": "gelu"}, {"backbone_config.hidden_act": "gelu_new"},
    ],
    "detr_basic": [{"backbone_config.downsample_in_first_stage": True}],
    "segformer": [{"depths": [1] * 5}],
    "clip": [{"text_config.eos_token_id": GONE}],
    "clip_gelu": [{"text_config.eos_token_id": GONE}],
    "wav2vec2": [{"adapter_attn_dim": 3}],
    "whisper": [*({HEADS: heads} for heads in (GONE, 4)), *({OTHER_HEADS: heads} for heads in (GONE, 4)), {"median_filter_width": 8}, {"scale_embedding": True}],
}  # fmt: skip
NOT_HERE_OF_PROCESSORS = {
    "vit": [*GONE_SETTINGS, *SIZES, *FILTERS, PADDED, {"do_pad": True}, {"size": 9, "max_size": 12}],
    "dinov2": [*GONE_SETTINGS, {"crop_size": GONE}, *SIZES, *FILTERS, PADDED, {"do_pad": True}, {"size": 9, "max_size": 12}],
    "detr": [
        *({field: GONE} for field in ("size", "image_mean", "image_std")), {"size": None}, *SIZES, *FILTERS, PADDED,
        {"do_center_crop": True, "crop_size": {"shortest_edge": 9}},
    ],
    **dict.fromkeys(["deit", "clip"], [*GONE_SETTINGS, {"crop_size": GONE}]),
    **dict.fromkeys(["siglip", "segformer"], GONE_SETTINGS),
    "wav2vec2": [{"do_normalize": None}, {"return_attention_mask": None}, {"padding_side": "left"}],
    "whisper": [
        *({field: GONE} for field in ("chunk_length", "feature_size")), {"chunk_length": 2}, {"feature_size": 9}, {"hop_length": 161}, {"n_fft": 401},
        {"n_fft": 512}, {"padding_side": "left"}, {"padding_value": 0.1}, {"dither": 0.1},
    ],
}  # fmt: skip
# Where a null stands for the default, or a value changes nothing, although transformers refuses it: images of another size, for instance.
COMPUTED_HERE = {
    "vit": [{"qkv_bias": None}, {"image_size": 13}],
    "deit": [{"image_size": 13}],
    "dinov2": [{"qkv_bias": None}, {"use_swiglu_ffn": None}],
    "detr": [
        {"auxiliary_loss": None}, {"position_embedding_type": None}, {"backbone_config.downsample_in_bottleneck": None},
        {"backbone_config.downsample_in_first_stage": None}, {"backbone_config.hidden_act": None},
    ],
    "detr_basic": [{"backbone_config.downsample_in_first_stage": None}],
    "siglip": [{"vision_config.vision_use_head": None}],
    "wav2vec2": [{"add_adapter": None}, {"num_feat_extract_layers": None}],
    "whisper": [{"tie_word_embeddings": None}],
}  # fmt: skip
COMPUTED_HERE_OF_PROCESSORS = {
    **dict.fromkeys(["vit", "deit", "dinov2", "clip", "siglip", "segformer", "detr"], [{"resample": None}]),
    "wav2vec2": [{"feature_size": None}, {"padding_side": None}],
    "whisper": [{field: None} for field in ("dither", "hop_length", "n_fft", "padding_side", "padding_value", "sampling_rate")],
}
torch.set_num_threads(1)
transformers.logging.set_verbosity(transformers.logging.CRITICAL)


def flat(config):
    """Its fields, those of parts as `part.field`."""
    fields = {}
    for field, value in config.items():
        is_part = isinstance(value, dict) and field.endswith("_config")
        fields |= {f"{field}.{name}": value for name, value in value.items()} if is_part else {field: value}
    return fields


def changed(config, fields):
    config = json.loads(json.dumps(config))
    for field, value in fields.items():
        *parts, name = field.split(".")
        part = config
        for inner in parts:
            part = part[inner]
        if value == GONE:
            part.pop(name, None)
        else:
            part[name] = value
    return config


def others(value):
    """Values of the same kind."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [round(value + 0.1, 4)]
    if isinstance(value, str):
        activations = ["gelu", "gelu_new", "relu", "tanh"]
        return activations if value in [*activations, "quick_gelu", "gelu_pytorch_tanh"] else ["other"]
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return [value[:-1], value[:-1] + [value[-1] + 1]]
    return []


def more_rows(model):
    both = [HEADS, OTHER_HEADS]
    return {
        "vit": [{"num_attention_heads": 4}, {"image_size": 8}, {"hidden_act": "quick_gelu"}, {"image_size": [12, 12]}],
        "dinov2": [{"num_attention_heads": 4}, {"image_size": 15}, {"mlp_ratio": 2.5}, {"layerscale_value": 0.1}],
        "detr": [
            dict.fromkeys(both, 4), {both[0]: 4}, {both[1]: 4}, dict.fromkeys(both, GONE), {"num_hidden_layers": 2}, {"num_hidden_layers": 3},
            {"encoder_ffn_dim": 18, "decoder_ffn_dim": 18}, {"backbone_config": None}, {"backbone_config": GONE}, {"max_position_embeddings": 3},
            {"backbone_config.out_features": ["stage1"], "backbone_config.out_indices": [1]}, {"position_embedding_type": "learned"},
        ],
        "segformer": [{"num_encoder_blocks": 3}, {"depths": [1] * 5}, {"strides": [4, 2, 1, 1]}, {"image_size": 3}],
        "clip": [
            {"text_config": None}, {"text_config": GONE}, {"vision_config": None}, {"vision_config_dict": {"hidden_size": 9}}, {"text_config.num_attention_heads": 2},
            {"vision_config.num_attention_heads": 3}, {"text_config.eos_token_id": 9},
        ],
        "siglip": [OF_CLIP, {"text_config": None}, {"vision_config.num_attention_heads": 3}, {"text_config.num_attention_heads": 2}],
        "wav2vec2": [
            {"num_attention_heads": 4}, {"adapter_attn_dim": 3}, {"conv_dim": [5, 7], "conv_kernel": [5, 3], "conv_stride": [3, 2], "num_feat_extract_layers": 2},
            {"num_conv_pos_embedding_groups": 3}, {"feat_extract_norm": "layer"}, {"feat_extract_activation": "silu"},
        ],
        "whisper": [dict.fromkeys(both, 4), {both[0]: 4}, {both[1]: 4}, {"num_hidden_layers": 3}, {"activation_function": "silu"}],
    }.get(model, [])  # fmt: skip


def inputs(model, kind):
    values = load_file(HERE / model / "values.safetensors")
    if kind == "detr":
        shape = [2, 3, 29, 43] if "mask" in values else [2, 1, 21, 37]
        mask = {"pixel_mask": values["mask"].long()} if "mask" in values else {}
        return {"pixel_values": ((torch.arange(torch.Size(shape).numel()) * 7919 % 251).double() / 125 - 1).reshape(shape), **mask}
    if kind == "segformer":
        return {"pixel_values": values["images"].double() / 64 - 2}
    if kind in ("clip", "siglip"):
        return {"input_ids": values["tokens"], "pixel_values": values["images"].double()}
    if kind == "wav2vec2":
        mask = torch.arange(173)[None] < torch.tensor([173, 101])[:, None]
        return {"input_values": values["samples"].double() / 64 - 2, "attention_mask": mask.long()}
    if kind == "whisper":
        return {"input_features": values["spectrogram.0"].double(), "decoder_input_ids": torch.tensor([[29, 30, 33, 34, 9, 2, 14, 4]])}
    return {"pixel_values": values["images"].double()}


def spread(numbers):
    """As many of them as `NUMBERS`, from the first to the last."""
    numbers = numbers.double().flatten()
    places = [index * (len(numbers) - 1) // (NUMBERS - 1) for index in range(NUMBERS)]
    return [float(f"{number:.6g}") for number in numbers[places].tolist()]


def computed(model, base, config):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        (Path(folder) / "model.safetensors").symlink_to(HERE / model / "model.safetensors")
        kind = getattr(transformers, base["architectures"][0])
        loaded, info = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True)
        for keys in ["missing_keys", "unexpected_keys", "mismatched_keys"]:
            if info[keys]:
                return f"weights: {keys}"
        with torch.no_grad():
            output = loaded.double().eval()(**inputs(model, base["model_type"]))
    numbers = (output.logits_per_image if "logits_per_image" in output else output.logits)[0]
    return spread(numbers) if numbers.isfinite().all() else "refused: not finite"


def image():
    """As in `make_image_processors.py`."""
    row, column, channel = numpy.meshgrid(numpy.arange(31), numpy.arange(47), numpy.arange(3), indexing="ij")
    return Image.fromarray(((row * row * 3 + column * 5 * (channel + 1) + row * column) % 256).astype(numpy.uint8))


def processed(kind, _base, settings):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "preprocessor_config.json").write_text(json.dumps(settings))
        (Path(folder) / "config.json").write_text(json.dumps({"model_type": kind}))
        if kind in ("wav2vec2", "whisper"):
            extractor = AutoFeatureExtractor.from_pretrained(folder)
            values = load_file(HERE / "wav2vec2" / "extracted.safetensors")
            recordings = [values[f"samples.{row}"].float().numpy() / 64 - 1 for row in range(2)]
            # For what `dither` adds.
            torch.manual_seed(0)
            rate = {"sampling_rate": 16_000, "return_tensors": "pt"}
            if kind == "whisper":
                batch = extractor(recordings[0], **rate)["input_features"]
            else:
                batch = extractor(recordings, padding=True, **rate)["input_values"]
        else:
            batch = AutoImageProcessor.from_pretrained(folder)(images=image(), return_tensors="pt")["pixel_values"]
    return [*batch.shape, *spread(batch)] if batch.isfinite().all() else "refused: not finite"


def processors():
    """The settings of small ones."""
    numbers = dict(image_mean=[0.5, 0.4, 0.3], image_std=[0.5, 0.6, 0.7])
    exact, crop = {"size": {"height": 12, "width": 13}}, {"size": {"shortest_edge": 15}, "crop_size": {"height": 12, "width": 13}}
    for model, name, settings in [
        ("vit", "ViTImageProcessor", exact),
        ("deit", "DeiTImageProcessor", {**crop, "size": {"height": 17, "width": 19}}),
        ("dinov2", "BitImageProcessor", crop),
        ("clip", "CLIPImageProcessor", crop),
        ("siglip", "SiglipImageProcessor", exact),
        ("segformer", "SegformerImageProcessor", exact),
        ("detr", "DetrImageProcessor", {"size": {"shortest_edge": 11, "longest_edge": 30}}),
        ("wav2vec2", "Wav2Vec2FeatureExtractor", {}),
        ("whisper", "WhisperFeatureExtractor", {"feature_size": 8, "chunk_length": 1}),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            options = settings if model in ("wav2vec2", "whisper") else settings | numbers
            getattr(transformers, name)(**options).save_pretrained(folder)
            yield model, json.loads((Path(folder) / "preprocessor_config.json").read_text())


def rows_of_processor(model, settings):
    kind = "feature_extractor_type" if model in ("wav2vec2", "whisper") else "image_processor_type"
    for field, value in settings.items():
        if not is_row(model, field):
            continue
        ways = [] if field in ("size", "crop_size", kind, "resample") else others(value)
        yield from ({field: other} for other in [None, GONE, *ways])
    if kind == "feature_extractor_type":
        yield {"sampling_rate": 8000}
        yield {"padding_side": "left"}
        yield from [{"do_normalize": False}, {"return_attention_mask": True, "padding_value": 0.5}] if model == "wav2vec2" else [{"n_fft": 512}]
        return
    yield from [{"size": 9}, {"size": 9, kind: GONE}]
    yield from [{"size": 9, "default_to_square": way} for way in (True, False, None)]
    yield from [{"do_center_crop": None, "crop_size": None}, {"do_center_crop": True, "crop_size": 7}]
    if model not in ("vit", "dinov2", "detr"):
        return
    sides = {"height": 9, "width": 10}
    for size in [[9, 10], sides, {"height": 9}, {"shortest_edge": 9}, {"longest_edge": 20}, {"shortest_edge": 9, "longest_edge": 12}, {"max_height": 9, "max_width": 20}, {}]:
        yield {"size": size}
    yield {"size": 9, "max_size": 12}
    yield from [{"crop_size": 7}, {"do_center_crop": True, "crop_size": sides}, {"do_center_crop": True}]
    yield {"do_center_crop": True, "crop_size": {"shortest_edge": 9}}
    yield from [{"resample": way} for way in (0, 1, 2, 3) if way != settings["resample"]]
    yield from [{"image_mean": 0.2}, {"image_mean": [0.1, 0.2]}, {"image_std": 0.2}, {"image_std": 0}]
    yield from [{"do_pad": True}, {"pad_size": {"height": 40, "width": 40}}, {"do_normalize": None, "image_mean": None, "image_std": None}]
    if model == "detr":
        yield from [{"feature_extractor_type": "DetrFeatureExtractor", kind: GONE}, {"size": 90}]


def is_row(model, field):
    left_out = {*LEFT_OUT, *LEFT_OUT_OF.get(model, [])}
    return field not in left_out and field.removeprefix("backbone_config.") not in left_out - {"model_type"}


def tried(compute, model, base, config, before):
    try:
        gives = compute(model, base, config)
    except Exception as error:
        return "refused: " + type(error).__name__.removeprefix("StrictDataclass")
    return BEFORE if gives == before else gives


def table(compute, model, base, candidates, harmless, not_here, here):
    """The rows, one for each of the candidates whose fields change something; `harmless` is whether there is a row of all others."""
    before = compute(model, base, base)
    rows, seen = [], []
    for fields in candidates:
        config = changed(base, fields)
        if config not in [base, *seen]:
            seen.append(config)
            rows.append((fields, tried(compute, model, base, config, before)))
    changes = {field for fields, gives in rows if gives not in (BEFORE, TYPE) for field in fields}
    harmless = {} if harmless else None
    lists = {"rows": [], "not_here": [], "here": []}
    for fields, gives in rows:
        is_computed = gives == BEFORE or isinstance(gives, list)
        kind = "not_here" if fields in not_here or is_computed and "tanh" in fields.values() else "here" if fields in here else "rows"
        assert kind == "rows" or is_computed == (kind == "not_here"), (model, fields)
        if kind != "rows" or set(fields) & changes:
            lists[kind].append((fields, gives))
        elif harmless is not None:
            harmless |= {field: value for field, value in fields.items() if value not in (None, GONE)}
    if harmless:
        lists["rows"].append((harmless, tried(compute, model, base, changed(base, harmless), before)))
    return {"before": before, **lists}


def main():
    tables = {"version": transformers.__version__, "models": {}, "processors": {}}
    for model, names in MODELS.items():
        base = json.loads((HERE / model / "config.json").read_text())
        fields = [field for field in flat(base) if is_row(model, field) and (not names or field in names.split())]
        candidates = [{field: other} for field in fields for other in [None, GONE, *others(flat(base)[field])]]
        tables["models"][model] = table(
            computed, model, base, candidates + more_rows(model), not names, NOT_HERE.get(model, []), COMPUTED_HERE.get(model, [])
        )
    for model, settings in processors():
        lists = NOT_HERE_OF_PROCESSORS.get(model, []), COMPUTED_HERE_OF_PROCESSORS.get(model, [])
        rows = table(processed, model, settings, rows_of_processor(model, settings), True, *lists)
        tables["processors"][model] = {"file": settings, **rows}
    kinds = []
    for kind in ("models", "processors"):
        texts = []
        for model, rows in tables[kind].items():
            lines = {name: ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows.pop(name)) for name in ("rows", "not_here", "here")}
            lists = ", ".join(f'"{name}": [\n{lines}\n]' for name, lines in lines.items() if lines)
            texts.append(f'"{model}": {json.dumps(rows)[:-1]}, {lists}}}')
        kinds.append(f'"{kind}": {{\n' + ",\n".join(texts) + "\n}")
    OUT.write_text(f'{{"version": "{transformers.__version__}",\n' + ",\n".join(kinds) + "\n}\n")


main()
